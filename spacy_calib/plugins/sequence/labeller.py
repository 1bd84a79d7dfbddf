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
from ...pipe.saved import StateFormat
from ...schema import Form, InvalidState, flag, list_of, maybe, record, text
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
    pending_nlp: Language | None = None

    def attach(self, nlp: Language, name: str) -> None:
        """Join a pipeline, whose meta is updated as soon as it has the component under this name."""
        self.vocab, self.pending_nlp = nlp.vocab, nlp
        self.name = name

    @property
    def name(self) -> str:
        """The name of the component in its pipeline."""
        return _NAME.__get__(self)

    @name.setter
    def name(self, name: str) -> None:
        """Set the name. Once the pipeline has the component, its meta gets the outputs and scores of the target."""
        _NAME.__set__(self, name)
        nlp = self.pending_nlp
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
            self.pending_nlp = None

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
        return Chains.from_scores(parts, self.potentials()), cuts

    def bounds(self, doc: Doc) -> list[tuple[int, int]]:
        """Return the first token of each chain of a Doc, and the one after its last."""
        if not len(doc):
            return []
        if self.cfg["by_sentence"] and doc.has_annotation("SENT_START"):
            return [(sentence.start, sentence.end) for sentence in doc.sents]
        return [(0, len(doc))]

    def gold_bounds(self, example: Example) -> list[tuple[int, int]]:
        """Return (start, end) of each chain, by the sentences of the gold Doc if both Docs have the same tokens."""
        same_tokens = [token.text for token in example.predicted] == [token.text for token in example.reference]
        return self.bounds(example.reference if same_tokens else example.predicted)

    def gold_columns(self, example: Example, bounds: Sequence[tuple[int, int]]) -> Ints:
        """Return the column of each predicted token's gold label, -1 for none. RAISES C338: forbidden. C339: not known."""
        columns = self.known_columns(example, get_target(self.cfg["target"]).gold(example))
        self.check_constraints(example, columns, bounds)
        return columns

    def known_columns(self, example: Example, gold: Sequence[str | None]) -> Ints:
        """Return the column of each label, -1 for None. RAISES C339: a label that is not known."""
        column: dict[str | None, int] = {None: -1, **{label: i for i, label in enumerate(self.labels)}}
        unknown = next((label for label in gold if label not in column), None)
        if unknown is not None:
            text = example.predicted.text[:40]
            raise calib_error("C339", label=unknown, text=text, name=self.name, known=_first_labels(self.labels))
        return np.array([column[label] for label in gold], dtype=np.intp)

    def check_constraints(self, example: Example, columns: Ints, bounds: Sequence[tuple[int, int]]) -> None:
        """Check gold labels against the constraints. RAISES C338: one is forbidden.

        columns (Ints): Column of each token's label, -1 for none, shape (n_tokens,). bounds: (first token, last + 1) of each
        chain.
        """
        if not self.is_constrained:
            return
        constraints = self.constraint_potentials()
        first, last = np.array(bounds, dtype=np.intp).reshape(-1, 2).T
        is_step = np.ones(max(0, len(columns) - 1), dtype=bool)
        is_step[last[:-1] - 1] = False
        steps = np.flatnonzero(is_step & (columns[:-1] >= 0) & (columns[1:] >= 0))
        for tokens, forbidden, where in (
            (first, constraints.starts[columns[first]] < 0, "at the beginning"),
            (last - 1, constraints.ends[columns[last - 1]] < 0, "at the end"),
            (steps, constraints.transitions[columns[steps], columns[steps + 1]] < 0, "before '{}'"),
        ):
            forbidden_tokens = tokens[forbidden & (columns[tokens] >= 0)]
            if len(forbidden_tokens):
                token = forbidden_tokens[0]
                label, next_label = (self.labels[columns[min(i, len(columns) - 1)]] for i in (token, token + 1))
                text = example.predicted.text[:40]
                raise calib_error("C338", text=text, name=self.name, label=label, place=where.format(next_label))

    @property
    def is_constrained(self) -> bool:
        return self.cfg["constraints"] is not None or self.cfg["target"] == ENTITIES

    def constraint_potentials(self) -> Potentials:
        """Return the constraints as potentials, computed once for these labels and settings."""
        settings = (self.labels, self.cfg["constraints"], self.cfg["target"])
        labels, constraints, target, potentials = getattr(self, "_constraints", ((), None, "", None))
        if potentials is None or (labels, target) != settings[::2] or constraints is not settings[1]:
            potentials = make_constraints(*settings)
            self._constraints = (*settings, potentials)
        return potentials

    def potentials(self) -> Potentials:
        """Return the weights, -inf where constraints forbid. RAISES C325: the weights are of another number of labels."""
        weights = self.weights()
        if weights.n_labels != len(self.labels):
            raise calib_error("C325", name=self.name, labels=len(self.labels), given=weights.n_labels)
        if not self.is_constrained:
            return weights
        return weights.add_constraints(self.constraint_potentials().on(get_array_module(weights.transitions)))

    def set_annotations(self, docs: Sequence[Doc], columns: Sequence[Any]) -> None:
        """Write the label of each token on the Docs. columns: Index of its label, for each Doc."""
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


def make_constraints(labels: Sequence[str], constraints: Sequence[Sequence[str]] | None, target: str) -> Potentials:
    """Return potentials of 0 where transitions, first and last labels are allowed, else -inf.

    constraints (Sequence | None): The only allowed transitions (from, to); None forbids, for entities, what BILUO tags exclude.
    """
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


LABELLER = StateFormat("spacy-calib-labeller", "C335", "C336", calib_error)


def accepted_by(function: Callable[[Any], object], form: Form = text) -> Form:
    """Return a form of what a function takes without a CalibError."""

    def check(value: Any, where: str) -> Any:
        result = form(value, where)
        function(result)
        return result

    return check


# The saved settings that every labeller has.
_CHAIN: dict[str, Form] = {
    "labels": list_of(text),
    "target": accepted_by(get_target),
    "by_sentence": flag,
    "overwrite": flag,
    "constraints": maybe(list_of(list_of(text, 2, 2))),
}


def _find_contradiction(fields: dict[str, Any]) -> str:
    labels = fields["labels"]
    if len(set(labels)) < len(labels):
        return "each label stands in 'labels' once"
    if not all(map(get_target(fields["target"]).is_label, labels)):
        return f"'labels' are those of the target '{brief(fields['target'])}'"
    # Before it has any labels, constraints may name those to come.
    unknown = labels and {name for pair in fields["constraints"] or () for name in pair} - set(labels)
    return "'constraints' name labels" if unknown else ""


def chain_settings(extra_forms: Mapping[str, Form]) -> Form:
    """Return the saved form of a labeller's settings. extra_forms (Mapping): Of the settings that only its kind has."""
    return record({**_CHAIN, **extra_forms}, _find_contradiction)


def check_settings(form: Form, settings: ChainSettings) -> dict[str, Any]:
    """Return the settings of a labeller in their saved form. RAISES C001: one is not of its form. C324: no such extension."""
    values = {"labels": [], **vars(settings)}
    try:
        fields: dict[str, Any] = form(values, "settings")
    except InvalidState as error:
        name = error.where.partition(".")[2].partition("[")[0]
        raise calib_error("C001", name=name, wanted=error.expected, given=repr(values.get(name))) from None
    return fields


class SavedLabeller(ChainLabeller, AnnotatingPipe):
    """A labeller whose state is one file. kind (str): Name of its factory. form: Saved form of its settings ("cfg") and fitted fields."""

    state_format = LABELLER
    kind: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> Form: ...

    @abstractmethod
    def _fitted_fields(self) -> dict[str, Any]:
        """Return the fitted parameters by name, as plain data and arrays."""

    @abstractmethod
    def _restore(self, fields: dict[str, Any]) -> None:
        """Restore the parameters that `_fitted_fields` returns."""

    def _state(self) -> dict[str, Any]:
        return {"kind": self.kind, "state": {"cfg": self.cfg, **self._fitted_fields()}}

    def _read_state(self, state: Any) -> dict[str, Any]:
        kind = state.get("kind") if isinstance(state, dict) else None
        if kind != self.kind:
            raise UnreadableState(f"it was written by a {brief(kind)}, and this is a {self.kind}")
        fields: dict[str, Any] = self.form(state.get("state"), "state")
        return fields

    def _set_state(self, fields: dict[str, Any]) -> None:
        self.cfg.update(fields["cfg"])
        self._restore(fields)
