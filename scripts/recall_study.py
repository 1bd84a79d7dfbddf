"""Does the recall of `spacy calib threshold --recall` hold on other documents of the same source? Random splits, as Markdown.

    python scripts/recall_study.py --model ./sure --name wikineural_en --test test.spacy --recall 0.99 0.95 --repeats 200
    python scripts/recall_study.py --model ./sure --name wikineural_en --test test.spacy --per label --recall 0.95
    python scripts/recall_study.py --simulate --recall 0.95 --repeats 200

Each --model begins a pipeline that was calibrated on other documents (`calib fit --component ner`). Its test documents are scored
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
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import say
from numpy.typing import NDArray
from threshold_study import allowed, deal

from spacy_calib.calibration.cutoffs import PER, score_of
from spacy_calib.calibration.misses import effective_size, find_recall_threshold
from spacy_calib.calibration.thresholds import prediction_interval
from spacy_calib.cli.shared.examples import read_examples, run_pipes
from spacy_calib.cli.shared.loading import load_pipeline
from spacy_calib.cli.threshold import span_pipe
from spacy_calib.corpus.missed import EntityTokens
from spacy_calib.errors import CalibError
from spacy_calib.pipe.flagging import entity_tokens
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.types import Floats, Ints

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """The tokens of some documents that have a score, as to one key.

    scores (Floats): What its cut-off is compared with. wanted, predicted (Bools): To be found; in entities that were found.
    documents (Ints): Of each token, from 0. entities (Ints): Number of the gold entity of each wanted token, -1 for the others.
    """

    key: str
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
        own, wanted = tokens.scored, tokens.wanted(key, per)
        return cls(
            key,
            score_of(key, per, tokens.scores, tokens.types)[own],
            wanted[own],
            tokens.predicted(key, per)[own],
            tokens.documents[own],
            np.where(wanted, entities, -1)[own],
        )


def score_all(model: str, test: Path) -> EntityTokens:
    """What the first calib pipe that scores entities says of the test documents."""
    nlp = load_pipeline(model)
    pipe = span_pipe(nlp, None)
    names = nlp.pipe_names[: nlp.pipe_names.index(pipe.name) + 1]
    done = list(run_pipes(nlp, read_examples(nlp, test, gold_preproc=False), names, silent=True, what=""))
    return entity_tokens(pipe, done, corpus_of(done, pipe.attr, pipe.lookup.labels()))


@dataclass(frozen=True)
class Outcome:
    """One split: on the half held out, but for `found`, which is the recall on the first.

    reached (bool): Whether there was a cut-off. recall, share (float): Of the cut-off. inside (bool): Whether the share lies in its interval.
    entities (float): Share of the gold entities that are touched. naive (tuple): The recall, share and entities of the naive rule.
    """

    reached: bool
    found: float
    recall: float
    share: float
    inside: bool
    entities: float
    naive: tuple[float, float, float]


def one_split(data: Judged, second: Bools, recall: float, confidence: float) -> Outcome:
    """second (Bools): Which tokens are held out."""
    own = data.wanted & ~second
    threshold = find_recall_threshold(data.scores[own], data.documents[own], recall, confidence)
    flagged = data.scores >= (-np.inf if threshold.cutoff is None else threshold.cutoff)
    first = flagged[~second]
    documents = data.documents[~second]
    sizes = np.bincount(documents)
    size = effective_size(sizes, np.bincount(documents[first], minlength=len(sizes)))
    low, high = prediction_interval(float(first.mean()), size, size, confidence)
    held, share, entities = _held_out(data, second, flagged)
    naive = _held_out(data, second, data.predicted)
    return Outcome(threshold.cutoff is not None, threshold.recall or 0.0, held, share, low <= share <= high, entities, naive)


def _held_out(data: Judged, second: Bools, flagged: Bools) -> tuple[float, float, float]:
    """(share of the wanted tokens that is flagged, of all tokens, of the entities that are touched)."""
    wanted = data.wanted & second
    every, touched = np.unique(data.entities[wanted]), np.unique(data.entities[wanted & flagged])
    return float(flagged[wanted].mean()), float(flagged[second].mean()), len(touched) / len(every)


@dataclass(frozen=True)
class Row:
    """All repeats of one recall and key; shares are means over the repeats, held out."""

    pipeline: str
    wanted: float
    key: str
    repeats: int
    cutoffs: int
    held: int
    found: float
    recall: float
    least: float
    share: float
    inside: int
    entities: float
    naive_recall: float
    naive_share: float
    naive_entities: float


def summarize(pipeline: str, wanted: float, key: str, outcomes: Sequence[Outcome]) -> Row:
    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in outcomes]))

    naive = np.mean([one.naive for one in outcomes], axis=0).tolist()
    recalls = [one.recall for one in outcomes]
    return Row(
        pipeline,
        wanted,
        key,
        len(outcomes),
        sum(one.reached for one in outcomes),
        sum(recall >= wanted for recall in recalls),
        mean("found"),
        mean("recall"),
        min(recalls),
        mean("share"),
        sum(one.inside for one in outcomes),
        mean("entities"),
        *naive,
    )


def study(name: str, tokens: EntityTokens, options: argparse.Namespace) -> Iterator[Row]:
    """A row for each recall and key."""
    _, documents = np.unique(tokens.documents, return_inverse=True)
    for recall in options.recall:
        for key in tokens.keys(options.per):
            data, rng = Judged.of(tokens, key, options.per), np.random.default_rng(options.seed)
            outcomes = []
            for _ in range(options.repeats):
                second = deal(documents.max() + 1, rng, 2)[documents][tokens.scored] == 1
                outcomes.append(one_split(data, second, recall, options.confidence))
            yield summarize(name, recall, key, outcomes)


HEADER = (
    "| pipeline | wanted | for | cut-offs | held out at least wanted | recall found | held out | least | % flagged | elsewhere "
    "| entities touched | predicted only: recall | % flagged | entities touched |"
)


def as_row(row: Row, confidence: float) -> str:
    """A line of the Markdown table."""
    low, high = allowed(confidence, row.repeats)
    held = f"{row.held} of {row.repeats} ({low} to {high})"
    return (
        f"| {row.pipeline} | {row.wanted:g} | {row.key} | {row.cutoffs} | {held} | {row.found:.4f} | {row.recall:.4f} | {row.least:.4f} "
        f"| {100 * row.share:.1f} | {row.inside} | {row.entities:.4f} "
        f"| {row.naive_recall:.4f} | {100 * row.naive_share:.1f} | {row.naive_entities:.4f} |"
    )


# Simulation


def draw(n_documents: int, of_document: float, of_entity: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """(scores, documents) of the tokens of entities: 2.5 entities a document, and 2.7 tokens an entity, on average.

    of_document, of_entity (float): Shares of a token's luck that it has in common with its document, and with its entity.
    """
    from scipy.special import ndtr

    entities = np.repeat(np.arange(n_documents), 1 + rng.poisson(1.5, n_documents))
    tokens = np.repeat(np.arange(len(entities)), 1 + rng.geometric(0.6, len(entities)))
    shared = math.sqrt(of_document) * rng.normal(size=n_documents)[entities] + math.sqrt(of_entity) * rng.normal(
        size=len(entities)
    )
    luck = shared[tokens] + math.sqrt(1 - of_document - of_entity) * rng.normal(size=len(tokens))
    return ndtr(luck), entities[tokens]


# Shares of luck in common with the document and with the entity.
_TOGETHER = ((0.0, 0.0), (0.0, 0.9), (0.3, 0.6))


def simulate(n_documents: int, recall: float, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each way in which tokens are missed together."""
    for of_document, of_entity in _TOGETHER:
        rng = np.random.default_rng(options.seed)
        cutoffs, true, held = [], 0, 0
        for _ in range(options.repeats):
            cutoff = find_recall_threshold(*draw(n_documents, of_document, of_entity, rng), recall, options.confidence).cutoff
            cutoffs.append(cutoff or 0.0)
            true += 1 - cutoffs[-1] >= recall
            held += bool((draw(n_documents, of_document, of_entity, rng)[0] >= cutoffs[-1]).mean() >= recall)
        yield {
            "documents": n_documents, "together": (of_document, of_entity), "wanted": recall, "true": true, "held": held,
            "repeats": options.repeats, "recall": 1 - float(np.mean(cutoffs)),
        }  # fmt: skip


def show_simulated(row: dict[str, Any]) -> None:
    of_document, of_entity = row["together"]
    print(
        f"| {row['documents']} | {of_document:g}, {of_entity:g} | {row['wanted']:g} | {row['true']} | {row['held']} of {row['repeats']} "
        f"| {row['recall']:.4f} |",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", default=[], help="Calibrated pipeline; begins what it is judged on")
    parser.add_argument("--name", action="append", default=[], help="What the table calls it")
    parser.add_argument(
        "--test", action="append", default=[], type=Path, help="Its gold, which neither training nor fit has seen"
    )
    parser.add_argument("--simulate", action="store_true", help="Known truth instead of pipelines")
    parser.add_argument("--documents", type=int, nargs="+", default=[100, 400, 1600], help="Of each draw of --simulate")
    parser.add_argument("--recall", type=float, nargs="+", default=[0.99, 0.95], help="Recalls wanted")
    parser.add_argument("--confidence", type=float, default=0.95, help="Of the cut-offs and intervals")
    parser.add_argument("--per", choices=PER, default="all", help="One cut-off for all, or for each label")
    parser.add_argument("--repeats", type=int, default=200, help="Random splits, or draws")
    parser.add_argument("--seed", type=int, default=0, help="Of the splits")
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    options = parser.parse_args(arguments)
    if options.simulate == bool(options.model) or not len(options.model) == len(options.name) == len(options.test):
        parser.error("give either --simulate, or --model, --name and --test for each pipeline")
    least = allowed(options.confidence, options.repeats)[0]
    rows: list[dict[str, Any]] = []
    if options.simulate:
        print(
            "| documents | together in document, entity | wanted | true recall reached | on new documents | mean true recall |"
        )
        print("| --- | --- | --- | --- | --- | --- |")
        for n_documents in options.documents:
            for recall in options.recall:
                for made in simulate(n_documents, recall, options):
                    show_simulated(made)
                    rows.append(made)
    else:
        print(HEADER)
        print("|" + " --- |" * (HEADER.count("|") - 1), flush=True)
        try:
            for model, name, test in zip(options.model, options.name, options.test, strict=True):
                say(f"{name}: running {model} ...")
                for row in study(name, score_all(model, test), options):
                    print(as_row(row, options.confidence), flush=True)
                    rows.append(asdict(row))
        except CalibError as error:
            raise SystemExit(error.message) from None
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf8")
    return 0 if all(row["held"] >= least for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
