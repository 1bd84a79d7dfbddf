"""The subject of a page: scores of tokens, or of whole entities, with gold, and their places in the text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..pairs.build import JudgedPairs
from ..pairs.documents import DOCUMENT
from ..types import Groups, Ints
from .calibration_errors import group_slices
from .proper import PROPER

if TYPE_CHECKING:
    from ..pairs.scored_corpus import ScoredCorpus

# So many tokens are shown on either side of the one in question.
WINDOW = 18
# So many characters of a document.
_DOCUMENT = 400


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedView(JudgedPairs):
    """Pairs with gold of one kind, how they are evaluated, and their places in the text.

    kind (str): "tokens", "documents" or "entities". called (tuple[str, str]): Words for a span and for several. labels
    (Sequence[str]): The tags, as columns. n_bins (int): Adaptive bins. metrics (Mapping): Short name -> `Metric`. starts, ends
    (Ints): Tokens of each pair. named (bool): Whether a tag's column is its label; edit trees are not lemmas.
    """

    kind: str
    labels: Sequence[str]
    groups: Groups
    n_bins: int
    seed: int
    metrics: Mapping[str, Any]
    starts: Ints
    ends: Ints
    named: bool = True
    called: tuple[str, str] = ("entity", "entities")

    @property
    def enough(self) -> int:
        """Pairs that a tag needs to be evaluated by itself: twenty in each bin."""
        return 20 * self.n_bins

    def group_slices(self) -> list[Ints]:
        """Return the pairs of each group."""
        return group_slices(self.pairs, self.groups)

    def tag_slices(self) -> dict[int, Ints]:
        """Return column -> its pairs, for the tags that have any."""
        order = np.argsort(self.pairs.tags, kind="stable")
        present, firsts = np.unique(self.pairs.tags[order], return_index=True)
        parts = np.split(order, firsts[1:])
        return {int(tag): part for tag, part in zip(present, parts, strict=True) if tag >= 0} if len(order) else {}

    def group_name(self, tag: int) -> str:
        """Return the group of a tag, or ""."""
        group = int(self.groups.of(np.array([tag]))[0])
        return self.groups.names[group] if group >= 0 else ""


def judged_tokens(
    corpus: ScoredCorpus,
    labels: Sequence[str],
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    metrics: Mapping[str, Any] = PROPER,
) -> JudgedView:
    """Return the scores of tokens with gold, or of documents if these have labels. labels: First names of the corpus."""
    pairs = corpus.pairs()
    tags, columns = corpus.tags[corpus.hits >= 0], pairs.pairs.tags
    return JudgedView(
        **vars(pairs), kind=f"{corpus.row_unit}s", labels=labels, groups=groups, n_bins=n_bins, seed=seed, metrics=metrics,
        starts=pairs.pairs.rows, ends=pairs.pairs.rows + 1, named=bool((columns == tags)[columns >= 0].all()),
    )  # fmt: skip


def judged_entities(
    corpus: ScoredCorpus,
    labels: Sequence[str],
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    metrics: Mapping[str, Any] = PROPER,
    called: tuple[str, str] = ("entity", "entities"),
) -> JudgedView:
    """Return the scores of entities (or categorized spans) with gold. labels (Sequence[str]): Of the spans of the source."""
    spans = corpus.spans
    keep = np.flatnonzero(spans.right >= 0)
    first = corpus.doc_starts[spans.docs[keep]]
    return JudgedView(
        **vars(corpus.span_pairs(labels)), kind="entities", called=called, labels=labels, groups=groups, n_bins=n_bins, seed=seed,
        metrics=metrics, starts=first + spans.starts[keep], ends=first + spans.ends[keep],
    )  # fmt: skip


def without_places(pairs: JudgedPairs, **about: Any) -> JudgedView:
    """Return pairs whose places in the text are not known. about: The other fields of a `JudgedView`."""
    unknown = np.zeros(0, dtype=np.intp)
    return JudgedView(**vars(pairs), starts=unknown, ends=unknown, **about)


class Passage(NamedTuple):
    """A stretch of text with its context in the sentence."""

    before: str
    text: str
    after: str


def passage_of(corpus: ScoredCorpus, start: int, end: int) -> Passage:
    """Return the tokens from `start` to before `end`, with at most WINDOW on either side; an ellipsis stands for more."""
    first, last = corpus.sentence_of(start)[0], corpus.sentence_of(end - 1)[1]
    low, high = max(first, start - WINDOW), min(last, end + WINDOW)
    before, text, after = (_text(corpus, *part) for part in ((low, start), (start, end), (end, high)))
    if corpus.row_unit == DOCUMENT:
        return Passage("", textwrap.shorten(text, _DOCUMENT, placeholder=" …"), "")
    lead = "… " if low > first else ""
    trail = " …" if high < last else ""
    gap = text[len(text.rstrip()) :]
    return Passage(lead + before.lstrip(), text.rstrip(), gap + after.rstrip() + trail)


def _text(corpus: ScoredCorpus, first: int, last: int) -> str:
    words, spaces = corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist()
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


def carried_by(corpus: ScoredCorpus, view: JudgedView) -> Ints:
    """Return the pairs of each counted token with its predicted label; of entities all pairs."""
    if view.kind == "entities":
        return np.arange(len(view))
    rows = view.pairs.rows
    places: Ints = np.flatnonzero((corpus.tags[corpus.hits >= 0] == corpus.labels[rows]) & corpus.counted[rows])
    return places


def carried_places(corpus: ScoredCorpus, view: JudgedView) -> tuple[Ints, Ints]:
    """Return (Doc, place in the pairs) of each token with its predicted label, or of each entity."""
    units = carried_by(corpus, view)
    return corpus.docs[view.starts[units]], units


def gold_of(corpus: ScoredCorpus, start: int, end: int) -> str:
    """Return the gold labels of some tokens, equal neighbours once; a question mark for unknown ones."""
    numbers = corpus.gold[start:end].tolist()
    changes = [number for i, number in enumerate(numbers) if not i or number != numbers[i - 1]]
    return " ".join(corpus.names[number] if number >= 0 else "?" for number in changes)


def in_context(corpus: ScoredCorpus, view: JudgedView, pair: int) -> dict[str, Any]:
    """Return a pair as plain data: "before", "text", "after", "carried" (predicted label), "gold", "raw", "calibrated"."""
    start, end = int(view.starts[pair]), int(view.ends[pair])
    if view.kind == "entities":
        label_name = view.labels[int(view.pairs.tags[pair])]
    else:
        label = int(corpus.labels[start])
        label_name = corpus.names[label] if label >= 0 else ""
    return {
        **passage_of(corpus, start, end)._asdict(),
        "carried": label_name,
        "gold": gold_of(corpus, start, end),
        "raw": float(view.pairs.scores[pair]),
        "calibrated": float(view.calibrated[pair]),
    }
