"""What a page is about: the scores of tokens, or of whole entities, that were compared with gold, and where each stands in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..metrics.calibration_error import group_slices
from ..metrics.proper import PROPER
from ..types import Floats, Groups, Ints, Pairs

if TYPE_CHECKING:
    from ..corpus.scored import ScoredCorpus

# So many tokens are shown on either side of the one in question.
WINDOW = 18


@dataclass(frozen=True, eq=False)
class Judged:
    """n pairs with gold, and how they are judged.

    unit (str): "tokens" or "entities". pairs (Pairs): Raw scores and hits. calibrated (Floats): Shape (n,). documents (Ints): Of each pair.
    labels (Sequence[str]): The tags, as columns of the pairs. groups (Groups): Of the tags. n_bins (int): Adaptive bins.
    seed (int): Of all random numbers. metrics (Mapping): Short name -> metric, see `Metric`. starts, ends (Ints): First token of each pair in the corpus, and the one after the last.
    named (bool): Whether a tag's column says which label it is; edit trees do not name the lemma that they give.
    """

    unit: str
    pairs: Pairs
    calibrated: Floats
    documents: Ints
    labels: Sequence[str]
    groups: Groups
    n_bins: int
    seed: int
    starts: Ints
    ends: Ints
    named: bool = True
    metrics: Mapping[str, Any] = field(default_factory=lambda: PROPER)

    @property
    def enough(self) -> int:
        """Pairs that a tag needs to be judged by itself: twenty in each bin."""
        return 20 * self.n_bins

    def group_slices(self) -> list[Ints]:
        """The pairs of each group."""
        return group_slices(self.pairs, self.groups)

    def tag_slices(self) -> dict[int, Ints]:
        """Column -> its pairs, for the tags that have any."""
        order = np.argsort(self.pairs.tags, kind="stable")
        present, firsts = np.unique(self.pairs.tags[order], return_index=True)
        parts = np.split(order, firsts[1:])
        return {int(tag): own for tag, own in zip(present, parts, strict=True) if tag >= 0} if len(order) else {}

    def group_name(self, tag: int) -> str:
        """The group of a tag; "" where it has none."""
        group = int(self.groups.of(np.array([tag]))[0])
        return self.groups.names[group] if group >= 0 else ""


def judged_tokens(
    corpus: ScoredCorpus,
    labels: Sequence[str],
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    metrics: Mapping[str, Any] = PROPER,
) -> Judged:
    """The scores of tokens with gold.

    labels (Sequence[str]): Of the source; the names of the corpus begin with them. metrics (Mapping): See Judged.
    """
    found = corpus.pairs()
    pairs = found.pairs
    tags = corpus.tags[corpus.hits >= 0]
    named = bool((pairs.tags == tags)[pairs.tags >= 0].all())
    starts, ends = pairs.rows, pairs.rows + 1
    return Judged(
        "tokens", pairs, found.calibrated, found.documents, labels, groups, n_bins, seed, starts, ends, named, metrics
    )


def judged_entities(
    corpus: ScoredCorpus,
    labels: Sequence[str],
    groups: Groups,
    n_bins: int = 10,
    seed: int = 0,
    metrics: Mapping[str, Any] = PROPER,
) -> Judged:
    """The scores of entities (or categorized spans) with gold. labels (Sequence[str]): Of the spans of the source."""
    found = corpus.span_pairs(labels)
    spans = corpus.spans
    keep = np.flatnonzero(spans.right >= 0)
    first = corpus.doc_starts[spans.docs[keep]]
    starts, ends = first + spans.starts[keep], first + spans.ends[keep]
    return Judged(
        "entities", found.pairs, found.calibrated, found.documents, labels, groups, n_bins, seed, starts, ends, metrics=metrics
    )


class Context(NamedTuple):
    """A stretch of text with what stands around it in its sentence."""

    before: str
    text: str
    after: str


def context_of(corpus: ScoredCorpus, start: int, end: int) -> Context:
    """The tokens from `start` to before `end`, with at most WINDOW on either side and an ellipsis where there are more."""
    first, last = corpus.sentence_of(start)[0], corpus.sentence_of(end - 1)[1]
    low, high = max(first, start - WINDOW), min(last, end + WINDOW)
    before, text, after = (_text(corpus, *part) for part in ((low, start), (start, end), (end, high)))
    lead = "… " if low > first else ""
    trail = " …" if high < last else ""
    gap = text[len(text.rstrip()) :]
    return Context(lead + before.lstrip(), text.rstrip(), gap + after.rstrip() + trail)


def _text(corpus: ScoredCorpus, first: int, last: int) -> str:
    words, spaces = corpus.words[first:last].tolist(), corpus.spaces[first:last].tolist()
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


def gold_of(corpus: ScoredCorpus, start: int, end: int) -> str:
    """The gold labels of some tokens, equal neighbours once; a question mark where none is known."""
    numbers = corpus.gold[start:end].tolist()
    changes = [number for i, number in enumerate(numbers) if not i or number != numbers[i - 1]]
    return " ".join(corpus.names[number] if number >= 0 else "?" for number in changes)


def in_context(corpus: ScoredCorpus, judged: Judged, pair: int) -> dict[str, Any]:
    """One pair as plain data: "before", "text", "after", "carried" (the label that stands there), "gold", "raw", "calibrated"."""
    start, end = int(judged.starts[pair]), int(judged.ends[pair])
    if judged.unit == "entities":
        carried = judged.labels[int(judged.pairs.tags[pair])]
    else:
        label = int(corpus.labels[start])
        carried = corpus.names[label] if label >= 0 else ""
    return {
        **context_of(corpus, start, end)._asdict(),
        "carried": carried,
        "gold": gold_of(corpus, start, end),
        "raw": float(judged.pairs.scores[pair]),
        "calibrated": float(judged.calibrated[pair]),
    }
