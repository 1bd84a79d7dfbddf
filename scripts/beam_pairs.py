"""Two consecutive tokens' entity types by the joint probability of a recognizer's beam, whose parses are whole sequences of types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from analysis.tag_pairs import joint_pairs, product_pairs
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.doc.annotations import columns_of, get_annotation, label_hashes
from spacy_calib.pairs.build import concatenate, pair_up
from spacy_calib.sources.copies import clear_copy
from spacy_calib.sources.ner.actions import read_actions
from spacy_calib.sources.ner.readings import type_labels
from spacy_calib.types import Ints, Marginals, Pairs

_Table = dict[tuple[int, int], float]


@dataclass(frozen=True, eq=False)
class BeamPairs:
    """What a beam says, by the share of its parses.

    names (tuple[str, ...]): Entity types and O; the columns. singles (Pairs): Types of single tokens.
    products, joint (Pairs): Types of two tokens of one sentence: the product of the two shares, and the share of both together.
    """

    names: tuple[str, ...]
    singles: Pairs
    products: Pairs
    joint: Pairs


def beam_pairs(
    recognizer: Any, batches: Iterable[Sequence[Example]], width: int = 16, density: float = 0.0, threshold: float = 0.01
) -> BeamPairs:
    """Search beams over predicted Docs, and compare single tokens and pairs with the gold.

    recognizer (EntityRecognizer): Any of spaCy's, or `calib_ner`. batches: Examples whose predicted Docs hold tokens, after the pipes
        that the recognizer reads. width (int), density (float): As in spaCy's `beam_parse`. threshold (float): Lower shares take no part.
    """
    names = type_labels(read_actions(recognizer.moves).types)
    parts: list[tuple[Pairs, Pairs, Pairs]] = []
    for batch in batches:
        single, double = beam_marginals(recognizer, [example.predicted for example in batch], width, density)
        gold = np.concatenate([columns_of(get_annotation("ner").aligned_gold(one), label_hashes(names)) for one in batch])
        places = _places([example.predicted for example in batch], gold)
        singles = pair_up(_reaching(single, threshold), gold)
        products = product_pairs(singles, places, len(names), threshold).pairs
        parts.append((singles, products, joint_pairs(_reaching(double, threshold), gold, len(names), places)))
    singles_of, products_of, joint_of = ([part[i] for part in parts] for i in range(3))
    return BeamPairs(names, concatenate(singles_of), concatenate(products_of), concatenate(joint_of))


def beam_marginals(recognizer: Any, docs: Sequence[Doc], width: int = 16, density: float = 0.0) -> tuple[Marginals, Marginals]:
    """Search a beam on copies of the Docs that hold no entities, and weigh each parse by its share of the beam.

    RETURNS (tuple[Marginals, Marginals]): Of each token its types (columns of `type_labels`), and of each token but the last its type and
        the next one's, as codes of `tag_pairs`; over all Docs, which follow one another. Nothing is said across two Docs.
    """
    column = {label: i for i, label in enumerate(type_labels(read_actions(recognizer.moves).types))}
    beams = recognizer.beam_parse([clear_copy(doc) for doc in docs], beam_width=width, drop=0.0, beam_density=density)
    single: list[_Table] = []
    double: list[_Table] = []
    for doc, beam in zip(docs, beams, strict=True):
        parses = [(mass, _columns(found, len(doc), column)) for mass, found in recognizer.moves.get_beam_parses(beam)]
        single.append(_weigh(parses))
        double.append(_weigh([(mass, types[:-1] * len(column) + types[1:]) for mass, types in parses]))
    lengths = [len(doc) for doc in docs]
    return _stack(single, lengths, sum(lengths)), _stack(double, lengths, max(0, sum(lengths) - 1))


def _places(docs: Sequence[Doc], gold: Ints) -> Any:
    """Whether token i and token i + 1 have gold and stand in one sentence, or in one Doc without sentences."""
    starts = np.concatenate([[token.i == 0 or token.is_sent_start is True for token in doc] for doc in docs])
    return (gold[:-1] != -2) & (gold[1:] != -2) & ~starts[1:]


def _reaching(given: Marginals, threshold: float) -> Marginals:
    return given.take(np.flatnonzero(given.scores >= threshold))


def _columns(entities: list[tuple[int, int, str]], n_tokens: int, column: dict[str, int]) -> Ints:
    """The column of each token's type in a parse."""
    types = np.full(n_tokens, column["O"], dtype=np.intp)
    for start, end, label in entities:
        types[start:end] = column[label or "O"]
    return types


def _weigh(parses: Sequence[tuple[float, Ints]]) -> _Table:
    """(row, tag) -> share of the beam whose parses say so."""
    total = sum(mass for mass, _ in parses)
    table: defaultdict[tuple[int, int], float] = defaultdict(float)
    for mass, tags in parses:
        for key in enumerate(tags.tolist()):
            table[key] += mass / total
    return table


def _stack(tables: Sequence[_Table], lengths: Sequence[int], n_rows: int) -> Marginals:
    offsets = np.cumsum([0, *lengths]).tolist()
    entries = [
        (row + offset, tag, min(1.0, mass))
        for table, offset in zip(tables, offsets, strict=False)
        for (row, tag), mass in sorted(table.items())
    ]
    rows, tags, masses = zip(*entries, strict=True) if entries else ((), (), ())
    return Marginals(np.array(rows, dtype=np.intp), np.array(tags, dtype=np.intp), np.array(masses, dtype=np.float64), n_rows)
