"""Whether gold says anything of the scores of a component: asked before every fit, adaptation and evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.training import Example

from ..annotations import Annotation, get_annotation, plain_name
from ..annotations.base import NIL
from ..annotations.cats import GoldCats
from ..annotations.spans import LINK
from ..errors import brief, calib_error
from ..pairs.build import top_pairs
from ..pairs.documents import TOKEN
from ..pairs.label_map import shorten_list
from ..pairs.scored_corpus import WRONG, ScoredCorpus
from ..types import OPEN, OUTSIDE, Pairs

if TYPE_CHECKING:
    from ..pipe.fit_inputs import FitInputs

LEMMA = "lemma"

# That a label or an error is nowhere says something where scores let expect so many.
EXPECTED = 5.0
# Fewer errors than this share of those expected are remarkable.
_FEW = 0.1
# Of fewer units all may well be right.
_UNITS = 20
# Scores no farther apart are equal: which is the likeliest, rounding decides.
_TIE = 1e-3
# Texts that leave a category out, and texts that have it: with so many of each, it is named only where it applies.
_TEXTS = 5
_DOCUMENTS_WANTED = (
    "give texts of several sentences (in a .conllu file without `# newdoc` lines each sentence is a document: add them, or join sentences by "
    "`python -m spacy convert -n 10`)"
)


class GoldWatch:
    """Notes, as gold Docs pass, what pairs of scores and answers do not show: categories that are left out, and heads.

    annotation (Annotation): Of the component.
    """

    def __init__(self, annotation: Annotation):
        self._annotation, gold = annotation, annotation.gold
        self._cats = gold.categories if isinstance(gold, GoldCats) and gold.overlapping else None
        self._present: Counter[str] = Counter()
        self._absent: Counter[str] = Counter()
        self._n_texts = self._n_arcs = self._n_own_heads = 0

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes."""
        for example in examples:
            if self._cats is not None:
                values = self._cats.values(example.reference)
                self._n_texts += bool(values)
                self._present.update(name for name, value in values.items() if value > 0.5)
                self._absent.update(name for name, value in values.items() if value <= 0.5)
            elif self._annotation.arcs and example.reference.has_annotation("DEP"):
                heads = example.reference.to_array(["HEAD"])
                self._n_arcs += len(heads)
                self._n_own_heads += int(np.count_nonzero(heads == 0))
            yield example

    def check(self, component: str) -> None:
        """RAISES C801: categories are named only where texts have them. C802: every token is its own head."""
        if self._n_arcs and self._n_arcs == self._n_own_heads:
            raise calib_error("C802", n=f"{self._n_arcs:,}", component=component)
        names = [
            name
            for name, n in self._present.most_common()
            if not self._absent[name] and n >= _TEXTS and self._n_texts - n >= _TEXTS
        ]
        if self._present and (names or not self._absent):
            names = names or list(self._present)
            n = sum(self._present[name] for name in names)
            raise calib_error("C801", n=f"{n:,}", names=shorten_list(names), component=component)


def check_fit_inputs(watch: GoldWatch, inputs: FitInputs) -> dict[str, Any] | None:
    """`check_outcomes` of what a fit or an adaptation read."""
    source, data, spans = inputs.source, inputs.data, inputs.spans
    watch.check(source.name)
    names = [*source.labels, *source.annotation.no_label_names, ""]
    columns = np.unique(data.gold[data.gold != -2])
    agrees = spans is not None and bool(spans.pairs.hits.all()) and len(spans.pairs) == int(spans.gold.sum())
    gold = [names[min(column, len(names) - 1)] for column in columns.tolist()]
    span_pairs = None if inputs.n_gold or spans is None else spans.pairs
    return check_outcomes(source.annotation, source.name, data.pairs, gold, span_pairs, agrees=agrees)


def check_corpus(
    watch: GoldWatch, layer: str, component: str, corpus: ScoredCorpus, least: float = 0.0
) -> dict[str, Any] | None:
    """`check_outcomes` of a scored corpus. layer (str): Of the pipe."""
    watch.check(component)
    known = np.flatnonzero(corpus.gold >= 0)
    gold = [corpus.names[place] for place in np.unique(corpus.gold[known]).tolist()]
    annotation = get_annotation(layer)
    if plain_name(layer) == LEMMA and all(corpus.names[corpus.gold[i]] == corpus.words[i] for i in known.tolist()):
        gold = gold[:1]
    spans = None if len(known) else corpus.span_pairs(corpus.names).pairs
    agrees = not (corpus.right == WRONG).any()
    return check_outcomes(annotation, component, corpus.pairs().pairs, gold, spans, least, agrees)


def check_outcomes(
    annotation: Annotation,
    component: str,
    pairs: Pairs,
    gold: Sequence[str],
    spans: Pairs | None = None,
    least: float = 0.0,
    agrees: bool = False,
) -> dict[str, Any] | None:
    """Check that gold has each outcome of what is calibrated, and is not the component's own output.

    pairs (Pairs): Raw scores of units with gold. gold (Sequence[str]): The distinct labels of these units. spans (Pairs | None): Spans with answers, where
        no token has gold. least (float): So many units with a label the scores must let expect where the gold has none at all, so that it is refused.
        agrees (bool): Whether what stands on the Docs is all right: the likeliest label by itself may be another one.
    RETURNS (dict | None): What CW65 names, where errors are far fewer than the scores let expect.
    RAISES C800: all have the same label. C803: nothing is right. C804: nothing is wrong, where scores let expect errors.
    """
    if len(gold) == 1 and pairs.n_units > 1 and _is_one_outcome(annotation, gold[0]):
        others = pairs.n_units - float(pairs.scores[pairs.hits].sum())
        is_none, is_open = gold[0] in (OUTSIDE, *annotation.no_label_names), plain_name(annotation.name) in OPEN
        if others >= (EXPECTED if is_open else least if is_none else 0.0):
            raise calib_error("C800", component=component, **_one_outcome(annotation, gold[0], pairs.n_units))
    judged, unit = (pairs, f"{annotation.unit}s") if spans is None else (spans, annotation.span_words[1])
    if not judged.hits.any() and (expected := float(judged.scores.sum())) >= EXPECTED:
        raise calib_error("C803", component=component, unit=unit, n=f"{judged.n_units:,}", expected=f"{expected:,.0f}")
    n_errors, expected = _errors(judged, annotation.overlapping and spans is None)
    n = len(judged) if annotation.overlapping else judged.n_units
    unit = f"pairs of {annotation.unit} and label" if annotation.overlapping else unit
    values = {"component": component, "unit": unit, "n": f"{n:,}", "expected": f"{expected:,.0f}"}
    is_few = n_errors < _FEW * expected and n >= _UNITS
    if is_few and (not n_errors or agrees) and expected >= EXPECTED:
        raise calib_error("C804", **values)
    return {**values, "errors": f"{n_errors:,}"} if n_errors and is_few else None


def _is_one_outcome(annotation: Annotation, label: str) -> bool:
    """Whether gold that has no label but this one has one outcome: not where a unit may have several, or where labels are not compared."""
    if annotation.overlapping:
        return label in (OUTSIDE, *annotation.no_label_names)
    return not annotation.any_label and (plain_name(annotation.name) != LINK or label == NIL)


def _one_outcome(annotation: Annotation, label: str, n: int) -> dict[str, str]:
    """What C800 names."""
    name = plain_name(annotation.name)
    if name == "sent" and label == "I":
        return {
            "what": f"No gold document holds a sentence start behind its first token ({n:,} tokens)",
            "mend": _DOCUMENTS_WANTED,
        }
    if label in (OUTSIDE, *annotation.no_label_names):
        several = annotation.span_words[1] if annotation.unit == TOKEN else "categories"
        return {
            "what": f"The gold has no {several} ({n:,} {annotation.unit}s)",
            "mend": f"give gold in which people marked {several}",
        }
    named = "is the word itself, or formed alike" if name == LEMMA else f"is {brief(label)!r}"
    return {"what": f"The gold {name} of all {n:,} {annotation.unit}s {named}", "mend": f"give data annotated with {name}"}


def _errors(pairs: Pairs, overlapping: bool) -> tuple[int, float]:
    """(wrong decisions, those that the scores let expect); not where the two likeliest labels have equal scores, as those of an untrained component.

    Where labels overlap: by the cut-off that fits the answers best, of .5 and the lowest right score.
    """
    if not overlapping:
        top = top_pairs(pairs)
        highest = np.full(pairs.rows.max(initial=-1) + 1, np.inf)
        highest[pairs.rows[top]] = pairs.scores[top]
        n_likeliest = np.bincount(pairs.rows[pairs.scores >= highest[pairs.rows] - _TIE], minlength=len(highest))
        clear = top[n_likeliest[pairs.rows[top]] == 1]
        return int(np.count_nonzero(~pairs.hits[clear])), float((1 - pairs.scores[clear]).sum())
    counts = []
    for cutoff in (0.5, pairs.scores[pairs.hits].min(initial=1.0)):
        is_decided = pairs.scores >= cutoff
        expected = np.where(is_decided, 1 - pairs.scores, pairs.scores).sum()
        counts.append((int(np.count_nonzero(is_decided != pairs.hits)), float(expected)))
    return min(counts)
