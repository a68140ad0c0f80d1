"""bfloat16 where it is faster, and nowhere else."""

import pytest
from checkpoint_files import GOLDEN
from small_classifier import VOCABULARY

from albert_tf.backbone import choose_precision, precision
from albert_tf.models import AlbertTextClassifier


def with_flags(monkeypatch, tmp_path, flags):
    told = tmp_path / "cpuinfo"
    told.write_text(f"model name\t: a processor\nflags\t\t: fpu {flags} avx2\n" * 2)
    monkeypatch.setattr(precision, "_CPU_INFO", told)
    monkeypatch.setattr(precision, "_has_gpu", lambda: False)


def test_a_processor_without_units_is_not_measured(monkeypatch, tmp_path):
    with_flags(monkeypatch, tmp_path, "avx512f avx512_vnni")
    monkeypatch.setattr(precision, "_bfloat16_gain", None)
    chosen = choose_precision()
    assert chosen.dtype == "float32" and "no units" in str(chosen)


@pytest.mark.parametrize("flags", ["avx512_bf16", "amx_bf16"])
@pytest.mark.parametrize("gain", [0.4, 1.1, 1.3])
def test_with_units_the_measurement_decides(monkeypatch, tmp_path, flags, gain):
    with_flags(monkeypatch, tmp_path, flags)
    monkeypatch.setattr(precision, "_bfloat16_gain", lambda width: gain)
    chosen = choose_precision()
    assert chosen.dtype == ("mixed_bfloat16" if gain > 1.25 else "float32")
    assert f"{gain:.2f} times as fast" in chosen.reason


def test_the_measurement_is_a_ratio_of_times(monkeypatch):
    monkeypatch.setattr(precision, "_ROUNDS", 2)
    assert 0.01 < precision._bfloat16_gain(64) < 100


def test_a_task_takes_it(monkeypatch, tmp_path, capsys):
    with_flags(monkeypatch, tmp_path, "amx_bf16")
    widths = []

    def gain(width):
        widths.append(width)
        return 2.0

    monkeypatch.setattr(precision, "_bfloat16_gain", gain)
    options = {"num_classes": 2, "vocabulary": VOCABULARY}
    path = GOLDEN / "albert_zh_postln"
    task = AlbertTextClassifier.from_checkpoint(path, precision="auto", **options)
    assert task.backbone.compute_dtype == "bfloat16"
    assert task.weights[0].dtype == "float32"
    assert widths == [task.backbone.hidden_dim]
    assert "2.00 times as fast in bfloat16" in capsys.readouterr().err
    for wrong, message in (({"dtype": "float32"}, "not both"), ({}, "'auto' or in")):
        with pytest.raises(ValueError, match=message):
            AlbertTextClassifier.from_checkpoint(
                path, precision="int3", **options, **wrong
            )
