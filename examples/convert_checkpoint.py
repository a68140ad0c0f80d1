"""Convert a TensorFlow 1 checkpoint to Keras and Hugging Face.

    python examples/convert_checkpoint.py [CHECKPOINT OUTPUT]

Compares the outputs of each conversion with those of the original on a random batch.
By default converts the bundled checkpoint, which is in albert_zh's layout, and a tiny
one with random weights in Google's layout, into a temporary folder.
"""

import pathlib
import sys
import tempfile

import albert_tf

HERE = pathlib.Path(__file__).parent
output = pathlib.Path(sys.argv[2] if sys.argv[2:] else tempfile.mkdtemp())
if sys.argv[1:]:
    checkpoints = [pathlib.Path(sys.argv[1])]
else:
    backbone = albert_tf.models.AlbertBackbone(
        vocabulary_size=100,
        num_layers=2,
        num_heads=2,
        embedding_dim=16,
        hidden_dim=32,
        intermediate_dim=64,
        embedding_projection="after_layer_norm",
    )
    albert_tf.save_checkpoint(backbone, output / "google_tf1", layout="google")
    checkpoints = [HERE / "albert_micro_zh", output / "google_tf1"]

differences = []
for path in checkpoints:
    report = albert_tf.inspect_checkpoint(path)
    heads = ", ".join(report.heads) or "no heads"
    print(f"{path.name}: {report.layout}, {report.parameters:,} parameters, {heads}")
    for layout in ("keras", "huggingface"):
        target = output / f"{path.name}_{layout}"
        try:
            done = albert_tf.convert_checkpoint(path, target, layout)
        except albert_tf.checkpoints.CheckpointError as error:
            print(f"  {layout}: impossible. {error}")
            continue
        found = albert_tf.verify_conversion(path, target)
        differences += found.values()
        print(f"  {layout}: {len(done.moved)} weights, {len(done.left_out)} left out")
        for name, difference in found.items():
            print(f"    {name}: largest difference {difference:.1e}")
