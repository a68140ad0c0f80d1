"""`precision="auto"`: bfloat16 on processors that have units for it."""

import keras
import pytest
from checkpoint_files import GOLDEN, TOKENS

from albert_tf.backbone import precision
from albert_tf.models import AlbertTextClassifier


@pytest.mark.parametrize(
    ("flags", "dtype"), [("amx_bf16", "bfloat16"), ("avx512f avx512_vnni", "float32")]
)
def test_a_task_takes_the_precision_of_the_processor(
    monkeypatch, tmp_path, flags, dtype
):
    info = tmp_path / "cpuinfo"
    info.write_text(f"model name\t: a processor\nflags\t\t: fpu {flags} avx2\n" * 2)
    monkeypatch.setattr(precision, "_CPU_INFO", info)
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["cpu:0"])
    path = GOLDEN / "albert_zh_postln"
    task = AlbertTextClassifier.from_checkpoint(
        path, num_classes=2, vocabulary=TOKENS, precision="auto"
    )
    assert task.backbone.compute_dtype == dtype
    assert task.weights[0].dtype == "float32"
    with pytest.raises(ValueError, match="'auto' or one of .*'int3'"):
        precision.as_dtype("int3")
