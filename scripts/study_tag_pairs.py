"""Are pairs of tags on two consecutive tokens as true as single tags? Calibration errors on gold data, as Markdown.

    python scripts/study_tag_pairs.py ./calibrated test.spacy --output pairs.json --plot pairs.png
    python scripts/study_tag_pairs.py ./sure test.spacy --beam-width 16

After Nguyen & O'Connor 2015, section 4.2.3. A tagger gives no joint probability: the score of a pair of tags is the product of
the two, as if they were independent; raw and calibrated products are judged on the same pairs, whose raw product reaches the
threshold. For an entity recognizer --beam-width searches beams besides, whose parses give the types of two tokens both ways: by
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
from beam_pairs import BeamPairs, beam_pairs
from corpus_pairs import CorpusPairs, corpus_pairs, no_places
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.training import Example
from spacy.util import minibatch
from study_common import add_outputs

from spacy_calib.analysis.tag_pairs import frequent_errors
from spacy_calib.cli.shared.checks import check_option
from spacy_calib.cli.shared.examples import run_pipes
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.results import write_json
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.errors import CalibError, calib_error
from spacy_calib.metrics.calibration_error import calibration_error
from spacy_calib.metrics.error_interval import error_interval
from spacy_calib.metrics.intervals import calibration_error_interval
from spacy_calib.metrics.noise_floor import noise_floor
from spacy_calib.pipe.component import Calibrator
from spacy_calib.report.plots import compare_reliability, reliability_diagram
from spacy_calib.types import Floats, Ints, Pairs

FREQUENT = (5, 100)
HEADER = "| event | scores | events | mean score | right | error | 95 % interval | floor (95 %) | 5 most frequent | 100 most frequent |"


@dataclass(frozen=True)
class Row:
    """One kind of event by one kind of score.

    mean, right (float): Mean score and share of hits. error, low, high (float): Calibration error and its interval.
    floor, floor95 (float): What exactly true scores would show. frequent (dict): Mean error over the tags (or pairs) most often right.
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


def row_of(event: str, name: str, pairs: Pairs, scores: Floats, documents: Ints | None, bins: dict[str, Any]) -> Row:
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
    return Row(
        event, name, len(pairs), float(scores.mean()), float(pairs.hits.mean()), error, low, high, floor.mean, floor.q95, frequent
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


def run_beam(nlp: Language, pipe: Calibrator, options: argparse.Namespace) -> BeamPairs:
    """Search beams over the data. RAISES C066: the calib pipe does not read a recognizer."""
    recognizer = pipe.lookup.component()
    if not isinstance(recognizer, EntityRecognizer):
        raise calib_error("C066", option="--beam-width", component=pipe.source.component, kind=type(recognizer).__name__)
    examples = stream_examples(nlp, options.data)
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
            f"| {row.floor:.4f} ({row.floor95:.4f}) | {frequent} |"
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
    parser.add_argument("--gpu-id", type=int, default=-1, help="GPU ID or -1 for CPU")
    parser.add_argument("--code", type=Path, help="Python file with registered functions")
    parser.add_argument("--n-process", type=int, default=1, help="Processes")
    add_outputs(parser)


def study(options: argparse.Namespace) -> list[Row]:
    """RAISES CalibError: every fault of the input."""
    bins = {"n_bins": options.bins, "bin_size": options.bin_size}
    nlp, pipe = open_pipeline(options.model, options.attr, code=options.code, gpu_id=options.gpu_id)
    if options.threshold is None:
        options.threshold = pipe.threshold
    wanted = f"at least {pipe.threshold}, the threshold of the calib pipe, and below 1"
    check_option("--threshold", pipe.threshold <= options.threshold < 1, wanted, options.threshold)
    examples = stream_examples(nlp, options.data)
    corpus = score(nlp, pipe, examples, sentences=True, n_process=options.n_process, silent=options.silent, what="Scoring")
    given = corpus_pairs(corpus, options.threshold)
    rows = rows_of_corpus(given, corpus.pairs().documents, bins)
    beam = None if options.beam_width is None else run_beam(nlp, pipe, options)
    rows += [] if beam is None else rows_of_beam(beam, bins)
    if options.output is not None:
        write_json(options.output, [asdict(row) for row in rows])
    if options.plot is not None:
        draw(options.plot, given, beam)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        check_option("--bins", options.bins >= 1, "at least 1", options.bins)
        check_option("--bin-size", options.bin_size is None or options.bin_size >= 1, "at least 1", options.bin_size)
        check_option("--beam-width", options.beam_width is None or options.beam_width >= 2, "at least 2", options.beam_width)
        rows = study(options)
    except CalibError as error:
        raise SystemExit(error.message) from None
    if not options.silent:
        show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
