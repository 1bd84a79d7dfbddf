"""A token or an entity in its context: the words around it, and its gold labels."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ...metrics.judged_view import JudgedView
    from ...pairs.scored_corpus import ScoredCorpus

WINDOW = 18  # maximum number of tokens on either side
_MAX_CHARACTERS = 400  # maximum number of characters that are shown of a document


class Passage(NamedTuple):
    """A part of a text, with the words before and after it in the sentence."""

    before: str
    text: str
    after: str


def passage_of(corpus: ScoredCorpus, start: int, end: int) -> Passage:
    """Return tokens start:end of a corpus with up to WINDOW tokens of the sentence on either side; "…" marks a cut.

    If each "token" of the corpus is a whole document, return the document alone, cut after _MAX_CHARACTERS characters.
    """
    first, last = corpus.sentence_of(start)[0], corpus.sentence_of(end - 1)[1]
    low, high = max(first, start - WINDOW), min(last, end + WINDOW)
    left, text, right = (_join_words(corpus, *part) for part in ((low, start), (start, end), (end, high)))
    if corpus.of_documents:
        return Passage("", textwrap.shorten(text, _MAX_CHARACTERS, placeholder=" …"), "")
    lead, trail = "… " if low > first else "", " …" if high < last else ""
    gap = text[len(text.rstrip()) :]  # the space after the last token
    return Passage(lead + left.lstrip(), text.rstrip(), gap + right.rstrip() + trail)


def _join_words(corpus: ScoredCorpus, first: int, last: int) -> str:
    """Return the text of the tokens first:last of a corpus, with the spaces between them."""
    words, spaces = corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist()
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


def gold_of(corpus: ScoredCorpus, start: int, end: int) -> str:
    """Return the gold labels of tokens start:end of a corpus as a text: equal neighbours once, "?" for an unknown label."""
    labels = corpus.gold[start:end].tolist()
    run_labels = [label for i, label in enumerate(labels) if not i or label != labels[i - 1]]
    return " ".join(corpus.names[label] if label >= 0 else "?" for label in run_labels)


def describe_pair(corpus: ScoredCorpus, view: JudgedView, pair: int) -> dict[str, Any]:
    """Describe the token or entity of a pair in a view, with its words and labels. corpus: All tokens. pair (int): Its index.

    RETURNS (dict): "before", "text", "after"; labels "carried" (predicted), "gold"; scores of the pair "raw", "calibrated".
    """
    start, end = int(view.starts[pair]), int(view.ends[pair])
    if view.kind == "entities":
        label_name = view.labels[int(view.pairs.tags[pair])]
    else:
        label = int(corpus.labels[start])  # predicted; the pair may be of another label
        label_name = corpus.names[label] if label >= 0 else ""
    return {
        **passage_of(corpus, start, end)._asdict(),
        "carried": label_name,
        "gold": gold_of(corpus, start, end),
        "raw": float(view.pairs.scores[pair]),
        "calibrated": float(view.calibrated[pair]),
    }
