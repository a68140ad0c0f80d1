"""Extend albert_micro_zh to Traditional characters and 512 positions.

    python examples/albert_micro_zh/extend.py text TEXT OUTPUT
    python examples/albert_micro_zh/extend.py vocabulary TEXT vocab.txt --model FIRST
    python examples/albert_micro_zh/extend.py weights vocab.txt start.npz --model FIRST

FIRST is the checkpoint of the first pretraining, TEXT the output of `make_text.py`.
`text` writes it with a tenth of the documents in Traditional characters. `vocabulary`
adds 3,000 characters, kana, full-width letters, emoji and symbols by their frequency in
TEXT and in its conversions. `weights` copies the token vectors of new characters from
their simplified twins, and repeats the 128 positions. Requires `opencc`.
"""

import argparse
import collections
import pathlib
import random
import unicodedata

import numpy as np
import opencc

TRADITIONAL = ("s2t", "s2tw", "s2hk")
SIMPLIFIED = ("t2s", "tw2s", "hk2s")
SHARE = 0.1
QUOTES = str.maketrans("“”‘’", "「」『』")
NUM_TOKENS, NUM_CHARACTERS = 8000, 3000
EMOJI = (
    "😂🤣😭😄😊😁😀😃😆😅🙂🙃😉😍🥰😘😋😜😝😎🤔🙄😏😒😔😌😢😥😓😩😫😤😡😠😱😨😰😳😴😷🤒🥺🥲🤗🤭🤫🤩🥳"
    "😇👍👎👏🙏👌💪🤝✌👋👇👆👉👈💯🔥✨🎉🎁🌹🌸🌟⭐🌞🌙☀⛄❤💕💖💗💔💓🍻🍺🎂🍲🍜☕🐶🐱🐷🌈⏰📱💻💰🚗✈"
    "🏠⚽🏀🎵📷✅❌❗❓⚠➕👧👦👩👨💃🙈🏻🏼🏽☺☹"
)
# Hiragana, katakana, full-width digits and letters.
RANGES = (
    *((0x3041, 0x3097), (0x30A1, 0x30FB), (0x30FC, 0x30FD)),
    *((0xFF10, 0xFF1A), (0xFF41, 0xFF5B)),
)


def write_text(source, output):
    """Write train and dev with a tenth of the documents in Traditional characters."""
    converters = [opencc.OpenCC(name) for name in TRADITIONAL]
    for path in sorted(source.glob("*/*.txt")):
        draw = random.Random(path.name)
        documents = path.read_text("utf-8").split("\n\n")
        for i, document in enumerate(documents):
            if draw.random() < SHARE:
                converted = draw.choice(converters).convert(document)
                documents[i] = converted.translate(QUOTES)
        target = output / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n\n".join(documents), encoding="utf-8")


def normalized(text):
    """Return the text as the tokenizer sees it, apart from spaces and controls."""
    text = unicodedata.normalize("NFD", text.lower())
    left_out = ("Mn", "Cc", "Cf", "Zs", "Co", "Cn", "Cs")
    return [x for x in text if unicodedata.category(x) not in left_out]


def write_vocabulary(source, output, model):
    tokens = (model / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
    lines = "\n".join(x.read_text("utf-8") for x in sorted(source.glob("train/*.txt")))
    counts = collections.Counter(lines)
    lines = lines.split("\n")
    random.Random(0).shuffle(lines)
    part = "\n".join(lines[: len(lines) // 4])
    converted = collections.Counter()
    for name in TRADITIONAL:
        converted.update(opencc.OpenCC(name).convert(part))
    # Both count three quarters of the text.
    for character, count in counts.items():
        converted[character] = max(converted[character], count * 3 / 4)
    found = collections.Counter()
    for character, count in converted.items():
        for x in normalized(character):
            found[x] += count
    ordered = [x for x, _ in found.most_common() if x not in tokens]
    ranges = [chr(code) for first, end in RANGES for code in range(first, end)]
    chosen = [x for x in ordered if "\u3400" <= x <= "\u9fff"][:NUM_CHARACTERS]
    chosen += normalized(EMOJI + "".join(ranges))
    chosen += [x for x in ordered if not "\u3400" <= x <= "\u9fff"]
    tokens = list(dict.fromkeys([*tokens, *chosen]))[:NUM_TOKENS]
    output.write_text("\n".join(tokens) + "\n", encoding="utf-8")


def twins(tokens, old):
    """Return the position of the simplified or plain form of each new token."""
    converters = [opencc.OpenCC(name).convert for name in SIMPLIFIED]
    converters.append(lambda x: unicodedata.normalize("NFKC", x).lower())
    places = {token: i for i, token in enumerate(tokens[:old])}
    found = {}
    for i, token in enumerate(tokens[old:], old):
        forms = (convert(token) for convert in converters)
        found[i] = next((places[x] for x in forms if x != token and x in places), None)
    return found


def write_weights(vocabulary, output, first):
    import albert_tf
    from albert_tf.models import AlbertBackbone, AlbertPretrainer

    tokens = vocabulary.read_text("utf-8").rstrip("\n").split("\n")
    model = AlbertPretrainer.from_checkpoint(first)
    old = model.backbone.vocabulary_size
    sizes = {"vocabulary_size": len(tokens), "max_sequence_length": 512}
    backbone = AlbertBackbone(**{**model.backbone.get_config(), **sizes})
    extended = AlbertPretrainer(backbone)
    draw = np.random.default_rng(0)
    for weight, target in zip(model.weights, extended.weights, strict=True):
        value = weight.numpy()
        if weight.path.endswith("position_table"):
            value = np.tile(value, (512 // len(value), 1))
        elif len(value) == old:
            new = np.empty((len(tokens), *value.shape[1:]), value.dtype)
            new[:old] = value
            for i, twin in twins(tokens, old).items():
                if twin is not None:
                    new[i] = value[twin]
                elif value.ndim == 1:
                    new[i] = value[-200:].mean()
                else:
                    noise = draw.normal(size=value.shape[1])
                    new[i] = value[tokens.index("[UNK]")] + value.std(0) / 2 * noise
            value = new
        target.assign(value)
    albert_tf.pretraining.write_weights(extended, output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for function in (write_text, write_vocabulary, write_weights):
        command = commands.add_parser(function.__name__.removeprefix("write_"))
        command.add_argument("source", type=pathlib.Path)
        command.add_argument("output", type=pathlib.Path)
        if function is not write_text:
            command.add_argument("--model", type=pathlib.Path, required=True)
        command.set_defaults(function=function)
    arguments = vars(parser.parse_args())
    arguments.pop("function")(*arguments.values())


if __name__ == "__main__":
    main()
