"""Compare a new fit with the calibration that the pipeline has, as it is and adapted, and choose which one is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...calibration.replacement import ADAPTED, FIT, PRESENT
from ...pairs.documents import count_in_words
from ...pipe.label_names import match_labels
from ...pipe.pipeline import load_pipeline
from .. import from_plugin
from ..shared.screen import msg, number
from .adapt_output import show_adaptation

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.adapting import FitComparison
    from ...pipe.component import Calibrator

# What is written -> words for it.
_IN_WORDS = {
    PRESENT: "the old calibration, unchanged",
    ADAPTED: "the old calibration, adapted to these documents",
    FIT: "the new fit",
}


@dataclass(frozen=True, eq=False)
class PresentPipe:
    """The calib pipe that a fit may replace. model (str): Path or package of its pipeline. unreadable: Pipes to leave out."""

    pipe: Calibrator
    model: str
    unreadable: Sequence[str]

    @classmethod
    def find(cls, nlp: Language, name: str, model: str, unreadable: Sequence[str]) -> PresentPipe | None:
        """Return the fitted calib pipe called `name` with its pipeline; None if there is none."""
        from ...pipe.component import Calibrator

        pipe = dict(nlp.components).get(name)
        if not isinstance(pipe, Calibrator) or not pipe.fitted:
            return None
        return cls(pipe, model, unreadable)

    def compare(self, fit: Calibrator, examples: Sequence[Example], event: str | None, always: bool) -> FitOutcome:
        """Compare this pipe with a new fit, which is written in any case if `always`, or if --event asks for another event.

        examples: Data of the fit, which the pipes before the source have processed. event, always: Values of the options.
        """
        from spacy.training import Example

        from ...pipe.adapting import compare_with_present

        gold = [Example(example.predicted, example.reference.copy()) for example in examples]
        match_labels(self.pipe, gold, further_maps=[fit.fit_info.label_map or {}])
        comparison = compare_with_present(fit, self.pipe, gold)
        is_other_event = event is not None and self.pipe.fit_info.span_event != fit.fit_info.span_event
        return FitOutcome(self, comparison, FIT if always or is_other_event else comparison.winner)


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """The result of comparing the present calib pipe with a fit. choice (str): What to write: PRESENT, ADAPTED or FIT."""

    present: PresentPipe
    comparison: FitComparison
    choice: str

    @property
    def gains(self) -> bool:
        """Whether the comparison has shown that the chosen calibration is better than the old one."""
        replacement = self.comparison.replacement
        return replacement is not None and replacement.gains and self.choice == replacement.winner

    def reopen(self) -> tuple[Language, Calibrator]:
        """Load the pipeline again; return (pipeline, its old calib pipe, which is adapted if that was chosen)."""
        nlp = load_pipeline(self.present.model, exclude=self.present.unreadable)
        pipe = self.present.pipe
        calib: Any = nlp.get_pipe(pipe.name)
        if self.choice == ADAPTED:
            calib.from_bytes(pipe.to_bytes())
            calib.held_out, calib.held_out_spans = pipe.held_out, pipe.held_out_spans
            nlp.meta["performance"] = dict(self.comparison.performance or {})
        return nlp, calib

    def to_dict(self) -> dict[str, Any]:
        """Return the losses, the winner, and what is written and why as plain data for JSON."""
        replacement = self.comparison.replacement
        losses = {} if replacement is None else replacement.state()
        return {**losses, "winner": self.comparison.winner, "written": self.choice, "why": self.comparison.why}


def show_present(calib: Calibrator, outcome: FitOutcome, output: Path) -> None:
    """Print that the old calibration is written, as it was or adapted, and how it compares with the fit."""
    if outcome.choice == ADAPTED:
        show_adaptation(calib, calib.fit_info.adaptations[-1], output)
    else:
        msg.info(f"Written as it was: {output}")
    show_comparison(outcome)


def show_comparison(outcome: FitOutcome) -> None:
    """Print the log losses of the old calibration and the new fit, and which one is written."""
    comparison, choice = outcome.comparison, _IN_WORDS[outcome.choice]
    if outcome.choice != comparison.winner:
        choice += f", as requested; the comparison favours {_IN_WORDS[comparison.winner]}"
    elif outcome.choice != FIT:
        choice += "; --always writes the new fit"
    result = comparison.replacement
    if result is None:
        name = outcome.present.pipe.name
        msg.warn(f"The new fit is not compared with the old calibration '{name}': {comparison.why}. Written: {choice}.")
        return
    adapted_loss = "" if result.adapted is None else f", {number(result.adapted)} adapted"
    print_result = msg.good if outcome.gains else msg.info
    print_result(
        f"Held-out log loss of the same {count_in_words(result.unit, result.units)}: {number(result.present)} with the old "
        f"calibration{adapted_loss}, {number(result.fit)} with the new fit (standard error of its difference to the better of "
        f"the others {number(result.error)}). Written: {choice}."
    )


def card_line(nlp: Language, component: str) -> str:
    """Return a sentence on the pretrained calibration for a component of a pipeline of this name; "" if there is none."""
    model = f"{nlp.meta['lang']}_{nlp.meta['name']}_"  # "en_core_web_sm_" begins with "en_core_web_", but not with "en_core_w_"
    for card in from_plugin("all_cards")():
        pipeline, _, card_component = card.name.rpartition("-")
        if card_component == component and model.startswith(f"{pipeline}_"):
            return (
                f"There is a calibration of '{component}' that needs no gold (card {card.name}): write it with `spacy calib "
                "pretrained`, then `spacy calib fit` on that pipeline chooses the better one"
            )
    return ""
