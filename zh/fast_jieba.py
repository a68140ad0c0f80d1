"""jieba's words by way of rjieba, which is many times as fast.

Of rjieba's own words those without HMM are jieba's, in the blocks of characters that
jieba's dictionary is searched in. With HMM they are not: its probabilities are rounded
to six decimals, so that 常在较 is 常在 + 较 (jieba: 常 + 在 + 较), and it cuts symbols
and numbers (30-140, P-47) otherwise. And it takes more characters for Chinese ones. So:
everything outside these blocks is hidden from rjieba, it is asked for its words without
HMM, and jieba's HMM is computed here for all texts at once.
"""

import functools
import re

import numpy as np
from jieba import finalseg


def positions(lengths):
    """Where words of these lengths begin, one after the other, an int64 array."""
    lengths = np.fromiter(lengths, np.int64)
    return np.cumsum(lengths) - lengths


def code_points(text):
    """The characters of a text as a uint32 array."""
    # Half a surrogate pair, which no encoding has, is a character like another.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def load_rjieba():
    """An rjieba of our own, as its default one may be changed; None without it."""
    try:
        import rjieba
    except ImportError:
        return None
    # New in 0.2.2.
    if not hasattr(rjieba.Jieba, "has_word"):
        return None
    rust = rjieba.Jieba()
    # jieba's dictionary has B超 twice, and its total counts both. Where two ways to
    # cut are equally probable, such as 一 + 一一 and 一一 + 一, the total decides, by
    # its rounding. So rjieba gets what it lacks, as a word that no block contains.
    rust.add_word("\n", 3, None)
    return rust


# The characters of jieba's `re_han_default`. All others are words by themselves.
_OTHER, _CHINESE, _ALPHANUMERIC, _SYMBOL = range(4)
_KINDS = np.full(0x9FD7, _OTHER, np.uint8)
_KINDS[0x4E00:0x9FD6] = _CHINESE
_KINDS[[code for code in range(128) if chr(code).isalnum()]] = _ALPHANUMERIC
_KINDS[[ord(symbol) for symbol in "+#&._%-"]] = _SYMBOL

# How jieba's HMM cuts what is not Chinese: `re_skip`, and what is between.
_LATIN_WORD = re.compile(r"[a-zA-Z0-9]+(?:\.[0-9]+)?%?|[^a-zA-Z0-9]+")


def fast_boundaries(rust, hmm, text):
    """Where jieba's words begin, an int64 array, by what `load_rjieba` gave."""
    codes = code_points(text)
    kinds = _KINDS[np.minimum(codes, len(_KINDS) - 1)]
    visible = np.where(kinds == _OTHER, np.uint32(ord("\n")), codes).astype("<u4")
    words = rust.cut(visible.tobytes().decode("utf-32-le"), False)
    starts = positions(map(len, words))
    return _join_single_characters(rust, text, codes, kinds, starts) if hmm else starts


def _join_single_characters(rust, text, codes, kinds, starts):
    """Where words begin with the HMM, from where they begin without it."""
    begins = np.zeros(len(text), bool)
    begins[starts] = True
    kind, first, after, mixed = _runs(kinds, starts, len(text))

    # jieba leaves a run as it is if it is a word that the dictionary's search
    # found too rare, such as 一上; next to Latin letters it does not ask.
    chinese = (kind == _CHINESE) & (after - first > 1)
    asked = np.flatnonzero(chinese & ~mixed)
    spans = zip(first[asked].tolist(), after[asked].tolist(), strict=True)
    chinese[asked] = [not rust.has_word(text[start:end]) for start, end in spans]
    _cut_by_hmm(codes, begins, first[chinese], (after - first)[chinese])

    # Without a symbol these are one word already.
    latin = (kind == _ALPHANUMERIC) & (np.add.reduceat(begins, first) > 1)
    for start, end in zip(first[latin].tolist(), after[latin].tolist(), strict=True):
        begins[start:end] = False
        for word in _LATIN_WORD.finditer(text, start, end):
            begins[word.start()] = True
    return np.flatnonzero(begins)


def _runs(kinds, starts, length):
    """The runs of words of one character of one kind, and what is between.

    Returns arrays with an entry a run: its kind (`_OTHER` for what is no such run), its
    first position, the one after it, and whether a run of the other kind is next to it.
    """
    lengths = np.diff(starts, append=length)
    # Without HMM jieba has joined the letters and digits of a run.
    alphanumeric = np.add.reduceat(kinds == _ALPHANUMERIC, starts, dtype=np.int64)
    alone = (lengths == 1) | (alphanumeric == lengths)
    kind = np.where(alone, np.minimum(kinds[starts], _ALPHANUMERIC), _OTHER)
    run = np.flatnonzero(np.append(True, kind[1:] != kind[:-1]))
    kind, first = kind[run], starts[run]
    beside = (kind[1:] != _OTHER) & (kind[:-1] != _OTHER)
    mixed = np.append(beside, False) | np.append(False, beside)
    return kind, first, np.append(first[1:], length), mixed


# In the order of the letters: of two states as probable jieba takes the later.
_STATES = "BEMS"
_BEGIN, _END, _, _SINGLE = range(4)


@functools.cache
def _hmm():
    """jieba's log-probabilities as arrays.

    The two states that may be before each [2, states], the start [states], the
    transitions from those two [2, states], the emissions [characters, states].
    """
    before = [sorted(finalseg.PrevStatus[state]) for state in _STATES]
    transitions = [
        [finalseg.trans_P[earlier][state] for earlier in pair]
        for state, pair in zip(_STATES, before, strict=True)
    ]
    emissions = np.full((0x9FD6, 4), finalseg.MIN_FLOAT)
    for column, state in enumerate(_STATES):
        for character, probability in finalseg.emit_P[state].items():
            if ord(character) < len(emissions):
                emissions[ord(character), column] = probability
    return (
        np.array([[_STATES.index(earlier) for earlier in pair] for pair in before]).T,
        np.array([finalseg.start_P[state] for state in _STATES]),
        np.array(transitions).T,
        emissions,
    )


def _cut_by_hmm(codes, begins, first, lengths):
    """Mark where words begin in runs of Chinese characters, as jieba's Viterbi does.

    All runs go a character at a time, the longest first, so that those that have
    not ended are always the first ones. The sums are jieba's in its order, and thus
    equal in the last bit.
    """
    if not len(first):
        return
    before, start, transitions, emissions = _hmm()
    order = np.argsort(-lengths, kind="stable")
    first, lengths = first[order], lengths[order]
    steps = range(1, lengths[0])
    running = np.searchsorted(-lengths, [-step for step in steps], side="left")

    scores = start + emissions[codes[first]]
    taken = []
    for step, count in zip(steps, running.tolist(), strict=True):
        emitted = emissions[codes[first[:count] + step]]
        earlier, later = (
            scores[:count, states] + probabilities + emitted
            for states, probabilities in zip(before, transitions, strict=True)
        )
        taken.append(later >= earlier)
        scores[:count] = np.where(taken[-1], later, earlier)

    state = np.where(scores[:, _SINGLE] >= scores[:, _END], _SINGLE, _END)
    for step, count in zip(steps[::-1], running[::-1].tolist(), strict=True):
        now = state[:count]
        begins[first[:count] + step] = (now == _BEGIN) | (now == _SINGLE)
        choice = taken[step - 1][np.arange(count), now]
        state[:count] = before[choice.astype(np.int64), now]
