"""Properties of tokens, entities or documents, without their gold, in which miscalibrated slices are searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...pairs.documents import DOCUMENT
from ...pairs.scored_corpus import ScoredCorpus
from ...types import Floats, Ints

# A field with more values than this does not divide the documents into kinds.
_MAX_VALUES = 50
_SCORES = (0.5, 0.7, 0.9, 0.97)
_QUARTERS = ("first", "second", "third", "last")


class Property(NamedTuple):
    """A categorical property of n units. codes (Ints): Level of each unit, (n,); -1 for none. levels (Sequence[str]): Description of each level."""

    codes: Ints
    levels: Sequence[str]


class SearchUnits(NamedTuple):
    """n predicted units. starts, ends (Ints): Tokens in the corpus, (n,). labels (Ints): Index in `names`, (n,). scores (Floats): Calibrated, (n,)."""

    starts: Ints
    ends: Ints
    labels: Ints
    names: Sequence[str]
    scores: Floats


def properties_of(corpus: ScoredCorpus, units: SearchUnits, fields: Mapping[str, Sequence[str | None]]) -> list[Property]:
    """Return the properties of some units. fields (Mapping): Key of metadata -> its value of each Doc, or None."""
    result = [
        Property(units.labels, [f"labelled {name}" for name in units.names]),
        Property(
            np.digitize(units.scores, _SCORES), [f"scored {low:g} to {high:g}" for low, high in pairwise((0.0, *_SCORES, 1.0))]
        ),
        *_field_properties(fields, corpus.docs[units.starts]),
    ]
    if corpus.row_unit == DOCUMENT:
        return [*result, _band_counts(corpus.lengths[units.starts], [20, 50, 100, 200], "of {} words")]
    starts, sentences = units.starts, corpus.sentences[units.starts]
    words = np.diff(corpus.sentence_starts)
    begins = starts == corpus.sentence_starts[sentences]
    ends = units.ends == corpus.sentence_starts[sentences + 1]
    size = np.diff(corpus.doc_starts)[corpus.docs[starts]]
    position = (starts - corpus.doc_starts[corpus.docs[starts]]) / np.maximum(size, 1)
    texts = [corpus.text(first, last) for first, last in zip(starts.tolist(), units.ends.tolist(), strict=True)]
    times = Counter(text.lower() for text in texts)
    long = units.ends - starts if (units.ends - starts > 1).any() else np.array([len(text) for text in texts])
    unit_text = "of {} words" if (units.ends - starts > 1).any() else "of {} characters"
    shapes = [next(i for i, (_, has_shape) in enumerate(_SHAPES) if has_shape(text)) for text in texts]
    return [
        *result,
        Property(np.array(shapes, dtype=np.intp), [name for name, _ in _SHAPES]),
        _band_counts(long, [2, 3, 4, 7, 11], unit_text),
        _band_counts(np.array([times[text.lower()] for text in texts]), [2, 4, 10, 100], "occurring {}x in this data"),
        _band_counts(words[sentences], [6, 11, 21, 31], "in a sentence of {} tokens"),
        Property(np.where(begins, 0, np.where(ends, 1, 2)), ["at the begin of a sentence", "at the end of a sentence", "inside a sentence"]),
        Property(np.digitize(position, [0.25, 0.5, 0.75]), [f"in the {part} quarter of the document" for part in _QUARTERS]),
    ]  # fmt: skip


def _field_properties(fields: Mapping[str, Sequence[str | None]], docs: Ints) -> list[Property]:
    """Return a property of units for each metadata field with few enough values."""
    result = []
    for key, names in fields.items():
        values = sorted({name for name in names if name is not None})
        if 1 < len(values) <= _MAX_VALUES:
            codes = {name: i for i, name in enumerate(values)}
            doc_codes = np.array([codes.get(str(name), -1) if name is not None else -1 for name in names], dtype=np.intp)
            result.append(Property(doc_codes[docs], [f"with {key} {value}" for value in values]))
    return result


def _band_counts(values: Floats | Ints, edges: Sequence[int], words: str) -> Property:
    """Divide counts, from 1 on, into bands. edges (Sequence[int]): Start of each band but the first. words (str): Description; {} is the band."""
    lows = [1, *edges]
    bands = [f"{low}" if low == high - 1 else f"{low} to {high - 1}" for low, high in zip(lows, edges, strict=False)]
    return Property(np.digitize(values, edges), [words.format(band) for band in (*bands, f"{edges[-1]} or more")])


_SHAPES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("without a letter or a digit", lambda text: not any(map(str.isalnum, text))),
    ("with a digit", lambda text: any(map(str.isdigit, text))),
    ("in capitals", lambda text: text.isupper() and len(text) > 1),
    ("with a capital at its begin", lambda text: text[:1].isupper()),
    ("in lower case", str.islower),
    ("of another spelling", lambda text: True),
)
