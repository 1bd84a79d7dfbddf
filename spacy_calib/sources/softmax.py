"""Softmax heads over token vectors: tagger, morphologizer, trainable_lemmatizer, senter.

The head is run again on the Docs. With a listener it reads what the shared embedding component already wrote on the Doc, so that this
costs next to nothing; a component with its own tok2vec runs it once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
from spacy.pipeline import EditTreeLemmatizer, Morphologizer, SentenceRecognizer, Tagger
from spacy.pipeline.multitask import MultitaskObjective
from spacy.strings import StringStore
from spacy.tokens import Doc

from ..annotations import ANNOTATIONS, Annotation
from ..errors import calib_error
from ..pairs.build import DenseScores, LogitScores, Scores, SparseScores
from ..types import Marginals
from .heads import missing_input, run_tokens, to_numpy
from .source import ComponentSource

# Subclasses first: a Morphologizer is a Tagger, too.
_LAYER_OF = {SentenceRecognizer: "sent", Morphologizer: "morph", Tagger: "tag", EditTreeLemmatizer: "lemma"}
# Less probable trees are not applied when lemmas are merged: a thousand of them cannot change a score by .001.
_SMALLEST_TREE = 1e-6


class SoftmaxSource(ComponentSource):
    """Probabilities of a tagger, morphologizer, lemmatizer or sentence recognizer.

    component (str): Name of the component. normalized (bool | None): Whether its model returns probabilities (True) or logits
        (False); None takes the setting of the model's softmax layer.
    """

    reads = ("tagger", "morphologizer", "trainable_lemmatizer", "senter")
    component_classes = tuple(_LAYER_OF)

    def __init__(self, component: str = "tagger", normalized: bool | None = None):
        super().__init__(component)
        self.normalized = normalized

    def supports(self, pipe: Any) -> bool:
        return super().supports(pipe) and hasattr(pipe, "model") and not isinstance(pipe, MultitaskObjective)

    def annotation(self, pipe: Any) -> Annotation:
        return ANNOTATIONS[next(layer for kind, layer in _LAYER_OF.items() if isinstance(pipe, kind))]

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return _tree_names(pipe) if isinstance(pipe, EditTreeLemmatizer) else tuple(pipe.labels)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return missing_input(pipe, docs)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        """Return the probabilities of tokens. RAISES C024: NaN or infinite values."""
        output = to_numpy(run_tokens(pipe.model, list(docs)))
        if not isfinite(np.add.reduce(output, axis=None)):
            bad_row = int(np.argmin(np.isfinite(output).all(axis=1)))
            bad = [doc for doc in docs for _ in range(len(doc))][bad_row]
            raise calib_error("C024", component=self.component, text=bad.text[:40])
        is_probability, temperature = self._output_form(pipe.model)
        scores: DenseScores | LogitScores = DenseScores(output) if is_probability else LogitScores(output, temperature)
        if isinstance(pipe, EditTreeLemmatizer):
            return SparseScores(_merge_trees(pipe, docs, scores.marginals_above(_SMALLEST_TREE)))
        return scores

    def count(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        if isinstance(pipe, EditTreeLemmatizer):
            return _count_trees(pipe, docs)
        return super().count(pipe, docs)

    def _output_form(self, model: Any) -> tuple[bool, float]:
        """Return (whether the model returns probabilities, the temperature of its softmax)."""
        if self.normalized is not None:
            return self.normalized, 1.0
        head = model
        while head.layers:
            head = head.layers[-1]
        if "softmax_normalize" not in head.attrs:
            raise calib_error(
                "C001", name="normalized", wanted="true or false for a model without a softmax layer of thinc's", given="none"
            )
        return bool(head.attrs["softmax_normalize"]), float(head.attrs.get("softmax_temperature", 1.0))


def _merge_trees(pipe: EditTreeLemmatizer, docs: Sequence[Doc], trees: Marginals) -> Marginals:
    """Add the probabilities of the edit trees that give a token the same lemma; its column is that of the most probable tree.

    Trees that do not apply to the token are left out.
    """
    tree_ids = pipe.labels
    bounds, columns, masses = trees.indptr.tolist(), trees.tags.tolist(), trees.scores.tolist()
    entries: list[tuple[int, int, float, str]] = []

    @cache
    def lemma_of(column: int, word: str) -> str | None:
        return pipe.trees.apply(tree_ids[column], word)

    for row, word in enumerate(token.text for doc in docs for token in doc):
        cell_by_lemma: dict[str, list[Any]] = {}
        for i in sorted(range(bounds[row], bounds[row + 1]), key=lambda i: -masses[i]):
            lemma = lemma_of(columns[i], word)
            if lemma is not None:
                cell_by_lemma.setdefault(lemma, [columns[i], 0.0])[1] += masses[i]
        entries += [(row, column, min(1.0, mass), lemma) for lemma, (column, mass) in cell_by_lemma.items()]
    rows, tags, scores, names = zip(*entries, strict=True) if entries else ((), (), (), ())
    return Marginals(
        np.array(rows, dtype=np.intp), np.array(tags, dtype=np.intp), np.array(scores, dtype=np.float64), trees.n_tokens, names
    )


def _tree_names(pipe: EditTreeLemmatizer) -> tuple[str, ...]:
    """Return a readable name of each edit tree; its number makes it unique."""
    return tuple(f"{tree}:{pipe.trees.tree_to_str(tree)}" for tree in pipe.labels)


def _count_trees(pipe: EditTreeLemmatizer, docs: Iterable[Doc]) -> Counter[str]:
    """Count the gold edit trees, on a copy of the lemmatizer's trees, because a look-up adds new ones."""
    trees = type(pipe.trees)(StringStore(pipe.vocab.strings)).from_bytes(pipe.trees.to_bytes())
    tree_names = {tree: name for tree, name in zip(pipe.labels, _tree_names(pipe), strict=True)}
    counts: Counter[int] = Counter()
    for doc in docs:
        counts.update(trees.add(token.text, token.lemma_) for token in doc if token.lemma)
    return Counter({tree_names.get(tree, f"{tree}:?"): n for tree, n in counts.items()})
