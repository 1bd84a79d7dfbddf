"""Does the interval of `calib evaluate --against` hold the difference of two checkpoints of one tagger?

    python scripts/against_study.py                        1,000 pairs of samples of 40, and of 150 Docs of ten sentences
    python scripts/against_study.py --draws 100 --documents 20

A small tagger is trained on one part of EWT and kept after two numbers of epochs. Both tag other parts, which are the population: its differences
are known. Docs are drawn from it, with replacement, as samples of a population without end; each sample gives intervals. They should hold the
population's difference in 95 of 100. Of SMCE that is the error in the bins of the sample. NN stands for entities: found, right and in the gold.
"""

from __future__ import annotations

import random
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from frame import bare, docs_in, ewt_file, make_parser, one_sentence, say

from spacy_calib.metrics.comparison import all_pairs, error_row, same_units, span_rows, unit_rows
from spacy_calib.metrics.proper import log_losses
from spacy_calib.pairs.bins import assign, make_binner
from spacy_calib.pairs.build import JudgedPairs
from spacy_calib.types import Pairs

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from spacy_calib.pairs.scored_corpus import ScoredCorpus

_TAG = "NN"


def tag(nlp: Any, gold: list[Doc]) -> ScoredCorpus:
    """What a tagger says of the gold, with raw scores."""
    from spacy.training import Example

    from spacy_calib.pipe.scorer import corpus_of

    calib = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": "tagger"}})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[CW01\]")  # it is not fitted, and passes raw scores on
        docs = list(nlp.pipe(bare(doc, nlp.vocab) for doc in gold))
    found = corpus_of([Example(doc, one) for doc, one in zip(docs, gold, strict=True)], "calib", calib.lookup.labels())
    nlp.remove_pipe("calib")
    return found


def checkpoints(train: list[Doc], gold: list[Doc], epochs: list[int]) -> list[ScoredCorpus]:
    """What a tagger says of the gold after so many epochs of training."""
    import spacy
    from spacy.training import Example
    from spacy.util import fix_random_seed, minibatch

    fix_random_seed(0)
    nlp, rng, found = spacy.blank("en"), random.Random(0), []
    nlp.add_pipe("tagger")
    examples = [Example(bare(doc, nlp.vocab), doc) for doc in train]
    optimizer = nlp.initialize(lambda: examples)
    for epoch in range(1, max(epochs) + 1):
        rng.shuffle(examples)
        for batch in minibatch(examples, 16):
            nlp.update(batch, sgd=optimizer, drop=0.1)
        if epoch in epochs:
            found.append(tag(nlp, gold))
            say(f"{epoch} epochs: {np.mean(found[-1].right == 1):.4f} right")
    return found


class Population:
    """Both checkpoints on all documents, so that the arrays of some of these are quickly found."""

    def __init__(self, both: list[ScoredCorpus]):
        rows = same_units(*both)
        self.units = [one.predicted_pairs(own) for one, own in zip(both, rows, strict=True)]
        self.pairs = [all_pairs(one, own) for one, own in zip(both, rows, strict=True)]
        self.n = 1 + int(self.units[0].documents.max())
        self.starts = {id(one): np.searchsorted(one.documents, np.arange(self.n + 1)) for one in (*self.units, *self.pairs)}
        self.found = [self.counts(one, own) for one, own in zip(both, rows, strict=True)]

    def counts(self, corpus: ScoredCorpus, rows: Any) -> Any:
        """(right, found, in the gold) of the tag, by document."""
        wanted, documents = corpus.names.index(_TAG), corpus.documents[rows]
        said, gold = corpus.labels[rows] == wanted, corpus.gold[rows] == wanted
        return np.stack([np.bincount(documents, one, self.n) for one in (said & gold, said, gold)])

    def some(self, judged: JudgedPairs, drawn: Any) -> JudgedPairs:
        """The pairs of these documents; one that was drawn twice is two documents."""
        starts = self.starts[id(judged)]
        sizes = starts[drawn + 1] - starts[drawn]
        own = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in drawn.tolist()])
        pairs = Pairs(np.arange(len(own)), judged.pairs.tags[own], judged.pairs.scores[own], judged.pairs.hits[own], len(own))
        return JudgedPairs(pairs, judged.calibrated[own], np.repeat(np.arange(len(drawn)), sizes))

    def truth(self, sampled: list[JudgedPairs]) -> dict[str, float]:
        """The differences of the population. sampled (list): All pairs of the sample, whose bins are taken."""
        hits, losses, errors = [], [], []
        for one, every, own in zip(self.units, self.pairs, sampled, strict=True):
            hits.append(one.pairs.hits.mean())
            losses.append(log_losses(one.calibrated, one.pairs.hits).mean())
            bins = assign(every.calibrated, make_binner(10)(own.calibrated, None))
            gaps, n = np.bincount(bins, every.calibrated - every.pairs.hits), np.bincount(bins)
            errors.append(float(np.sqrt((gaps**2 / np.maximum(n, 1)).sum() / len(every))))
        sums = [one.sum(axis=1) for one in self.found]
        figures = {"accuracy": hits, "log_loss": losses, "smce": errors}
        figures |= {"precision": [one[0] / one[1] for one in sums], "recall": [one[0] / one[2] for one in sums]}
        figures |= {"f": [2 * one[0] / (one[1] + one[2]) for one in sums]}
        return {name: float(b - a) for name, (a, b) in figures.items()}


def study(population: Population, documents: int, draws: int) -> dict[str, list[tuple[bool, float, float]]]:
    """Of each figure and draw: whether the interval holds the difference, its width, and the difference."""
    rng = np.random.default_rng(documents)
    told: dict[str, list[tuple[bool, float, float]]] = {}
    for draw in range(draws):
        drawn = rng.integers(population.n, size=documents)
        model, other = (population.some(one, drawn) for one in population.units)
        pairs = [population.some(one, drawn) for one in population.pairs]
        found, found_other = (one[:, drawn] for one in population.found)
        error = error_row(pairs[0], pairs[1], seed=draw)
        rows = [*unit_rows(model, other, seed=draw), *([error] if error else []), *span_rows(found, found_other, seed=draw)]
        truth = population.truth(pairs)
        for row in rows:
            low, high = row["low"], row["high"]
            assert low is not None
            assert high is not None
            held = low <= truth[row["figure"]] <= high
            told.setdefault(row["figure"], []).append((held, high - low, truth[row["figure"]]))
    return told


def main() -> None:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--draws", type=int, default=1000, help="pairs of samples")
    parser.add_argument("--documents", type=int, nargs="+", default=[40, 150], help="of a sample")
    parser.add_argument("--epochs", type=int, nargs=2, default=[8, 10], help="of the two checkpoints")
    parser.add_argument("--train", default="dev", help="part of EWT that the tagger learns from")
    parser.add_argument("--population", nargs="+", default=["train", "test"], help="parts of EWT that documents are drawn from")
    options = parser.parse_args()
    import spacy

    vocab = spacy.blank("en").vocab
    with one_sentence():
        train = docs_in(ewt_file(options.train, options.cache), vocab)
        gold = [doc for part in options.population for doc in docs_in(ewt_file(part, options.cache), vocab)]
    population = Population(checkpoints(train, gold, options.epochs))
    print(f"{population.n:,} documents, {len(population.units[0]):,} tokens; {options.draws:,} pairs of samples\n")
    print("| documents | figure | difference | mean width | held |\n| --- | --- | --- | --- | --- |")
    for documents in options.documents:
        for figure, found in study(population, documents, options.draws).items():
            held, width, truth = (float(np.mean([one[place] for one in found])) for place in range(3))
            name = figure if figure in ("accuracy", "log_loss", "smce") else f"{figure} of {_TAG}"
            print(f"| {documents} | {name} | {truth:+.4f} | {width:.4f} | {100 * held:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
