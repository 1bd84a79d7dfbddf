"""The steps from a source's probabilities to calibrated ones, in their order; and what is promised of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..pairs.build import Scores
from ..schema import Form, Misfit, listed, maybe, registered
from ..types import Floats, Ints, Marginals
from .adaptation.adaptation import Adaptation
from .cutoffs import Cutoffs, RecallCutoffs
from .grouped import GROUPED, GroupedRecalibrator
from .recalibrators import Recalibrator
from .recalibrators.base import MAP
from .scaling import Scaling
from .steps import ASKED, CalibrationStep, Cut, Predictions, walk

if TYPE_CHECKING:
    from .sets import ConformalSets


def check_normalize(normalize: bool | str) -> bool | str:
    """The setting itself. RAISES C001: neither True, False nor "other"."""
    if normalize not in (True, False, "other"):
        raise calib_error("C001", name="normalize", wanted='true, false or "other"', given=repr(normalize))
    return normalize


@dataclass(eq=False)
class Calibrated:
    """The entries of some tokens that reach the threshold, after all steps; mostly arrays of one length.

    marginals (Marginals): Raw. scores (Floats): Calibrated.
    in_set (NDArray[bool] | None): Whether the tag is in the token's set. out_of_reach (NDArray[bool] | None): Of each
        token, whether only a set of all tags keeps the promise. None without sets.
    view (Any): The tokens as the features of the context see them; None without context.
    below (Calibrated | None): Labels below the threshold that tokens carry all the same, not normalized, in no set.
    """

    marginals: Marginals
    scores: Floats
    in_set: NDArray[np.bool_] | None = None
    out_of_reach: NDArray[np.bool_] | None = None
    view: Any = None
    below: Calibrated | None = None


@dataclass(eq=False)
class CarriedLabels:
    """The labels that tokens carry. hashes (NDArray[uint64]): Of each token's label, 0 for none. of_columns (NDArray[uint64]): Of each column's label.

    find_columns (Callable): The column of each token's label, below 0 for none.
    """

    hashes: NDArray[np.uint64]
    of_columns: NDArray[np.uint64]
    find_columns: Callable[[], Ints]

    def added_to(self, predictions: Predictions, scores: Scores) -> Predictions:
        """The predictions, with the carried labels below the threshold (set by somebody else, or kept from before)."""
        is_carried = self.of_columns[predictions.tags] == self.hashes[predictions.rows]
        if predictions.levels is not None:
            is_carried &= predictions.is_kept
        if np.count_nonzero(is_carried) == np.count_nonzero(self.hashes):
            return predictions
        has_score = np.zeros(len(self.hashes), dtype=bool)
        has_score[predictions.rows[is_carried]] = True
        columns = self.find_columns()
        rows = np.flatnonzero(~has_score & (columns >= 0))
        raw = scores.scores_at(rows, columns[rows]) if len(rows) else np.zeros(0)
        has_raw = ~np.isnan(raw)
        return predictions.with_asked(rows[has_raw], columns[rows[has_raw]], raw[has_raw])


class Context(CalibrationStep, Protocol):
    """A fitted context; its class is in a later room. functions: Features that it asks of Docs.

    shrinkage (CalibrationStep | None): What shrinks its scores after the maps.
    """

    @property
    def functions(self) -> Any: ...

    @property
    def shrinkage(self) -> CalibrationStep | None: ...

    def state(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Normalization:
    """The last step: divide a token's scores by their sum, or by theirs and that of other labels; never by 0.

    how (bool | str), other (Recalibrator | None): As `normalize` and `other` of TokenCalibration.
    """

    how: bool | str
    other: Recalibrator | None

    def apply(self, predictions: Predictions) -> Predictions:
        if not len(predictions.scores):
            return predictions
        rows, n, is_kept = predictions.rows, int(predictions.rows[-1]) + 1, predictions.is_kept
        sums: NDArray[Any] = np.bincount(rows, weights=np.where(is_kept, predictions.scores, 0.0), minlength=n)
        if self.how == "other":
            scores = predictions.scores if predictions.before_maps is None else predictions.before_maps
            missing = rest_of(rows, np.where(is_kept, scores, 0.0), n)
            sums = sums + (missing if self.other is None else self.other.predict(missing))
        of_row = np.where(sums > 0, sums, 1.0)[rows]
        return predictions.having(scores=np.where(is_kept, predictions.scores / of_row, predictions.scores))


# The form of a saved TokenCalibration; its registered parts are read where they are made.
TOKENS: dict[str, Form] = {
    "maps": maybe(GROUPED),
    "scaling": maybe(registered("@calib_scalings")),
    "context": maybe(registered("@calib_contexts")),
    "other": maybe(MAP),
    "sets": maybe(registered("@calib_sets")),
    "adaptations": maybe(listed(Adaptation.read)),
    "recall_cutoffs": maybe(RecallCutoffs.read),
    "label_cutoffs": maybe(Cutoffs.read),
}


@dataclass(eq=False)
class TokenCalibration:
    """The steps between a source's probability and `Token._.calib_score`.

    scaling (Scaling | None): Fitted; weighs the tags of a token before the threshold cuts them off.
    context (Context | None): Fitted; moves what the scaling gives by the word and what surrounds it.
    maps (GroupedRecalibrator | None): Fitted; of the scores that scaling and context give. None passes them through.
    normalize (bool | str): True divides a token's scores by their sum; "other" by their sum and the probability that
        the right tag is none of them. other (Recalibrator | None): The map of that probability.
    sets (ConformalSets | None): Fitted.
    adaptations (tuple[Adaptation, ...]): Steps after the maps, in order, which make scores true on new kinds of text.
    recall_cutoffs (RecallCutoffs | None): From which tokens are flagged. label_cutoffs (Cutoffs | None): From which the
        category of a document is accepted. Both belong to these maps: a new fit has none.
    """

    maps: GroupedRecalibrator | None = None
    _: KW_ONLY
    scaling: Scaling | None = None
    context: Context | None = None
    normalize: bool | str = False
    other: Recalibrator | None = None
    sets: ConformalSets | None = None
    adaptations: tuple[Adaptation, ...] = ()
    recall_cutoffs: RecallCutoffs | None = None
    label_cutoffs: Cutoffs | None = None

    # Applying

    @property
    def steps(self) -> tuple[CalibrationStep, ...]:
        """The steps of the calibration, in order."""
        last = Normalization(self.normalize, self.other) if self.normalize else None
        shrinkage = None if self.context is None else self.context.shrinkage
        return tuple(filter(None, (self.scaling, Cut(), self.context, self.maps, shrinkage, *self.adaptations, last)))

    def behind(self, step: CalibrationStep) -> tuple[CalibrationStep, ...]:
        """The steps after one of them."""
        steps = self.steps
        return steps[1 + next(place for place, other_step in enumerate(steps) if other_step is step) :]

    def calibrate(
        self, scores: Scores, threshold: float, words: Any = None, carried: CarriedLabels | None = None
    ) -> Calibrated:
        """The calibrated probabilities of all entries that reach the threshold.

        words: Of the tokens, for a context. carried (CarriedLabels | None): For `Calibrated.below`.
        """
        marginals = scores.marginals_above(threshold if self.scaling is None else lowest_score(threshold, self.scaling))
        predictions = Predictions.of_pairs(marginals, threshold, words)
        if predictions.levels is not None:
            marginals = marginals.take(predictions.kept)
        if carried is not None and marginals.names is None:  # the names of entries that are not there are not known
            predictions = carried.added_to(predictions, scores)
        results, asked_scores = walk(self.steps, predictions), None
        kept_scores = results.scores
        if results.levels is not None:
            kept_scores, asked = kept_scores[results.kept], results.take((results.levels == ASKED).nonzero()[0])
            asked_scores = Calibrated(Marginals(asked.rows, asked.tags, asked.raw, marginals.n_tokens), asked.scores)
        in_set = out_of_reach = None
        if self.sets is not None:
            in_set, out_of_reach = self.sets.predict(marginals.rows, marginals.tags, kept_scores, marginals.n_tokens)
            out_of_reach[silent_tokens(scores, marginals.rows)] = True
        return Calibrated(marginals, kept_scores, in_set, out_of_reach, results.view, asked_scores)

    # Saving

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        names = ("maps", "scaling", "context", "other", "sets", "recall_cutoffs", "label_cutoffs")
        parts = {name: getattr(self, name) for name in names}
        states = {name: None if part is None else part.state() for name, part in parts.items()}
        return {**states, "adaptations": [adaptation.state() for adaptation in self.adaptations] or None}

    @classmethod
    def from_state(
        cls, state: dict[str, Any], normalize: bool | str, load: Callable[[dict[str, Any]], Any]
    ) -> TokenCalibration:
        """Rebuild from a state that TOKENS has checked.

        load (Callable): Rebuilds one part from its state by its registered name.
        RAISES Misfit: a part is not fitted, or not to as many tags as the maps.
        """

        def part(name: str, rebuild: Callable[[dict[str, Any]], Any] = load) -> Any:
            return None if state[name] is None else rebuild(state[name])

        calibration = cls(
            part("maps", lambda maps: GroupedRecalibrator.from_state(maps, load)),
            scaling=part("scaling"),
            context=part("context"),
            normalize=normalize,
            other=part("other"),
            sets=part("sets"),
            adaptations=tuple(state["adaptations"] or ()),
            recall_cutoffs=state["recall_cutoffs"],
            label_cutoffs=state["label_cutoffs"],
        )
        calibration._check_loaded()
        return calibration

    def _check_loaded(self) -> None:
        """RAISES Misfit: a part is not fitted, or not to as many tags as the maps."""
        if self.other is not None and not self.other.fitted:
            raise Misfit("other", "fitted")
        n_tags = None if self.maps is None else len(self.maps.groups.of_tag)
        tags = {
            "scaling": None if self.scaling is None else self.scaling.n_tags,
            "sets": None if self.sets is None else self.sets.n_tags,
        }
        for name, n in tags.items():
            if n is not None and n != n_tags:
                raise Misfit(name, f"fitted to as many tags as the maps ({n_tags})")


def lowest_score(threshold: float, *scalings: Scaling | None) -> float:
    """Scores below it take no part: the threshold, or the floor of a scaling."""
    return min([threshold, *(scaling.floor for scaling in scalings if scaling is not None)])


def silent_tokens(scores: Scores, rows: Ints) -> Ints:
    """The tokens of which a source says nothing (entities set before it). rows (Ints): Token of each of its entries."""
    bare = np.flatnonzero(np.bincount(rows, minlength=scores.n_tokens) == 0)
    if not len(bare):
        return bare
    return bare[np.isnan(scores.scores_at(bare, np.zeros(len(bare), dtype=np.intp)))]


def rest_of(rows: Ints, scores: Floats, n_tokens: int) -> Floats:
    """The probability that is left to all tags without an entry, shape (n_tokens,)."""
    return np.clip(1.0 - np.bincount(rows, weights=scores, minlength=n_tokens), 0.0, 1.0)
