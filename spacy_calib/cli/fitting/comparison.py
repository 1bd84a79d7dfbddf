"""Compare a new fit with the calibration that the pipeline has, as it is and adapted, and choose which one is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spacy.training import Example

from ...calibration.replacement import ADAPTED, FIT, PRESENT
from ...pairs.documents import count_in_words
from ...pipe.label_names import match_labels
from .. import from_plugin
from ..shared.screen import msg, number

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.adapting import FitComparison
    from ...pipe.component import Calibrator

_IN_WORDS = {  # what is written -> words for it
    PRESENT: "the old calibration, unchanged",
    ADAPTED: "the old calibration, adapted to these documents",
    FIT: "the new fit",
}


@dataclass(eq=False)
class ComponentFit:
    """The fit of a calib pipe to one component, and its comparison with the calibration that it may replace.

    name (str): Name of the new calib pipe. old_name (str | None): Name of the pipe whose settings it took over, if any.
    present (Calibrator | None): The fitted calib pipe that the fit may replace, if any. label_maps (Sequence): The label map
    (component label -> gold label) of each fitted pipe of the component. comparison (FitComparison | None): Losses of the fit
    and of `present`, and which is better; None before `compare`, or without `present`. choice (str): What to write: FIT, or the
    present pipe as it was (PRESENT) or adapted (ADAPTED).
    """

    name: str
    old_name: str | None
    present: Calibrator | None
    label_maps: Sequence[Mapping[str, str]] = ()
    comparison: FitComparison | None = None
    choice: str = FIT

    def compare(self, fit: Calibrator, examples: Sequence[Example], event: str | None, always: bool) -> None:
        """Compare the new `fit` with the `present` pipe, if there is one, and set `comparison` and `choice`.

        The fit is chosen in any case if `always`, or if --event asks for another event than that of the present pipe.
        examples: Data of the fit, which the pipes before the source have processed. event, always: Values of the options.
        """
        from ...pipe.adapting import compare_with_present

        if self.present is None:
            return
        # A copy, since `match_labels` renames labels in place.
        gold = [Example(example.predicted, example.reference.copy()) for example in examples]
        match_labels(self.present, gold, further_maps=[fit.fit_info.label_map or {}])
        self.comparison = compare_with_present(fit, self.present, gold)
        is_other_event = event is not None and self.present.fit_info.span_event != fit.fit_info.span_event
        self.choice = FIT if always or is_other_event else self.comparison.winner

    @property
    def gains(self) -> bool | None:
        """Whether the chosen calibration was shown to be better than `present`; None before or without a comparison."""
        if self.comparison is None:
            return None
        replacement = self.comparison.replacement
        return replacement is not None and replacement.gains and self.choice == replacement.winner

    def reopen_present(self, reload: Callable[[], Language]) -> tuple[Language, Calibrator]:
        """Load the old pipeline by `reload`; return (pipeline, its pipe `present`, which is adapted if that was chosen)."""
        assert self.present is not None
        assert self.comparison is not None
        nlp = reload()
        calib: Any = nlp.get_pipe(self.present.name)
        if self.choice == ADAPTED:  # the comparison has adapted `present`
            calib.from_bytes(self.present.to_bytes())
            calib.held_out, calib.held_out_spans = self.present.held_out, self.present.held_out_spans  # not in the bytes
            nlp.meta["performance"] = dict(self.comparison.performance or {})  # calibration errors of the adapted pipe
        return nlp, calib

    def comparison_state(self) -> dict[str, Any]:
        """Return {"comparison": losses and verdict} as plain data for JSON; {} before or without a comparison.

        The losses are "present", "adapted" and "fit" (means of log losses), "error" (standard error of the gain), and "unit",
        "units" (noun and number of what was scored). The verdict is "winner" and "written", each PRESENT, ADAPTED or FIT, and
        "why": the reason why there are no losses, or "".
        """
        if self.comparison is None:
            return {}
        losses = {} if self.comparison.replacement is None else self.comparison.replacement.state()
        verdict = {"winner": self.comparison.winner, "written": self.choice, "why": self.comparison.why}
        return {"comparison": {**losses, **verdict}}


def show_comparison(component_fit: ComponentFit) -> None:
    """Print the log losses of the old calibration and the new fit, and which is written; nothing if they were not compared."""
    comparison, written = component_fit.comparison, _IN_WORDS[component_fit.choice]
    if comparison is None or component_fit.present is None:
        return
    if component_fit.choice != comparison.winner:
        written += f", as requested; the comparison favours {_IN_WORDS[comparison.winner]}"
    elif component_fit.choice != FIT:
        written += "; --always writes the new fit"
    losses = comparison.replacement
    if losses is None:
        name = component_fit.present.name
        msg.warn(f"The new fit is not compared with the old calibration '{name}': {comparison.why}. Written: {written}.")
        return
    adapted_loss = "" if losses.adapted is None else f", {number(losses.adapted)} adapted"
    print_verdict = msg.good if component_fit.gains else msg.info
    print_verdict(
        f"Held-out log loss of the same {count_in_words(losses.unit, losses.units)}: {number(losses.present)} with the old "
        f"calibration{adapted_loss}, {number(losses.fit)} with the new fit (standard error of its difference to the better of "
        f"the others {number(losses.error)}). Written: {written}."
    )


def card_line(nlp: Language, component: str) -> str:
    """Return a sentence on the pretrained calibration for a component of a pipeline of this name; "" if there is none."""
    # The card "en_core_web-ner" is for en_core_web_sm. The final "_" keeps "en_core_w-ner" from being taken for it, too.
    model = f"{nlp.meta['lang']}_{nlp.meta['name']}_"
    for card in from_plugin("all_cards")():
        pipeline, _, card_component = card.name.rpartition("-")
        if card_component == component and model.startswith(f"{pipeline}_"):
            return (
                f"There is a calibration of '{component}' that needs no gold (card {card.name}): write it with `spacy calib "
                "pretrained`, then `spacy calib fit` on that pipeline chooses the better one"
            )
    return ""
