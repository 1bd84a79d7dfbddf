"""What a source finds out of itself before the maps are learned: its labels, and settings that were left to the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spacy.training import Example

from ..sources.left_scores import LeftScoresSource
from ..sources.mapped import with_map

if TYPE_CHECKING:
    from .component import Calibrator


def learn_labels(pipe: Calibrator, examples: Iterable[Example]) -> Iterable[Example]:
    """Show the predicted Docs to a source that learns its labels; the examples again.

    RAISES C281 to C286: see `LeftScoresSource.learn_labels`.
    """
    source = with_map(pipe.source, None)
    if not isinstance(source, LeftScoresSource):
        return examples
    held = list(examples)
    component = pipe.lookup.to_fit(held[0].predicted.vocab if held else None)
    unknown = source.learn_labels(component, [example.predicted for example in held])
    if unknown:
        pipe.warn("CW19", labels=", ".join(unknown))
    return held


def settle(
    pipe: Calibrator, examples: Iterable[Example], progress: Callable[[Iterable[Any], str], Iterable[Any]]
) -> Iterable[Example]:
    """Let the source choose the settings that were left to the fit, and the config say them; the examples again. progress: See FitArguments."""
    source = with_map(pipe.source, None)
    if not source.unsettled:
        return examples
    held = list(examples)
    component = pipe.lookup.to_fit(held[0].predicted.vocab if held else None)
    for setting, value in source.settle(component, held, lambda steps: progress(steps, "Choosing settings")).items():
        pipe.lookup.restore_setting("source", setting, value)
    return progress(held, "Reading scores")
