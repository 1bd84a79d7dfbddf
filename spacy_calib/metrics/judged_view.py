"""Scores of tokens or entities with gold, and their positions in the text, from which reports are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pairs.pairing import JudgedPairs, top_pairs
from ..types import Groups, Ints
from .proper import PROPER

if TYPE_CHECKING:
    from ..pairs.scored_corpus import ScoredCorpus
    from .metric import Metric

MANY = 20  # a label that is never right is reported from so many predictions on


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedView(JudgedPairs):
    """Scored pairs (`JudgedPairs`) of tokens, documents or entities, their positions, and the settings of their evaluation.

    kind (str): "tokens", "documents" or "entities". labels (Sequence[str]): Name of each tag. groups (Groups): Groups of tags.
    n_bins (int): Number of adaptive bins. seed (int): Seed of random numbers. metrics (Mapping): Short name -> `Metric`.
    starts, ends (Ints): First token of each pair in the corpus, and the one after the last, shape (n,). has_label_columns
    (bool): Whether each tag is a label (an edit tree is not). span_words (tuple): Word for a span, and its plural.
    """

    kind: str
    labels: Sequence[str]
    groups: Groups
    starts: Ints
    ends: Ints
    n_bins: int = 10
    seed: int = 0
    metrics: Mapping[str, Metric] = field(default_factory=lambda: PROPER)
    has_label_columns: bool = True
    span_words: tuple[str, str] = ("entity", "entities")

    @property
    def min_tag_pairs(self) -> int:
        """Number of pairs that a tag needs to be evaluated by itself: twenty in each bin."""
        return 20 * self.n_bins

    def tag_slices(self) -> dict[int, Ints]:
        """Return tag (a column) -> indices of its pairs, for the tags that have any."""
        order = np.argsort(self.pairs.tags, kind="stable")
        present, firsts = np.unique(self.pairs.tags[order], return_index=True)
        slices = np.split(order, firsts)[1:]  # without the part before the first tag, which is empty
        return {int(tag): index for tag, index in zip(present, slices, strict=True) if tag >= 0}

    def group_name(self, tag: int) -> str:
        """Return the name of the group of a tag (a column); "" if it has none."""
        group = int(self.groups.find(np.array([tag]))[0])
        return self.groups.names[group] if group >= 0 else ""


def judged_tokens(corpus: ScoredCorpus, labels: Sequence[str], **settings: Any) -> JudgedView:
    """Build a JudgedView of the corpus's tokens with gold, or of its documents if the source labels documents.

    labels (Sequence[str]): Labels of the source, by column. settings: Other fields of the `JudgedView`, such as groups.
    """
    pairs, kind = corpus.pairs(), f"{corpus.row_unit}s"
    rows, columns = pairs.pairs.rows, pairs.pairs.tags
    # Whether each column is the number of its label. Not if columns are edit trees, several of which may give one lemma.
    has_label_columns = bool((columns == corpus.tags[corpus.hits >= 0])[columns >= 0].all())
    fields = {"kind": kind, "labels": labels, "has_label_columns": has_label_columns, **settings}
    return JudgedView(**vars(pairs), starts=rows, ends=rows + 1, **fields)


def judged_entities(corpus: ScoredCorpus, labels: Sequence[str], **settings: Any) -> JudgedView:
    """Build a JudgedView of the corpus's entities (or categorized spans) with gold.

    labels (Sequence[str]): Span labels of the source, by column. settings: Other fields of the `JudgedView`, such as groups.
    """
    spans = corpus.spans
    index = np.flatnonzero(spans.right >= 0)  # of spans whose gold is known
    doc_starts, pairs = corpus.doc_starts[spans.docs[index]], corpus.span_pairs(labels)
    starts, ends = doc_starts + spans.starts[index], doc_starts + spans.ends[index]  # tokens of the corpus
    return JudgedView(**vars(pairs), kind="entities", labels=labels, starts=starts, ends=ends, **settings)


def predicted_indices(corpus: ScoredCorpus, view: JudgedView) -> Ints:
    """Return the indices of the pairs whose tag is the predicted label of their token (not white space); for entities, all.

    view (JudgedView): The pairs. corpus (ScoredCorpus): The corpus that the view was built from, with the predicted labels.
    """
    if view.kind == "entities":
        return np.arange(len(view))
    rows, has_gold = view.pairs.rows, corpus.hits >= 0  # the entries of the corpus with gold are the pairs of the view
    indices: Ints = np.flatnonzero((corpus.tags[has_gold] == corpus.labels[rows]) & corpus.is_counted[rows])
    return indices


def never_right(view: JudgedPairs, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the labels that are the top label in the pairs of `view` MANY times or more and never right, most frequent first.

    labels (Sequence[str]): Name of each tag; pairs with other tags are left out.
    RETURNS (list): "label", "predicted" (how many times) and "promised" (sum of calibrated scores) of each of them.
    """
    top, n = top_pairs(view.pairs), len(labels)
    top = top[(view.pairs.tags[top] >= 0) & (view.pairs.tags[top] < n)]  # with a tag that is one of the labels
    tags = view.pairs.tags[top]
    n_predicted = np.bincount(tags, minlength=n)
    n_right = np.bincount(tags, view.pairs.hits[top], n)
    expected_hits = np.bincount(tags, view.calibrated[top], n)
    tags_never_right = np.flatnonzero((n_predicted >= MANY) & (n_right == 0)).tolist()
    tags_never_right.sort(key=lambda tag: (-n_predicted[tag], labels[tag]))
    return [
        {"label": labels[tag], "predicted": int(n_predicted[tag]), "promised": float(expected_hits[tag])}
        for tag in tags_never_right
    ]
