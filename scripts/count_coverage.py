"""How many entities are there? How often 95 % intervals from some labelled documents contain the true number, as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/count_coverage.py

The recipe of docs/guides/production.md, with the recognizer of en_core_web_sm and its pretrained card: the scores of the entities are summed
by document, and `ppi_py` corrects the sums by labelled documents, which are drawn at random --draws times. The card was fitted on UNER-EWT, not
on WikiNEuRal, of which every fourth run of five sentences is taken as a document.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import spacy
from frame import MODEL, head, make_parser, row, say
from ppi_py import ppi_mean_ci
from pretrain.sources import TO_THREE, runs, to_examples, uner
from quality.readers import Documents

import spacy_calib
from spacy_calib.types import Floats

LABELS, SIZES = ("PER", "LOC", "ORG"), (20, 50, 200)
SOURCES: dict[str, Callable[[], Documents]] = {
    "UNER-EWT": partial(uner, "uner_english_ewt", "dev", "test"),
    "WikiNEuRal": lambda: runs("wikineural_en", "test")[::4],
}


def sum_by_document(documents: Documents) -> tuple[Floats, Floats, Floats]:
    """Return (gold, found, expected) numbers of entities, each of shape (documents, labels)."""
    nlp, gold, n_found, expectations = spacy_calib.pretrained(spacy.load(MODEL)), [], [], []
    for example in to_examples(nlp, documents, 10**6):
        names = [entity.label_ for entity in example.reference.ents]
        scores = [(TO_THREE[entity.label_], entity._.calib_score) for entity in example.predicted.ents]
        gold.append([names.count(label) for label in LABELS])
        n_found.append([sum(name == label for name, _ in scores) for label in LABELS])
        expectations.append([sum(score for name, score in scores if name == label) for label in LABELS])
    return np.array(gold, dtype=float), np.array(n_found), np.array(expectations)


def draw_intervals(gold: Floats, expectations: Floats, n: int, draws: int) -> tuple[Floats, Floats]:
    """Return the (lower, upper) bounds of the total number by each draw of n labelled documents."""
    bounds, rng = [], np.random.default_rng(0)
    for _ in range(draws):
        sample = rng.permutation(len(gold))[:n]
        bounds.append(np.ravel(ppi_mean_ci(gold[sample], expectations[sample], expectations, alpha=0.05, lam=1)))
    low, high = len(gold) * np.transpose(bounds)
    return low, high


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args(arguments)
    head(
        "| source | documents | label | true | found | sum of scores |"
        + "".join(f" {n} labelled: held, half width |" for n in SIZES)
    )
    for name, read in SOURCES.items():
        say(f"Scoring {name} ...")
        gold, n_found, expectations = sum_by_document(read())
        for i, label in enumerate(LABELS):
            true, cells = gold[:, i].sum(), []
            for n in SIZES:
                low, high = draw_intervals(gold[:, i], expectations[:, i], n, options.draws)
                cells.append(f"{np.mean((low <= true) & (true <= high)):.1%}, {np.mean(high - low) / 2 / true:.0%}")
            totals = (true, n_found[:, i].sum(), expectations[:, i].sum())
            row(name, f"{len(gold):,}", label, *(f"{total:,.0f}" for total in totals), *cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
