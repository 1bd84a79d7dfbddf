"""What a fitted pipe keeps of its fit documents: what to expect of others, and salted digests of their texts, no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.span_fit import SpanData, SpanFit
from ..pairs.build import JudgedPairs, interleave, top_pairs
from ..pairs.keyed import Digests
from ..pairs.keyed import keyed as salted
from ..schema import Saved, digests, kept, keyed, maybe, number, text
from ..types import OUTSIDE, Floats, Ints
from .drift import DriftProfile, Labelled
from .effects import Effects, between_sources, effects_of_labels, of_new_source, source_sums, with_missed, with_widths
from .estimates import EntityModel, EntitySums, Residuals, Sums, sum_by, token_sums


@dataclass(frozen=True)
class FitRecord(Saved):
    """What is kept of the fit documents.

    tokens (Residuals): Of right tokens. accuracy (float): Of the fit tokens. entities (EntityModel | None): None for a source
    without spans. profile (DriftProfile): What new documents are compared with. effects (dict): Label -> how its numbers vary.
    between (float): Variance of the shift of log-odds of right tokens in a source that nobody knows; 0 for a fit on one source.
    """

    tokens: Residuals = kept(Residuals.of_kinds(1))
    accuracy: float = kept(number(0.0, 1.0))
    entities: EntityModel | None = kept(maybe(EntityModel.read))
    profile: DriftProfile = kept(DriftProfile.read)
    effects: dict[str, Effects] = kept(keyed(Effects.read), dict)
    between: float = kept(number(0.0), 0.0)


def _labelled(judged: JudgedPairs, n_docs: int, labels: Sequence[str]) -> tuple[Labelled, Ints]:
    """(the likeliest pair of each token, in the order of the text; the index of these pairs)."""
    top = np.sort(top_pairs(judged.pairs))
    names = np.array([*labels, ""], dtype=object)[:-1][judged.pairs.tags[top]]
    raw, calibrated = judged.pairs.scores[top], judged.calibrated[top]
    return Labelled(judged.documents[top], n_docs, names.tolist(), raw, calibrated), top


def record_fit(
    judged: JudgedPairs,
    n_docs: int,
    labels: Sequence[str],
    found_spans: SpanFit | None = None,
    unjudged: JudgedPairs | None = None,
    gold: Ints | None = None,
    of_sources: Ints | None = None,
) -> FitRecord | None:
    """Learn from the tokens of the fit data, scored by maps that did not see their documents.

    judged (JudgedPairs): Tokens with gold. n_docs (int): Documents, with tokens or without. labels (Sequence[str]): Of
        the tags. found_spans (SpanFit | None): None for a source without spans. unjudged (JudgedPairs | None): Tokens without
        gold, for the comparison with new documents, where all tokens count. gold (Ints | None): Column of each token's
        gold label, negative for none; None leaves out tokens without a score of it. of_sources (Ints | None): Source of
        each document's gold, -1 without a name; None for one source.
    RETURNS (FitRecord | None): None where fewer than two documents have tokens, so that their differences are unknown.
    """
    pairs = judged.pairs
    tokens, top = _labelled(judged, n_docs, labels)
    if len(np.unique(tokens.documents)) < 2:
        return None
    sums = token_sums(tokens.calibrated, tokens.documents, n_docs)
    right = sum_by(tokens.documents, pairs.hits[top], n_docs)[:, None]
    entities = spans = None
    if found_spans is not None:
        document_of_span = found_spans.data.known_documents
        spans = Labelled(document_of_span, n_docs, None, found_spans.data.pairs.scores, found_spans.held_out)
        n_right = sum_by(document_of_span, found_spans.data.pairs.hits, n_docs)
        entities = EntityModel.fit(entity_sums(tokens, spans), n_right, found_spans.data.gold.astype(np.float64))
    all_tokens = tokens
    if unjudged is not None:  # the pairs of both, in the order of the text
        all_pairs, order = interleave(pairs, unjudged.pairs)
        scores = np.concatenate([judged.calibrated, unjudged.calibrated])[order]
        documents = np.concatenate([judged.documents, unjudged.documents])[order]
        all_tokens = _labelled(JudgedPairs(all_pairs, scores, documents), n_docs, labels)[0]
    profile = DriftProfile.of(all_tokens, None if found_spans is None else _all_spans(found_spans.data, n_docs))
    effects = effects_of_labels(judged.calibrated, pairs.hits.astype(np.float64), judged.documents, pairs.tags, labels)
    if gold is not None:
        rows, first = np.unique(pairs.rows, return_index=True)
        documents, columns = judged.documents[first], gold[rows]
        has_label = (columns >= 0) & (columns < len(labels))
        is_missed = has_label & ~np.isin(rows, pairs.rows[pairs.hits])
        effects = with_missed(effects, columns[is_missed], documents[is_missed], sum_by(documents, None, n_docs), labels)
        source_of_document = np.zeros(n_docs, dtype=np.intp) if of_sources is None else of_sources
        sums_by_source = source_sums(
            judged.calibrated,
            judged.documents,
            pairs.tags,
            top,
            (documents[has_label], columns[has_label]),
            source_of_document,
            len(labels),
        )
        effects = with_widths(effects, sums_by_source, labels)
    residuals = Residuals.of(right, sums)
    source_variance = 0.0 if of_sources is None else _between(residuals, right[:, 0], sums, of_sources)
    return FitRecord(residuals, float(pairs.hits[top].mean()), entities, profile, effects, source_variance)


def _between(residuals: Residuals, right: Floats, sums: Sums, of_sources: Ints) -> float:
    """`FitRecord.between`. right (Floats): Right tokens of each document. of_sources (Ints): Its source."""
    names, places = np.unique(of_sources, return_inverse=True)
    n, opens = len(names), sums.independent[:, 0]
    errors, opens_by_source, squares = (
        sum_by(places, values, n) for values in (right - sums.expected[:, 0], opens, np.square(sums.units))
    )
    return (
        between_sources(errors, opens_by_source, opens_by_source + residuals.shift_variance(np.ones(1)) * squares)
        * of_new_source(n) ** 2
    )


def _all_spans(data: SpanData, n_docs: int) -> Labelled:
    """All spans on the Docs, with gold or without, to be compared by their raw scores."""
    index = np.flatnonzero(data.spans.chosen)
    return Labelled(data.documents[index], n_docs, None, data.raw[index], data.raw[index])


def entity_sums(tokens: Labelled, spans: Labelled) -> EntitySums:
    """For each document the sums that give the expected numbers of entities."""
    n_docs = tokens.n_docs
    is_outside: NDArray[np.bool_] = np.array(tokens.labels or (), dtype=object) == OUTSIDE
    p = spans.calibrated
    return EntitySums(
        sum_by(spans.documents, None, n_docs),
        sum_by(spans.documents, p, n_docs),
        sum_by(spans.documents, p * (1 - p), n_docs),
        sum_by(tokens.documents[is_outside], 1 - tokens.calibrated[is_outside], n_docs),
        sum_by(tokens.documents, None, n_docs),
    )


# A pipe keeps at most so many digests, of eight bytes each.
MOST = 1 << 16
# Shorter texts recur by chance, and do not show that a fit has seen them.
LEAST_WORDS = 6
# From this share of known words on, data is no test of the fit; up to the other one sentences recur by chance.
MANY, FEW = 0.1, 0.01


@dataclass(frozen=True, eq=False)
class TextUnits:
    """n stretches, documents and their sentences: digest, words, document, and whether it is the whole document."""

    digests: Digests
    words: Ints
    documents: Ints
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class SeenShare:
    """How much of some data a fit has seen: comparable documents, those half seen or more, and the share of all words."""

    documents: int
    seen: int
    share: float

    @property
    def many(self) -> bool:
        """Whether the data is no test of the fit."""
        return self.share > MANY

    @property
    def some(self) -> bool:
        """Whether more recurs than chance would let."""
        return self.seen > 0 or self.share > FEW

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "many": self.many}


@dataclass(frozen=True, eq=False)
class SeenTexts(Saved):
    """digests (Digests): Of the longer documents and sentences, the MOST lowest, ascending. salt (str): See `keyed`."""

    digests: Digests = kept(digests, lambda: np.zeros(0, dtype=np.uint64))
    salt: str = kept(text, "")

    def plus(self, units: TextUnits) -> SeenTexts:
        """Add the texts of at least LEAST_WORDS words: shorter ones are never compared, and can be guessed."""
        digests = salted(units.digests[units.words >= LEAST_WORDS], self.salt)
        return SeenTexts(np.unique(np.concatenate([self.digests, digests]))[:MOST], self.salt)

    def share_of(self, units: TextUnits) -> SeenShare | None:
        """How much of other data the fit has seen, by documents, else sentences; None where nothing can be compared."""
        long = units.words >= LEAST_WORDS
        digests = salted(units.digests, self.salt)
        is_known = long & np.isin(digests, self.digests)
        complete = len(self.digests) < MOST
        comparable = long & (complete | (digests <= self.digests[-1:].max(initial=0)))
        n = int(units.documents.max()) + 1 if len(units.documents) else 0

        def words(where: NDArray[np.bool_]) -> Floats:
            return np.bincount(units.documents[where], units.words[where], n).astype(np.float64)

        by_parts = ~units.whole & ~np.isin(units.documents, units.documents[units.whole & is_known])
        words_compared = words(units.whole & is_known) + words(by_parts & comparable)
        words_seen = words(units.whole & is_known) + words(by_parts & is_known)
        is_compared = words_compared > 0
        if not is_compared.any():
            return None
        half_seen = int((2 * words_seen[is_compared] >= words_compared[is_compared]).sum())
        return SeenShare(int(is_compared.sum()), half_seen, float(words_seen.sum() / words_compared.sum()))


def warning_of(seen: dict[str, Any] | None) -> str | None:
    """The warning for a `SeenShare.to_dict`; None where the data is a fair test, or nothing is known."""
    if seen is None or not seen["many"]:
        return None
    return (
        f"JUDGED ON THE FIT DATA: {seen['seen']:,} of {seen['documents']:,} documents ({100 * seen['share']:.0f} % of the words) are among "
        "those that the pipe was fitted on, where every fit looks good. This is no test of it: judge it on other gold."
    )
