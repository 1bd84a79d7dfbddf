"""A new fit beside the calibration that the pipeline had: which of the two is written, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import ADAPTED, FIT, PRESENT
from ...pairs.documents import count_in_words
from ...pipe.label_names import match_labels
from ...pipe.loading import load_pipeline
from ..shared.screen import msg, number
from .adapt_output import show_adaptation

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from ...pipe.replacing import FitComparison

# The names of these entry points are those of the cards that are installed: PIPELINE-COMPONENT.
CARDS = "spacy_calib_pretrained"
_IN_WORDS = {
    PRESENT: "the calibration that was there, unchanged",
    ADAPTED: "the calibration that was there, adapted to these documents",
    FIT: "the new fit",
}


@dataclass(frozen=True, eq=False)
class PresentPipe:
    """The calib pipe that a fit may replace. model (str): Its pipeline. unreadable (Sequence[str]): See `load_readable`."""

    pipe: Calibrator
    model: str
    unreadable: Sequence[str]

    @classmethod
    def find(cls, nlp: Language, name: str, model: str, unreadable: Sequence[str]) -> PresentPipe | None:
        """Find the fitted pipe of this name; None where there is none."""
        from ...pipe.component import Calibrator

        pipe = dict(nlp.components).get(name)
        if not isinstance(pipe, Calibrator) or not pipe.fitted:
            return None
        return cls(pipe, model, unreadable)

    def compare(
        self, fit: Calibrator, examples: Sequence[Example], event: str | None, always: bool, all_types: bool
    ) -> FitOutcome:
        """Compare with a fit that stands in this place. One that has what was asked for, and this pipe has not, is taken in any case.

        examples: Those of the fit, which have been through the pipes before the source. event (str | None), always (bool), all_types (bool): The options.
        """
        from spacy.training import Example

        from ...pipe.replacing import compare_with_present

        gold = [Example(example.predicted, example.reference.copy()) for example in examples]
        match_labels(self.pipe, gold, further_maps=[fit.fit_info.label_map or {}], all_types=all_types)
        comparison = compare_with_present(fit, self.pipe, gold)
        is_other_event = event is not None and self.pipe.fit_info.span_event != fit.fit_info.span_event
        has_new_sets = fit.tokens.sets is not None and self.pipe.tokens.sets is None
        return FitOutcome(self, comparison, FIT if always or is_other_event or has_new_sets else comparison.winner)


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """What a comparison of the present pipe with a fit led to. written (str): PRESENT, ADAPTED or FIT."""

    present: PresentPipe
    comparison: FitComparison
    written: str

    @property
    def gains(self) -> bool:
        """Whether what is written is shown to be better than what was there."""
        replacement = self.comparison.replacement
        return replacement is not None and replacement.gains and self.written == replacement.winner

    def reopen(self) -> tuple[Language, Calibrator]:
        """Load the pipeline anew, with its pipe as it was or adapted."""
        nlp = load_pipeline(self.present.model, exclude=self.present.unreadable)
        pipe = self.present.pipe
        calib: Any = nlp.get_pipe(pipe.name)
        if self.written == ADAPTED:
            calib.from_bytes(pipe.to_bytes())
            calib.held_out, calib.held_out_spans = pipe.held_out, pipe.held_out_spans
            nlp.meta["performance"] = dict(self.comparison.performance or {})
        return nlp, calib

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the losses, the winner by the rule, and what is written."""
        replacement = self.comparison.replacement
        losses = {} if replacement is None else replacement.state()
        return {**losses, "winner": self.comparison.winner, "written": self.written, "why": self.comparison.why}


def show_present(calib: Calibrator, outcome: FitOutcome, output: Path) -> None:
    """Print what is written in place of a fit: the pipe as it was, or adapted."""
    if outcome.written == ADAPTED:
        show_adaptation(calib, calib.fit_info.adaptations[-1], output)
    else:
        msg.info(f"Written as it was: {output}")
    show_comparison(outcome)


def show_comparison(outcome: FitOutcome) -> None:
    """Print the losses and what is taken."""
    comparison, choice = outcome.comparison, _IN_WORDS[outcome.written]
    if outcome.written != comparison.winner:
        choice += f", as asked for; the comparison favours {_IN_WORDS[comparison.winner]}"
    elif outcome.written != FIT:
        choice += "; --always takes the new fit"
    result = comparison.replacement
    if result is None:
        name = outcome.present.pipe.name
        msg.warn(f"The new fit is not compared with the calibration that is in '{name}': {comparison.why}. Written: {choice}.")
        return
    with_adapt = "" if result.adapted is None else f", {number(result.adapted)} with that adapted"
    tell = msg.good if outcome.gains else msg.info
    tell(
        f"Held-out log loss of the same {count_in_words(result.unit, result.units)}: {number(result.present)} with the calibration that was there"
        f"{with_adapt}, {number(result.fit)} with the new fit (standard error of its difference to the better of the others "
        f"{number(result.error)}). Written: {choice}."
    )


def card_line(nlp: Language, component: str) -> str:
    """Name the card for a component of a stock pipeline, or of a copy named after one, in one sentence; "" where none is registered."""
    model = f"{nlp.meta['lang']}_{nlp.meta['name']}_"
    for name in sorted({point.name for point in entry_points(group=CARDS)}):
        pipeline, _, calibrated = name.rpartition("-")
        if calibrated == component and model.startswith(f"{pipeline}_"):
            return (
                f"There is a calibration of '{component}' that needs no gold (card {name}): `spacy calib pretrained` writes it, and "
                "`spacy calib fit` on that pipeline takes the better one"
            )
    return ""
