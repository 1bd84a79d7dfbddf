"""Checks before every fit, adaptation and evaluation that a component can be right and wrong by the gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, plain_name
from ..annotations.annotation import NIL
from ..annotations.cats import GoldCats
from ..annotations.spans import LINK
from ..errors import brief, calib_error
from ..pairs.label_map import shorten_list
from ..pairs.pairing import top_pairs
from ..pairs.scored_corpus import WRONG, ScoredCorpus
from ..types import OPEN, OUTSIDE, Pairs

LEMMA = "lemma"
EXPECTED = 5.0  # if the scores expect so many units with a label, or errors, gold without any is refused
_MIN_ERROR_SHARE = 0.1  # fewer errors than this share of the expected number are reported
_MIN_UNITS = 20  # with fewer units it may be by chance that all are right
_TIE = 1e-3  # scores that differ by less are equal up to rounding
_MIN_TEXTS = 5  # minimum number of texts with, and of texts without a category, to infer that it is listed only if it applies
_GIVE_DOCUMENTS = (
    "give texts of several sentences (in a .conllu file without `# newdoc` lines each sentence is a document: add them, or "
    "join sentences by `python -m spacy convert -n 10`)"
)


class GoldWatch:
    """Counts the gold of `annotation` in `watch`; then `check` can refuse gold without arcs, or without wrong categories."""

    def __init__(self, annotation: Annotation):
        self._annotation, gold = annotation, annotation.gold
        # None for other annotations: only categories of which several can be right are counted.
        self._cats = gold.categories if isinstance(gold, GoldCats) and gold.kind.overlapping else None
        self._present: Counter[str] = Counter()  # category -> number of texts that have it
        self._absent: Counter[str] = Counter()  # category -> number of texts that the gold says it is wrong for
        self._n_texts = 0  # with a value for any category
        self._n_arcs = self._n_own_heads = 0

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples unchanged, and count the gold of each."""
        for example in examples:
            if self._cats is not None:
                values = self._cats.values(example.reference)
                self._n_texts += bool(values)
                self._present.update(name for name, value in values.items() if value > 0.5)
                self._absent.update(name for name, value in values.items() if value <= 0.5)
            elif self._annotation.kind.of_arcs and example.reference.has_annotation("DEP"):
                heads = example.reference.to_array(["HEAD"])  # relative: 0 is the token itself
                self._n_arcs += len(heads)
                self._n_own_heads += int(np.count_nonzero(heads == 0))
            yield example

    def check(self, component: str) -> None:
        """Check the counts. component (str): Name of the component, for messages.

        RAISES C801: the gold gives categories only to texts that have them, never as wrong. C802: every token is its own head.
        """
        if self._n_arcs and self._n_arcs == self._n_own_heads:
            raise calib_error("C802", n=f"{self._n_arcs:,}", component=component)
        never_wrong = [(name, n) for name, n in self._present.most_common() if not self._absent[name]]
        # Such categories seem to be listed only where they apply, if many texts have them and many leave them out.
        names = [name for name, n in never_wrong if n >= _MIN_TEXTS and self._n_texts - n >= _MIN_TEXTS]
        if not names and not self._absent:  # no text gives any category as wrong: then a few texts are enough
            names = list(self._present)
        if names:
            n = sum(self._present[name] for name in names)
            raise calib_error("C801", n=f"{n:,}", names=shorten_list(names), component=component)

    def check_corpus(self, component: str, corpus: ScoredCorpus, min_expected: float = 0.0) -> dict[str, Any] | None:
        """Check what was counted so far, and that a scored corpus of the same gold has right and wrong predictions.

        component (str): Name, for messages. min_expected (float): Gold without any label is an error if the scores expect a
        label for at least so many tokens (or documents). RETURNS (dict | None): The fields of the warning CW65 if there are far
        fewer errors than the scores expect, else None. RAISES C800: all labels are the same. C801: no category is wrong. C802:
        every token is its own head. C803: all predictions are wrong. C804: none is, though the scores expect errors.
        """
        self.check(component)
        annotation, rows = self._annotation, np.flatnonzero(corpus.gold >= 0)  # tokens or documents with gold
        gold_labels = [corpus.names[number] for number in np.unique(corpus.gold[rows]).tolist()]
        is_lemma = plain_name(annotation.name) == LEMMA
        if is_lemma and all(corpus.names[corpus.gold[i]] == corpus.words[i] for i in rows.tolist()):
            gold_labels = gold_labels[:1]  # each lemma is the word itself, which counts as one label
        spans = None if len(rows) else corpus.span_pairs(corpus.names).pairs  # only spans have gold
        agrees = not (corpus.right == WRONG).any()  # no label on the Docs is wrong
        return check_outcomes(annotation, component, corpus.pairs().pairs, gold_labels, spans, min_expected, agrees)


def check_outcomes(
    annotation: Annotation,
    component: str,
    pairs: Pairs,
    gold: Sequence[str],
    spans: Pairs | None = None,
    min_expected: float = 0.0,
    agrees: bool = False,
) -> dict[str, Any] | None:
    """Check that gold has several labels and is no copy of a component's output: some predictions must be right, some wrong.

    component (str): Name, for messages. pairs (Pairs): Raw scores of units (tokens or documents) with gold. gold
    (Sequence[str]): The distinct gold labels of these units. spans (Pairs | None): Scores of spans with gold, checked in place
    of `pairs` if no token has gold. min_expected (float): Gold without any label is an error if the scores expect a label for
    at least so many units. agrees (bool): Whether no label on the Docs is wrong (the top label of the scores may differ).
    RETURNS (dict | None): The fields of the warning CW65 if there are far fewer errors than the scores expect, else None.
    RAISES C800: all units have the same label. C803: nothing is right. C804: nothing is wrong, though the scores expect errors.
    """
    kind = annotation.kind
    if len(gold) == 1 and pairs.n_units > 1 and _is_one_outcome(annotation, gold[0]):
        _check_one_label(annotation, component, pairs, gold[0], min_expected)
    checked, unit = (pairs, f"{kind.unit}s") if spans is None else (spans, kind.span_words[1])
    expected_hits = float(checked.scores.sum())
    if not checked.hits.any() and expected_hits >= EXPECTED:
        raise calib_error("C803", component=component, unit=unit, n=f"{checked.n_units:,}", expected=f"{expected_hits:,.0f}")
    n_errors, expected_errors = _count_errors(checked, kind.overlapping and spans is None)
    # If a unit may have several labels, each of its labels is a prediction.
    n, unit = (len(checked), f"pairs of {kind.unit} and label") if kind.overlapping else (checked.n_units, unit)
    fields = {"component": component, "unit": unit, "n": f"{n:,}", "expected": f"{expected_errors:,.0f}"}  # of messages
    has_few_errors = n_errors < _MIN_ERROR_SHARE * expected_errors and n >= _MIN_UNITS
    seems_copied = has_few_errors and (not n_errors or agrees)
    if seems_copied and expected_errors >= EXPECTED:
        raise calib_error("C804", **fields)
    return {**fields, "errors": f"{n_errors:,}"} if n_errors and has_few_errors else None


def _check_one_label(annotation: Annotation, component: str, pairs: Pairs, label: str, min_expected: float) -> None:
    """Refuse gold in which all units (tokens or documents) have the same `label`, if the scores expect enough other labels.

    component (str): Name, for messages. pairs (Pairs): The scores of the units. RAISES C800: the scores expect other labels for
    at least EXPECTED units (lemmas, identities), `min_expected` units (`label` is "O" or "(none)") or 0 units (all others).
    """
    expected_others = pairs.n_units - float(pairs.scores[pairs.hits].sum())
    minimum = min_expected if label in (OUTSIDE, *annotation.kind.no_label_names) else 0.0
    if plain_name(annotation.name) in OPEN:  # a few lemmas may all be the word, a few entities all in no knowledge base
        minimum = EXPECTED
    if expected_others >= minimum:
        raise calib_error("C800", component=component, **_describe_outcome(annotation, label, pairs.n_units))


def _is_one_outcome(annotation: Annotation, label: str) -> bool:
    """Return whether gold in which all units have this one label cannot show that predictions are right and wrong."""
    if annotation.kind.overlapping:  # with a real label, all other labels of the unit are wrong
        return label in (OUTSIDE, *annotation.kind.no_label_names)
    if annotation.kind.any_label:  # only heads are compared, whatever the labels of the arcs
        return False
    # All entities of some texts may be one person, and wrong links show; "NIL" for all means that nobody linked them.
    return plain_name(annotation.name) != LINK or label == NIL


def _describe_outcome(annotation: Annotation, label: str, n: int) -> dict[str, str]:
    """Return the values "what" and "mend" of the error C800 for gold in which all n units have this label."""
    name = plain_name(annotation.name)
    if name == "sent" and label == "I":
        return {"what": f"No gold document has a sentence start after its first token ({n:,} tokens)", "mend": _GIVE_DOCUMENTS}
    if label in (OUTSIDE, *annotation.kind.no_label_names):
        plural = (annotation.kind.label_words if annotation.kind.of_documents else annotation.kind.span_words)[1]
        return {
            "what": f"The gold has no {plural} ({n:,} {annotation.kind.unit}s)",
            "mend": f"give gold in which people marked {plural}",
        }
    description = "is the word itself, or formed alike" if name == LEMMA else f"is {brief(label)!r}"
    return {
        "what": f"The gold {name} of all {n:,} {annotation.kind.unit}s {description}",
        "mend": f"give data annotated with {name}",
    }


def _count_errors(pairs: Pairs, overlapping: bool) -> tuple[int, float]:
    """Return (number of wrong predictions, number that the scores expect), to find gold that is the component's own output.

    overlapping (bool): Whether a unit (token, document) may have several labels. If not, its top label is the prediction; units
    whose two top scores are equal are left out, as the component may have taken either. If so, labels whose score reaches a
    cut-off are predicted. The cut-off is not known: .5 and the lowest score of a right label are tried, and fewer errors count.
    """
    if not overlapping:
        top = top_pairs(pairs)
        highest = np.full(pairs.rows.max(initial=-1) + 1, np.inf)  # highest score of each unit
        highest[pairs.rows[top]] = pairs.scores[top]
        n_top = np.bincount(pairs.rows[pairs.scores >= highest[pairs.rows] - _TIE], minlength=len(highest))
        clear = top[n_top[pairs.rows[top]] == 1]  # top pairs without a tie
        return int(np.count_nonzero(~pairs.hits[clear])), float((1 - pairs.scores[clear]).sum())
    counts = []
    for cutoff in (0.5, pairs.scores[pairs.hits].min(initial=1.0)):
        is_decided = pairs.scores >= cutoff
        error_scores = np.where(is_decided, 1 - pairs.scores, pairs.scores).sum()
        counts.append((int(np.count_nonzero(is_decided != pairs.hits)), float(error_scores)))
    return min(counts)  # of the cut-off with fewer errors
