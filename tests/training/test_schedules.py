import keras
import pytest

from albert_tf.training import WarmupLinearDecay


def rates(schedule, steps):
    return [float(schedule(step)) for step in steps]


def test_by_hand():
    schedule = WarmupLinearDecay(0.7, total_steps=10, warmup_steps=3)
    # Up in thirds, then down in eighths; the step after the last one is at 0.
    up = [0.7 / 3, 1.4 / 3, 0.7]
    down = [0.7 * left / 8 for left in (7, 6, 5, 4, 3, 2, 1)]
    assert rates(schedule, range(10)) == pytest.approx(up + down)
    assert rates(schedule, (10, 11, 1000)) == [0.0, 0.0, 0.0]


def test_without_warmup_the_peak_lies_before_the_first_step():
    schedule = WarmupLinearDecay(1.0, total_steps=4, warmup_steps=0)
    assert rates(schedule, range(5)) == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0])


def test_impossible_warmup_is_refused():
    for warmup in (-1, 11):
        with pytest.raises(ValueError, match=f"warmup_steps={warmup}, total_steps=10"):
            WarmupLinearDecay(0.7, total_steps=10, warmup_steps=warmup)


def test_serialization():
    schedule = WarmupLinearDecay(0.7, total_steps=10, warmup_steps=3)
    config = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(config)
    assert type(again) is WarmupLinearDecay
    assert again.get_config() == schedule.get_config()
