"""The calibration of tokens: the steps from the raw probabilities of a source to calibrated ones, and the cut-offs of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import calib_error
from ..pairs.scores import Scores
from ..schema import Form, InvalidState, list_of, maybe, registered_part
from ..types import Floats, Ints, Marginals
from .adaptation.adaptation import Adaptation
from .cutoffs import Cutoffs, RecallCutoffs
from .grouped import GROUPED, GroupedRecalibrator
from .scaling import FLOOR, Scaling
from .steps import OUTPUT_ONLY, CalibrationStep, Cut, Predictions, apply_steps


def check_normalize(normalize: bool) -> bool:
    """Return the setting `normalize` unchanged. RAISES C001: it is neither True nor False."""
    if normalize not in (True, False):
        raise calib_error("C001", name="normalize", wanted="true or false", given=repr(normalize))
    return normalize


@dataclass(eq=False)
class CalibratedEntries:
    """The m entries (tokens with a possible label) that reach the threshold, with raw scores and scores after all steps.

    marginals (Marginals): The entries with raw scores. scores (Floats): Calibrated score of each entry, shape (m,).
    view (TokenView | None): Scores and features of all tokens, which a context of spans reads; None without context.
    below_threshold (CalibratedEntries | None): Entries of predicted labels below the threshold, not normalized; None if none.
    """

    marginals: Marginals
    scores: Floats
    view: Any = None
    below_threshold: CalibratedEntries | None = None


@dataclass(eq=False)
class PredictedLabels:
    """The labels that tokens have on the Docs. A label may be below the threshold of the pipe if another component set it.

    hashes (NDArray[uint64]): Hash of each token's label, 0 for none. column_hashes (NDArray[uint64]): Hash of each label that
    the source scores. find_columns (Callable): Returns the index in `column_hashes` of each token's label, below 0 for none.
    """

    hashes: NDArray[np.uint64]
    column_hashes: NDArray[np.uint64]
    find_columns: Callable[[], Ints]

    def add_to(self, predictions: Predictions, scores: Scores) -> Predictions:
        """Return the predictions, with an OUTPUT_ONLY entry added for each label on the Docs that is below the threshold.

        scores (Scores): The probabilities of the source. A label without a probability is not added.
        """
        is_predicted = self.column_hashes[predictions.tags] == self.hashes[predictions.rows]
        if predictions.levels is not None:  # INPUT_ONLY entries, which only a scaling reads, do not count
            is_predicted &= predictions.is_kept
        if np.count_nonzero(is_predicted) == np.count_nonzero(self.hashes):
            return predictions  # each label on the Docs has an entry
        has_entry = np.zeros(len(self.hashes), dtype=bool)  # whether each token has an entry of its label
        has_entry[predictions.rows[is_predicted]] = True
        columns = self.find_columns()
        rows = np.flatnonzero(~has_entry & (columns >= 0))
        raw = scores.scores_at(rows, columns[rows]) if len(rows) else np.zeros(0)
        has_raw = ~np.isnan(raw)  # NaN: the source has no score of this label
        return predictions.with_output_only(rows[has_raw], columns[rows[has_raw]], raw[has_raw])


class Context(CalibrationStep, Protocol):
    """What a fitted context must have: a step that adjusts scores by the token's word and its neighbours (`context.tokens`).

    functions: Functions that compute some of its features from Docs. shrinkage: A step after the maps, or None.
    """

    @property
    def functions(self) -> Any: ...

    @property
    def shrinkage(self) -> CalibrationStep | None: ...

    def state(self) -> dict[str, Any]: ...


class Normalization:
    """The last step: divide a token's scores by their sum, if that is above 0."""

    def apply(self, predictions: Predictions) -> Predictions:
        """Divide the scores of each token by their sum. Predicted labels below the threshold are left out and unchanged."""
        rows, is_kept = predictions.rows, predictions.is_kept
        sums = np.bincount(rows, weights=np.where(is_kept, predictions.scores, 0.0))
        divisors = np.where(sums > 0, sums, 1.0)[rows]
        return predictions.replace_unchecked(scores=np.where(is_kept, predictions.scores / divisors, predictions.scores))


# The form of a saved TokenCalibration; `make_part` checks its registered parts.
TOKENS: dict[str, Form] = {
    "maps": maybe(GROUPED), "scaling": maybe(registered_part("@calib_scalings")),
    "context": maybe(registered_part("@calib_contexts")), "adaptations": maybe(list_of(Adaptation.read)),
    "recall_cutoffs": maybe(RecallCutoffs.read), "label_cutoffs": maybe(Cutoffs.read),
}  # fmt: skip


@dataclass(eq=False)
class TokenCalibration:
    """The steps that turn a source's probabilities of labels into `Token._.calib_score`, and cut-offs of these scores.

    maps (GroupedRecalibrator | None): Fitted to the scores after scaling and context; None leaves these unchanged.
    scaling (Scaling | None): Fitted; rescales all tags of a token together before the threshold cuts them off.
    context (Context | None): Fitted; adjusts scores after the scaling by the word and its neighbours.
    normalize (bool): Whether a token's scores are divided by their sum.
    adaptations (tuple[Adaptation, ...]): Steps after the maps, in order, which calibrate scores out of domain.
    recall_cutoffs (RecallCutoffs | None): Scores from which tokens are flagged. label_cutoffs (Cutoffs | None): Scores from
        which the category of a document is accepted. Both are for these maps: a new fit has none.
    """

    maps: GroupedRecalibrator | None = None
    _: KW_ONLY
    scaling: Scaling | None = None
    context: Context | None = None
    normalize: bool = False
    adaptations: tuple[Adaptation, ...] = ()
    recall_cutoffs: RecallCutoffs | None = None
    label_cutoffs: Cutoffs | None = None

    @property
    def steps(self) -> tuple[CalibrationStep, ...]:
        """All steps in the order in which they are applied."""
        last = Normalization() if self.normalize else None
        shrinkage = None if self.context is None else self.context.shrinkage
        return tuple(filter(None, (self.scaling, Cut(), self.context, self.maps, shrinkage, *self.adaptations, last)))

    def steps_after(self, step: CalibrationStep) -> tuple[CalibrationStep, ...]:
        """Return the steps that follow this one."""
        steps = self.steps
        return steps[1 + steps.index(step) :]

    def calibrate(
        self, scores: Scores, threshold: float, words: Any = None, predicted_labels: PredictedLabels | None = None
    ) -> CalibratedEntries:
        """Return the calibrated probabilities of all entries whose raw probability reaches the threshold.

        scores (Scores): Probabilities of the source. words (Words | None): The words of all tokens, which a context reads.
        predicted_labels (PredictedLabels | None): Labels on Docs; those below the threshold get scores in `below_threshold`.
        """
        # A scaling also reads entries below the threshold.
        lowest = threshold if self.scaling is None else min(threshold, FLOOR)
        marginals = scores.marginals_above(lowest)
        predictions = Predictions.of_pairs(marginals, threshold, words)
        if predictions.levels is not None:  # some entries are below the threshold
            marginals = marginals.take(predictions.kept_indices)
        if predicted_labels is not None and marginals.names is None:  # lemmas have names only above the threshold
            predictions = predicted_labels.add_to(predictions, scores)
        results = apply_steps(self.steps, predictions)
        if results.levels is None:
            return CalibratedEntries(marginals, results.scores, results.view)
        below = results.take((results.levels == OUTPUT_ONLY).nonzero()[0])
        below_threshold = CalibratedEntries(Marginals(below.rows, below.tags, below.raw, marginals.n_tokens), below.scores)
        return CalibratedEntries(marginals, results.scores[results.kept_indices], results.view, below_threshold)

    def state(self) -> dict[str, Any]:
        """Return all parts as plain data and arrays, for `from_state`; the setting `normalize` is not among them."""
        names = ("maps", "scaling", "context", "recall_cutoffs", "label_cutoffs")
        parts = {name: getattr(self, name) for name in names}
        states = {name: None if part is None else part.state() for name, part in parts.items()}
        return {**states, "adaptations": [adaptation.state() for adaptation in self.adaptations] or None}

    @classmethod
    def from_state(cls, state: dict[str, Any], normalize: bool, load: Callable[[dict[str, Any]], Any]) -> TokenCalibration:
        """Rebuild a calibration from a state that the form TOKENS has checked.

        normalize (bool): The setting, which is not in the state. load (Callable): Rebuilds one part from its state.
        RAISES InvalidState: a part is not fitted to as many tags as the maps.
        """
        parts = {name: None if state[name] is None else load(state[name]) for name in ("scaling", "context")}
        calibration = cls(
            None if state["maps"] is None else GroupedRecalibrator.from_state(state["maps"], load),
            **parts,
            normalize=normalize,
            adaptations=tuple(state["adaptations"] or ()),
            recall_cutoffs=state["recall_cutoffs"],
            label_cutoffs=state["label_cutoffs"],
        )
        n_tags = None if calibration.maps is None else len(calibration.maps.groups.of_tag)
        if calibration.scaling is not None and calibration.scaling.n_tags not in (None, n_tags):
            raise InvalidState("scaling", f"fitted to as many tags as the maps ({n_tags})")
        if any(len(adaptation.groups.of_tag) != n_tags for adaptation in calibration.adaptations):
            raise InvalidState("adaptations", f"fitted to as many tags as the maps ({n_tags})")
        return calibration


def find_silent(scores: Scores, rows: Ints) -> Ints:
    """Return the tokens without scores, such as those of entities set before the component. rows: Token of each entry."""
    empty_rows = np.flatnonzero(np.bincount(rows, minlength=scores.n_tokens) == 0)
    if not len(empty_rows):
        return empty_rows
    # A skipped token has the score NaN for every label, so also for the label of column 0.
    return empty_rows[np.isnan(scores.scores_at(empty_rows, np.zeros(len(empty_rows), dtype=np.intp)))]
