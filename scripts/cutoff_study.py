"""Do the cut-offs of `spacy calib threshold` hold on other documents of the same source? Random splits, as Markdown.

    python scripts/cutoff_study.py recall --model ./sure --name wikineural_en --test test.spacy --repeats 200
    python scripts/cutoff_study.py precision --model ./sure --test test.spacy --per label --wanted 0.95
    python scripts/cutoff_study.py recall
    python scripts/cutoff_study.py precision --wanted 0.9 0.85 0.8 --repeats 60

MODEL is a pipeline that was calibrated on other documents (`calib fit --component ner`). Its test documents are scored once. Then,
in every repeat, they are dealt at random into two halves (to one document): the cut-off is found on the first, and judged on the second.

recall: Counted are the repeats in which at least as many of the second half's tokens of gold entities are flagged as was asked for; where
no cut-off is sure, every token is flagged. "Flagged" is the share of all tokens of the second half, and "elsewhere" the repeats in which it
lies in the interval that the first half states. Beside it stands the naive rule, which looks at the tokens of the entities that were found.
precision: Counted are the repeats with a cut-off, and those of them in which as many of the second half's accepted entities are right.

The repeats share the data, so they are not independent; in brackets stands what as many independent ones would give in 95 % of the cases
if the confidence were met exactly (quantiles of the binomial distribution).

Without a model truth is known. recall: scores are uniform, so that the recall of a cut-off c is truly 1 - c, and tokens of one entity and
of one document share luck (normal copula); counted is how often the true recall, and that of as many new documents, is reached. precision:
the likeliest 15 % of the entities are .97 right and all others .2; counted are cut-offs, and those whose true precision is reached.
Messages go to stderr. Exit code 1 where more repeats fail than the confidence allows.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import head, make_parser, one_sentence, row, run_over
from numpy.typing import NDArray

from spacy_calib.calibration.cutoffs import PER, key_probability, keys_of
from spacy_calib.calibration.missed import EntityTokens
from spacy_calib.calibration.recall_threshold import effective_size, find_recall_threshold
from spacy_calib.calibration.thresholds import find_threshold, find_thresholds, prediction_interval
from spacy_calib.pairs.build import JudgedPairs
from spacy_calib.pipe.component import fitted_pipes
from spacy_calib.pipe.gold_entities import entity_tokens
from spacy_calib.pipe.loading import load_pipeline
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.types import Floats, Ints

Bools = NDArray[np.bool_]
WANTED = {"recall": [0.99, 0.95], "precision": [0.95, 0.9]}
SIZES = {"recall": [100, 400, 1600], "precision": [1000]}


def deal(documents: Ints, rng: np.random.Generator) -> Bools:
    """Which units are held out: those of half of the documents, at random."""
    _, numbers = np.unique(documents, return_inverse=True)
    return (rng.permutation(np.arange(numbers.max() + 1) % 2) == 1)[numbers]


def allowed(share: float, n: int) -> tuple[int, int]:
    """What as many independent repeats give with 95 % if the share is true: (least, most)."""
    from scipy.stats import binom

    return int(binom.ppf(0.025, n, share)), int(binom.ppf(0.975, n, share))


# Recall


@dataclass(frozen=True)
class Judged:
    """The tokens of some documents that have a score, as to one key.

    scores (Floats): What its cut-off is compared with. wanted, predicted (Bools): To be found; in entities that were found.
    documents (Ints): Of each token, from 0. entities (Ints): Number of the gold entity of each wanted token, -1 for the others.
    """

    scores: Floats
    wanted: Bools
    predicted: Bools
    documents: Ints
    entities: Ints

    @classmethod
    def of(cls, tokens: EntityTokens, key: str, per: str) -> Judged:
        entities = np.full(len(tokens.is_scored), -1, dtype=np.intp)
        for number, (start, end) in enumerate(zip(tokens.entities.starts.tolist(), tokens.entities.ends.tolist(), strict=True)):
            entities[start:end] = number
        wanted = tokens.in_gold(key, per)
        scores = key_probability(key, per, tokens.scores, tokens.types)
        columns: Any = scores, wanted, tokens.in_predicted(key, per), tokens.documents, np.where(wanted, entities, -1)
        return cls(*(column[tokens.is_scored] for column in columns))


def recall_split(data: Judged, second: Bools, wanted: float, confidence: float) -> dict[str, float]:
    """One split: "reached", whether there was a cut-off; "found", the recall on the first half; and on the second "recall", "share" of
    the tokens that is flagged and of the "entities" that are touched, the same of the naive rule, and whether the share lies "inside" its
    interval. second (Bools): Which tokens are held out.
    """
    own = data.wanted & ~second
    threshold = find_recall_threshold(data.scores[own], data.documents[own], wanted, confidence)
    flagged = data.scores >= (-np.inf if threshold.cutoff is None else threshold.cutoff)
    first, documents = flagged[~second], data.documents[~second]
    sizes = np.bincount(documents)
    size = effective_size(sizes, np.bincount(documents[first], minlength=len(sizes)))
    low, high = prediction_interval(float(first.mean()), size, size, confidence)
    held, naive = _held_out(data, second, flagged), _held_out(data, second, data.predicted)
    found = {"reached": threshold.cutoff is not None, "found": threshold.recall or 0.0, "inside": low <= held["share"] <= high}
    return {**found, **held, **{f"naive_{name}": value for name, value in naive.items()}}


def _held_out(data: Judged, second: Bools, flagged: Bools) -> dict[str, float]:
    """The share of the wanted tokens that is flagged, of all tokens, and of the entities that are touched."""
    wanted = data.wanted & second
    every, touched = np.unique(data.entities[wanted]), np.unique(data.entities[wanted & flagged])
    return {
        "recall": float(flagged[wanted].mean()), "share": float(flagged[second].mean()), "entities": len(touched) / len(every),
    }  # fmt: skip


def recall_rows(tokens: EntityTokens, options: argparse.Namespace) -> Iterator[int]:
    """Print a row for each recall and key. RETURNS: How many repeats failed, of each."""
    titles = "cut-offs | held out at least wanted | recall found | held out | least | % flagged | elsewhere | entities touched"
    head(f"| pipeline | wanted | for | {titles} | predicted only: recall | % flagged | entities touched |", 3)
    for wanted in options.wanted:
        for key in tokens.keys(options.per):
            data, rng, splits = Judged.of(tokens, key, options.per), np.random.default_rng(options.seed), []
            for _ in range(options.repeats):
                second = deal(tokens.documents, rng)[tokens.is_scored]
                splits.append(recall_split(data, second, wanted, options.confidence))
            mean = {name: float(np.mean([one[name] for one in splits])) for name in splits[0]}
            counts = {name: sum(int(one[name]) for one in splits) for name in ("reached", "inside")}
            recalls = [one["recall"] for one in splits]
            held = sum(one >= wanted for one in recalls)
            shown = (f"{one:.4f}" for one in (mean["found"], mean["recall"], min(recalls)))
            naive = f"{mean['naive_recall']:.4f}", f"{100 * mean['naive_share']:.1f}", f"{mean['naive_entities']:.4f}"
            flagged = f"{100 * mean['share']:.1f}", counts["inside"], f"{mean['entities']:.4f}"
            row(options.name, f"{wanted:g}", key, counts["reached"], times(held, options), *shown, *flagged, *naive)
            yield options.repeats - held


def times(held: int, options: argparse.Namespace) -> str:
    low, high = allowed(options.confidence, options.repeats)
    return f"{held} of {options.repeats} ({low} to {high})"


# Precision


def precision_split(
    data: JudgedPairs, keys: Sequence[str], second: Bools, wanted: float, confidence: float
) -> dict[str, tuple]:
    """Key -> (precision found, that held out, share held out that is accepted), where a cut-off was found. second (Bools): Held out."""
    of_key, hits, first = np.array(keys, dtype=object), data.pairs.hits, np.flatnonzero(~second)
    of_first = (data.calibrated[first], hits[first], data.documents[first], of_key[first].tolist())
    found = {}
    for key, threshold in find_thresholds(*of_first, wanted, confidence).items():
        if threshold.cutoff is not None:
            own = second & (of_key == key)
            kept = own & (data.calibrated >= threshold.cutoff)
            held = hits[kept].mean() if kept.any() else 1.0  # what accepts nothing says nothing wrong
            found[key] = threshold.precision, held, kept.sum() / max(1, own.sum())
    return found


def precision_rows(data: JudgedPairs, keys: Sequence[str], options: argparse.Namespace) -> Iterator[int]:
    """Print a row for each precision and key. RETURNS: How many repeats failed, of each."""
    head("| pipeline | wanted | for | cut-offs | held out at least wanted | precision found | held out | % accepted |", 3)
    for wanted in options.wanted:
        rng = np.random.default_rng(options.seed)
        splits = [
            precision_split(data, keys, deal(data.documents, rng), wanted, options.confidence) for _ in range(options.repeats)
        ]
        for key in sorted(set(keys)):
            own = [one[key] for one in splits if key in one]
            held = sum(one[1] >= wanted for one in own)
            precision, new, share = np.mean(own, axis=0) if own else (np.nan,) * 3
            row(options.name, f"{wanted:g}", key, len(own), held, f"{precision:.4f}", f"{new:.4f}", f"{100 * share:.1f}")
            yield len(own) - held


# Simulation

# Shares of luck in common with the document and with the entity.
_TOGETHER = ((0.0, 0.0), (0.0, 0.9), (0.3, 0.6))
# The likeliest entities: their share, and the share of them that are right; and the share right of the others.
_TOP, _RIGHT, _REST = 0.15, 0.97, 0.2


def missed_together(n_documents: int, of_document: float, of_entity: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """(scores, documents) of the tokens of entities: 2.5 entities a document, and 2.7 tokens an entity, on average.

    of_document, of_entity (float): Shares of a token's luck that it has in common with its document, and with its entity.
    """
    from scipy.special import ndtr

    entities = np.repeat(np.arange(n_documents), 1 + rng.poisson(1.5, n_documents))
    tokens = np.repeat(np.arange(len(entities)), 1 + rng.geometric(0.6, len(entities)))
    shared = math.sqrt(of_document) * rng.normal(size=n_documents)[entities]
    shared += math.sqrt(of_entity) * rng.normal(size=len(entities))
    luck = shared[tokens] + math.sqrt(1 - of_document - of_entity) * rng.normal(size=len(tokens))
    return ndtr(luck), entities[tokens]


def simulate_recall(options: argparse.Namespace) -> Iterator[int]:
    """Print a row for each way in which tokens are missed together. RETURNS: How many repeats failed, of each."""
    head("| documents | together in document, entity | wanted | true recall reached | on new documents | mean true recall |", 2)
    for n, wanted, together in ((n, one, of) for n in options.sizes for one in options.wanted for of in _TOGETHER):
        rng, cutoffs, held = np.random.default_rng(options.seed), [], 0
        for _ in range(options.repeats):
            found = find_recall_threshold(*missed_together(n, *together, rng), wanted, options.confidence)
            cutoffs.append(found.cutoff or 0.0)
            held += bool((missed_together(n, *together, rng)[0] >= cutoffs[-1]).mean() >= wanted)
        true = sum(1 - one >= wanted for one in cutoffs)
        shown = "{:g}, {:g}".format(*together), f"{wanted:g}", true, f"{held} of {options.repeats}"
        row(n, *shown, f"{1 - np.mean(cutoffs):.4f}")
        yield options.repeats - held


def true_precision(cutoff: float) -> float:
    """Of the entities at or above a cut-off."""
    share = 1 - cutoff
    return (min(share, _TOP) * _RIGHT + max(0.0, share - _TOP) * _REST) / share


def simulate_precision(options: argparse.Namespace) -> Iterator[int]:
    """Print a row for each precision. RETURNS: How many cut-offs do not truly reach it, of each."""
    head("| entities | wanted | exists | found / held |")
    for n, wanted in ((n, one) for n in options.sizes for one in options.wanted):
        rng, true = np.random.default_rng(options.seed), []
        for _ in range(options.repeats):
            rank = rng.random(n)
            hits = rng.random(n) < np.where(rank < _TOP, _RIGHT, _REST)
            found = find_threshold(1 - rank, hits, np.arange(n), wanted, options.confidence).cutoff
            true += [] if found is None else [true_precision(found) >= wanted]
        exists = "yes" if wanted <= _RIGHT else "no"
        row(f"{n:,}", f"{wanted:g}", exists, f"{len(true)} / {sum(true)} of {options.repeats}")
        yield len(true) - sum(true)


def study(options: argparse.Namespace) -> list[int]:
    """Print the table. RETURNS: How many repeats of each row failed. RAISES CalibError: the pipeline or its data cannot be read."""
    if options.model is None:
        return list({"recall": simulate_recall, "precision": simulate_precision}[options.what](options))
    nlp = load_pipeline(options.model)
    pipe = next(pipe for pipe in fitted_pipes(nlp) if pipe.spans.groups is not None)
    done = run_over(nlp, nlp.pipe_names[: nlp.pipe_names.index(pipe.name) + 1], options.test)
    corpus = corpus_of(done, pipe.attr, pipe.lookup.labels())
    if options.what == "recall":
        return list(recall_rows(entity_tokens(pipe, done, corpus), options))
    labels = pipe.lookup.span_labels()
    data, groups = corpus.span_pairs(labels), pipe.spans.groups
    assert groups is not None
    return list(precision_rows(data, keys_of(options.per, data.pairs.tags, labels, groups), options))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=list(WANTED), help="of what the cut-offs promise some")
    parser.add_argument("--model", help="calibrated pipeline; without one, made-up scores whose truth is known")
    parser.add_argument("--name", help="what the table calls it")
    parser.add_argument("--test", type=Path, help="its gold, which neither training nor fit has seen")
    parser.add_argument("--wanted", type=float, nargs="+", help="how much of it; else .99 and .95, of precision .95 and .9")
    parser.add_argument("--sizes", type=int, nargs="+", help="documents of a made-up draw, of precision entities")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the cut-offs and intervals")
    parser.add_argument("--per", choices=PER, default="all", help="one cut-off for all, or for each label (or group)")
    parser.add_argument("--repeats", type=int, default=200, help="random splits, or draws")
    parser.add_argument("--seed", type=int, default=0, help="of the splits")
    options = parser.parse_args(arguments)
    if (options.model is None) != (options.test is None):
        parser.error("--model and --test are given together")
    options.name = options.name or options.model
    options.wanted, options.sizes = options.wanted or WANTED[options.what], options.sizes or SIZES[options.what]
    with one_sentence():
        failed = study(options)
    return 0 if max(failed) <= allowed(1 - options.confidence, options.repeats)[1] else 1


if __name__ == "__main__":
    sys.exit(main())
