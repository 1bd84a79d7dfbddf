"""Fits a new calib pipe: runs the pipes that stand before it over the gold, and gives it what they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import calib_error
from ...pairs.documents import TOKEN
from ..shared.evidence import check_has_gold
from ..shared.examples import read_examples, run_pipes, share_bar

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...calibration.sufficiency import HeldOut
    from ...expect.record import SeenShare, TextUnits
    from ...pipe.component import Calibrator


class GoldCounts(NamedTuple):
    """Gold frequency of the token labels and of the span labels; and which texts they were counted in."""

    tags: dict[str, int]
    spans: dict[str, int]
    texts: TextUnits


def count_tags(nlp: Language, calib: Calibrator, path: Path, *, silent: bool = True) -> GoldCounts:
    """Gold frequencies of training data, with a progress bar (on a terminal only).

    RAISES C030: it has no gold for the component.
    """
    from ...doc.reading import texts_of

    pipe = calib.lookup.component()
    annotation = calib.source.annotation(pipe)
    examples = read_examples(nlp, path, gold_preproc=False, silent=silent)
    references = [example.reference for example in examples]
    texts = texts_of(annotation, examples)
    counts = GoldCounts(dict(calib.source.count(pipe, references)), dict(annotation.count_spans(references)), texts)
    if not counts.tags:
        raise calib_error("C030", layer=annotation.gold.name, component=calib.source.component)
    return counts


def share_of_training(calib: Calibrator, counts: GoldCounts, read: Iterable[Example]) -> SeenShare | None:
    """Return how much of what a pipe is to be fitted on was counted for training; None if no text counts."""
    from ...doc.reading import texts_of
    from ...expect.record import SeenTexts

    annotation = calib.source.annotation(calib.lookup.component())
    return SeenTexts.of(counts.texts.digests).share_of(texts_of(annotation, read))


def fit_pipe(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    counts: GoldCounts | None,
    *,
    silent: bool = True,
    n_process: int = 1,
    **told: Any,
) -> None:
    """Fit on examples, for which what stands before the source runs, and the source's own component if its output is read.

    told: Further fields of `FitArguments`. RAISES: see `ready_to_read` and `Calibrator.fit`.
    """
    from ...pipe.scorer import scorer_like

    n_bins = scorer_like(calib.scorer).n_bins
    told |= {"span_counts": counts and counts.spans, "min_pairs": n_bins, "n_bins": n_bins}
    with share_bar(silent) as progress:
        reading, fitting = progress.stages({"Reading scores": 1, "Fitting": 3})
        reading.at(0.0)
        ready = ready_to_read(nlp, calib, examples, silent=True, n_process=n_process)
        calib.fit(reading.over(ready, len(examples)), counts and counts.tags, progress=fitting, **told)


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


def check_held_out(held: HeldOut | None, method: str, unit: str = TOKEN) -> None:
    """RAISES C130: by the cross-validation of the fit the calibrated scores are clearly worse than the raw ones.

    method (str): Registered name. unit (str): What has labels.
    """
    if held is not None and held.verdict == "worse":
        n, rows = held.tokens, f"{unit}s"
        kind = method.split(".")[-2]
        raise calib_error("C130", method=kind, n=n, rows=rows, raw=held.raw, calibrated=held.calibrated, more="give more data")
