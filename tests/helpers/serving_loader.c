/* Loads a SavedModel as TensorFlow Serving does, and asks it once.

   serving_loader MODEL LIBRARY... < request

   Each LIBRARY registers operations of tensorflow_text. The request is lines of words:

     in NAME INDEX string|int32 RANK SIZE...     then a line a value, strings in hex
     out NAME INDEX

   The answer is for each "out" a line `TYPE RANK SIZE...`, and then a line a value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensorflow/c/c_api.h"

#define MOST 16

static void check(TF_Status *status, const char *what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

static TF_Output find(TF_Graph *graph, const char *name, int index) {
  TF_Output output = {TF_GraphOperationByName(graph, name), index};
  if (!output.oper) { fprintf(stderr, "no operation %s\n", name); exit(1); }
  return output;
}

static char *read_line(void) {
  static char *line = NULL;
  static size_t size = 0;
  ssize_t length = getline(&line, &size, stdin);
  if (length < 0) return NULL;
  line[strcspn(line, "\n")] = 0;
  return line;
}

static void set_string(TF_TString *to, const char *hex) {
  size_t length = strlen(hex) / 2;
  char *bytes = malloc(length + 1);
  for (size_t i = 0; i < length; ++i) {
    unsigned byte;
    sscanf(hex + 2 * i, "%2x", &byte);
    bytes[i] = (char)byte;
  }
  TF_TString_Init(to);
  TF_TString_Copy(to, bytes, length);
  free(bytes);
}

static TF_Tensor *read_tensor(TF_DataType type, int rank, const int64_t *sizes) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= sizes[i];
  size_t size = type == TF_STRING ? sizeof(TF_TString) : sizeof(int32_t);
  TF_Tensor *tensor = TF_AllocateTensor(type, sizes, rank, count * size);
  for (int64_t i = 0; i < count; ++i) {
    const char *line = read_line();
    if (type == TF_STRING) set_string((TF_TString *)TF_TensorData(tensor) + i, line);
    else ((int32_t *)TF_TensorData(tensor))[i] = atoi(line);
  }
  return tensor;
}

static void write_value(TF_DataType type, const void *data, int64_t i) {
  if (type == TF_FLOAT) printf("%.9g\n", ((const float *)data)[i]);
  else if (type == TF_INT32) printf("%d\n", ((const int32_t *)data)[i]);
  else if (type == TF_INT64) printf("%lld\n", (long long)((const int64_t *)data)[i]);
  else if (type == TF_BOOL) printf("%d\n", ((const unsigned char *)data)[i]);
  else if (type == TF_STRING) {
    const TF_TString *text = (const TF_TString *)data + i;
    const unsigned char *bytes = (const unsigned char *)TF_TString_GetDataPointer(text);
    for (size_t k = 0; k < TF_TString_GetSize(text); ++k) printf("%02x", bytes[k]);
    printf("\n");
  } else { fprintf(stderr, "type %d\n", type); exit(1); }
}

static void write_tensor(const TF_Tensor *tensor) {
  int64_t count = 1;
  printf("%d %d", TF_TensorType(tensor), TF_NumDims(tensor));
  for (int i = 0; i < TF_NumDims(tensor); ++i) {
    count *= TF_Dim(tensor, i);
    printf(" %lld", (long long)TF_Dim(tensor, i));
  }
  printf("\n");
  for (int64_t i = 0; i < count; ++i)
    write_value(TF_TensorType(tensor), TF_TensorData(tensor), i);
}

int main(int argc, char **argv) {
  TF_Status *status = TF_NewStatus();
  for (int i = 2; i < argc; ++i) {
    TF_LoadLibrary(argv[i], status);
    check(status, argv[i]);
  }
  const char *tags[] = {"serve"};
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "load");

  TF_Output inputs[MOST], outputs[MOST];
  TF_Tensor *given[MOST], *answers[MOST] = {NULL};
  int input_count = 0, output_count = 0, index, rank, read, more;
  char name[512], type[16], *line;
  while ((line = read_line())) {
    if (sscanf(line, "out %511s %d", name, &index) == 2) {
      outputs[output_count++] = find(graph, name, index);
    } else if (sscanf(line, "in %511s %d %15s %d%n", name, &index, type, &rank, &read)
               == 4) {
      int64_t sizes[8];
      for (int i = 0; i < rank; ++i, read += more) {
        long long size;
        sscanf(line + read, "%lld%n", &size, &more);
        sizes[i] = size;
      }
      inputs[input_count] = find(graph, name, index);
      given[input_count++] =
          read_tensor(strcmp(type, "string") ? TF_INT32 : TF_STRING, rank, sizes);
    }
  }
  TF_SessionRun(session, NULL, inputs, given, input_count, outputs, answers,
                output_count, NULL, 0, NULL, status);
  check(status, "run");
  for (int i = 0; i < output_count; ++i) write_tensor(answers[i]);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  return 0;
}
