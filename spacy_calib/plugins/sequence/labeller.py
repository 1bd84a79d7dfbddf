"""The base of all sequence models: they score chains, write the best labelling, and are read by one source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.util import get_array_module

from ...calibration.saved import UnreadableState
from ...errors import brief
from ...pipe.annotating import AnnotatingPipe
from ...pipe.saved import Kept
from ...schema import Form, Misfit, flag, listed, maybe, record, text
from ...sources.base import to_numpy
from ...types import Ints
from .factory import ChainSettings
from .inference.best import viterbi
from .inference.chains import Chains, Potentials
from .messages import calib_error
from .targets import ENTITIES, biluo_transitions, get_target

_NAME: Any = vars(Pipe)["name"]


class ChainLabeller(ABC):
    """A component that labels the tokens of a Doc with the best sequence of labels.

    cfg (dict): "labels"; "target", see `get_target`; "by_sentence": whether a chain is a sentence rather than a Doc;
    "overwrite": whether it changes existing labels; "constraints": the only allowed transitions [from, to], None for all but,
    of entities, those that BILUO forbids.
    """

    cfg: dict[str, Any]
    requires: tuple[str, ...] = ()
    vocab: Vocab
    taken_by: Language | None = None

    def take(self, nlp: Language, name: str) -> None:
        """Become a component of this pipeline by this name."""
        self.vocab, self.taken_by = nlp.vocab, nlp
        self.name = name

    @property
    def name(self) -> str:
        """Set by a pipeline that has taken the component: `taken_by` is told then what it writes and is scored by."""
        return _NAME.__get__(self)

    @name.setter
    def name(self, name: str) -> None:
        """Set by a pipeline that has taken the component, whose meta then gets its outputs and scores."""
        _NAME.__set__(self, name)
        nlp = self.taken_by
        if nlp is not None and (name, self) in nlp.components:
            target = get_target(self.cfg["target"])
            weights = target.score_weights
            nlp._pipe_meta[name] = replace(
                nlp.get_pipe_meta(name),
                requires=list(self.requires),
                assigns=target.assigns,
                scores=list(weights),
                default_score_weights=weights,
            )
            self.taken_by = None

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        return self.labels

    @abstractmethod
    def weights(self) -> Potentials:
        """Return the potentials of its chains, before constraints."""

    @abstractmethod
    def label_scores(self, docs: Sequence[Doc]) -> Sequence[Any]:
        """Return the score of each label at each token, (len(doc), K) for each Doc; at least one has a token."""

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """Return the columns of the best labels of each Doc. RAISES C322: NaN. C323: no labelling of a Doc is allowed."""
        docs = list(docs)
        chains, _ = self.chains(docs)
        labels = chains.xp.concatenate([chains.xp.zeros(0, dtype="i"), *viterbi(chains)])
        ends = np.cumsum([len(doc) for doc in docs])
        return np.split(to_numpy(labels), ends)[:-1]

    def chains(self, docs: Sequence[Doc]) -> tuple[Chains, list[range]]:
        """Return (the chains of some Docs, the range of chains of each Doc). RAISES C322: NaN."""
        scores = self.label_scores(docs) if any(map(len, docs)) else [()] * len(docs)
        parts: list[Any] = []
        cuts: list[range] = []
        for doc, doc_scores in zip(docs, scores, strict=True):
            bounds = self.bounds(doc)
            cuts.append(range(len(parts), len(parts) + len(bounds)))
            parts += [doc_scores[start:end] for start, end in bounds]
        return Chains.of(parts, self.potentials()), cuts

    def bounds(self, doc: Doc) -> list[tuple[int, int]]:
        """Return the first token of each chain of a Doc, and the one after its last."""
        if not len(doc):
            return []
        if self.cfg["by_sentence"] and doc.has_annotation("SENT_START"):
            return [(sentence.start, sentence.end) for sentence in doc.sents]
        return [(0, len(doc))]

    def gold_bounds(self, example: Example) -> list[tuple[int, int]]:
        """Return the bounds by the gold Doc if its tokens are those of the predicted one."""
        same_tokens = [token.text for token in example.predicted] == [token.text for token in example.reference]
        return self.bounds(example.reference if same_tokens else example.predicted)

    def gold_columns(self, example: Example, bounds: Sequence[tuple[int, int]]) -> Ints:
        """Column of each predicted token's gold label, -1 if unknown. RAISES C338: breaks the constraints. C339: unknown."""
        columns = self.known_columns(example, get_target(self.cfg["target"]).gold(example))
        self.check_allowed(example, columns, bounds)
        return columns

    def known_columns(self, example: Example, gold: Sequence[str | None]) -> Ints:
        """Return the column of each label, -1 for None. RAISES C339: a label that is not known."""
        column: dict[str | None, int] = {None: -1, **{label: i for i, label in enumerate(self.labels)}}
        unknown = next((label for label in gold if label not in column), None)
        if unknown is not None:
            text = example.predicted.text[:40]
            raise calib_error("C339", label=unknown, text=text, name=self.name, known=_first_labels(self.labels))
        return np.array([column[label] for label in gold], dtype=np.intp)

    def check_allowed(self, example: Example, columns: Ints, bounds: Sequence[tuple[int, int]]) -> None:
        """RAISES C338: the constraints forbid these labels. columns (Ints): Of each token, -1 if unknown."""
        if not self.is_constrained:
            return
        constraints = self.allowed()
        first, last = np.array(bounds, dtype=np.intp).reshape(-1, 2).T
        is_step = np.ones(max(0, len(columns) - 1), dtype=bool)
        is_step[last[:-1] - 1] = False
        steps = np.flatnonzero(is_step & (columns[:-1] >= 0) & (columns[1:] >= 0))
        for places, forbidden, place in (
            (first, constraints.starts[columns[first]] < 0, "at the beginning"),
            (last - 1, constraints.ends[columns[last - 1]] < 0, "at the end"),
            (steps, constraints.transitions[columns[steps], columns[steps + 1]] < 0, "before '{}'"),
        ):
            broken = places[forbidden & (columns[places] >= 0)]
            if len(broken):
                label, next_label = (self.labels[columns[min(i, len(columns) - 1)]] for i in (broken[0], broken[0] + 1))
                text = example.predicted.text[:40]
                raise calib_error("C338", text=text, name=self.name, label=label, place=place.format(next_label))

    @property
    def is_constrained(self) -> bool:
        return self.cfg["constraints"] is not None or self.cfg["target"] == ENTITIES

    def allowed(self) -> Potentials:
        """Return the constraints as potentials, computed once for these labels and settings."""
        settings = (self.labels, self.cfg["constraints"], self.cfg["target"])
        labels, constraints, target, constraints_made = getattr(self, "_constraints", ((), None, "", None))
        if constraints_made is None or (labels, target) != settings[::2] or constraints is not settings[1]:
            constraints_made = allowed_transitions(*settings)
            self._constraints = (*settings, constraints_made)
        return constraints_made

    def potentials(self) -> Potentials:
        """Return the weights, -inf where constraints forbid. RAISES C325: the weights are of another number of labels."""
        weights = self.weights()
        if weights.n_labels != len(self.labels):
            raise calib_error("C325", name=self.name, labels=len(self.labels), given=weights.n_labels)
        return weights.only(self.allowed().on(get_array_module(weights.transitions))) if self.is_constrained else weights

    def set_annotations(self, docs: Sequence[Doc], columns: Sequence[Any]) -> None:
        """Write the labels of these columns."""
        target, labels = get_target(self.cfg["target"]), self.labels
        for doc, doc_columns in zip(docs, columns, strict=True):
            if len(doc):
                target.write(doc, [labels[column] for column in doc_columns.tolist()], self.cfg["overwrite"])

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the predicted Docs by spaCy's scorers."""
        return get_target(self.cfg["target"]).score(examples)

    def learn_labels(self, examples: Iterable[Example], labels: Sequence[str] | None, neg_prefix: str = "") -> None:
        """Take the given labels, or those of the examples. RAISES C326: fewer than two. C337: constraints name others."""
        target = get_target(self.cfg["target"])
        candidates = labels if labels is not None else sorted({label for eg in examples for label in target.labels(eg)})
        new_labels = [label for label in candidates if labels is not None or not (neg_prefix and label.startswith(neg_prefix))]
        self.cfg["labels"] += [label for label in dict.fromkeys(new_labels) if label not in self.cfg["labels"]]
        if len(self.labels) < 2:
            raise calib_error("C326", name=self.name, target=self.cfg["target"], given=", ".join(self.labels) or "none")
        unknown = next((name for pair in self.cfg["constraints"] or () for name in pair if name not in self.labels), None)
        if unknown is not None:
            raise calib_error("C337", name=self.name, unknown=repr(unknown), known=_first_labels(self.labels))


def _first_labels(labels: Sequence[str], maximum: int = 20) -> str:
    return ", ".join(labels[:maximum]) + (f" and {len(labels) - maximum} more" if len(labels) > maximum else "")


def allowed_transitions(labels: Sequence[str], constraints: Sequence[Sequence[str]] | None, target: str) -> Potentials:
    """Return 0 where transitions, first and last labels are allowed, else -inf. See ChainLabeller."""
    n = len(labels)
    transitions, starts, ends = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    if constraints is not None:
        column = {label: i for i, label in enumerate(labels)}
        transitions[:] = -np.inf
        for first, second in constraints:
            transitions[column[first], column[second]] = 0.0
    elif target == ENTITIES:
        follows, begins, closes = biluo_transitions(labels)
        transitions[~follows], starts[~begins], ends[~closes] = -np.inf, -np.inf, -np.inf
    return Potentials(transitions, starts, ends)


LABELLER = Kept("spacy-calib-labeller", "C335", "C336", calib_error)


def accepted_by(function: Callable[[Any], object], form: Form = text) -> Form:
    """Return a form of what a function takes without a CalibError."""

    def checked(value: Any, where: str) -> Any:
        result = form(value, where)
        function(result)
        return result

    return checked


# What every labeller keeps of its settings.
_CHAIN: dict[str, Form] = {
    "labels": listed(text),
    "target": accepted_by(get_target),
    "by_sentence": flag,
    "overwrite": flag,
    "constraints": maybe(listed(listed(text, 2, 2))),
}


def _labels_agree(fields: dict[str, Any]) -> str:
    labels = fields["labels"]
    if len(set(labels)) < len(labels):
        return "each label stands in 'labels' once"
    if not all(map(get_target(fields["target"]).is_label, labels)):
        return f"'labels' are those of the target '{brief(fields['target'])}'"
    # Before it learned any, constraints may name labels to come.
    unknown = labels and {name for pair in fields["constraints"] or () for name in pair} - set(labels)
    return "'constraints' name labels" if unknown else ""


def chain_settings(extra_forms: Mapping[str, Form]) -> Form:
    """Return the form of the settings of a labeller. extra_forms (Mapping): Those of its kind alone."""
    return record({**_CHAIN, **extra_forms}, _labels_agree)


def check_settings(form: Form, settings: ChainSettings) -> dict[str, Any]:
    """Return the settings of a labeller in their saved form. RAISES C001: one is not of its form. C324: see `get_target`."""
    values = {"labels": [], **vars(settings)}
    try:
        fields: dict[str, Any] = form(values, "settings")
    except Misfit as error:
        name = error.where.partition(".")[2].partition("[")[0]
        raise calib_error("C001", name=name, wanted=error.expected, given=repr(values.get(name))) from None
    return fields


class SavedLabeller(ChainLabeller, AnnotatingPipe):
    """A labeller without a thinc model. kind (str): Its factory. form (Form): Of its settings, "cfg", and `_learned()`."""

    kept = LABELLER
    kind: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> Form: ...

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """Return what was learned, as plain data and arrays."""

    @abstractmethod
    def _restore(self, fields: dict[str, Any]) -> None:
        """Restore the result of `_learned`."""

    def _state(self) -> dict[str, Any]:
        return {"kind": self.kind, "state": {"cfg": self.cfg, **self._learned()}}

    def _made(self, state: Any) -> dict[str, Any]:
        kind = state.get("kind") if isinstance(state, dict) else None
        if kind != self.kind:
            raise UnreadableState(f"it was written by a {brief(kind)}, and this is a {self.kind}")
        fields: dict[str, Any] = self.form(state.get("state"), "state")
        return fields

    def _take(self, fields: dict[str, Any]) -> None:
        self.cfg.update(fields["cfg"])
        self._restore(fields)
