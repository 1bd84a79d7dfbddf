"""What makes figures meaningless, and its warnings: test data that the pipe was fitted on, a component trained since, texts of another kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from .screen import msg, warn

if TYPE_CHECKING:
    from spacy.training import Example

    from ...doc.reading import TextWatch
    from ...expect.record import SeenShare
    from ...pipe.component import Calibrator


TOO_FEW_TO_TELL = (
    "Too few texts to tell: as few texts of the fit data differ so much by chance alone that a difference which matters could not be seen. "
    "The intervals hold if the texts are of the same kind; give more documents to know."
)


def watch_for(pipe: Calibrator) -> TextWatch:
    """A watch that notes the texts of the examples on which a pipe is judged."""
    from ...doc.annotations import get_annotation
    from ...doc.reading import TextWatch

    return TextWatch(get_annotation(pipe.fit_info.layer))


def seen_by(pipe: Calibrator, watch: TextWatch) -> dict[str, Any] | None:
    """How many of the watched texts the fit has seen, see `expect.record.SeenShare`. None where the pipe keeps no record of its texts, or no text had
    gold.
    """
    share = None if pipe.learned.seen is None else pipe.learned.seen.share_of(watch.units())
    return None if share is None else share.to_dict()


def check_apart(share: SeenShare | None, what: str, allowed: bool) -> None:
    """Warn that a pipe is to be fitted, in part, on what its component was trained on. share (SeenShare | None): Of the fit data. what (str): What
    these are: documents, whose words are counted, or texts.

    RAISES C482: in great part, and that was not allowed.
    """
    if share is None or not share.some:
        return
    of = " of the words" if what == "documents" else ""
    part = f"{share.seen:,} of {share.documents:,} {what} ({100 * share.share:.0f} %{of})"
    if not share.many:
        warn(f"{part} stand in --train-data too, where the model is surer of itself than on any other text: take them out.")
    elif not allowed:
        raise calib_error("C482", part=part)
    else:
        msg.fail(
            f"FITTED ON THE TRAINING DATA: {part} stand in --train-data too, so that scores on any other text will be too high."
        )


class SeenSoFar:
    """How much of the texts that pass the fit of a pipe has seen; keeps the sums only. units (TextWatch): Looks at them, and is asked from time to time."""

    def __init__(self, pipe: Calibrator, units: TextWatch):
        from ...expect.record import SeenSums

        self._texts, self._units, self._sums = pipe.learned.seen, units, SeenSums()

    def add(self) -> None:
        """Count what was looked at since the last time."""
        units = self._units.take()
        if self._texts is not None:
            self._sums += self._texts.sums_of(units)

    def to_dict(self) -> dict[str, Any] | None:
        """See `seen_by`."""
        share = self._sums.share()
        return None if share is None else share.to_dict()


def seen_in(pipe: Calibrator, examples: Iterable[Example]) -> dict[str, Any] | None:
    """As `seen_by`, for a list of examples."""
    watch = watch_for(pipe)
    for _ in watch.over(examples):
        pass
    return seen_by(pipe, watch)


def show_seen(seen: dict[str, Any] | None) -> None:
    """Warn that the data is, in part, that of the fit."""
    from ...expect.record import warning_of

    warning = warning_of(seen)
    if warning:
        msg.fail(warning)


def show_other_weights(changed: bool | None) -> None:
    """Warn that the component has other weights than at the fit. changed (bool | None): See `SourceLookup.weights_changed`."""
    from ...expect.drift import OTHER_WEIGHTS_SENTENCE

    if changed:
        msg.fail(OTHER_WEIGHTS_SENTENCE)


def differences_in(drift: dict[str, Any]) -> str:
    """In what texts differ from the fit data."""
    return ", ".join(one["name"] for one in drift["checks"] if one["differs"])


def show_drift_of_counts(drift: dict[str, Any], from_found: Sequence[dict[str, Any]]) -> None:
    """Warn where texts are not known to be like the fit data. from_found (Sequence[dict]): Queries that are counted from what was found."""
    from ...expect.drift import DIFFERENT, TOO_FEW

    if drift["verdict"] == TOO_FEW:
        msg.warn(TOO_FEW_TO_TELL)
    elif drift["verdict"] == DIFFERENT and from_found:
        n = max(one["effects"]["sources"] for one in from_found)
        told = "one source of gold tells" if n == 1 else f"{n:,} sources of gold tell"
        msg.warn(
            f"Differs from the fit data ({differences_in(drift)}): counted from what was found, since on texts of another kind the expected number can be "
            f"farther off. The intervals are as wide as {told}. Label a few of these texts: `count --gold` corrects the counts."
        )
    elif drift["verdict"] == DIFFERENT:
        msg.warn(f"Differs from the fit data ({differences_in(drift)}): DO NOT TRUST the expected numbers; see `count --gold`.")
