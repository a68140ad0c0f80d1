"""`precision="auto"`: bfloat16 on processors that have units for it."""

import keras
import pytest
from checkpoint_files import GOLDEN, TOKENS

from albert_tf.backbone.precision import as_dtype, has_bfloat16_units
from albert_tf.models import AlbertTextClassifier


@pytest.mark.parametrize(
    ("flags", "has_units"), [("amx_bf16", True), ("avx512f avx512_vnni", False)]
)
def test_a_processor_has_units_for_bfloat16_by_its_flags(tmp_path, flags, has_units):
    info = tmp_path / "cpuinfo"
    info.write_text(f"model name\t: a processor\nflags\t\t: fpu {flags} avx2\n" * 2)
    assert has_bfloat16_units(info) == has_units
    assert not has_bfloat16_units(tmp_path / "none")


@pytest.mark.parametrize("device", ["cpu:0", "gpu:0"])
def test_a_task_takes_the_precision_of_the_machine(monkeypatch, device):
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: [device])
    path = GOLDEN / "albert_zh_postln"
    task = AlbertTextClassifier.from_checkpoint(
        path, num_classes=2, vocabulary=TOKENS, precision="auto"
    )
    is_fast = device == "gpu:0" or has_bfloat16_units()
    assert task.backbone.compute_dtype == ("bfloat16" if is_fast else "float32")
    assert task.weights[0].dtype == "float32"
    with pytest.raises(ValueError, match="'auto' or one of .*'int3'"):
        as_dtype("int3")
