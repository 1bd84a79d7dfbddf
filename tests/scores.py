"""Made-up scores of a tagger that is too sure of itself, as arrays and as the rows of a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LABELS = ["ADJ", "ADV", "NOUN", "VERB", "X"]
WORDS = ["green", "ideas", "sleep", "furiously", "today"]


class Made(NamedTuple):
    """P: Raw scores of 600 units, shape (600, 5). y: Gold labels. documents: Of each unit, twelve in all."""

    P: NDArray[np.float64]
    y: NDArray[np.str_]
    documents: NDArray[np.intp]


def made_scores() -> Made:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.array([2.0, 1.0, 4.0, 3.0, 0.5]) / 4, 600)
    y = np.array([LABELS[rng.choice(5, p=row)] for row in true])
    P = true**2
    return Made(P / P.sum(axis=1, keepdims=True), y, np.arange(600) // 50)


def rows_of(made: Made, least: float = 1e-4) -> list[dict[str, Any]]:
    """A row for each score of at least this; the third unit of each document has no gold."""
    rows = []
    for unit, column in zip(*np.nonzero(least <= made.P), strict=True):
        place = int(unit) % 50
        rows.append(
            {
                "document": f"d{made.documents[unit]}",
                "unit": str(place),
                "sentence": str(place // 5),
                "word": WORDS[place % 5],
                "tag": LABELS[column],
                "score": float(made.P[unit, column]),
                "gold": "" if place == 2 else str(made.y[unit]),
            }
        )
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path
