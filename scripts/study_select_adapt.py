"""Which few documents of a new kind are worth labelling, to adapt to and to tell the accuracy by? A comparison, as Markdown.

    python scripts/study_select_adapt.py ./calibrated reviews.spacy ./calibrated emails.spacy --documents 5 20 --draws 100

Each pair of a calibrated pipeline and gold of another kind is a set. A draw cuts its documents into two halves at random; from one half some are
chosen and labelled (their gold is taken), by each of the strategies below. The adaptation (`calibration.adaptation`) that they
give is judged on the other half, by the log loss of the likeliest tags; the accuracy of the first half (`plugins.expect.few_labels`) by its
error, and by the width of its interval. The numbers of a strategy are means over draws, then over sets; those of the log loss are the
change to no adaptation in percent. A set has to hold four times as many documents as are chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from frame import head, make_parser, one_sentence, open_scored, row

from spacy_calib.calibration.adaptation.adaptation import Adaptation, GoldEntries
from spacy_calib.metrics import log_losses
from spacy_calib.pairs.build import find_top
from spacy_calib.pairs.scored_corpus import UNKNOWN, ScoredCorpus
from spacy_calib.pipe.record.estimates import sum_by, token_sums
from spacy_calib.plugins.expect.survey import LabelledDocuments, Survey, estimate_accuracy
from spacy_calib.plugins.review.queue.choosing import sample_documents
from spacy_calib.types import Floats, Groups, Ints

TITLES = "| documents | chosen | log loss: % of no adaptation | error of the accuracy | width of its interval | held by |"


@dataclass(frozen=True, eq=False)
class Texts:
    """A scored corpus with gold, by document.

    units, expected, independent, right (Floats): Tokens, expected right ones, their variance if independent, and right ones of each
        document, shape (D,). entries (GoldEntries): The scores. groups (Groups): Of the tags.
    """

    units: Floats
    expected: Floats
    independent: Floats
    right: Floats
    entries: GoldEntries
    groups: Groups

    @classmethod
    def of(cls, corpus: ScoredCorpus, groups: Groups) -> Texts:
        """Of the documents with gold, from 0."""
        judged = corpus.is_counted & (corpus.right != UNKNOWN)
        known, documents = np.unique(corpus.documents[judged], return_inverse=True)
        sums = token_sums(corpus.calibrated[judged], documents, len(known))
        right = sum_by(documents, corpus.right[judged], len(known))
        keep = (corpus.hits != UNKNOWN) & judged[corpus.rows]
        rows = corpus.rows[keep]
        leads = find_top(corpus.rows, corpus.tag_raw)[keep]
        documents = np.searchsorted(known, corpus.documents[rows])
        own = corpus.tag_calibrated[keep], corpus.hits[keep] == 1, leads, corpus.columns[keep]
        entries = GoldEntries(*own, documents)
        return cls(sums.units, sums.expected[:, 0], sums.independent[:, 0], right, entries, groups)

    @property
    def doubt(self) -> Floats:
        """The expected share of wrong labels of each document."""
        return 1 - self.expected / self.units

    def survey(self, labelled: Ints, rest: Ints) -> Survey:
        """Of some labelled documents, and others that are not."""
        columns = (self.right, self.expected, self.independent, self.units)
        sample = LabelledDocuments(*(column[labelled][:, None] for column in columns))
        inside = (self.right[labelled].sum(keepdims=True), self.units[labelled].sum(keepdims=True))
        others = self.expected[rest][:, None], self.units[rest][:, None]
        return Survey(sample, *inside, *others)

    def entries_of(self, documents: Ints) -> GoldEntries:
        return self.entries.take(np.flatnonzero(np.isin(self.entries.documents, documents)))


Strategy = Callable[[Texts, Ints, int, int], Ints]


def by_random(texts: Texts, pool: Ints, n: int, seed: int) -> Ints:
    return np.random.default_rng(seed).permutation(pool)[:n]


def by_doubt(texts: Texts, pool: Ints, n: int, seed: int) -> Ints:
    return pool[np.argsort(-texts.doubt[pool], kind="stable")[:n]]


def as_select(texts: Texts, pool: Ints, n: int, seed: int) -> Ints:
    """What `calib select --for adapt` draws: spread over doubt, without the shortest documents."""
    return pool[sample_documents(texts.doubt[pool], texts.units[pool].astype(np.intp), n, seed)]


STRATEGIES: dict[str, Strategy] = {
    "at random": by_random,
    "most doubtful": by_doubt,
    "spread over doubt, no short ones": as_select,
}


class Outcome(NamedTuple):
    """Of one draw. loss (float): Log loss of the likeliest tags after adapting, in percent of what it was. square (float): Squared error
    of the accuracy. width, holds (float): Of its interval.
    """

    loss: float
    square: float
    width: float
    holds: float


def outcome(texts: Texts, pool: Ints, test: GoldEntries, labelled: Ints) -> Outcome:
    """test (GoldEntries): The likeliest tags of the other half."""
    adaptation = Adaptation.fit(texts.entries_of(labelled), texts.groups)
    moved = adaptation.adjust(test.scores, test.is_top, test.tags)
    before, after = (float(log_losses(scores, test.hits).mean()) for scores in (test.scores, moved))
    found, _ = estimate_accuracy(texts.survey(labelled, pool[~np.isin(pool, labelled)]))
    true = float(texts.right[pool].sum() / texts.units[pool].sum())
    holds = float(found.low <= true <= found.high)
    return Outcome(100 * after / before, (found.expected - true) ** 2, found.high - found.low, holds)


def draws(texts: Texts, n: int, n_draws: int) -> dict[str, Floats]:
    """Strategy -> the outcomes of all draws, shape (n_draws, fields of Outcome)."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in STRATEGIES}
    for seed in range(n_draws):
        pool, other = np.array_split(np.random.default_rng(seed).permutation(len(texts.units)), 2)
        test = texts.entries_of(other)
        test = test.take(np.flatnonzero(test.is_top))
        for name, choose in STRATEGIES.items():
            found[name].append(outcome(texts, pool, test, choose(texts, pool, n, seed)))
    return {name: np.array(rows) for name, rows in found.items()}


def show(n: int, sets: list[dict[str, Floats]]) -> None:
    """One row for each strategy: means over sets."""
    for name in STRATEGIES:
        means = np.array([of[name].mean(axis=0) for of in sets])
        mean, error = Outcome(*means.mean(axis=0).tolist()), float(np.sqrt(means[:, 1]).mean())
        row(n, name, f"{mean.loss:.2f}", f"{error:.4f}", f"{mean.width:.4f}", f"{100 * mean.holds:.1f} %")


def read(model: str, data: Path) -> Texts:
    """RAISES CalibError: the pipeline or the data cannot be used."""
    _, pipe, corpus = open_scored(model, data)
    return Texts.of(corpus, pipe.groups)


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("sets", nargs="+", metavar="MODEL DATA", help="calibrated pipelines, each with gold of another kind")
    parser.add_argument("--documents", type=int, nargs="+", default=[5, 10, 20], help="how many are labelled")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    if len(options.sets) % 2:
        parser.error("MODEL and DATA are given in pairs")
    with one_sentence():
        texts = [read(model, Path(data)) for model, data in zip(options.sets[::2], options.sets[1::2], strict=True)]
    head(TITLES, 2)
    for n in options.documents:
        enough = [one for one in texts if len(one.units) >= 4 * n]
        if enough:
            show(n, [draws(one, n, options.draws) for one in enough])
    return 0


if __name__ == "__main__":
    sys.exit(main())
