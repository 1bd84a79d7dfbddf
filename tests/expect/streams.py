"""Made-up fit documents, and windows drawn from others."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.expect import alarms
from spacy_calib.expect.drift import DriftProfile, Labelled
from spacy_calib.expect.estimates import Residuals, token_sums
from spacy_calib.expect.record import FitRecord
from spacy_calib.expect.windows import Batch, Layout
from spacy_calib.types import Groups

LABELS = ("A", "B", "C")


def made_batch(seed, n_docs, power=0.3, length=20):
    """Documents of some tokens each, with scores u ** power; those of a document are alike."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, 2 * length, n_docs)
    documents = np.repeat(np.arange(n_docs), lengths)
    own = np.exp(rng.normal(0, 0.3, n_docs))[documents]
    raw = rng.random(len(documents)) ** (power * own)
    columns = rng.choice(3, size=len(documents), p=[0.6, 0.3, 0.1])
    return Batch(documents, n_docs, columns, raw, raw, np.zeros(0), np.zeros(0))


def labelled(batch):
    labels = [LABELS[column] for column in batch.columns.tolist()]
    return Labelled(batch.documents, batch.n_docs, labels, batch.raw, batch.calibrated)


def made_record(n_docs=150):
    """A fit record of documents whose scores are true."""
    batch = made_batch(0, n_docs)
    hits = np.random.default_rng(1).random(len(batch.raw)) < batch.calibrated
    right = np.bincount(batch.documents, hits, n_docs)[:, None]
    sums = token_sums(batch.calibrated, batch.documents, n_docs)
    return FitRecord(Residuals.of(right, sums), float(hits.mean()), None, DriftProfile.of(labelled(batch)))


def layout_of(record):
    return Layout.of(record.profile, LABELS, Groups(("1", "2"), np.array([0, 1, -1])))


def windows(layout, seed, n, n_docs=40, **settings):
    return [layout.count(made_batch((seed, i), n_docs, **settings)) for i in range(n)]


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """Fewer draws for the thresholds in the tests of a module that imports this: they are not about the rate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarms, "_WINDOWS", 1000)
        patch.setattr(alarms, "_FITS", 4)
        yield
