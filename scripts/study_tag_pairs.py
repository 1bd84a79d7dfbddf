"""Are pairs of tags on two consecutive tokens as true as single tags? Calibration errors on gold data, as Markdown.

    python scripts/study_tag_pairs.py ./calibrated test.spacy --output pairs.json --plot pairs.png
    python scripts/study_tag_pairs.py ./sure test.spacy --beam-width 16
    python scripts/study_tag_pairs.py ./hmm test.spacy --fit dev.spacy

After Nguyen & O'Connor 2015, section 4.2.3. A tagger gives no joint probability: the score of a pair of tags is the product of
the two, as if they were independent; raw and calibrated products are judged on the same pairs, whose raw product reaches the
threshold. A sequence model (calib_crf, calib_hmm, calib_crfsuite) gives the joint probability too: --fit learns maps of pairs, isotonic with five
groups of pairs by frequency, from other gold, and joints and products, raw and calibrated, are judged on the pairs of which either
reaches the threshold. For an entity recognizer --beam-width searches beams besides, whose parses give the types of two tokens both ways: by
the product and jointly. The interval is by bootstrap over documents for the calib pipe's scores, and Algorithm 2's for the beam's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from analysis.tag_pairs import frequent_errors
from beam_pairs import BeamPairs, beam_pairs
from chain_pairs import ChainPairs, chain_pairs
from corpus_pairs import CorpusPairs, corpus_pairs, no_places
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.training import Example
from spacy.util import minibatch
from study_common import add_outputs

from spacy_calib.cli.shared.checks import check_option
from spacy_calib.cli.shared.examples import Pass, run_pipes
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.results import write_json
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.corpus.scored import ScoredCorpus
from spacy_calib.errors import CalibError, calib_error
from spacy_calib.metrics.bootstrap import calibration_error_interval
from spacy_calib.metrics.calibration_error import calibration_error, gmce, mean_of
from spacy_calib.metrics.error_interval import error_interval, resample_error
from spacy_calib.metrics.noise_floor import noise_floor
from spacy_calib.metrics.proper import log_losses
from spacy_calib.metrics.resampling import Interval, paired_difference
from spacy_calib.pages.plots import compare_reliability, reliability_diagram
from spacy_calib.pipe.component import Calibrator
from spacy_calib.sequence.labeller import ChainLabeller
from spacy_calib.types import Floats, Groups, Ints, Pairs

FREQUENT = (5, 100)
HEADER = "| event | scores | events | mean score | right | error | 95 % interval | floor (95 %) | 5 most frequent | 100 most frequent | by group | log loss |"


@dataclass(frozen=True)
class Row:
    """One kind of event by one kind of score.

    mean, right (float): Mean score and share of hits. error, low, high (float): Calibration error and its interval.
    floor, floor95 (float): What exactly true scores would show. frequent (dict): Mean error over the tags (or pairs) most often right.
    by_group (float | None): Mean GMCE, where there are groups of pairs. log_loss (float): Of an event.
    """

    event: str
    scores: str
    events: int
    mean: float
    right: float
    error: float
    low: float | None
    high: float | None
    floor: float
    floor95: float
    frequent: dict[int, float]
    by_group: float | None
    log_loss: float


def row_of(
    event: str,
    name: str,
    pairs: Pairs,
    scores: Floats,
    documents: Ints | None,
    bins: dict[str, Any],
    groups: Groups | None = None,
) -> Row:
    """documents: Of each pair, for the interval by bootstrap; None takes Algorithm 2's."""
    error, floor = calibration_error(scores, pairs.hits, **bins), noise_floor(scores, **bins)
    if error is None or floor is None:
        raise no_places("the threshold")
    if documents is None:
        low, high = calibration_error_interval(scores, pairs.hits, **bins) or (None, None)
    else:
        found = error_interval(scores, pairs.hits, documents, **bins)
        low, high = (None, None) if found is None else (found.low, found.high)
    frequent = {most: float(np.mean(list(frequent_errors(pairs, scores, most, **bins).values()))) for most in FREQUENT}
    by_group = None if groups is None else mean_of(gmce(pairs, groups, scores, **bins))
    return Row(
        event, name, len(pairs), float(scores.mean()), float(pairs.hits.mean()), error, low, high, floor.mean, floor.q95, frequent,
        by_group, float(log_losses(scores, pairs.hits).mean()),
    )  # fmt: skip


def rows_of_corpus(given: CorpusPairs, documents: Ints, bins: dict[str, Any]) -> list[Row]:
    """documents (Ints): Of each single tag."""
    events, of_event = given.events, documents[given.events.first]
    return [
        row_of("single tags", "raw", given.singles, given.singles.scores, documents, bins),
        row_of("single tags", "calibrated", given.singles, given.calibrated, documents, bins),
        row_of("pairs, product", "raw", events.pairs, events.pairs.scores, of_event, bins),
        row_of("pairs, product", "calibrated", events.pairs, events.of(given.calibrated), of_event, bins),
    ]


def rows_of_beam(given: BeamPairs, bins: dict[str, Any]) -> list[Row]:
    events = (("single types", given.singles), ("pairs, product", given.products), ("pairs, joint", given.joint))
    return [row_of(event, "beam", pairs, pairs.scores, None, bins) for event, pairs in events]


def rows_of_chain(fit: ChainPairs, given: ChainPairs, bins: dict[str, Any]) -> tuple[list[Row], list[str]]:
    """(a row for each score of the same pairs, what their differences say). fit (ChainPairs): What the maps of pairs learn from."""
    by_joint, by_product = fit.calibrator(fit.pairs.scores), fit.calibrator(fit.product)
    scores = {
        ("pairs, joint", "raw"): given.pairs.scores,
        ("pairs, joint", "calibrated"): given.calibrated(by_joint, given.pairs.scores),
        ("pairs, product", "raw"): given.product,
        ("pairs, product", "of calibrated tags"): given.of_calibrated,
        ("pairs, product", "calibrated"): given.calibrated(by_product, given.product),
    }
    rows = [row_of(*names, given.pairs, own, given.documents, bins, by_joint.groups_) for names, own in scores.items()]
    joint = ("pairs, joint", "calibrated")
    return rows, [differences(given, (joint, scores[joint]), other, bins) for other in scores.items() if other[0] != joint]


def differences(given: ChainPairs, one: tuple[Any, Floats], other: tuple[Any, Floats], bins: dict[str, Any]) -> str:
    """What one score's errors are less than another's, with paired intervals by document."""
    (names, scores), (other_names, other_scores) = one, other
    hits, documents = given.pairs.hits, given.documents
    errors = [resample_error(own, hits, documents, **bins) for own in (scores, other_scores)]
    assert errors[0] is not None
    assert errors[1] is not None
    losses = paired_difference(log_losses(scores, hits), log_losses(other_scores, hits), documents)
    shown = {"log loss": losses, "calibration error": errors[0].difference(errors[1])}
    figures = "; ".join(
        f"{what} {found.estimate:+.4f}{interval_of(found)}" for what, found in shown.items() if found is not None
    )
    return f"{' '.join(names)}, less {' '.join(other_names)}: {figures}"


def interval_of(found: Interval) -> str:
    return "" if found.low is None or found.high is None else f" ({found.low:+.4f} to {found.high:+.4f})"


def run_chain(nlp: Language, pipe: Calibrator, corpus: ScoredCorpus, data: Path, options: argparse.Namespace) -> ChainPairs:
    """Joint marginals over the data. RAISES CalibError: the calib pipe does not read a sequence model."""
    labeller = pipe.lookup.component()
    if not isinstance(labeller, ChainLabeller):
        given = f"but component '{pipe.source.component}' is a {type(labeller).__name__}; leave it out."
        raise CalibError("study", f"Option --fit is for sequence models (calib_crf, calib_hmm, calib_crfsuite), {given}")
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.source.component)]
    done = run_pipes(
        nlp, stream_examples(nlp, data, gold_preproc=options.gold_preproc), before, silent=options.silent, what="Pairs"
    )
    return chain_pairs(corpus, labeller, (example.predicted for example in done), options.threshold)


def run_beam(nlp: Language, pipe: Calibrator, options: argparse.Namespace) -> BeamPairs:
    """Search beams over the data. RAISES C066: the calib pipe does not read a recognizer."""
    recognizer = pipe.lookup.component()
    if not isinstance(recognizer, EntityRecognizer):
        raise calib_error("C066", option="--beam-width", component=pipe.source.component, kind=type(recognizer).__name__)
    examples = stream_examples(nlp, options.data, gold_preproc=options.gold_preproc)
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.source.component)]
    done = run_pipes(nlp, examples, before, silent=options.silent, what="Beams")
    return beam_pairs(recognizer, batches_of(done), options.beam_width, threshold=options.threshold)


def batches_of(examples: Any) -> Iterator[list[Example]]:
    yield from minibatch((example for example in examples if len(example.predicted)), size=64)


def show(rows: Sequence[Row]) -> None:
    """Print a Markdown table."""
    print(HEADER)
    print("| --- | --- |" + " ---: |" * (HEADER.count("|") - 3))
    for row in rows:
        interval = "-" if row.low is None or row.high is None else f"{row.low:.4f} to {row.high:.4f}"
        frequent = " | ".join(f"{row.frequent[most]:.4f}" for most in FREQUENT)
        print(
            f"| {row.event} | {row.scores} | {row.events:,} | {row.mean:.4f} | {row.right:.4f} | {row.error:.4f} | {interval} "
            f"| {row.floor:.4f} ({row.floor95:.4f}) | {frequent} | {'-' if row.by_group is None else f'{row.by_group:.4f}'} | {row.log_loss:.4f} |"
        )


def draw(path: Path, given: CorpusPairs, beam: BeamPairs | None) -> None:
    """Reliability diagrams of single tags, of products, and of the beam's."""
    events = given.events
    panels: list[dict[str, Any]] = [
        {"title": "single tags", "hits": given.singles.hits, "raw": given.singles.scores, "calibrated": given.calibrated},
        {"title": "two consecutive tags", "hits": events.pairs.hits, "raw": events.pairs.scores,
         "calibrated": events.of(given.calibrated)},
    ]  # fmt: skip
    figure = compare_reliability(panels)
    if beam is not None:
        ax = figure.axes[1]
        reliability_diagram(beam.products.scores, beam.products.hits, ax=ax, label="beam, product", color="#E69F00")
        reliability_diagram(beam.joint.scores, beam.joint.hits, ax=ax, label="beam, joint", color="#009E73")
        ax.legend(frameon=False, loc="upper left", fontsize="small", title="SMCE", title_fontsize="small")
    figure.savefig(path, dpi=110)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="Calibrated pipeline: package name or path")
    parser.add_argument("data", type=Path, help="Gold: a .spacy file or a folder of them")
    parser.add_argument("--attr", help="Prefix of the calib pipe's attributes; else the first calib pipe's")
    parser.add_argument("--threshold", type=float, help="Lower products take no part; else the calib pipe's")
    parser.add_argument("--bins", type=int, default=10, help="Adaptive bins")
    parser.add_argument("--bin-size", type=int, help="Bins of this many events instead")
    parser.add_argument("--beam-width", type=int, help="For a recognizer: judge beams this wide too")
    parser.add_argument("--fit", type=Path, help="For a sequence model: judge joint marginals too, calibrated on this gold")
    parser.add_argument("--gold-preproc", action="store_true", help="Each sentence by itself, with gold tokens")
    parser.add_argument("--gpu-id", type=int, default=-1, help="GPU ID or -1 for CPU")
    parser.add_argument("--code", type=Path, help="Python file with registered functions")
    parser.add_argument("--n-process", type=int, default=1, help="Processes")
    add_outputs(parser)


def study(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """(rows of the table, sentences below it). RAISES CalibError: every fault of the input."""
    bins = {"n_bins": options.bins, "bin_size": options.bin_size}
    nlp, pipe = open_pipeline(options.model, options.attr, code=options.code, gpu_id=options.gpu_id)
    if options.threshold is None:
        options.threshold = pipe.threshold
    wanted = f"at least {pipe.threshold}, the threshold of the calib pipe, and below 1"
    check_option("--threshold", pipe.threshold <= options.threshold < 1, wanted, options.threshold)

    def read(data: Path) -> ScoredCorpus:
        examples = stream_examples(nlp, data, gold_preproc=options.gold_preproc)
        return score(nlp, pipe, examples, Pass(options.n_process, options.silent), sentences=True)

    corpus = read(options.data)
    given = corpus_pairs(corpus, options.threshold)
    rows = rows_of_corpus(given, corpus.pairs().documents, bins)
    beam = None if options.beam_width is None else run_beam(nlp, pipe, options)
    rows += [] if beam is None else rows_of_beam(beam, bins)
    notes: list[str] = []
    if options.fit is not None:
        fit, test = (
            run_chain(nlp, pipe, *part, options) for part in ((read(options.fit), options.fit), (corpus, options.data))
        )
        own, notes = rows_of_chain(fit, test, bins)
        rows += own
    if options.output is not None:
        write_json(options.output, [asdict(row) for row in rows])
    if options.plot is not None:
        draw(options.plot, given, beam)
    return rows, notes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        check_option("--bins", options.bins >= 1, "at least 1", options.bins)
        check_option("--bin-size", options.bin_size is None or options.bin_size >= 1, "at least 1", options.bin_size)
        check_option("--beam-width", options.beam_width is None or options.beam_width >= 2, "at least 2", options.beam_width)
        rows, notes = study(options)
    except CalibError as error:
        raise SystemExit(error.message) from None
    if not options.silent:
        show(rows)
        print(*(f"\n{note}" for note in notes), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
