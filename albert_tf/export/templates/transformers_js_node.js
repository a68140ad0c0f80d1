import { env, $names } from "@huggingface/transformers";

env.localModelPath = "./";
env.allowRemoteModels = false;
$call
