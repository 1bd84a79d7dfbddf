"""The code that runs models of spaCy's components: the source of softmax heads, and the scorer of parser states.

Softmax heads (tagger, morphologizer, trainable_lemmatizer, senter) are run again on the Docs. With a listener a head reads what
the shared embedding component already wrote on the Doc, which costs next to nothing; with its own tok2vec it runs that, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.ml.parser_model import precompute_hiddens
from spacy.pipeline import EditTreeLemmatizer, Morphologizer, SentenceRecognizer, Tagger
from spacy.pipeline.multitask import MultitaskObjective
from spacy.strings import StringStore
from spacy.tokens import Doc
from thinc.api import CupyOps, set_dropout_rate

from ..annotations import ANNOTATIONS, Annotation
from ..errors import calib_error
from ..pairs.scores import DenseScores, LogitScores, Scores, SparseScores
from ..spacy_private import has_mixed_precision, torch_module
from ..types import Marginals
from .source import ComponentSource, reasons_not_to_run, to_numpy

# Subclasses first: a Morphologizer is a Tagger, too.
_LAYER_OF = {SentenceRecognizer: "sent", Morphologizer: "morph", Tagger: "tag", EditTreeLemmatizer: "lemma"}
# Less probable trees are not applied when lemmas are merged: a thousand of them cannot change a score by .001.
_SMALLEST_TREE = 1e-6


class SoftmaxSource(ComponentSource):
    """Source of the probabilities of a tagger, morphologizer, trainable lemmatizer or sentence recognizer.

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
        return reasons_not_to_run(pipe, docs)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> Scores:
        """Run the model on the Docs and return the probabilities of their tokens. RAISES C024: NaN or infinite values."""
        output = to_numpy(_run_model(pipe.model, list(docs)))
        if not isfinite(np.add.reduce(output, axis=None)):  # the sum is not finite if any value is not
            bad_row = int(np.argmin(np.isfinite(output).all(axis=1)))
            doc_of_row = [doc for doc in docs for _ in range(len(doc))]
            raise calib_error("C024", component=self.component, text=doc_of_row[bad_row].text[:40])
        is_probability, temperature = self._output_form(pipe.model)
        scores: DenseScores | LogitScores = DenseScores(output) if is_probability else LogitScores(output, temperature)
        if isinstance(pipe, EditTreeLemmatizer):
            return SparseScores(_merge_trees(pipe, docs, scores.marginals_above(_SMALLEST_TREE)))
        return scores

    def count_gold(self, pipe: Any, docs: Iterable[Doc]) -> Counter[str]:
        if isinstance(pipe, EditTreeLemmatizer):
            return _count_trees(pipe, docs)
        return super().count_gold(pipe, docs)

    def _output_form(self, model: Any) -> tuple[bool, float]:
        """Return (whether the model returns probabilities, the temperature of its softmax). RAISES C001: no softmax layer."""
        if self.normalized is not None:
            return self.normalized, 1.0
        head = model
        while head.layers:  # down to the last layer of the last chain
            head = head.layers[-1]
        if "softmax_normalize" not in head.attrs:
            wanted = "true or false for a model without a softmax layer of thinc's"
            raise calib_error("C001", name="normalized", wanted=wanted, given="none")
        return bool(head.attrs["softmax_normalize"]), float(head.attrs.get("softmax_temperature", 1.0))


def _run_model(model: Any, docs: list[Doc]) -> Any:
    """Return a model's output for the tokens of all Docs as one array, without cutting it by Doc and joining it again."""
    # spaCy's taggers are chains (">>") of an embedding layer, with an array per Doc, and a head that reads one array.
    head = model.layers[-1]
    if len(model.layers) == 2 and head.name.startswith("with_array(") and model.name.endswith(f">>{head.name}"):
        return head.predict(model.ops.flatten(model.layers[0].predict(docs)))
    return model.ops.flatten(model.predict(docs))


def _merge_trees(pipe: EditTreeLemmatizer, docs: Sequence[Doc], trees: Marginals) -> Marginals:
    """Return marginals of lemmas: for each token the summed probabilities of the edit trees that give the same lemma.

    A lemma has the column of its most probable tree. Trees that do not apply to a token are left out. trees: Tree marginals.
    """
    tree_ids = pipe.labels
    # Token `row` has the entries bounds[row] to bounds[row + 1]: a tree (column) and its probability (mass) each.
    bounds, columns, masses = trees.indptr.tolist(), trees.tags.tolist(), trees.scores.tolist()
    entries: list[tuple[int, int, float, str]] = []  # (row, column, probability, lemma)

    @cache
    def lemma_of(column: int, word: str) -> str | None:
        return pipe.trees.apply(tree_ids[column], word)

    for row, word in enumerate(token.text for doc in docs for token in doc):
        column_of_lemma: dict[str, int] = {}
        mass_of_lemma: dict[str, float] = {}
        for i in sorted(range(bounds[row], bounds[row + 1]), key=lambda i: -masses[i]):  # the most probable tree first
            lemma = lemma_of(columns[i], word)
            if lemma is not None:
                column_of_lemma.setdefault(lemma, columns[i])
                mass_of_lemma[lemma] = mass_of_lemma.get(lemma, 0.0) + masses[i]
        entries += [(row, column_of_lemma[lemma], min(1.0, mass), lemma) for lemma, mass in mass_of_lemma.items()]
    rows, lemma_columns, scores, lemmas = zip(*entries, strict=True) if entries else ((), (), (), ())
    row_array, column_array = np.array(rows, dtype=np.intp), np.array(lemma_columns, dtype=np.intp)
    return Marginals(row_array, column_array, np.array(scores, dtype=np.float64), trees.n_tokens, lemmas)


def _tree_names(pipe: EditTreeLemmatizer) -> tuple[str, ...]:
    """Return a readable name for each edit tree of a lemmatizer; it begins with the tree's number, so it is unique."""
    return tuple(f"{tree}:{pipe.trees.tree_to_str(tree)}" for tree in pipe.labels)


def _count_trees(pipe: EditTreeLemmatizer, docs: Iterable[Doc]) -> Counter[str]:
    """Return tree name -> number of gold lemmas that it yields. A copy of the trees is used: a look-up adds new trees."""
    trees = type(pipe.trees)(StringStore(pipe.vocab.strings)).from_bytes(pipe.trees.to_bytes())
    tree_names = {tree: name for tree, name in zip(pipe.labels, _tree_names(pipe), strict=True)}
    counts: Counter[int] = Counter()
    for doc in docs:
        counts.update(trees.add(token.text, token.lemma_) for token in doc if token.lemma)
    return Counter({tree_names.get(tree, f"{tree}:?"): n for tree, n in counts.items()})  # "?": a tree that is no label


class StepScorer:
    """Scores states of spaCy's parser or recognizer for a batch of Docs; only this class knows how spaCy encodes states.

    pipe (Any): A parser or recognizer. step_model (ParserStepModel): What its model predicted for the batch. unseen_score
    (float | None): Score that classes (transitions) not seen in training get; None gives them the lowest score of their state.
    width (int): Number of features of a state; each is a token, such as the top of the stack.
    """

    def __init__(self, pipe: Any, step_model: Any, docs: Sequence[Doc], unseen_score: float | None):
        self._docs, self._component = docs, pipe.name  # for messages
        self._unseen_score, self._unseen_classes = unseen_score, sorted(pipe.model.attrs["unseen_classes"])
        self.step_model = step_model
        state2vec = step_model.state2vec  # the layer from the features of a state to its hidden vector
        if state2vec.get_dim("nP") == 1:  # number of maxout pieces
            # The step model has a ReLU then, but spaCy's greedy parser has none. Score as that does: a maxout of one piece.
            state2vec = precompute_hiddens(len(docs), step_model.tokvecs, pipe.model.get_ref("lower"), activation="maxout")
        if isinstance(state2vec.ops, CupyOps):
            # The layer computes on the CPU, and uses `ops` only to copy a mask for training: to the GPU, at each step.
            state2vec.ops = state2vec.numpy_ops
        self._state2vec, self.width = state2vec, state2vec.get_dim("nF")  # nF: number of features

    def __call__(self, features: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the scores of all classes, shape (n_states, n_classes). RAISES C024: NaN or infinite scores.

        features: Token of each state feature, -1 for none, shape (n_states, width).
        """
        vectors, vec2scores = self._state2vec.predict(features), self.step_model.vec2scores
        scores = np.ascontiguousarray(vectors if vec2scores is None else vec2scores.predict(vectors))
        if not np.isfinite(scores.sum()):
            bad_rows = np.flatnonzero(~np.isfinite(scores).all(axis=1))
            if len(bad_rows):  # else the sum of finite scores overflowed
                ends = np.cumsum([len(doc) for doc in self._docs])  # features are tokens of the batch
                doc = self._docs[int(np.searchsorted(ends, features[bad_rows[0]].max(), side="right"))]
                raise calib_error("C024", component=self._component, text=doc.text[:40])
        if len(self._unseen_classes):
            lowest = scores.min(axis=1, keepdims=True) if self._unseen_score is None else self._unseen_score
            scores[:, self._unseen_classes] = lowest
        return scores


@contextmanager
def step_scorer(
    pipe: Any, docs: Sequence[Doc], widths: Sequence[int], code: str, unseen_score: float | None = None
) -> Iterator[StepScorer]:
    """Run the model of a parser or recognizer on non-empty Docs, and yield the scorer of their states.

    widths: Numbers of state features that the caller can make. code: The error that is raised if the model has another number.
    unseen_score: Score that classes not seen in training get; None gives them the lowest score of their state.
    """
    set_dropout_rate(pipe.model, 0.0)
    step_model = pipe.model.predict(docs)
    try:
        scorer = StepScorer(pipe, step_model, docs, unseen_score)
        if scorer.width not in widths:
            raise calib_error(code, component=pipe.name, given=scorer.width, wanted=" or ".join(map(str, widths)))
        yield scorer
    finally:
        step_model.clear_memory()


def half_precision_components(nlp: Language, component: str) -> list[str]:
    """Return the components with a half-precision model: of `component` ("": none) and embedding components it listens to."""
    pipes = [(name, pipe) for name, pipe in nlp.components if component and hasattr(pipe, "model")]
    # An embedding component lists the components that listen to it.
    models = {name: pipe.model for name, pipe in pipes if component in (name, *getattr(pipe, "listening_components", ()))}
    return [name for name, model in models.items() if has_half_precision(model)]


def has_half_precision(model: Any) -> bool:
    """Return whether a layer of thinc or torch has 16-bit weights, or uses torch's mixed precision (on a GPU only)."""
    nodes: Iterable[Any] = model.walk() if hasattr(model, "walk") else ()
    for node in nodes:
        arrays = [node.get_param(name) for name in node.param_names if node.has_param(name)]
        if any(array.dtype.kind == "f" and array.dtype.itemsize < 4 for array in arrays):
            return True
        for shim in node.shims:
            module = torch_module(shim)
            weights: Iterable[Any] = module.parameters() if hasattr(module, "parameters") else ()
            is_half = any(weight.is_floating_point() and weight.element_size() < 4 for weight in weights)
            if is_half or has_mixed_precision(shim):
                return True
    return False
