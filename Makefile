PYTHON ?= python3
VENV := .venv
# With the TensorFlow of the newest released TensorFlow Serving.
SERVING := .venv-serving
BIN := $(VENV)/bin
# The C library of Linux gives back what is free: 130 MB less at the peak.
PYTEST := MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=131072 \
	MALLOC_ARENA_MAX=2 \
	$(BIN)/python -m pytest -n 2 --dist loadfile \
	--no-loadscope-reorder
export TEXT

.PHONY: demo test test-all test-peers lint benchmark benchmark-convert \
	benchmark-export benchmark-pretrain-data clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test
	$(PYTEST) -m 'not slow and not peers'

# With what is slow: every damage, fuzzing, kills, several devices and hosts, Ray.
test-all: $(VENV)/.installed-test-all $(SERVING)/.installed
	ALBERT_TF_SERVING_PYTHON='$(CURDIR)/$(SERVING)/bin/python' \
	$(PYTEST) -m 'not peers'

test-peers: $(VENV)/.installed-peers
	$(PYTEST) -m peers

lint: $(VENV)/.installed-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

benchmark: $(VENV)/.installed
	$(BIN)/python benchmarks/run_all.py

benchmark-convert: $(VENV)/.installed
	$(BIN)/python benchmarks/convert.py

# VOCAB is a vocab.txt; OPTIONS are those of the script.
benchmark-export: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf,litert,onnx]'
	$(BIN)/python benchmarks/export.py '$(VOCAB)' $(OPTIONS)

benchmark-pretrain-data: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf,fast]'
	$(BIN)/python benchmarks/pretrain_data.py '$(TEXTS)'

clean:
	rm -rf $(VENV) $(SERVING) demo_output

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[cli,hf]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.installed-test-all: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --editable '.[test-all]'
	touch $@

$(VENV)/.installed-peers: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --editable '.[test,peers]'
	touch $@

$(SERVING)/.installed:
	$(PYTHON) -m venv $(SERVING)
	$(SERVING)/bin/python -m pip install --quiet \
		'tensorflow==2.20.*' 'tensorflow-text==2.20.*'
	touch $@
