"""Is every tag of a sentence right? After Kuleshov and Liang (2015), on the sentences of a treebank, in squared loss. As Markdown.

    python scripts/papers event_table en_core_web_sm dev.spacy test.spacy

The product of the tags' probabilities, raw and calibrated, against forecasters that learn from features of the calibrated scores: the least and the
second least, product and mean (as log-odds), the number of words, of them the doubtful ones. Everything is fitted on FIT: the calibration (TagCalibrator; the
forecasters see the scores of documents that it did not learn from), the size of each forecaster and which of them is taken, by folds of its documents. TEST is
judged once. Differences have 95 % intervals by document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import docs_in, estimated, head, make_parser, row, save_tables, say, verdict
from numpy.typing import NDArray
from spacy.tokens import Doc

from papers.forecasts.forecasters import DecisionTree, Logistic, NearestNeighbours
from papers.forecasts.tuning import choose_best, split_loss, tune
from papers.reading import TagScores, read_tags
from spacy_calib import TagCalibrator
from spacy_calib.calibration.spans import logit
from spacy_calib.metrics import mean_interval, squared_losses
from spacy_calib.pairs.documents import cross_fit, folds_of
from spacy_calib.types import Floats, Ints

FEATURES = ("least", "second least", "product", "1 - product", "mean", "words", "doubtful words")
# Neighbours, or least rows of a leaf, that folds of documents choose from.
SIZES = (10, 20, 40, 80, 160)
# A tag with a lower score is doubtful; logarithms of smaller probabilities are those of _SMALLEST.
_DOUBTFUL, _SMALLEST = 0.9, 1e-4
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Sentences:
    """n sentences of a data set. starts (Ints): First token of each. hits (NDArray[bool]): Whether all its tags are right. documents (Ints)."""

    starts: Ints
    hits: NDArray[np.bool_]
    documents: Ints

    @classmethod
    def of(cls, tags: TagScores, golds: Sequence[Doc]) -> Sentences:
        lengths = np.array([len(sentence) for doc in golds for sentence in doc.sents])
        starts = np.cumsum(lengths) - lengths
        return cls(starts, np.minimum.reduceat(tags.right, starts) == 1, tags.documents[starts])

    def products(self, scores: Floats) -> Floats:
        """Return P(all right) if tags are independent. scores (Floats): P(right) of each token."""
        return np.asarray(np.multiply.reduceat(scores, self.starts))

    def features(self, scores: Floats) -> Floats:
        """Return FEATURES of each sentence, shape (n, 7). scores (Floats): P(right) of each token."""
        lengths = np.diff(self.starts, append=len(scores))
        ascending = scores[np.lexsort((scores, np.repeat(np.arange(len(lengths)), lengths)))]
        product = np.clip(self.products(scores), _SMALLEST, 1 - _SMALLEST)
        columns = [
            logit(ascending[self.starts]), logit(ascending[self.starts + np.minimum(lengths - 1, 1)]), np.log(product), np.log1p(-product),
            logit(np.add.reduceat(scores, self.starts) / lengths), np.log(lengths), np.add.reduceat((scores < _DOUBTFUL).astype(float), self.starts),
        ]  # fmt: skip
        return np.column_stack(columns)


def tag_scores(fit: TagScores, rows: Any, test_tags: TagScores) -> Floats:
    """Return the calibrated probability of the top tag of each token, by a calibration learned on some rows of another data set."""
    calibrator = TagCalibrator(classes=fit.labels)
    calibrator.fit(fit.chances[rows], [fit.gold[i] for i in rows.tolist()], groups=fit.documents[rows])
    scores: Floats = calibrator.transform(test_tags.chances)[np.arange(len(test_tags.gold)), test_tags.chances.argmax(axis=1)]
    return scores


def held_out_scores(fit: TagScores) -> Floats:
    """Return `tag_scores` of each document of the fit by a calibration of the others."""
    folds = folds_of(fit.documents, _FOLDS)

    def part(train: Ints, test: Ints) -> Floats:
        test_tags = TagScores(
            fit.labels, fit.chances[test], [fit.gold[i] for i in test.tolist()], fit.documents[test], fit.right[test]
        )
        return tag_scores(fit, train, test_tags)

    return cross_fit(folds, part)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model")
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--component", default="tagger")
    options = parser.parse_args(arguments)
    nlp = spacy.load(options.model)
    golds = [docs_in(file, nlp.vocab) for file in (options.fit, options.test)]
    fit, test = (read_tags(nlp, options.component, docs) for docs in golds)
    fit_sentences, test_tags = (Sentences.of(tags, docs) for tags, docs in zip((fit, test), golds, strict=True))
    say("calibrating ...")
    scores = tag_scores(fit, np.arange(len(fit.gold)), test)
    fit_features, features = fit_sentences.features(held_out_scores(fit)), test_tags.features(scores)
    trials = [
        tune(prototype, fit_features, fit_sentences.hits, fit_sentences.documents, sizes, _FOLDS)
        for prototype, sizes in ((NearestNeighbours(), SIZES), (DecisionTree(), SIZES), (Logistic(), (1.0, 0.1, 0.01)))
    ]
    best = choose_best(trials)
    forecasts = {
        f"{trial.forecaster.short} ({trial.forecaster.size_name} {trial.forecaster.size:g})": trial.forecaster.predict(features)
        for trial in trials
    }
    best_name = list(forecasts)[trials.index(best)]
    print(f"All tags right: {len(test_tags.hits):,} sentences, {test_tags.hits.mean():.1%} yes; chosen on FIT: {best_name}\n")
    head("| P(all tags right) | squared loss | calibration | sharpness | the chosen forecast less it | |")
    baselines = {
        "product, raw": test_tags.products(test.chances.max(axis=1)),
        "product, calibrated": test_tags.products(scores),
    }
    losses = squared_losses(forecasts[best_name], test_tags.hits)
    for name, values in (baselines | forecasts).items():
        parts = split_loss(np.clip(values, 0.0, 1.0), test_tags.hits)
        figures = (f"{trial:.4f}" for trial in (parts.loss, parts.calibration, parts.sharpness))
        difference = mean_interval(losses - squared_losses(np.clip(values, 0.0, 1.0), test_tags.hits), test_tags.documents)
        said = ("", "") if name == best_name else (estimated(difference), verdict(difference))
        row(name, *figures, *said)
    save_tables(options.output)
    return 0
