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

    from ...corpus.active.batch import Choosable
    from ...corpus.active.pieces import Pieces
    from ...corpus.distinct import Digests
    from ...corpus.review.tasks import Task
    from ...corpus.scored import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...types import Floats, Ints
    from ..select import SelectOptions

_NONE = np.zeros(0, dtype=np.uint64)


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


def labelled_texts(nlp: Language, paths: Sequence[Path]) -> Digests:
    """The keys of the documents in these files, and of their sentences: see `choose`.

    RAISES C092: a .csv file cannot be read. C051 to C053, C073, C074: the same of another file.
    """
    from ...corpus.active.files import csv_texts
    from ...corpus.distinct import digest

    keys: set[int] = set()
    for path in paths:
        if path.suffix == ".csv":
            keys.update(map(digest, csv_texts(path)))
            continue
        for example in stream_examples(nlp, path, required=False):
            doc = example.reference
            keys.add(digest(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(digest(sentence.text) for sentence in doc.sents)
    return np.array(sorted(keys), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Found:
    """result (dict): What `select` returns of the batch. corpus (ScoredCorpus): With its units, and perhaps others. tasks (Sequence[Task]): The batch, to be
    looked at by people.
    """

    result: dict[str, Any]
    corpus: ScoredCorpus
    tasks: Sequence[Task]


class Pool(NamedTuple):
    """What there is to choose from.

    units (Pieces). keys (Digests): Of the text of each. values (Floats): Of each token. scores (Floats): Of each unit.
    """

    units: Pieces
    keys: Digests
    values: Floats
    scores: Floats


def pool_of(corpus: ScoredCorpus, options: SelectOptions, tags: Sequence[str]) -> Pool:
    """The units of a corpus, each with what it is chosen by."""
    from ...corpus.active.pieces import pieces_of
    from ...corpus.active.priority import priorities, token_values
    from ...corpus.distinct import digest

    units = pieces_of(corpus, piece_of(corpus, options))
    bounds = zip(units.first.tolist(), units.last.tolist(), strict=True)
    keys = np.array([digest(corpus.text(first, last)) for first, last in bounds], dtype=np.uint64)
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
    given: Digests | None,
    sums: dict[str, Any] | None = None,
    entities: bool = False,
) -> Found:
    """given (Digests | None): Keys of labelled texts. sums (dict | None): What the pool is in all, where the corpus holds the best of it only.
    entities (bool): Whether there are any in it then.

    RAISES C091: nothing can be chosen. C094: every unit has more words than may be chosen.
    """
    from ...corpus.active.batch import labelled_keys

    pool = pool_of(corpus, options, tags)
    units, keys = pool.units, pool.keys
    labelled = labelled_keys(corpus, units, keys, _NONE if given is None else given)
    sums = pool_sums(corpus, units) if sums is None else sums
    documents, what = corpus.documents_of(units.docs), _wanted(corpus, options, tags)
    chosen = _chosen(units, sums["units"], documents, pool.scores, keys, options, labelled, what)
    excluded = None if given is None else int(np.isin(keys, labelled).sum())
    return _found(corpus, pool, chosen, options, tags, sums, excluded, entities)


def _wanted(corpus: ScoredCorpus, options: SelectOptions, tags: Sequence[str]) -> str:
    """What a unit needs to be chosen, in words."""
    what = f"score for {', '.join(tags)}" if tags else f"scored {corpus.row_unit}"
    return f"{what} and {options.min_words} words (--min-words)"


def _found(
    corpus: ScoredCorpus,
    pool: Pool,
    chosen: Ints,
    options: SelectOptions,
    tags: Sequence[str],
    sums: dict[str, Any],
    excluded: int | None,
    entities: bool,
) -> Found:
    """pool (Pool): The units of the corpus. chosen (Ints): Places in it. sums (dict), excluded (int | None), entities (bool): Of the whole pool."""
    from ...corpus.active.records import batch_rows
    from ...corpus.active.tasks import batch_tasks

    piece = piece_of(corpus, options)
    of_docs = piece == "doc"
    rows = batch_rows(corpus, pool.units, chosen, pool.scores, pool.values, whole_docs=of_docs, tags=tags, entities=entities)
    return Found(
        {
            "for": options.purpose,
            "by": "spread" if options.adapts else options.order,
            "signal": options.signal,
            "unit": piece,
            "per_word": options.divides,
            "tags": list(tags),
            "pool": sums,
            "batch": _batch_sums(rows),
            "excluded": excluded,
            "rows": rows,
        },
        corpus,
        batch_tasks(corpus, pool.units, chosen, rows),
    )


def _chosen(
    units: Choosable,
    n: int,
    documents: Ints,
    scores: Floats,
    keys: Digests,
    options: SelectOptions,
    labelled: Digests,
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
    raise calib_error("C091", n=n, unit=options.piece, excluded=int(np.isin(keys, labelled).sum()), what=what)


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
    from ...corpus.parts import Kept, numbered

    sums: Counter[str] = Counter()
    spans = 0

    def wanted(corpus: ScoredCorpus) -> Ints:
        pool = pool_of(corpus, options, tags)
        chosen = choose(pool.units, pool.scores, pool.keys, n=options.limit)
        return np.unique(pool.units.docs[chosen])

    def count(corpus: ScoredCorpus) -> None:
        nonlocal spans
        spans += len(corpus.spans)
        sums.update(pool_sums(corpus, pieces_of(corpus, piece_of(corpus, options))))

    kept = Kept(wanted, count)
    for corpus in numbered(blocks):
        kept.add(corpus)
    return choose_from(kept.corpus, options, tags, None, dict(sums) if kept.n_blocks > 1 else None, spans > 0)


def choose_from_all(
    blocks: Iterable[ScoredCorpus], options: SelectOptions, tags: Sequence[str], given: Digests | None
) -> Found:
    """`choose_from` of a pool that comes corpus by corpus, and has to be looked at as a whole: of each unit a few numbers are held, and the Docs wait in a
    temporary file. RAISES C091, C094: see there. C468: the file cannot be written.
    """
    from ...corpus.active.batch import labelled_keys
    from ...corpus.active.candidates import Candidates
    from ...corpus.parts import numbered
    from ...corpus.stored import Stored

    sums: Counter[str] = Counter()
    stored, parts, known = Stored(), [], _NONE if given is None else given
    labelled, spans = known, 0
    for corpus in numbered(blocks):
        if corpus.numbers is None:
            return choose_from(corpus, options, tags, given)
        pool = pool_of(corpus, options, tags)
        stored.add(corpus)
        spans += len(corpus.spans)
        sums.update(pool_sums(corpus, pool.units))
        parts.append(Candidates.of(corpus, pool.units, pool.scores, pool.keys))
        labelled = np.union1d(labelled, labelled_keys(corpus, pool.units, pool.keys, known))
    every, what = Candidates.joined(parts), _wanted(corpus, options, tags)
    chosen = _chosen(every, len(every), every.docs, every.scores, every.keys, options, labelled, what)
    corpus = stored.some(np.unique(every.docs[chosen]))
    pool = pool_of(corpus, options, tags)
    own = every.places_in(corpus, pool.units, chosen)
    excluded = None if given is None else int(np.isin(every.keys, labelled).sum())
    return _found(corpus, pool, own, options, tags, dict(sums), excluded, spans > 0)
