"""Does the search for slices find one that is planted, and nothing where nothing is? Made-up data, as Markdown.

    python scripts/slices_study.py
    python scripts/slices_study.py --planted 20 --empty 50 --documents 120

300 documents of 30 to 130 tokens, of 30 labels, 7 genres, words of many shapes and lengths; the scores are true but for the slice that is planted:

    genre     the 50 documents of one genre, whose scores are too high by .10
    two       tokens of one label in long words, everywhere, too high by .10
    low       the 50 documents of one genre, whose scores are too low by .10

A draw is found where a slice that stands on the other half has more than half of its tokens, and more than half of the planted ones, in common with
what was planted. Where nothing is planted, a draw that names anything is a false alarm; once more with documents that differ: scores of all tokens of
a document are shifted by one normal number with a standard deviation of .3 (in log-odds) before the hits are drawn.

Where the package mcgrad (0.1.5) is installed, its segments stand beside: of at most 1,000 of three properties or fewer the one with the largest error in
standard deviations (MulticalibrationError), where its p value times the number of segments is .05 or less. It takes tokens for independent, and looks at
all documents at once. It is right where more than half of its tokens are planted: it may be a part of the slice.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import NamedTuple

import numpy as np
from frame import head, make_parser, row
from tqdm import tqdm

from spacy_calib.plugins.report.properties import Property
from spacy_calib.plugins.report.slice_search import find_slices
from spacy_calib.types import Floats, Ints

OFF = 0.10
GENRES = 7


class MadeUp(NamedTuple):
    """scores (Floats), documents (Ints): Of each token. properties: What the search looks at. planted: Name -> tokens."""

    scores: Floats
    documents: Ints
    properties: list[Property]
    planted: dict[str, Ints]


def made_up(n_documents: int, seed: int) -> MadeUp:
    """Documents whose first sixth (50 of 300) is of one genre."""
    rng = np.random.default_rng(seed)
    documents = np.repeat(np.arange(n_documents), rng.integers(30, 131, n_documents))
    n = len(documents)
    share = 1.0 / np.arange(1, 31)
    labels = rng.choice(30, n, p=share / share.sum())
    sure = rng.uniform(2, 40, 30)[labels]
    scores = np.clip(rng.beta(sure, 1.5), 0.02, 0.999)
    rest = rng.integers(1, GENRES, n_documents)
    genres = np.where(np.arange(n_documents) < n_documents // 6, 0, rest)
    lengths, shapes = rng.choice(5, n, p=[0.15, 0.3, 0.3, 0.15, 0.1]), rng.choice(5, n)
    properties = [
        Property(labels, [f"labelled {i}" for i in range(30)]),
        Property(np.digitize(scores, [0.5, 0.7, 0.9, 0.97]), [f"scored {i}" for i in range(5)]),
        Property(genres[documents], [f"with genre {i}" for i in range(GENRES)]),
        Property(shapes, [f"of shape {i}" for i in range(5)]),
        Property(lengths, [f"of length {i}" for i in range(5)]),
        Property(rng.integers(0, 4, n_documents)[documents], [f"of place {i}" for i in range(4)]),
    ]
    inside = scores > 2 * OFF
    in_genre = (genres[documents] == 0) & inside
    planted = {"genre": in_genre, "two": (labels == 1) & (lengths == 2) & inside, "low": in_genre & (scores < 1 - OFF)}
    return MadeUp(scores, documents, properties, {name: np.flatnonzero(own) for name, own in planted.items()})


def hits_of(data: MadeUp, rng: np.random.Generator, plant: str = "", noise: float = 0.0) -> np.ndarray:
    """Drawn by the scores, but for what is planted. noise (float): Standard deviation of documents, in log-odds."""
    true = data.scores.copy()
    if noise:
        shift = rng.normal(0.0, noise, data.documents.max() + 1)[data.documents]
        true = 1.0 / (1.0 + np.exp(-np.log(true / (1.0 - true)) - shift))
    if plant:
        true[data.planted[plant]] += OFF if plant == "low" else -OFF
    return rng.random(len(true)) < true


def matches(own: Ints, planted: Ints, confirming: Ints) -> bool:
    """Whether a slice is more or less what was planted, on the half that confirms."""
    wanted = np.intersect1d(planted, confirming)
    both = len(np.intersect1d(own, wanted))
    return both > len(own) / 2 and both > len(wanted) / 2


def worst_segment(data: MadeUp, hits: np.ndarray) -> Ints | None:
    """The tokens of the segment that MCGrad names; None where it names none."""
    import pandas
    from mcgrad.metrics import MulticalibrationError

    names = [f"property {i}" for i in range(len(data.properties))]
    frame = pandas.DataFrame({name: one.codes for name, one in zip(names, data.properties, strict=True)})
    frame = frame.assign(label=hits.astype(int), score=data.scores)
    found = MulticalibrationError(frame, "label", "score", categorical_segment_columns=names, max_values_per_segment_feature=30)
    if found.mce_pvalue * len(found.segments_ecce_sigma) > 0.05:
        return None
    masks = found._segments[0].reshape(-1, len(hits))
    return np.sort(
        found.df["index"].to_numpy()[masks[int(np.argmax(found.segments_ecce_sigma))]]
    )  # its rows are sorted by score


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--planted", type=int, default=100, help="draws for each slice that is planted")
    parser.add_argument("--empty", type=int, default=1000, help="draws with nothing planted")
    parser.add_argument("--documents", type=int, default=300, help="documents of a draw")
    options = parser.parse_args()
    theirs = importlib.util.find_spec("mcgrad") is not None
    head(
        f"| planted | draws | found | something else named too | slices named, mean |{' MCGrad right |' if theirs else ''}",
        5 + theirs,
    )
    for plant in ("genre", "two", "low"):
        found, more, named, by_them = 0, 0, 0, 0
        for seed in tqdm(range(options.planted), desc=plant, disable=None):
            data, rng = made_up(options.documents, seed), np.random.default_rng([1, seed])
            hits = hits_of(data, rng, plant)
            slices, confirming = find_slices(data.scores, hits, data.documents, data.properties, seed)
            right = [matches(one.units, data.planted[plant], confirming) for one in slices]
            found, more, named = found + any(right), more + (not all(right)), named + len(slices)
            worst = worst_segment(data, hits) if theirs else None
            by_them += worst is not None and len(np.intersect1d(worst, data.planted[plant])) > len(worst) / 2
        row(plant, options.planted, found, more, f"{named / options.planted:.2f}", *([by_them] if theirs else []))
    print()
    head(f"| nothing planted | draws | something named | share |{' named by MCGrad |' if theirs else ''}", 4 + theirs)
    for name, noise in (("documents alike", 0.0), ("documents differ", 0.3)):
        alarms, by_them = 0, 0
        for seed in tqdm(range(options.empty), desc=name, disable=None):
            data, rng = made_up(options.documents, seed), np.random.default_rng([2, seed])
            hits = hits_of(data, rng, noise=noise)
            alarms += bool(find_slices(data.scores, hits, data.documents, data.properties, seed)[0])
            by_them += theirs and worst_segment(data, hits) is not None
        row(name, options.empty, alarms, f"{alarms / options.empty:.3f}", *([by_them] if theirs else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
