"""The curves of a training."""

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from albert_tf.pretraining.training import plot_pretraining
from albert_tf.training.run_state import draw

BLUE, ORANGE = (31, 119, 180), (255, 127, 14)


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn."""
    drawn, savefig = [], Figure.savefig

    def kept(figure, *args, **kwargs):
        drawn.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", kept)
    return drawn


def test_a_panel_for_each_metric_there_is(tmp_path, figures):
    history = {"loss": [3.0, 2.0], "mlm_logits_accuracy": [0.1, 0.2]}
    plot_pretraining(history, 100, tmp_path / "loss.png")
    (figure,) = figures
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["loss", "masked words: accuracy"]
    assert figure.axes[0].lines[0].get_xdata().tolist() == [100, 200]
    assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in tmp_path.iterdir()] == ["loss.png"]


def test_dev_began_later_and_the_backend_of_the_caller_stays(tmp_path, figures):
    history = {"loss": [3.0, 2.0, 1.0], "val_loss": [None, None, 1.5]}
    before = matplotlib.get_backend()
    try:
        matplotlib.use("svg")
        draw(history, {"loss": "loss"}, tmp_path / "a.png")
        assert matplotlib.get_backend() == "svg"
    finally:
        matplotlib.use(before)
    dev = figures[0].axes[0].lines[1]
    assert dev.get_xdata()[-1] == 3 and dev.get_ydata()[-1] == 1.5


def test_one_epoch_is_visible(tmp_path):
    draw({"loss": [3.0], "val_loss": [2.0]}, {"loss": "loss"}, tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")[:, :, :3] * 255
    # Without the legend, which has the colours, too: on the left of the panel.
    for colour in (BLUE, ORANGE):
        columns = (abs(picture - colour).max(-1) < 2).sum(0)
        assert (columns > 0).sum() > 4 and columns.max() > 4
