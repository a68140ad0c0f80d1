"""`precision="auto"`: bfloat16 where it is measurably faster, float32 elsewhere."""

import keras
import pytest
from checkpoint_files import GOLDEN, TOKENS

from albert_tf.backbone import choose_precision, precision
from albert_tf.models import AlbertTextClassifier


def set_flags(monkeypatch, tmp_path, flags):
    info = tmp_path / "cpuinfo"
    info.write_text(f"model name\t: a processor\nflags\t\t: fpu {flags} avx2\n" * 2)
    monkeypatch.setattr(precision, "_CPU_INFO", info)
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["cpu:0"])


def test_the_measurement_decides(monkeypatch, tmp_path):
    monkeypatch.setattr(precision, "_ROUNDS", 2)
    assert 0.01 < precision._bfloat16_gain(64) < 100
    set_flags(monkeypatch, tmp_path, "avx512_bf16")
    for gain, dtype in ((1.1, "float32"), (1.3, "mixed_bfloat16")):
        monkeypatch.setattr(precision, "_bfloat16_gain", lambda _, gain=gain: gain)
        chosen = choose_precision()
        assert chosen.dtype == dtype
        assert f"{gain:.2f} times as fast" in chosen.reason
    # Processors without units for bfloat16 are not measured.
    set_flags(monkeypatch, tmp_path, "avx512f avx512_vnni")
    monkeypatch.setattr(precision, "_bfloat16_gain", None)
    chosen = choose_precision()
    assert chosen.dtype == "float32" and "no units" in str(chosen)


def test_a_task_takes_the_chosen_precision(monkeypatch, tmp_path, capsys):
    set_flags(monkeypatch, tmp_path, "amx_bf16")
    monkeypatch.setattr(precision, "_bfloat16_gain", lambda width: 2.0)
    path = GOLDEN / "albert_zh_postln"
    task = AlbertTextClassifier.from_checkpoint(
        path, num_classes=2, vocabulary=TOKENS, precision="auto"
    )
    assert task.backbone.compute_dtype == "bfloat16"
    assert task.weights[0].dtype == "float32"
    assert "2.00 times as fast in bfloat16" in capsys.readouterr().err
    with pytest.raises(ValueError, match="'auto' or one of .*'int3'"):
        precision.as_dtype("int3")
