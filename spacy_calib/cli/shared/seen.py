"""What makes a judgement worth nothing, and how that is said: data that the pipe was fitted on, a component that was trained since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .screen import msg

if TYPE_CHECKING:
    from spacy.training import Example

    from ...doc.texts import TextWatch
    from ...pipe.component import Calibrator


def watch_for(pipe: Calibrator) -> TextWatch:
    """What looks at the examples that a pipe is judged on."""
    from ...doc.annotations import get_annotation
    from ...doc.texts import TextWatch

    return TextWatch(get_annotation(pipe.fit_info.layer))


def seen_by(pipe: Calibrator, watch: TextWatch) -> dict[str, Any] | None:
    """How much of what was watched the fit has seen, see `expect.seen.SeenShare`; None where the pipe does not know, or nothing had gold."""
    share = None if pipe.learned.seen is None else pipe.learned.seen.share_of(watch.units())
    return None if share is None else share.to_dict()


def seen_in(pipe: Calibrator, examples: Iterable[Example]) -> dict[str, Any] | None:
    """The same of examples that are at hand."""
    watch = watch_for(pipe)
    for _ in watch.over(examples):
        pass
    return seen_by(pipe, watch)


def show_seen(seen: dict[str, Any] | None) -> None:
    """Say in red that this is no test."""
    from ...expect.seen import warning_of

    warning = warning_of(seen)
    if warning:
        msg.fail(warning)


def show_other_weights(changed: bool | None) -> None:
    """Say in red that the component is not the one that the pipe was fitted with. changed: See `SourceLookup.weights_changed`."""
    from ...expect.drift import OTHER_WEIGHTS_SENTENCE

    if changed:
        msg.fail(OTHER_WEIGHTS_SENTENCE)
