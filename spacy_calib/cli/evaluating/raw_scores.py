"""What is said about raw scores, if nothing is fitted: how far they are off, and the command that calibrates them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics.calibration_errors import calibration_error
from ...metrics.sentences import leaning_in_words
from ...pairs.build import top_pairs
from ..fitting.settings import DEFAULTS
from ..shared.screen import number, shell_line

if TYPE_CHECKING:
    from ...pipe.evaluation import PipeTable


def verdict_on_raw(table: PipeTable) -> str:
    """Return a sentence with the calibration error of raw scores; "" if no unit with gold has any."""
    annotation, (*spans, rows) = table.annotation, table.units.values()
    unit_words, view = f"the top label of each {annotation.kind.unit}", rows.view
    if spans and len(spans[0].view) and not annotation.kind.of_arcs:
        unit_words, view = f"predicted {annotation.kind.span_words[1]}", spans[0].view
    pairs = view.pairs.take(top_pairs(view.pairs))
    error = calibration_error(pairs.scores, pairs.hits, view.n_bins, norm="l1")
    if error is None:
        return ""
    subject = f"The scores of '{table.component}'" if table.component else "The scores"
    excess = float((pairs.scores - pairs.hits).mean())
    return f"{subject} are off by {number(error, 3)} on average, {leaning_in_words(excess, error)} ({unit_words}, on this data)"


def fit_command(model: str, component: str) -> str:
    """Return the command that calibrates the scores of a component."""
    options = {"--component": "" if component == DEFAULTS["source"]["component"] else component}
    return shell_line("fit", model, "dev.spacy", "./calibrated", options=options)
