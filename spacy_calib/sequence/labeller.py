"""What all sequence models of this room share: they score chains, write the best labelling, and are read by one source."""

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

from ..calibration.saved import Unreadable
from ..errors import brief, calib_error
from ..pipe.annotating import AnnotatingPipe
from ..pipe.saved import Kept
from ..schema import Form, Misfit, flag, listed, maybe, record, text
from ..sources.base import to_numpy
from ..types import Ints
from .factory import ChainSettings
from .inference.best import viterbi
from .inference.chains import Chains, Potentials
from .targets import ENTITIES, Target, biluo_transitions, get_target

_NAME: Any = vars(Pipe)["name"]


class ChainLabeller(ABC):
    """A component that labels the tokens of a Doc with the best sequence of labels.

    name (str): Of the component.
    cfg (dict): "labels"; "target": what it labels, see `get_target`; "by_sentence": whether a chain is a sentence (of the Docs it is
        given) rather than a Doc; "overwrite": whether it changes labels that are there already; "constraints": transitions [from, to] that
        alone are allowed, None for all but, of entities, those that BILUO forbids.
    """

    cfg: dict[str, Any]
    requires: tuple[str, ...] = ()
    vocab: Vocab
    taken_by: Language | None = None

    def take(self, nlp: Language, name: str) -> None:
        """Be a component of this pipeline by this name."""
        self.vocab, self.taken_by = nlp.vocab, nlp
        self.name = name

    @property
    def name(self) -> str:
        """Set by a pipeline that has taken the component: `taken_by` is told then what it writes and is scored by."""
        return _NAME.__get__(self)

    @name.setter
    def name(self, name: str) -> None:
        _NAME.__set__(self, name)
        nlp = self.taken_by
        if nlp is not None and (name, self) in nlp.components:
            _note_meta(nlp, name, get_target(self.cfg["target"]), self.requires)
            self.taken_by = None

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        return self.labels

    @abstractmethod
    def weights(self) -> Potentials:
        """The potentials of its chains, before constraints."""

    @abstractmethod
    def label_scores(self, docs: Sequence[Doc]) -> Sequence[Any]:
        """The score of each label at each token, shape (len(doc), K) for each Doc; at least one holds a token."""

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """The columns of the best labels of each Doc. RAISES C322: NaN. C323: no labelling of a Doc is allowed."""
        docs = list(docs)
        chains, _ = self.chains(docs)
        labels = chains.xp.concatenate([chains.xp.zeros(0, dtype="i"), *viterbi(chains)])
        ends = np.cumsum([len(doc) for doc in docs])
        return np.split(to_numpy(labels), ends)[:-1]

    def chains(self, docs: Sequence[Doc]) -> tuple[Chains, list[range]]:
        """(the chains of some Docs, which of them are those of each Doc). RAISES C322: NaN."""
        scores = self.label_scores(docs) if any(map(len, docs)) else [()] * len(docs)
        parts: list[Any] = []
        cuts: list[range] = []
        for doc, own in zip(docs, scores, strict=True):
            bounds = self.bounds(doc)
            cuts.append(range(len(parts), len(parts) + len(bounds)))
            parts += [own[start:end] for start, end in bounds]
        return Chains.of(parts, self.potentials()), cuts

    def bounds(self, doc: Doc) -> list[tuple[int, int]]:
        """First token of each chain of a Doc, and the one after its last."""
        if not len(doc):
            return []
        if self.cfg["by_sentence"] and doc.has_annotation("SENT_START"):
            return [(sent.start, sent.end) for sent in doc.sents]
        return [(0, len(doc))]

    def gold_bounds(self, example: Example) -> list[tuple[int, int]]:
        """Those of the gold Doc, where its tokens are those of the predicted one."""
        same = [token.text for token in example.predicted] == [token.text for token in example.reference]
        return self.bounds(example.reference if same else example.predicted)

    def gold_columns(self, example: Example, bounds: Sequence[tuple[int, int]]) -> Ints:
        """The column of each predicted token's gold label, -1 where none is known. bounds: Of the chains.

        RAISES C338: the gold breaks the constraints. C339: it has a label that is not known.
        """
        found = self.known_columns(example, get_target(self.cfg["target"]).gold(example))
        self.check_allowed(example, found, bounds)
        return found

    def known_columns(self, example: Example, gold: Sequence[str | None]) -> Ints:
        """The column of each label, -1 for None. RAISES C339: a label that is not known."""
        column: dict[str | None, int] = {None: -1, **{label: i for i, label in enumerate(self.labels)}}
        unknown = next((label for label in gold if label not in column), None)
        if unknown is not None:
            text = example.predicted.text[:40]
            raise calib_error("C339", label=unknown, text=text, name=self.name, known=_some(self.labels))
        return np.array([column[label] for label in gold], dtype=np.intp)

    def check_allowed(self, example: Example, columns: Ints, bounds: Sequence[tuple[int, int]]) -> None:
        """RAISES C338: the constraints forbid these labels. columns (Ints): Of each token, -1 where its label is not known."""
        if not self.is_constrained:
            return
        allowed = self.allowed()
        first, last = np.array(bounds, dtype=np.intp).reshape(-1, 2).T
        inside = np.ones(max(0, len(columns) - 1), dtype=bool)
        inside[last[:-1] - 1] = False
        steps = np.flatnonzero(inside & (columns[:-1] >= 0) & (columns[1:] >= 0))
        for at, forbidden, place in (
            (first, allowed.starts[columns[first]] < 0, "at the beginning"),
            (last - 1, allowed.ends[columns[last - 1]] < 0, "at the end"),
            (steps, allowed.transitions[columns[steps], columns[steps + 1]] < 0, "before '{}'"),
        ):
            broken = at[forbidden & (columns[at] >= 0)]
            if len(broken):
                label, behind = (self.labels[columns[min(i, len(columns) - 1)]] for i in (broken[0], broken[0] + 1))
                text = example.predicted.text[:40]
                raise calib_error("C338", text=text, name=self.name, label=label, place=place.format(behind))

    @property
    def is_constrained(self) -> bool:
        return self.cfg["constraints"] is not None or self.cfg["target"] == ENTITIES

    def allowed(self) -> Potentials:
        """What constraints allow, made again where labels or settings are others than before."""
        asked = (self.labels, self.cfg["constraints"], self.cfg["target"])
        labels, constraints, target, kept = getattr(self, "_kept", ((), None, "", None))
        if kept is None or (labels, target) != asked[::2] or constraints is not asked[1]:
            kept = allowed_transitions(*asked)
            self._kept = (*asked, kept)
        return kept

    def potentials(self) -> Potentials:
        """With -inf where constraints forbid. RAISES C325: the weights are of another number of labels."""
        held = self.weights()
        if held.n_labels != len(self.labels):
            raise calib_error("C325", name=self.name, labels=len(self.labels), given=held.n_labels)
        return held.only(self.allowed().on(get_array_module(held.transitions))) if self.is_constrained else held

    def set_annotations(self, docs: Sequence[Doc], columns: Sequence[Any]) -> None:
        """Let the tokens carry the labels of these columns."""
        target, labels = get_target(self.cfg["target"]), self.labels
        for doc, own in zip(docs, columns, strict=True):
            if len(doc):
                target.write(doc, [labels[column] for column in own.tolist()], self.cfg["overwrite"])

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """How right the predicted Docs are, as spaCy's scorers say it."""
        return get_target(self.cfg["target"]).score(examples)

    def learn_labels(self, examples: Iterable[Example], labels: Sequence[str] | None, neg_prefix: str = "") -> None:
        """Take the labels given, or those of the examples. RAISES C326: fewer than two. C337: constraints name others."""
        target = get_target(self.cfg["target"])
        found = labels if labels is not None else sorted({label for eg in examples for label in target.labels(eg)})
        added = [label for label in found if labels is not None or not (neg_prefix and label.startswith(neg_prefix))]
        self.cfg["labels"] += [label for label in dict.fromkeys(added) if label not in self.cfg["labels"]]
        if len(self.labels) < 2:
            raise calib_error("C326", name=self.name, target=self.cfg["target"], given=", ".join(self.labels) or "none")
        unknown = next((one for pair in self.cfg["constraints"] or () for one in pair if one not in self.labels), None)
        if unknown is not None:
            raise calib_error("C337", name=self.name, unknown=repr(unknown), known=_some(self.labels))


def _note_meta(nlp: Language, name: str, target: Target, requires: Sequence[str]) -> None:
    """What the pipeline says of the component: what it writes, and what it is scored by."""
    weights = target.score_weights
    nlp._pipe_meta[name] = replace(
        nlp.get_pipe_meta(name),
        requires=list(requires),
        assigns=target.assigns,
        scores=list(weights),
        default_score_weights=weights,
    )


def _some(labels: Sequence[str], most: int = 20) -> str:
    return ", ".join(labels[:most]) + (f" and {len(labels) - most} more" if len(labels) > most else "")


def allowed_transitions(labels: Sequence[str], constraints: Sequence[Sequence[str]] | None, target: str) -> Potentials:
    """0 where transitions, first and last labels are allowed, -inf where they are not. See ChainLabeller."""
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


LABELLER = Kept("spacy-calib-labeller", "C335", "C336")


def taken(by: Callable[[Any], object], form: Form = text) -> Form:
    """A form of what a function takes without an error. by (Callable): RAISES CalibError: it takes it not."""

    def checked(value: Any, where: str) -> Any:
        held = form(value, where)
        by(held)
        return held

    return checked


# What every labeller keeps of its settings.
_CHAIN: dict[str, Form] = {
    "labels": listed(text),
    "target": taken(get_target),
    "by_sentence": flag,
    "overwrite": flag,
    "constraints": maybe(listed(listed(text, 2, 2))),
}


def _labels_agree(held: dict[str, Any]) -> str:
    labels = held["labels"]
    if len(set(labels)) < len(labels):
        return "each label stands in 'labels' once"
    if not all(map(get_target(held["target"]).is_label, labels)):
        return f"'labels' are those of the target '{brief(held['target'])}'"
    # Before it learned any, constraints may name labels to come.
    unknown = labels and {one for pair in held["constraints"] or () for one in pair} - set(labels)
    return "'constraints' name labels" if unknown else ""


def chain_settings(more: Mapping[str, Form]) -> Form:
    """The form of the settings of a labeller. more (Mapping): Those that only its kind has."""
    return record({**_CHAIN, **more}, _labels_agree)


def check_settings(form: Form, settings: ChainSettings) -> dict[str, Any]:
    """What a labeller keeps of the settings that it is built with, of the form in which they are saved.

    RAISES C001: one is not of its form. C324: see `get_target`.
    """
    given = {"labels": [], **vars(settings)}
    try:
        held: dict[str, Any] = form(given, "settings")
    except Misfit as error:
        name = error.where.partition(".")[2].partition("[")[0]
        raise calib_error("C001", name=name, wanted=error.expected, given=repr(given.get(name))) from None
    return held


class SavedLabeller(ChainLabeller, AnnotatingPipe):
    """One without a model of thinc's. kind (str): Its factory. form (Form): Of its settings, "cfg", and `_learned()`."""

    kept = LABELLER
    kind: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> Form: ...

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What was learned, as plain data and arrays."""

    @abstractmethod
    def _restore(self, held: dict[str, Any]) -> None:
        """Take over what `_learned` gave."""

    def _state(self) -> dict[str, Any]:
        return {"kind": self.kind, "state": {"cfg": self.cfg, **self._learned()}}

    def _made(self, state: Any) -> dict[str, Any]:
        given = state.get("kind") if isinstance(state, dict) else None
        if given != self.kind:
            raise Unreadable(f"it was written by a {brief(given)}, and this is a {self.kind}")
        held: dict[str, Any] = self.form(state.get("state"), "state")
        return held

    def _take(self, made: dict[str, Any]) -> None:
        self.cfg.update(made["cfg"])
        self._restore(made)
