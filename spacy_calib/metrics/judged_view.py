"""The subject of a page: scores of tokens, or of whole entities, with gold, and their places in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pairs.build import JudgedPairs
from ..types import Groups, Ints
from .calibration_errors import group_slices
from .proper import PROPER

if TYPE_CHECKING:
    from ..pairs.scored_corpus import ScoredCorpus


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


def carried_by(corpus: ScoredCorpus, view: JudgedView) -> Ints:
    """Return the pairs of each counted token with its predicted label; of entities all pairs."""
    if view.kind == "entities":
        return np.arange(len(view))
    rows = view.pairs.rows
    places: Ints = np.flatnonzero((corpus.tags[corpus.hits >= 0] == corpus.labels[rows]) & corpus.is_counted[rows])
    return places


def carried_places(corpus: ScoredCorpus, view: JudgedView) -> tuple[Ints, Ints]:
    """Return (Doc, place in the pairs) of each token with its predicted label, or of each entity."""
    units = carried_by(corpus, view)
    return corpus.docs[view.starts[units]], units
