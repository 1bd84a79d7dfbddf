"""A scored corpus and options -> the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from ..shared.texts import stream_examples

if TYPE_CHECKING:
    from spacy.language import Language

    from ...corpus.active.pieces import Pieces
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...types import Floats, Ints
    from ..select import SelectOptions


def hunted_tags(pipe: Calibrator, options: SelectOptions) -> tuple[str, ...]:
    """The tags to look for; () for other orders.

    RAISES C090: the pipe has no tag of this name. C093: none of its tags is rare.
    """
    from ...corpus.active.rare import rare_tags

    if options.order != "rare-tag":
        return ()
    labels = pipe.lookup.labels()
    unknown = [tag for tag in options.tags if tag not in labels]
    if unknown:
        raise calib_error("C090", name=pipe.name, tag=unknown[0], available=", ".join(labels))
    assert pipe.groups is not None
    tags = tuple(options.tags) or tuple(rare_tags(labels, pipe.groups, options.rare_share))
    if not tags:
        raise calib_error("C093", name=pipe.name, share=options.rare_share)
    return tags


def labelled_texts(nlp: Language, paths: Sequence[Path]) -> set[str]:
    """The keys of the documents in these files, and of their sentences.

    RAISES C092: a .csv file cannot be read. C051 to C053, C073, C074: the same of another file.
    """
    from ...corpus.active.batch import text_key
    from ...corpus.active.files import csv_texts

    keys: set[str] = set()
    for path in paths:
        if path.suffix == ".csv":
            keys.update(text_key(text) for text in csv_texts(path))
            continue
        for example in stream_examples(nlp, path, required=False):
            doc = example.reference
            keys.add(text_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(text_key(sentence.text) for sentence in doc.sents)
    return keys


@dataclass(frozen=True, eq=False)
class Found:
    """units (Pieces): Of the pool. chosen (Ints): Places in it, most urgent first. result (dict): What `select` returns of it."""

    units: Pieces
    chosen: Ints
    result: dict[str, Any]


class Pool(NamedTuple):
    """What there is to choose from.

    units (Pieces). keys (list[str]): Text of each, see `text_key`. values (Floats): Of each token. scores (Floats): Of each unit.
    """

    units: Pieces
    keys: list[str]
    values: Floats
    scores: Floats


def pool_of(corpus: ScoredCorpus, options: SelectOptions, tags: Sequence[str]) -> Pool:
    """The units of a corpus, each with what it is chosen by."""
    from ...corpus.active.batch import text_key
    from ...corpus.active.pieces import pieces_of
    from ...corpus.active.priority import priorities, token_values

    units = pieces_of(corpus, piece_of(corpus, options))
    keys = [text_key(corpus.text(*bounds)) for bounds in zip(units.first.tolist(), units.last.tolist(), strict=True)]
    values = token_values(corpus, options.order, options.signal, tags)
    scores = priorities(corpus, units, values, options.order, options.seed)
    if options.divides:
        scores = scores / units.words.clip(1)
    scores = np.where(units.sums((corpus.lengths * corpus.is_word).astype(np.float64)) < options.min_words, -np.inf, scores)
    return Pool(units, keys, values, scores)


def piece_of(corpus: ScoredCorpus, options: SelectOptions) -> str:
    """What is chosen as one piece."""
    return "doc" if corpus.row_unit == DOCUMENT else options.piece


def choose_from(
    corpus: ScoredCorpus,
    options: SelectOptions,
    tags: Sequence[str],
    given: set[str] | None,
    sums: dict[str, Any] | None = None,
) -> Found:
    """given (set | None): Keys of labelled texts. sums (dict | None): What the pool is in all, where the corpus holds the best of it only.

    RAISES C091: nothing can be chosen. C094: every unit has more words than may be chosen.
    """
    from ...corpus.active.batch import labelled_keys
    from ...corpus.active.records import batch_rows

    piece = piece_of(corpus, options)
    units, keys, values, scores = pool_of(corpus, options, tags)
    labelled = labelled_keys(corpus, units, keys, given or ())
    what = f"score for {', '.join(tags)}" if tags else f"scored {corpus.row_unit}"
    what += f" and {options.min_words} words (--min-words)"
    n = len(units) if sums is None else sums["units"]
    chosen = _chosen(units, n, corpus.documents_of(units.docs), scores, keys, options, labelled, what)
    rows = batch_rows(corpus, units, chosen, scores, values, whole_docs=piece == "doc", tags=tags)
    result = {
        "for": options.purpose,
        "by": "spread" if options.adapts else options.order,
        "signal": options.signal,
        "unit": piece,
        "per_word": options.divides,
        "tags": list(tags),
        "pool": pool_sums(corpus, units) if sums is None else sums,
        "batch": _batch_sums(rows),
        "excluded": None if given is None else sum(key in labelled for key in keys),
        "rows": rows,
    }
    return Found(units, chosen, result)


def _chosen(
    units: Pieces,
    n: int,
    documents: Ints,
    scores: Floats,
    keys: list[str],
    options: SelectOptions,
    labelled: set[str],
    what: str,
) -> Ints:
    """n (int): Units of the whole pool. what (str): What a unit needs to be chosen. RAISES C091, C094: see `choose_from`."""
    from ...corpus.active.batch import choose
    from ...corpus.active.spread import stand_for_all

    within = partial(
        choose, units, scores, keys, n=options.limit, per_doc=options.per_doc, excluded=labelled, documents=documents
    )
    if options.adapts:
        candidates = within(n=None)
        chosen = candidates[stand_for_all(scores[candidates], units.words[candidates], options.limit or 0, options.seed)]
    else:
        chosen = within(max_words=options.max_words)
    if len(chosen):
        return chosen
    possible = within()
    if len(possible):
        raise calib_error("C094", unit=options.piece, max_words=options.max_words)
    raise calib_error("C091", n=n, unit=options.piece, excluded=sum(key in labelled for key in keys), what=what)


def pool_sums(corpus: ScoredCorpus, units: Pieces) -> dict[str, Any]:
    """What the pool is in all."""
    return {
        "units": len(units),
        "words": int(units.words.sum()),
        "expected_errors": float((1 - corpus.calibrated[corpus.counted]).sum()),
        "docs": corpus.n_docs,
    }


def _batch_sums(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "units": len(rows),
        "words": sum(row["words"] for row in rows),
        "expected_errors": sum(row["expected_errors"] for row in rows),
        "docs": len({row["doc"] for row in rows}),
    }


def choose_from_blocks(blocks: Iterable[ScoredCorpus], options: SelectOptions, tags: Sequence[str]) -> Found:
    """`choose_from` of a pool that comes corpus by corpus, of which the Docs of the best units so far are held. RAISES C091: see there."""
    from ...corpus.active.batch import choose
    from ...corpus.active.pieces import pieces_of
    from ...corpus.parts import Kept

    sums: Counter[str] = Counter()

    def wanted(corpus: ScoredCorpus) -> Ints:
        pool = pool_of(corpus, options, tags)
        chosen = choose(pool.units, pool.scores, pool.keys, n=options.limit)
        return np.unique(pool.units.docs[chosen])

    def count(corpus: ScoredCorpus) -> None:
        sums.update(pool_sums(corpus, pieces_of(corpus, piece_of(corpus, options))))

    kept = Kept(wanted, count)
    for corpus in blocks:
        kept.add(corpus)
    return choose_from(kept.corpus, options, tags, None, dict(sums) if kept.n_blocks > 1 else None)
