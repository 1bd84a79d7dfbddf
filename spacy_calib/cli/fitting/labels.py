"""Label maps: from the labels of a component to the names that the data has for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import calib_error

if TYPE_CHECKING:
    from spacy.language import Language

# Where more of the gold tokens have a label that the component does not know, the data is taken to follow another label scheme.
MOST_UNKNOWN = 0.2


def labels_from(path: Path) -> list[str]:
    """The labels in a file: a list in .json, one on each line of .txt.

    RAISES C167: there is no such list.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        labels = json.loads(text) if path.suffix == ".json" else text.splitlines()
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError("no list of texts")
    except (OSError, ValueError, RecursionError) as error:
        raise calib_error("C167", path=path, why=str(error)) from None
    return labels


def map_of_pipe(nlp: Language, name: str) -> dict[str, str] | None:
    """The label map of a calib pipe that a new fit replaces."""
    from ...pipe.component import Calibrator
    from ...sources.mapped import map_of

    older = nlp.get_pipe(name) if name in nlp.component_names else None
    return map_of(older.source) if isinstance(older, Calibrator) else None
