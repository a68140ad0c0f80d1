"""Google ALBERT's tokenizer in plain Python, and a small model to try it on.

Written from the rules of google-research/albert `tokenization.py`:

1. One space between words and none around them, where a word is what
   `str.split` gives.
2. Decompose (NFKD), drop characters with a combining class, lower-case.
3. Split into pieces with SentencePiece.
4. A piece that ends in a digit and a comma is encoded again without its spaces and
   the comma, and the comma put after it.
"""

import io
import unicodedata

import sentencepiece
from small_classifier import randomised, small_backbone

from albert_tf.models import AlbertTextClassifier
from albert_tf.tokenizers import SentencePieceTokenizer

SPACE = "\u2581"

# Without "x", "Q", "~" and all that is not ASCII: they are unknown to the model.
TEXT = """The committee met on 3 May 2018, and again on 5 June 2018, in the town hall.
In 2017, the river rose by 12, 15, and then 20 feet, and 1,000 people left town.
A letter of 1,500 words, written in 2018, was read to them by the mayor.
She said: "We had 5, they had 7, and nobody had 9," and then she sat down.
Of the 2018, 2017, and 2016 reports, only the one of 2016, was ever printed.
Why did the old bridge (built in 1912, of iron) not fall? Nobody knows; I do.
It's a good question, isn't it? Half of the people asked it [and half did not].
The baker, the doctor and the teacher walked along the river for 2, 3, or 4 hours.
Their dogs ran ahead - far ahead! - and came back with sticks, stones and a hat.
There were 10,000 stars, and over the water the moon; the night was very quiet.
Just before noon on 1 June 2017, a kind judge fixed the price: $9.50 per jar of jam.
Zoe paid with a 20 and got 10.50 back, plus a "thank you" and 2 free cookies.
"""


def train_model(**kwargs):
    """The bytes of a model with the special tokens of Google's."""
    model = io.BytesIO()
    arguments = {"vocab_size": 160, "hard_vocab_limit": False, "num_threads": 1}
    arguments |= {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "minloglevel": 2}
    arguments |= {"user_defined_symbols": ["(", ")"]}
    arguments |= {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.lower().splitlines()),
        model_writer=model,
        **{**arguments, **kwargs},
    )
    return model.getvalue()


def english_classifier():
    """A small classifier whose answers to different texts differ clearly."""
    tokenizer = SentencePieceTokenizer(train_model())
    backbone = small_backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        embedding_projection="after_layer_norm",
    )
    labels = ["bad", "fair", "good"]
    return randomised(
        AlbertTextClassifier.from_backbone(backbone, tokenizer, 3, labels=labels)
    )


def clean_up(text, lowercase=True):
    text = unicodedata.normalize("NFKD", " ".join(text.split()))
    text = "".join(c for c in text if not unicodedata.combining(c))
    return text.lower() if lowercase else text


class Reference:
    """Pieces and ids of text by the model `proto`, bytes."""

    def __init__(self, proto, lowercase=True):
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        self.lowercase = lowercase

    def pieces(self, text):
        pieces = []
        for piece in self._encode(clean_up(text, self.lowercase)):
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                pieces += self._encode(piece[:-1].replace(SPACE, ""))
                piece = ","
            pieces.append(piece)
        return pieces

    def ids(self, text):
        return [self.processor.piece_to_id(piece) for piece in self.pieces(text)]

    def tokens(self, text):
        """The pieces with `<unk>` for those that are not in the vocabulary."""
        return [self.processor.id_to_piece(id) for id in self.ids(text)]

    def _encode(self, text):
        return self.processor.encode(text, out_type=str)
