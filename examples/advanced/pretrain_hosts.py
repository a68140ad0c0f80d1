"""Pretrain on several hosts with Keras' JAX backend, sharding the records by host.

Run on each of N hosts, with the same records and I from 0 to N - 1:

    KERAS_BACKEND=jax python examples/advanced/pretrain_hosts.py --data records \\
        --output out --config albert_tiny_zh --coordinator FIRST_HOST:1234 \\
        --hosts N --host I

Each step uses the batches of all hosts. OUT is a directory that all hosts share: host 0
writes the training state and the checkpoint there, and all hosts resume from that state
after an interruption. Requires pip install 'albert-tf[jax]'. Keras 3 does not support
MultiWorkerMirroredStrategy.
"""

import argparse
import os
import sys

if os.environ.setdefault("KERAS_BACKEND", "jax") != "jax":
    sys.exit("Error: training on several hosts requires KERAS_BACKEND=jax.")

import keras

import zh
from albert_tf.checkpoints.layouts import original_layout
from albert_tf.checkpoints.saving import Saving
from albert_tf.models import AlbertBackbone, AlbertPretrainer
from albert_tf.pretraining import PretrainingRecords, pretrain
from albert_tf.training import scheduled_optimizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--config", required=True, choices=zh.SIZES, help="model size")
    parser.add_argument("--coordinator", required=True, help="address of host 0")
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--host", type=int, required=True, help="index of this host")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=128, help="per host")
    parser.add_argument("--interval", type=int, default=1000, help="steps per save")
    parser.add_argument("--learning-rate", type=float, default=0.00176)
    arguments = parser.parse_args()
    records = PretrainingRecords(arguments.data)
    masks = records.masks()

    keras.distribution.initialize(
        arguments.coordinator, arguments.hosts, arguments.host
    )
    # Every host reads its own shard, so Keras must not shard the data again.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    # All hosts must start from the same weights.
    keras.utils.set_random_seed(1)
    size = {**zh.SIZES[arguments.config], "vocabulary_size": masks.vocabulary_size}
    model = AlbertPretrainer(
        AlbertBackbone(**size), num_sop_classes=records.order_classes
    )
    model.compile(scheduled_optimizer("lamb", arguments.learning_rate, arguments.steps))
    layout = original_layout(model.backbone.get_config()).name
    # Report now what could not be written after the training.
    saving = Saving(model, arguments.output, layout, records.tokenizer)
    pretrain(
        model,
        records,
        arguments.output,
        arguments.steps,
        arguments.batch_size,
        masks,
        interval=min(arguments.interval, arguments.steps),
        verbose=2 if arguments.host == 0 else 0,
        num_shards=arguments.hosts,
        shard=arguments.host,
    )
    if arguments.host == 0:
        saving.write()
        print(f"Checkpoint ({layout}) is in {arguments.output}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
