"""Packages of the extras in pyproject.toml, imported when they are used."""

from types import ModuleType

from albert_tf_lite import errors

# Requirements by package; all others are in `albert-tf[evaluation]`.
_REQUIREMENTS = {
    **dict.fromkeys(("huggingface_hub", "pooch", "safetensors"), "'albert-tf[hf]'"),
    "gradio": "'albert-tf[demo]'",
    "onnx": "'albert-tf[onnx]'",
    "onnxruntime": "'albert-tf[onnx]'",
    "openpyxl": "'albert-tf[cli]' (or openpyxl alone)",
    "pyarrow": "pyarrow",
    "ray": "'albert-tf[ray]'",
    "torch": "torch",
    "zstandard": "'albert-tf[fast]'",
}
_EVALUATION = "'albert-tf[evaluation]'"


def import_extra(module: str) -> ModuleType:
    """Import a module of an optional package, or name the command that installs it."""
    package = module.partition(".")[0]
    return errors.import_extra(module, _REQUIREMENTS.get(package, _EVALUATION))
