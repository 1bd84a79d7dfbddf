"""Does the recall of `spacy calib threshold --recall` hold on other documents of the same source? Random splits, as Markdown.

    python scripts/recall_study.py --model ./sure --name wikineural_en --test test.spacy --recall 0.99 0.95 --repeats 200
    python scripts/recall_study.py --model ./sure --name wikineural_en --test test.spacy --per label --recall 0.95
    python scripts/recall_study.py --simulate --recall 0.95 --repeats 200

MODEL is a pipeline that was calibrated on other documents (`calib fit --component ner`). Its test documents are scored
once. Then, in every repeat, they are dealt at random into two halves (to one document): the cut-off is found on the first, and judged
on the second. Counted are the repeats in which at least as many of the second half's tokens of gold entities are flagged as was
asked for; where no cut-off is sure, every token is flagged. "Flagged" is the share of all tokens of the second half, and "elsewhere"
the repeats in which it lies in the interval that the first half states. Beside it stands the naive rule, which looks at the tokens of
the entities that were found. The repeats share the data, so they are not independent; in brackets stands what as many independent ones
would give in 95 % of the cases if the confidence were met exactly (quantiles of the binomial distribution).
--simulate needs neither a model nor data: scores are uniform, so that the recall of a cut-off c is truly 1 - c, and tokens of one entity
and of one document share luck (normal copula). Counted is how often the true recall, and that of as many new documents, is reached.
Messages go to stderr. Exit code 1 where fewer repeats reach the recall than this allows.
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
from frame import head, make_parser, one_sentence, row, run_over, save_json
from numpy.typing import NDArray
from threshold_study import allowed, deal

from spacy_calib.calibration.cutoffs import PER, score_of
from spacy_calib.calibration.misses import effective_size, find_recall_threshold
from spacy_calib.calibration.thresholds import prediction_interval
from spacy_calib.cli.shared.loading import load_pipeline
from spacy_calib.cli.threshold import span_pipe
from spacy_calib.corpus.missed import EntityTokens
from spacy_calib.pipe.reading import entity_tokens
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.types import Floats, Ints

Bools = NDArray[np.bool_]


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
        entities = np.full(len(tokens.scored), -1, dtype=np.intp)
        for number, (start, end) in enumerate(zip(tokens.entities.starts.tolist(), tokens.entities.ends.tolist(), strict=True)):
            entities[start:end] = number
        wanted = tokens.wanted(key, per)
        scores = score_of(key, per, tokens.scores, tokens.types)
        columns: Any = scores, wanted, tokens.predicted(key, per), tokens.documents, np.where(wanted, entities, -1)
        return cls(*(column[tokens.scored] for column in columns))


def score_all(model: str, test: Path) -> EntityTokens:
    """What the first calib pipe that scores entities says of the test documents. RAISES CalibError: they cannot be read."""
    nlp = load_pipeline(model)
    pipe = span_pipe(nlp, None)
    done = run_over(nlp, nlp.pipe_names[: nlp.pipe_names.index(pipe.name) + 1], test)
    return entity_tokens(pipe, done, corpus_of(done, pipe.attr, pipe.lookup.labels()))


def one_split(data: Judged, second: Bools, recall: float, confidence: float) -> dict[str, float]:
    """One split: "reached", whether there was a cut-off; "found", the recall on the first half; and on the second "recall", "share" of the tokens
    that is flagged and of the "entities" that are touched, the same of the naive rule, and whether the share lies "inside" its interval.

    second (Bools): Which tokens are held out.
    """
    own = data.wanted & ~second
    threshold = find_recall_threshold(data.scores[own], data.documents[own], recall, confidence)
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


def study(tokens: EntityTokens, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each recall and key: numbers of repeats, and means over them, held out."""
    _, documents = np.unique(tokens.documents, return_inverse=True)
    for recall in options.recall:
        for key in tokens.keys(options.per):
            data, rng = Judged.of(tokens, key, options.per), np.random.default_rng(options.seed)
            splits = []
            for _ in range(options.repeats):
                second = deal(documents.max() + 1, rng, 2)[documents][tokens.scored] == 1
                splits.append(one_split(data, second, recall, options.confidence))
            means = {name: float(np.mean([one[name] for one in splits])) for name in splits[0]}
            recalls = [one["recall"] for one in splits]
            counts = {"held": sum(one >= recall for one in recalls), "cutoffs": sum(one["reached"] for one in splits)}
            inside = sum(one["inside"] for one in splits)
            yield {"wanted": recall, "key": key, **means, **counts, "inside": inside, "least": min(recalls)}


TITLES = (
    "| pipeline | wanted | for | cut-offs | held out at least wanted | recall found | held out | least | % flagged | elsewhere "
    "| entities touched | predicted only: recall | % flagged | entities touched |"
)


def show(name: str, one: dict[str, Any], options: argparse.Namespace) -> None:
    """Print a line of the table."""
    low, high = allowed(options.confidence, options.repeats)
    held = f"{one['held']} of {options.repeats} ({low} to {high})"
    recalls = (f"{one[key]:.4f}" for key in ("found", "recall", "least"))
    naive = f"{one['naive_recall']:.4f}", f"{100 * one['naive_share']:.1f}", f"{one['naive_entities']:.4f}"
    flagged = f"{100 * one['share']:.1f}", one["inside"], f"{one['entities']:.4f}"
    row(name, f"{one['wanted']:g}", one["key"], one["cutoffs"], held, *recalls, *flagged, *naive)


# Simulation

# Shares of luck in common with the document and with the entity.
_TOGETHER = ((0.0, 0.0), (0.0, 0.9), (0.3, 0.6))


def draw(n_documents: int, of_document: float, of_entity: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
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


def simulate(n_documents: int, recall: float, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and give a row for each way in which tokens are missed together."""
    for together in _TOGETHER:
        rng = np.random.default_rng(options.seed)
        cutoffs, true, held = [], 0, 0
        for _ in range(options.repeats):
            found = find_recall_threshold(*draw(n_documents, *together, rng), recall, options.confidence)
            cutoffs.append(found.cutoff or 0.0)
            true += 1 - cutoffs[-1] >= recall
            held += bool((draw(n_documents, *together, rng)[0] >= cutoffs[-1]).mean() >= recall)
        shown = "{:g}, {:g}".format(*together), f"{recall:g}", true, f"{held} of {options.repeats}"
        row(n_documents, *shown, f"{1 - np.mean(cutoffs):.4f}")
        yield {"documents": n_documents, "together": together, "wanted": recall, "true": true, "held": held}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--model", help="calibrated pipeline")
    parser.add_argument("--name", help="what the table calls it")
    parser.add_argument("--test", type=Path, help="its gold, which neither training nor fit has seen")
    parser.add_argument("--simulate", action="store_true", help="known truth instead of a pipeline")
    parser.add_argument("--documents", type=int, nargs="+", default=[100, 400, 1600], help="of each draw of --simulate")
    parser.add_argument("--recall", type=float, nargs="+", default=[0.99, 0.95], help="recalls wanted")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the cut-offs and intervals")
    parser.add_argument("--per", choices=PER, default="all", help="one cut-off for all, or for each label")
    parser.add_argument("--repeats", type=int, default=200, help="random splits, or draws")
    parser.add_argument("--seed", type=int, default=0, help="of the splits")
    options = parser.parse_args(arguments)
    if options.simulate == bool(options.model) or bool(options.model) != bool(options.test):
        parser.error("give either --simulate, or --model and --test")
    rows: list[dict[str, Any]] = []
    if options.simulate:
        head(
            "| documents | together in document, entity | wanted | true recall reached | on new documents | mean true recall |",
            2,
        )
        for n_documents in options.documents:
            for recall in options.recall:
                rows += simulate(n_documents, recall, options)
    else:
        with one_sentence():
            tokens = score_all(options.model, options.test)
        head(TITLES, 3)
        for one in study(tokens, options):
            show(options.name or options.model, one, options)
            rows.append(one)
    save_json(options.output, rows)
    least = allowed(options.confidence, options.repeats)[0]
    return 0 if all(one["held"] >= least for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
