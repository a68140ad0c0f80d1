"""Pretrain with Keras' JAX backend on a GPU machine without TensorFlow.

    python examples/albert_micro_zh/jax_pretrain.py ARRAYS OUTPUT --minutes 24

ARRAYS is a directory of `jax_arrays.py`. OUTPUT gets weights.npz, which these scripts
convert to a checkpoint, config.json and history.npz (losses and accuracies by step).
With --minutes a speed trial at the start sets the number of steps, so that the learning
rate reaches 0 in time. The state is saved to OUTPUT every two minutes, and the same
command resumes from it. A resumed training ends with the same weights.

Losses, optimizer, schedule and masks are those of `albert-tf pretrain --optimizer
adamw --no-whole-word --mask-selection-rate 0.3:0.15`, with two differences. Batches
have equal numbers of tokens, with padding, instead of sequences. The order of the two
segments is drawn each time a sequence is read, because a model that reads it a hundred
times would memorize its label.

Requires JAX, Keras and KerasHub. With JAX_COMPILATION_CACHE_DIR set, a resumed training
does not compile again.
"""

import argparse
import json
import math
import os
import pathlib
import sys
import time

if os.environ.setdefault("KERAS_BACKEND", "jax") != "jax":
    sys.exit("Error: this script requires KERAS_BACKEND=jax.")

import jax
import jax.numpy as jnp
import jax_recipe_text
import keras
import numpy as np
from jax_batches import MASK_RATES, Plan, read_arrays

from albert_tf.backbone.precision import as_dtype
from albert_tf.files import complete_file, only_writer, write_json
from albert_tf.training.optimizers import (
    AdamW,
    WarmupLinearDecay,
    scheduled_optimizer,
)
from albert_tf_lite.errors import AlbertError

SAVE_SECONDS = 120


class Training:
    """A training that is saved in, and resumed from, its output directory.

    Each call of the device trains on `--steps-per-call` batches of one padded length.
    """

    def __init__(self, given):
        arrays, self.settings = read_arrays(given.arrays)
        # The module with the model, the batches and the losses.
        self.recipe = jax_recipe_text
        self.given, self.state_file = given, given.output / "state.npz"
        self.size = dict(self.settings["size"])
        self.size["num_layers"] = given.layers or self.size["num_layers"]
        longest, seed = self.settings["sequence_length"], given.seed
        self.plan = Plan(
            *(arrays["lengths"], longest, given.batch_tokens),
            *(given.steps_per_call, seed),
        )
        self.lengths = arrays["lengths"]
        self.arrays = jax.device_put(arrays)
        keras.utils.set_random_seed(seed)
        keras.config.set_dtype_policy(as_dtype(given.precision))
        self.model = self.recipe.build_model(self.size, self.settings)
        if given.start:
            with np.load(given.start) as start:
                for x in self.model.weights:
                    if x.path in start.files:
                        x.assign(start[x.path].astype("float32"))
                    else:
                        print(f"New: {x.path}")
        config = scheduled_optimizer(
            "adamw", given.learning_rate, ema_momentum=given.ema_momentum
        ).get_config()
        # A variable, because the schedule would be compiled before the speed trial.
        self.optimizer = AdamW.from_config(
            {**config, "learning_rate": given.learning_rate}
        )
        self.optimizer.build(self.model.trainable_variables)
        names = [x.name for x in self.optimizer.variables]
        self.rate_index = names.index("learning_rate")
        self.compiled = jax.jit(self._call, static_argnums=3, donate_argnums=0)
        self.history, self.call, self.calls = {}, 0, 0
        # A resumed training must have the same settings.
        others = ("output", "minutes", "stop")
        values = {x: y for x, y in vars(given).items() if x not in others}
        identity = {**values, "size": self.size, "sequences": len(self.lengths)}
        self.identity = json.dumps(identity, default=str)

    @property
    def variables(self):
        return [*self.model.trainable_variables, *self.optimizer.variables]

    @property
    def steps(self):
        return self.calls * self.given.steps_per_call

    def batch(self, arrays, rows, step, mask_rate, width):
        key = jax.random.fold_in(jax.random.key(self.given.seed), step)
        settings = self.settings
        return self.recipe.draw_batch(arrays, settings, rows, width, key, mask_rate)

    def _call(self, state, arrays, inputs, width):
        """Train on the batches of a call, and return the state and the metrics."""

        def step(state, inputs):
            weights, optimizer = state
            rows, number, mask_rate, learning_rate = inputs
            batch = self.batch(arrays, rows, number, mask_rate, width)
            gradients, found = jax.grad(self.recipe.losses, has_aux=True)(
                weights, self.model, *batch
            )
            optimizer = [*optimizer]
            optimizer[self.rate_index] = learning_rate
            applied = self.optimizer.stateless_apply(optimizer, gradients, weights)
            return tuple(map(list, applied)), found

        return jax.lax.scan(step, state, inputs)

    def initial_state(self):
        values = [jnp.array(x.value) for x in self.variables]
        count = len(self.model.trainable_variables)
        return values[:count], values[count:]

    def run_call(self, state, call):
        """Run a call and return the state and the metrics as arrays."""
        width, inputs = self.inputs(call)
        state, found = self.compiled(state, self.arrays, inputs, width)
        return state, jax.device_get(found)

    def inputs(self, call):
        """Return the padded length of a call, and the inputs of its steps."""
        width, rows = self.plan[call]
        steps = np.arange(len(rows)) + call * len(rows)
        warmup = int(self.steps * self.given.warmup)
        schedule = WarmupLinearDecay(self.given.learning_rate, self.steps, warmup)
        mask_rates = np.interp(steps / self.steps, (0, 1), self.given.mask_rates)
        return width, (rows, steps, mask_rates.astype("float32"), schedule(steps))

    def plan_steps(self):
        """Set the number of calls, for --minutes after timing each length."""
        per_call = self.given.steps_per_call
        self.calls = (self.given.steps or per_call) // per_call
        if self.given.steps:
            return
        widths = [width for width, _ in self.plan.epoch(0)]
        state, seconds = self.initial_state(), 0.0
        for width in set(widths):
            state, _ = self.run_call(state, widths.index(width))
            start = time.monotonic()
            for _ in range(3):
                state, _ = self.run_call(state, widths.index(width))
            seconds += (time.monotonic() - start) / 3 * widths.count(width)
        # The rest is for saving states and shuffling epochs.
        calls = 0.95 * 60 * self.given.minutes / seconds * len(widths)
        self.calls = max(int(calls), 1)

    def save(self, state):
        values = {f"value_{i}": x for i, x in enumerate(jax.device_get(sum(state, [])))}
        numbers = {"call": self.call, "calls": self.calls, "identity": self.identity}
        with complete_file(self.state_file) as temporary, open(temporary, "wb") as file:
            np.savez(file, **values, **numbers, **self.joined_history())

    def load(self):
        with np.load(self.state_file) as saved:
            if str(saved["identity"]) != self.identity:
                raise AlbertError(
                    f"{self.state_file} is from a training with other settings: "
                    f"{saved['identity']}. Choose another output, or remove it to "
                    "start over."
                )
            self.call, self.calls = int(saved["call"]), int(saved["calls"])
            names = [x for x in saved.files if x.endswith(("_loss", "_accuracy"))]
            self.history = {name: [saved[name]] for name in names}
            for i, variable in enumerate(self.variables):
                variable.assign(saved[f"value_{i}"])

    def joined_history(self):
        return {name: np.concatenate(parts) for name, parts in self.history.items()}

    def write_weights(self, state):
        """Write the averaged weights by the paths of the variables."""
        for variable, value in zip(self.variables, sum(state, []), strict=True):
            variable.assign(value)
        self.optimizer.finalize_variable_values(self.model.trainable_variables)
        write_json(self.given.output / "config.json", self.size)
        weights = {x.path: np.asarray(x) for x in self.model.weights}
        for name, values in (
            ("history", self.joined_history()),
            ("weights", weights),
        ):
            path = self.given.output / f"{name}.npz"
            with complete_file(path) as temporary, open(temporary, "wb") as file:
                np.savez_compressed(file, **values)

    def run(self, started):
        """Train to the end, or until --stop minutes after `started`."""
        if self.state_file.exists():
            self.load()
        else:
            self.plan_steps()
        print(
            f"Step {self.call * self.given.steps_per_call:,} of {self.steps:,}",
            flush=True,
        )
        state, first = self.initial_state(), self.call
        saved_at, tokens = time.monotonic(), 0
        while self.call < self.calls:
            state, found = self.run_call(state, self.call)
            for name, values in found.items():
                self.history.setdefault(name, []).append(values)
            tokens += int(self.lengths[self.plan[self.call][1]].sum(dtype="int64"))
            self.call += 1
            now = time.monotonic()
            is_last = now - started > 60 * self.given.stop or self.call == self.calls
            if is_last or now - saved_at > SAVE_SECONDS:
                recent = {
                    name: float(np.mean(parts[-(self.call - first) :]))
                    for name, parts in self.history.items()
                }
                speed = tokens / (now - saved_at)
                print(
                    f"{self.call * self.given.steps_per_call:,} steps,",
                    f"{speed:,.0f} tokens/s,",
                    *(f"{name} {value:.4f}" for name, value in recent.items()),
                    flush=True,
                )
                self.save(state)
                saved_at, tokens, first = time.monotonic(), 0, self.call
            if is_last:
                break
        self.write_weights(state)
        is_done = self.call == self.calls
        print("Finished." if is_done else "Stopped. Run the same command to resume.")


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arrays", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--steps", type=int)
    length.add_argument("--minutes", type=float, help="of training, without start-up")
    parser.add_argument(
        "--stop", type=float, default=math.inf, help="minutes until this process ends"
    )
    parser.add_argument("--layers", type=int, help="default: those of the arrays")
    parser.add_argument("--start", type=pathlib.Path, help="weights.npz to start from")
    parser.add_argument("--batch-tokens", type=int, default=65536, help="with padding")
    parser.add_argument("--steps-per-call", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=float, default=0.05)
    parser.add_argument(
        "--mask-rates", type=float, nargs=2, default=MASK_RATES, help="first and last"
    )
    parser.add_argument("--ema-momentum", type=float, default=0.999)
    parser.add_argument(
        "--precision", choices=("float32", "bfloat16"), default="bfloat16"
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.steps and given.steps % given.steps_per_call:
        raise AlbertError(
            "--steps must be a multiple of --steps-per-call. Received: "
            f"{given.steps}, {given.steps_per_call}"
        )
    return given


def main(arguments=None):
    started = time.monotonic()
    given = parse_arguments(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    with only_writer(given.output):
        Training(given).run(started)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
