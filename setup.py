import pathlib

from setuptools import setup

root = pathlib.Path(__file__).parent

# - tensorflow and tensorflow-text are built against each other: the same minor.
# - keras-nlp is by now a shim over keras-hub of the same version. 0.25 is the last
#   for Python 3.10; presets and tasks are tested with it and with 0.32.
EXTRAS = {
    # The command line, its plots and its scores.
    "cli": ["typer>=0.15", "rich>=13", "matplotlib>=3.8", "scikit-learn>=1.4"],
    # Hugging Face checkpoints, read and written.
    "hf": ["safetensors>=0.4"],
    # Words cut 20 times as fast, the same ones; corpora as .zst.
    "fast": ["rjieba>=0.2.2", "zstandard>=0.22"],
    # Records made on several machines.
    "ray": ["ray>=2.40"],
    # Training on several hosts: KERAS_BACKEND=jax.
    "jax": ["jax>=0.4.30"],
    "test": [
        *("pytest>=8", "pytest-xdist>=3", "hypothesis>=6.100", "ruff>=0.9"),
        *("rjieba>=0.2.2", "zstandard>=0.22", "ray>=2.40", "jax>=0.4.30"),
        "tensorboard>=2.19",
    ],
    # What the tests marked `peers` compare with.
    "peers": ["torch==2.13.0", "transformers>=5"],
}

setup(
    name="albert-tf",
    version="0.1.0",
    description="ALBERT for Keras 3 on TensorFlow, first-class in Chinese",
    long_description=(root / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=[
        "albert_tf",
        "albert_tf.checkpoints",
        "albert_tf.checkpoints.formats",
        "albert_tf.checkpoints.layouts",
        "albert_tf.cli",
        "albert_tf.export",
        "albert_tf.layers",
        "albert_tf.models",
        "albert_tf.preprocessing",
        "albert_tf.training",
        "zh",
    ],
    package_data={"albert_tf.checkpoints": ["release_checksums.json"]},
    python_requires=">=3.10",
    install_requires=[
        "tensorflow>=2.20,<2.22",
        "tensorflow-text>=2.20,<2.22",
        "keras-nlp>=0.25,<0.33",
        "sentencepiece>=0.2",
        "jieba>=0.42",
        # Fetches releases; tensorflow needs it, too.
        "requests>=2.28",
    ],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["albert-tf=albert_tf.cli:main"]},
)
