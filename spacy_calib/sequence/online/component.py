"""The component `calib_online`: a sequence labeller that learns online (Mejer & Crammer 2010, Algorithm 1)."""

# No `from __future__ import annotations` here: spaCy reads the types that `initialize` takes, and resolves no strings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from spacy.language import Language
from spacy.training import Example, validate_examples, validate_get_examples

from ...schema import floats, whole
from ...types import Floats, Ints
from ..factory import OnlineSettings
from ..features.labeller import FeatureLabeller
from .learner import OnlineLearner, make_rule

_ARRAYS = ("mu", "late", "sigma")


class OnlineLabeller(FeatureLabeller):
    """Predicts with the average of its weights over all updates.

    rule (str): How it learns: perceptron, pa, cw, arow. settings (Mapping): Of the rule, see `rules`; {"phi": 1.0} for
        cw.
    Others: See FeatureLabeller. RAISES C001: no such rule, or a setting out of range.
    """

    kind = "calib_online"
    learned: ClassVar = {"mu": floats(), "late": floats(), "sigma": floats(0.0), "n_seen": whole()}

    def __init__(
        self,
        nlp: Language,
        name: str = "calib_online",
        **settings: Any,
    ):
        given = OnlineSettings(**settings)
        self.rule = make_rule(given.rule, **(given.settings or {}))
        self.learner = OnlineLearner(0, 0, self.rule)
        super().__init__(nlp, name, given)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None, labels: Sequence[str] | None = None
    ) -> None:
        """labels: Of `init labels`; None takes those of the examples. RAISES C326: fewer than two labels."""
        validate_get_examples(get_examples, "OnlineLabeller.initialize")
        self.learn_features(get_examples, labels)
        self.learner = OnlineLearner(len(self.index), len(self.labels), self.rule)

    def update(
        self, examples: Iterable[Example], *, drop: float = 0.0, sgd: Any = None, losses: dict[str, float] | None = None
    ) -> dict[str, float]:
        """Learn from one sequence with whole gold after the other; the loss is how many were labelled wrongly."""
        losses = {} if losses is None else losses
        examples = list(examples)
        validate_examples(examples, "OnlineLabeller.update")
        wrong = sum(self.learner.update(*sequence) for eg in examples for sequence in self.sequences(eg))
        losses[self.name] = losses.get(self.name, 0.0) + wrong
        return losses

    def weight_rows(self, rows: Ints) -> Floats:
        return self.learner.mean_rows(rows)

    def _state(self) -> dict[str, Any]:
        return {**{name: getattr(self.learner, name) for name in _ARRAYS}, "n_seen": self.learner.n_seen}

    def _restore(self, state: dict[str, Any]) -> None:
        self.learner = OnlineLearner(len(self.index) if self.labels else 0, len(self.labels), self.rule)
        for name in _ARRAYS:
            setattr(self.learner, name, state[name])
        self.learner.n_seen = state["n_seen"]
