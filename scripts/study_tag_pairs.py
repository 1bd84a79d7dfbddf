"""Are pairs of tags on two consecutive tokens as true as single tags? Calibration errors on gold data, as Markdown.

    python scripts/study_tag_pairs.py ./calibrated test.spacy --output pairs.json
    python scripts/study_tag_pairs.py ./hmm test.spacy --fit dev.spacy

After Nguyen & O'Connor 2015, section 4.2.3. A tagger gives no joint probability: the score of a pair of tags is the product of
the two, as if they were independent; raw and calibrated products are judged on the same pairs, whose raw product reaches the
threshold. A sequence model (calib_crf, calib_hmm, calib_crfsuite) gives the joint probability too: --fit learns maps of pairs, isotonic with five
groups of pairs by frequency, from other gold, and joints and products, raw and calibrated, are judged on the pairs of which either
reaches the threshold. Intervals are by bootstrap over documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from analysis.tag_pairs import ChainPairs, chain_pairs, corpus_pairs, frequent_errors, singles_of
from frame import between, estimated, head, make_parser, one_sentence, open_scored, row, run_over, save_json

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, gmce, log_loss, log_losses, noise_floor, paired_difference, resample_error
from spacy_calib.metrics.calibration_error import mean_of
from spacy_calib.sequence.labeller import ChainLabeller
from spacy_calib.types import Floats, Groups, Ints, Pairs

FREQUENT = (5, 100)
TITLES = (
    "| event | scores | events | mean score | right | error | 95 % interval | floor (95 %) | 5 most frequent | 100 most frequent "
    "| by group | log loss |"
)


def row_of(
    event: str, name: str, pairs: Pairs, scores: Floats, documents: Ints, groups: Groups | None = None
) -> dict[str, Any]:
    """One kind of event by one kind of score. documents (Ints): Of each pair. groups (Groups | None): Of pairs."""
    found, floor = resample_error(scores, pairs.hits, documents), noise_floor(scores)
    assert found is not None and floor is not None  # noqa: PT018
    interval = found.interval()
    frequent = {most: float(np.mean(list(frequent_errors(pairs, scores, most).values()))) for most in FREQUENT}
    return {
        "event": event, "scores": name, "events": len(pairs), "mean": float(scores.mean()), "right": float(pairs.hits.mean()),
        "error": calibration_error(scores, pairs.hits), "low": interval.low, "high": interval.high, "floor": floor.mean, "floor95": floor.q95,
        "frequent": frequent, "by_group": None if groups is None else mean_of(gmce(pairs, groups, scores)), "log_loss": log_loss(scores, pairs.hits),
    }  # fmt: skip


def rows_of_chain(fit: ChainPairs, given: ChainPairs) -> tuple[list[dict[str, Any]], list[str]]:
    """(a row for each score of the same pairs, what their differences say). fit (ChainPairs): What the maps of pairs learn from."""
    by_joint, by_product = fit.calibrator(fit.pairs.scores), fit.calibrator(fit.product)
    scores = {
        ("pairs, joint", "raw"): given.pairs.scores,
        ("pairs, joint", "calibrated"): given.calibrated(by_joint, given.pairs.scores),
        ("pairs, product", "raw"): given.product,
        ("pairs, product", "of calibrated tags"): given.of_calibrated,
        ("pairs, product", "calibrated"): given.calibrated(by_product, given.product),
    }
    rows = [row_of(*names, given.pairs, own, given.documents, by_joint.groups_) for names, own in scores.items()]
    joint = ("pairs, joint", "calibrated")
    return rows, [differences(given, scores, joint, other) for other in scores if other != joint]


def differences(given: ChainPairs, scores: Mapping[Any, Floats], one: tuple[str, str], other: tuple[str, str]) -> str:
    """What one score's errors are less than another's, with paired intervals by document."""
    hits, documents, both = given.pairs.hits, given.documents, (scores[one], scores[other])
    errors = [resample_error(own, hits, documents) for own in both]
    assert errors[0] is not None and errors[1] is not None  # noqa: PT018
    losses = paired_difference(log_losses(both[0], hits), log_losses(both[1], hits), documents)
    shown = {"log loss": losses, "calibration error": errors[0].difference(errors[1])}
    figures = "; ".join(f"{what} {estimated(found)}" for what, found in shown.items() if found is not None)
    return f"{' '.join(one)}, less {' '.join(other)}: {figures}"


def chain_of(nlp: Any, pipe: Any, corpus: Any, data: Path, gold_preproc: bool) -> ChainPairs:
    """Joint marginals over the data. RAISES CalibError: the calib pipe does not read a sequence model."""
    labeller = pipe.lookup.component()
    if not isinstance(labeller, ChainLabeller):
        given = f"but component '{pipe.source.component}' is a {type(labeller).__name__}; leave it out."
        raise CalibError("study", f"Option --fit is for sequence models (calib_crf, calib_hmm, calib_crfsuite), {given}")
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.source.component)]
    examples = run_over(nlp, before, data, gold_preproc=gold_preproc)
    return chain_pairs(corpus, labeller, (example.predicted for example in examples), pipe.threshold)


def study(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows of the table, sentences below it). RAISES CalibError: every fault of the input."""
    given = {"gold_preproc": options.gold_preproc, "sentences": True}
    nlp, pipe, corpus = open_scored(options.model, options.data, **given)
    singles, events, judged = singles_of(corpus), corpus_pairs(corpus, pipe.threshold), corpus.pairs()
    of_event = judged.documents[events.first]
    rows = [
        row_of("single tags", "raw", singles, singles.scores, judged.documents),
        row_of("single tags", "calibrated", singles, judged.calibrated, judged.documents),
        row_of("pairs, product", "raw", events.pairs, events.pairs.scores, of_event),
        row_of("pairs, product", "calibrated", events.pairs, events.of(judged.calibrated), of_event),
    ]
    if options.fit is None:
        return rows, []
    _, _, fitted = open_scored(options.model, options.fit, **given)
    fit, test = (chain_of(nlp, pipe, *part, options.gold_preproc) for part in ((fitted, options.fit), (corpus, options.data)))
    more, notes = rows_of_chain(fit, test)
    return rows + more, notes


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    head(TITLES, 2)
    for one in rows:
        sizes = f"{one['events']:,}", *(f"{one[name]:.4f}" for name in ("mean", "right", "error"))
        floor = f"{one['floor']:.4f} ({one['floor95']:.4f})"
        frequent = (f"{one['frequent'][most]:.4f}" for most in FREQUENT)
        by_group = "-" if one["by_group"] is None else f"{one['by_group']:.4f}"
        interval = between((one["low"], one["high"]))
        row(one["event"], one["scores"], *sizes, interval, floor, *frequent, by_group, f"{one['log_loss']:.4f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model", help="calibrated pipeline: package name or path")
    parser.add_argument("data", type=Path, help="gold: a .spacy file or a folder of them")
    parser.add_argument("--fit", type=Path, help="for a sequence model: judge joint marginals too, calibrated on this gold")
    parser.add_argument("--gold-preproc", action="store_true", help="each sentence by itself, with gold tokens")
    options = parser.parse_args(arguments)
    with one_sentence():
        rows, notes = study(options)
        save_json(options.output, rows)
    show(rows)
    print(*(f"\n{note}" for note in notes), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
