"""Fits a new calib pipe: runs the pipes that stand before it over the gold, and gives it what they wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import calib_error
from ...pairs.documents import TOKEN
from ..shared.examples import read_examples, run_pipes
from ..shared.gold import check_has_gold

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...calibration.sufficiency import HeldOut
    from ...context.familiarity import WordCounts
    from ...pipe.component import Calibrator
    from ...statistics.collected import FitStatistics


class GoldCounts(NamedTuple):
    """Gold frequency of the token labels, of the span labels, and of forms where the pipe has context."""

    tags: dict[str, int]
    spans: dict[str, int]
    words: WordCounts | None = None


def count_tags(nlp: Language, calib: Calibrator, path: Path) -> GoldCounts:
    """Gold frequencies of training data.

    RAISES C030: it has no gold for the component.
    """
    from ...doc.words import count_words

    pipe = calib.lookup.component()
    annotation = calib.source.annotation(pipe)
    references = [example.reference for example in read_examples(nlp, path, gold_preproc=False)]
    words = None if calib.context is None else count_words(references)
    counts = GoldCounts(dict(calib.source.count(pipe, references)), dict(annotation.count_spans(references)), words)
    if not counts.tags:
        raise calib_error("C030", layer=annotation.gold.name, component=calib.source.component)
    return counts


def fit_pipe(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    counts: GoldCounts | None,
    *,
    counted_on: str = "",
    silent: bool = True,
    n_process: int = 1,
    max_unknown: float = 1.0,
) -> None:
    """Run what stands before the source, and the source's own component if its output is read, and fit.

    RAISES: see `ready_to_read` and `Calibrator.fit`.
    """
    calib.fit(
        ready_to_read(nlp, calib, examples, silent=silent, n_process=n_process),
        counts and counts.tags,
        **_arguments(calib, counts, counted_on, max_unknown),
    )


def fit_on_statistics(
    calib: Calibrator, collected: FitStatistics, counts: GoldCounts | None, *, counted_on: str = "", max_unknown: float = 1.0
) -> None:
    """Fit on what `calib collect` gathered. RAISES: see `Calibrator.fit`."""
    calib.fit(collected, counts and counts.tags, **_arguments(calib, counts, counted_on, max_unknown))


def _arguments(calib: Calibrator, counts: GoldCounts | None, counted_on: str, max_unknown: float) -> dict[str, Any]:
    """See FitArguments."""
    from ...pipe.scorer import scorer_like

    n_bins = scorer_like(calib.scorer).n_bins
    return {
        "span_counts": counts and counts.spans,
        "min_pairs": n_bins,
        "counted_on": counted_on,
        "n_bins": n_bins,
        "max_unknown": max_unknown,
        "word_counts": counts and counts.words,
    }


def ready_to_read(
    nlp: Language, calib: Calibrator, examples: list[Example], *, silent: bool, n_process: int = 1
) -> Iterator[Example]:
    """The examples with what the source of a calib pipe reads on their predicted Docs.

    RAISES C021 to C023, C028, C034, C035: see `SourceLookup.to_fit`. C034: a second pass would be made where a component before the
        recognizer sets entities. C030: no example has gold of the annotation.
    """
    from ...pipe.upstream import pipes_to_read, without_presets

    upstream, one_process = pipes_to_read(nlp, calib)
    check_has_gold(examples, calib)
    workers = 1 if one_process else n_process
    ready = run_pipes(nlp, examples, upstream, silent=silent, what="Reading scores", n_process=workers)
    return without_presets(calib, ready)


def check_held_out(held: HeldOut | None, method: str, unit: str = TOKEN, *, sampled: bool = False) -> None:
    """RAISES C130: by the cross-validation of the fit the calibrated scores are clearly worse than the raw ones.

    method (str): Registered name. unit (str): What has labels. sampled (bool): Of all, a sample was judged.
    """
    if held is not None and held.verdict == "worse":
        n, rows = held.tokens, f"{unit}s"
        more = "collect a larger sample (`calib collect --sample`)" if sampled else "give more data"
        kind = method.split(".")[-2]
        raise calib_error("C130", method=kind, n=n, rows=rows, raw=held.raw, calibrated=held.calibrated, more=more)
