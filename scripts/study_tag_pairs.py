"""Are pairs of tags on two consecutive tokens as true as single tags? Calibration errors on gold data, as Markdown.

    python scripts/study_tag_pairs.py ./calibrated test.spacy --output pairs.json
    python scripts/study_tag_pairs.py ./hmm test.spacy --fit dev.spacy

After Nguyen & O'Connor 2015, section 4.2.3. A tagger gives no joint probability: the score of a pair of tags is the product of
the two, as if they were independent; raw and calibrated products are judged on the same pairs, whose raw product reaches the
threshold. A sequence model (calib_crf, calib_hmm, calib_crfsuite) gives the joint probability too: --fit learns maps of pairs, isotonic with five
groups of pairs by frequency, from other gold, and joints and products, raw and calibrated, are judged on the pairs of which either
reaches the threshold. Intervals are by bootstrap over documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from frame import between, estimated, head, make_parser, one_sentence, open_scored, row, run_over, save_tables
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, kron

from spacy_calib import TagCalibrator
from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error, gmce, log_loss, log_losses, noise_floor, paired_difference, resample_error
from spacy_calib.metrics.calibration_errors import mean_of
from spacy_calib.pairs.scored_corpus import UNKNOWN, ScoredCorpus
from spacy_calib.plugins.sequence.joints import pair_scores
from spacy_calib.plugins.sequence.labeller import ChainLabeller
from spacy_calib.plugins.sequence.source import by_type, entity_types
from spacy_calib.plugins.sequence.targets import ENTITIES
from spacy_calib.types import OUTSIDE, Floats, Groups, Ints, Pairs

LEAST = 1e-6  # joint probabilities below it count as much
# Products that are formed together: keeps a corpus with hundreds of tags a token in bounds.
_PRODUCTS = 1 << 21


@dataclass(frozen=True, eq=False)
class TagPairs:
    """Pairs of tags whose score is the product of two marginals.

    pairs (Pairs): Places, codes, products, and whether both tags are right.
    first, second (Ints): The entry of each factor in the single tags.
    """

    pairs: Pairs
    first: Ints
    second: Ints

    def of(self, scores: Floats) -> Floats:
        """The products of other scores of the same single tags (calibrated ones), shape (len(pairs),)."""
        return scores[self.first] * scores[self.second]


def product_pairs(singles: Pairs, joined: ArrayLike, n_tags: int, threshold: float = 0.01) -> TagPairs:
    """Pairs of tags as if neighbouring tags were independent (after Nguyen & O'Connor 2015, section 4.2.3, who use the joint).

    Where the single tags reach a threshold no higher than this one, no pair is missed: a product is at most its factors. A place has at
    most 1 / threshold pairs if the scores of a token sum to 1; nothing of size n_tags x n_tags is made.
    singles (Pairs): Scores of tokens; their rows number the tokens of the whole text, ascending.
    joined: Whether token i and token i + 1 make a place, for i = 0 .. n_tokens - 2, as booleans.
    n_tags (int): Columns of the single tags. threshold (float): Products below it take no part.
    RETURNS (TagPairs): By place, then by the entries of its tokens.
    """
    places = np.asarray(joined, dtype=bool)
    parts = list(_products(singles, places, threshold))
    none = np.zeros(0, dtype=np.intp)
    first, second = (np.concatenate([none, *(part[i] for part in parts)]) for i in range(2))
    codes = singles.tags[first] * n_tags + singles.tags[second]
    scores, hits = singles.scores[first] * singles.scores[second], singles.hits[first] & singles.hits[second]
    return TagPairs(Pairs(singles.rows[first], codes, scores, hits, int(places.sum())), first, second)


def _products(singles: Pairs, places: NDArray[np.bool_], threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """(entry of the first factor, entry of the second) of the products that reach the threshold, some first entries at a time."""
    able = np.flatnonzero(singles.scores >= threshold)
    rows, scores = singles.rows[able], singles.scores[able]
    opens = np.flatnonzero(np.append(places, [False])[np.minimum(rows, len(places))])
    begins, ends = np.searchsorted(rows, rows[opens] + 1), np.searchsorted(rows, rows[opens] + 2)
    lengths = ends - begins
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _PRODUCTS)) + 1
    for own in np.split(np.arange(len(opens)), cuts):
        wanted = lengths[own]
        first = np.repeat(opens[own], wanted)
        second = np.repeat(begins[own] - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())
        keep = scores[first] * scores[second] >= threshold
        yield able[first[keep]], able[second[keep]]


# Of documents that a calib pipe has scored


def places_of(corpus: ScoredCorpus) -> NDArray[np.bool_]:
    """Whether token i and token i + 1 have gold and stand in one sentence, shape (n_tokens - 1,)."""
    known = corpus.gold >= 0
    return known[:-1] & known[1:] & ~corpus.starts[1:] if len(corpus) else np.zeros(0, dtype=bool)


def singles_of(corpus: ScoredCorpus) -> Pairs:
    """The single tags of tokens with gold, with raw scores; the columns are those of the corpus's names."""
    return replace(corpus.pairs().pairs, tags=corpus.tags[corpus.hits != UNKNOWN])


def corpus_pairs(corpus: ScoredCorpus, threshold: float = 0.01) -> TagPairs:
    """Pairs of tags whose raw product reaches a threshold, which is not below that of the calib pipe; calibrated products are judged on the same.

    RAISES CalibError: there is no place with gold and scores.
    """
    events = product_pairs(singles_of(corpus), places_of(corpus), max(1, len(corpus.names)), threshold)
    _check_any(len(events.pairs), threshold)
    return events


def _check_any(n: int, threshold: float) -> None:
    if not n:
        wanted = f"with a product of scores of at least {threshold}; give annotated documents."
        raise CalibError("study", f"No two consecutive tokens of one sentence have gold tags {wanted}")


@dataclass(frozen=True, eq=False)
class ChainPairs:
    """Pairs of tags of consecutive tokens whose joint or product reaches the threshold.

    names (tuple[str, ...]): "DT NN" of each code. pairs (Pairs): Rows are first tokens, tags codes, scores joint marginals.
    product, of_calibrated (Floats): Products of the raw marginals, and of the calibrated ones. documents (Ints): Of each pair.
    gold (list[str | None]), of_token (Ints): The gold pair of each token and the next one, and the document of each token.
    """

    names: tuple[str, ...]
    pairs: Pairs
    product: Floats
    of_calibrated: Floats
    documents: Ints
    gold: list[str | None]
    of_token: Ints

    def matrix(self, scores: Floats) -> csr_matrix:
        """Scores of the pairs as TagCalibrator takes them, a row for each token."""
        shape = (len(self.of_token), len(self.names))
        return csr_matrix((np.maximum(scores, LEAST), (self.pairs.rows, self.pairs.tags)), shape=shape)

    def calibrated(self, made: TagCalibrator, scores: Floats) -> Floats:
        """What a calibrator makes of scores of these pairs."""
        return np.asarray(made.transform(self.matrix(scores))[self.pairs.rows, self.pairs.tags]).ravel()

    def calibrator(self, scores: Floats) -> TagCalibrator:
        """Isotonic regression with five groups of pairs by frequency, learned from scores of these pairs."""
        made = TagCalibrator(method="isotonic", threshold=LEAST, classes=list(self.names))
        return made.fit(self.matrix(scores), self.gold, groups=self.of_token)


def chain_pairs(corpus: ScoredCorpus, labeller: ChainLabeller, docs: Iterable[Any], threshold: float = 0.01) -> ChainPairs:
    """Both scores of the same pairs. corpus (ScoredCorpus): With gold, of these Docs; docs as the labeller reads them.

    RAISES CalibError: there is no place with gold and scores.
    """
    judged, places, n = corpus.pairs(), places_of(corpus), max(1, len(corpus.names))
    every = product_pairs(singles_of(corpus), places, n, LEAST)
    labels, joint = joint_of_labels(labeller, docs)
    column = {label: i for i, label in enumerate(labels)}
    own = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)
    first, second = own[np.stack(np.divmod(every.pairs.tags, n))]
    codes = first * len(labels) + second
    found = np.clip(np.asarray(joint[every.pairs.rows, codes]).ravel(), LEAST, 1.0)
    product = every.pairs.scores
    kept = np.flatnonzero((found >= threshold) | (product >= threshold))
    _check_any(len(kept), threshold)
    gold: list[str | None] = [None] * len(corpus)
    for i in np.flatnonzero(places).tolist():
        gold[i] = f"{corpus.names[corpus.gold[i]]} {corpus.names[corpus.gold[i + 1]]}"
    return ChainPairs(
        tuple(f"{a} {b}" for a in labels for b in labels), replace(every.pairs, tags=codes, scores=found).take(kept),
        product[kept], every.of(judged.calibrated)[kept], judged.documents[every.first][kept], gold, corpus.documents,
    )  # fmt: skip


def joint_of_labels(labeller: ChainLabeller, docs: Iterable[Any]) -> tuple[tuple[str, ...], csr_matrix]:
    """(tags or entity types, P of them at a token and the next one): of entities the sum over BILUO tags."""
    scores = pair_scores(labeller, docs, LEAST)
    if labeller.cfg["target"] != ENTITIES:
        return labeller.labels, scores
    member = by_type(np.eye(len(labeller.labels)), labeller.labels)
    types = (OUTSIDE, *entity_types(labeller.labels))
    return types, csr_matrix(scores @ csr_matrix(kron(csr_matrix(member), csr_matrix(member))))


TITLES = "| event | scores | events | mean score | right | error | 95 % interval | floor (95 %) | by group | log loss |"


def row_of(
    event: str, name: str, pairs: Pairs, scores: Floats, documents: Ints, groups: Groups | None = None
) -> dict[str, Any]:
    """One kind of event by one kind of score. documents (Ints): Of each pair. groups (Groups | None): Of pairs."""
    found, floor = resample_error(scores, pairs.hits, documents), noise_floor(scores)
    assert found is not None and floor is not None  # noqa: PT018
    interval = found.interval()
    return {
        "event": event, "scores": name, "events": len(pairs), "mean": float(scores.mean()), "right": float(pairs.hits.mean()),
        "error": calibration_error(scores, pairs.hits), "low": interval.low, "high": interval.high, "floor": floor.mean, "floor95": floor.q95,
        "by_group": None if groups is None else mean_of(gmce(pairs, groups, scores)), "log_loss": log_loss(scores, pairs.hits),
    }  # fmt: skip


def rows_of_chain(fit: ChainPairs, given: ChainPairs) -> tuple[list[dict[str, Any]], list[str]]:
    """(a row for each score of the same pairs, what their differences say). fit (ChainPairs): What the maps of pairs learn from."""
    by_joint, by_product = fit.calibrator(fit.pairs.scores), fit.calibrator(fit.product)
    scores = {
        ("pairs, joint", "raw"): given.pairs.scores,
        ("pairs, joint", "calibrated"): given.calibrated(by_joint, given.pairs.scores),
        ("pairs, product", "raw"): given.product,
        ("pairs, product", "of calibrated tags"): given.of_calibrated,
        ("pairs, product", "calibrated"): given.calibrated(by_product, given.product),
    }
    rows = [row_of(*names, given.pairs, own, given.documents, by_joint.groups_) for names, own in scores.items()]
    joint = ("pairs, joint", "calibrated")
    return rows, [differences(given, scores, joint, other) for other in scores if other != joint]


def differences(given: ChainPairs, scores: Mapping[Any, Floats], one: tuple[str, str], other: tuple[str, str]) -> str:
    """What one score's errors are less than another's, with paired intervals by document."""
    hits, documents, both = given.pairs.hits, given.documents, (scores[one], scores[other])
    errors = [resample_error(own, hits, documents) for own in both]
    assert errors[0] is not None and errors[1] is not None  # noqa: PT018
    losses = paired_difference(log_losses(both[0], hits), log_losses(both[1], hits), documents)
    shown = {"log loss": losses, "calibration error": errors[0].difference(errors[1])}
    figures = "; ".join(f"{what} {estimated(found)}" for what, found in shown.items() if found is not None)
    return f"{' '.join(one)}, less {' '.join(other)}: {figures}"


def chain_of(nlp: Any, pipe: Any, corpus: Any, data: Path, gold_preproc: bool) -> ChainPairs:
    """Joint marginals over the data. RAISES CalibError: the calib pipe does not read a sequence model."""
    labeller = pipe.lookup.component()
    if not isinstance(labeller, ChainLabeller):
        given = f"but component '{pipe.source.component}' is a {type(labeller).__name__}; leave it out."
        raise CalibError("study", f"Option --fit is for sequence models (calib_crf, calib_hmm, calib_crfsuite), {given}")
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.source.component)]
    examples = run_over(nlp, before, data, gold_preproc=gold_preproc)
    return chain_pairs(corpus, labeller, (example.predicted for example in examples), pipe.threshold)


def study(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows of the table, sentences below it). RAISES CalibError: every fault of the input."""
    given = {"gold_preproc": options.gold_preproc, "sentences": True}
    nlp, pipe, corpus = open_scored(options.model, options.data, **given)
    singles, events, judged = singles_of(corpus), corpus_pairs(corpus, pipe.threshold), corpus.pairs()
    of_event = judged.documents[events.first]
    rows = [
        row_of("single tags", "raw", singles, singles.scores, judged.documents),
        row_of("single tags", "calibrated", singles, judged.calibrated, judged.documents),
        row_of("pairs, product", "raw", events.pairs, events.pairs.scores, of_event),
        row_of("pairs, product", "calibrated", events.pairs, events.of(judged.calibrated), of_event),
    ]
    if options.fit is None:
        return rows, []
    _, _, fitted = open_scored(options.model, options.fit, **given)
    fit, test = (chain_of(nlp, pipe, *part, options.gold_preproc) for part in ((fitted, options.fit), (corpus, options.data)))
    more, notes = rows_of_chain(fit, test)
    return rows + more, notes


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    head(TITLES, 2)
    for one in rows:
        sizes = f"{one['events']:,}", *(f"{one[name]:.4f}" for name in ("mean", "right", "error"))
        floor = f"{one['floor']:.4f} ({one['floor95']:.4f})"
        by_group = "-" if one["by_group"] is None else f"{one['by_group']:.4f}"
        interval = between((one["low"], one["high"]))
        row(one["event"], one["scores"], *sizes, interval, floor, by_group, f"{one['log_loss']:.4f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model", help="calibrated pipeline: package name or path")
    parser.add_argument("data", type=Path, help="gold: a .spacy file or a folder of them")
    parser.add_argument("--fit", type=Path, help="for a sequence model: judge joint marginals too, calibrated on this gold")
    parser.add_argument("--gold-preproc", action="store_true", help="each sentence by itself, with gold tokens")
    options = parser.parse_args(arguments)
    with one_sentence():
        rows, notes = study(options)
    show(rows)
    save_tables(options.output)
    print(*(f"\n{note}" for note in notes), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
