"""What fitted pipes say of gold, counted: what `evaluate` shows, and `collect --judge` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import calib_error
from ...pipe.loading import check_readable
from .gold import check_scored
from .run import Run

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pairs.keyed import Key
    from ...pipe.component import Calibrator
    from ...statistics.judged import JudgedStatistics


def judge(
    run: Run,
    nlp: Language,
    pipes: Sequence[Calibrator],
    shard: str | None = None,
    what: str = "Evaluating",
    key: Key | None = None,
    also: Sequence[str] = (),
) -> tuple[list[JudgedStatistics], list[Example]]:
    """The statistics of each pipe on the gold data of a run, and the examples, on whose predicted Docs all pipes have written.

    also (Sequence[str]): Names of other pipes that are to run.
    shard (str | None), key (Key | None): See `judged_statistics`. what (str): Beside the progress bar.
    RAISES C021, C069: see `check_readable`. C030, C075: there is no gold, or no score; and see `Run.annotate`.
    """
    from ...doc.annotations import plain_name
    from ...pipe.event import event_pipes
    from ...pipe.judging import judged_statistics

    if len(pipes) == 1:
        check_readable(nlp, pipes[0])
    asked = [event_pipes(nlp, pipe.attr) for pipe in pipes]
    events = [one.name for several in asked for one in several]
    done = run.annotate(nlp, pipes, what=what, also=[*events, *also])
    found = [
        judged_statistics(pipe, events, done, shard, gold_preproc=run.gold_preproc, key=key)
        for pipe, events in zip(pipes, asked, strict=True)
    ]
    if not any(one.tokens.total for one in found):
        check_scored(nlp, pipes[0], done)
        component = pipes[0].source.component or "the source"
        raise calib_error("C030", layer=plain_name(pipes[0].fit_info.layer), component=component)
    return found, done
