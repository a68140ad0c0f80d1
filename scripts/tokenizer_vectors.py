"""Write the test vectors of the tokenizer: `python scripts/tokenizer_vectors.py`.

`docs/guides/tokenizer_vectors.json` has texts with the ids and the offsets of the
bundled vocabulary, for ports to other languages. The texts are made up: sentences, and
pieces that ports get wrong, joined by a seed.
"""

import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "albert_tf_lite")]

from albert_tf_lite.word_piece import WordPieceTokenizer  # noqa: E402

VOCABULARY = ROOT / "examples" / "albert_micro_zh" / "vocab.txt"
PATH = ROOT / "docs" / "guides" / "tokenizer_vectors.json"
COUNT = 300
SENTENCES = (
    "房间很干净，服务员也热情。",
    "发货太慢了，等了一个星期！",
    "今天的天气怎么样？",
    "這家餐廳的菜很好吃。",
    "他说：“明天再来吧。”",
    "价格是￥8,999.00元（含税）",
    "The room was clean, but too small.",
    "iPhone 15 Pro Max的电池不行",
    "打开https://example.com/a?b=1看看",
    "东京タワーへ行きました。",
    "서울에서 만나요",
    "Москва и Санкт-Петербург",
    "ΟΔΟΣ ΣΟΦΙΑΣ",
    "İstanbul'da güzel bir gün",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "Café crème brûlée à la carte",
    "",
)
PIECES = (
    # Spaces and controls: tab, no-break, ideographic, zero-width, NUL, BOM, separators.
    *(" ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff"),
    *("\x00", "\x07", "\u2028", "\u2029", "\u0085", "\u00ad", "\ufffd", "\u180e"),
    # Full-width forms, digits, punctuation and symbols.
    *("ＡＢＣ", "１２３", "！？", "①②", "㈱", "ⅷ", "½", "№", "℃", "、。", "…", "——"),
    *("“”", "《》", "$^`|~", "€£", "#@&%", "_", "-", "'", "...", "，，，"),
    # Accents: composed and decomposed, ligatures, letters that grow.
    *("é", "e\u0301", "ﬁ", "ß", "ẞ", "Æ", "İ", "ı", "Å", "\u0301", "ñ", "Ǆ", "ŉ"),
    # Beyond the BMP: emoji with joiners and colours, ideographs, letters.
    *("😀", "👨‍👩‍👧", "👍🏽", "🇨🇳", "𠮷", "𪚥", "𝒜", "𐐀", "❤️"),
    # Compatibility and rare ideographs, kana, radicals, iteration marks.
    *("豈", "㐀", "丂", "々", "〇", "〆", "ヶ", "ー", "が", "か\u3099", "⼀", "ㄅ"),
    # Names of special tokens, and words about the limit of characters.
    *("[MASK]", "[CLS]", "[SEP]", "[UNK]", "##的", "a" * 199, "a" * 200, "a" * 201),
    *("2024年", "COVID-19", "3.14", "C++", "e-mail", "WiFi", "ok", "Hello", "的"),
)


def texts():
    """Return the texts: each sentence and piece alone, then mixtures of them."""
    random.seed(0)
    found = dict.fromkeys([*SENTENCES, *PIECES])
    while len(found) < COUNT:
        parts = random.sample(PIECES, random.randint(1, 4))
        parts.append(random.choice(SENTENCES))
        random.shuffle(parts)
        found[random.choice(("", " ")).join(parts)] = None
    return list(found)


def vectors():
    """Return a dict per text: the text, its ids and the starts and ends of tokens."""
    tokens = VOCABULARY.read_text("utf-8").removesuffix("\n").split("\n")
    tokenizer = WordPieceTokenizer(tokens)
    found = []
    for text in texts():
        ids, starts, ends = tokenizer.tokenize_with_offsets(text)
        offsets = [[int(x), int(y)] for x, y in zip(starts, ends, strict=True)]
        found.append({"text": text, "ids": list(map(int, ids)), "offsets": offsets})
    return found


def main():
    lines = ",\n".join(json.dumps(x, separators=(",", ":")) for x in vectors())
    PATH.write_text(f"[\n{lines}\n]\n", "ascii")
    print(f"{PATH.relative_to(ROOT)}: {PATH.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
