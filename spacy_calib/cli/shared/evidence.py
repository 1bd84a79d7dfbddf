"""Checks of whether data suit a pipe: gold and scores, known labels, unseen texts, and texts like those of the fit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CalibError, calib_error
from ...errors.advice import UNKNOWN_LABELS, advise
from ...pairs.documents import DOCUMENT
from ...pairs.label_map import UnknownGold, shorter
from ...types import OPEN, OUTSIDE
from .command import check_option
from .screen import inform, msg, shorten, warn

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ...annotations import Annotation
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pairs.seen_texts import SeenShare
    from ...pipe.component import Calibrator


_WIDTH = 90


def why_silent(nlp: Language, pipe: Calibrator, docs: Iterable[Doc]) -> str:
    """Return why a pipe scored none of these Docs, by the first that it should have read; "" if it had nothing to score."""
    from ...annotations import get_annotation

    annotation = get_annotation(pipe.fit_info.layer)
    source = pipe.lookup.component()
    doc = next((doc for doc in docs if annotation.n_units(doc) > annotation.first), None)
    if doc is None:
        return f"they hold no {annotation.unit}s that it could score"
    obstacle = pipe.lookup.obstacle(source) or pipe.source.missing(source, [doc])[0]
    nothing = "" if annotation.spans_are_units else f"no {annotation.unit} carries a {annotation.gold.name} annotation"
    return obstacle or nothing


def nothing_scored(pipe: Calibrator, n_docs: int, why: str) -> CalibError:
    """Return C075, or C745 for an empty reason. n_docs (int): Number of Docs. why (str): See `why_silent`."""
    if not why:
        return calib_error("C745", name=pipe.name, n_docs=n_docs)
    no_unit = "none" if pipe.fit_info.row_unit == DOCUMENT else "no token"
    return calib_error("C075", name=pipe.name, none=no_unit, n_docs=n_docs, why=why)


class FirstDoc:
    """Notes why a pipe is silent as Docs pass, since they are gone afterwards."""

    def __init__(self, nlp: Language, pipe: Calibrator):
        from ...annotations import get_annotation

        self._nlp, self._pipe, self._annotation = nlp, pipe, get_annotation(pipe.fit_info.layer)
        self._why: str | None = None
        self.n_docs = 0

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples. The first predicted Doc that the pipe should have scored is checked."""
        for example in examples:
            self.n_docs += 1
            if self._why is None and self._annotation.n_units(example.predicted) > self._annotation.first:
                self._why = why_silent(self._nlp, self._pipe, [example.predicted])
            yield example

    def silent(self) -> CalibError:
        """Return C075: the pipe scored none of these Docs."""
        why = why_silent(self._nlp, self._pipe, ()) if self._why is None else self._why
        return nothing_scored(self._pipe, self.n_docs, why)


def check_scored(nlp: Language, pipe: Calibrator, examples: Sequence[Example]) -> None:
    """RAISES C075: the pipe has written nothing on any of the predicted Docs."""
    from ...doc.view import doc_view

    docs = [example.predicted for example in examples]
    if not any(doc_view(doc, pipe.attr) is not None for doc in docs):
        raise nothing_scored(pipe, len(docs), why_silent(nlp, pipe, docs))


def check_gold_of_examples(pipe: Calibrator, examples: Sequence[Example], silent: bool) -> None:
    """Compare the gold labels of examples that passed the pipe with those of the component. RAISES C151: see `check_gold`."""
    from spacy.strings import get_string_id

    from ...annotations import get_annotation, label_hashes
    from ...annotations.base import ONLY_REJECTED
    from ...annotations.label_schemes import has_types, span_confusions
    from ...gold.example_reader import unknown_spans

    annotation = get_annotation(pipe.fit_info.layer)
    gold = annotation.count(example.reference for example in examples)
    labels = pipe.lookup.labels()
    known_labels = label_hashes((*labels, *annotation.no_label_names))
    unknown_pairs: Counter[tuple[int, int]] = Counter()
    spans: Counter[tuple[str, str]] = Counter()
    for example in examples:
        gold_hashes = annotation.aligned_gold(example)
        unknown = (gold_hashes != 0) & (gold_hashes != ONLY_REJECTED) & ~np.isin(gold_hashes, known_labels)
        unknown_pairs.update(
            zip(annotation.hashes(example.predicted)[unknown].tolist(), gold_hashes[unknown].tolist(), strict=True)
        )
        predicted = annotation.spans_on(example.predicted) if has_types(annotation) else ()
        spans.update(span_confusions(annotation, example, [(span.start, span.end, span.label_) for span in predicted]))
    names = {get_string_id(label): label for label in (*labels, *gold)}
    pairs = {(names.get(predicted, ""), names[key]): n for (predicted, key), n in unknown_pairs.items()}
    of_tokens = UnknownGold.of(pairs, unknown_pairs.total(), gold, labels)
    check_gold(pipe, gold, unknown_spans(annotation, pipe.lookup.span_labels(), spans, of_tokens), silent)


def check_gold_of_corpus(pipe: Calibrator, corpus: ScoredCorpus, silent: bool) -> None:
    """Compare the gold labels of a scored corpus with those of the component. RAISES C151: see `check_gold`."""
    from ...annotations import get_annotation

    gold_places = np.flatnonzero(corpus.gold >= 0)
    names = (*corpus.names, "")  # the place -1 is that of no label
    pairs = Counter(zip(corpus.labels[gold_places].tolist(), corpus.gold[gold_places].tolist(), strict=True))
    gold: Counter[str] = Counter()
    for (_, gold_index), n in pairs.items():
        gold[names[gold_index]] += n
    labels = {*pipe.lookup.labels(), *get_annotation(pipe.fit_info.layer).no_label_names}
    unknown_pairs = Counter(
        {(names[label], names[gold_index]): n for (label, gold_index), n in pairs.items() if names[gold_index] not in labels}
    )
    check_gold(pipe, gold, UnknownGold.of(unknown_pairs, unknown_pairs.total(), gold, pipe.lookup.labels()), silent)


def check_gold(pipe: Calibrator, gold: Counter[str], unknown: UnknownGold, silent: bool) -> None:
    """Warn of gold labels that the component does not know, as `fit` does.

    gold (Counter): Gold label -> frequency of tokens; empty without gold. RAISES C151: the component knows none of the gold labels, "O" aside.
    """
    if pipe.fit_info.layer in OPEN or pipe.source.annotation(pipe.lookup.component()).any_label:
        return
    labels, words = pipe.lookup.labels(), unknown.words()
    gold_labels: list[Any] = sorted(set(gold) - {OUTSIDE}) or [name for _, name, _ in unknown.pairs]
    component = pipe.source.component or "the source"
    if gold_labels and (unknown.share == 1 if unknown.unit else set(labels).isdisjoint(gold_labels)):
        texts = [shorten(", ".join(names), _WIDTH) for names in (dict.fromkeys(gold_labels), labels)]
        raise calib_error("C151", component=component, gold=texts[0], known=texts[1], map=words["map"])
    if unknown.n and not silent:
        warn(unknown_sentence(words, component, pipe.fit_info.row_unit))


class GoldSays:
    """Whether gold tells anything of the scores of a pipe. pipe (Calibrator): Fitted."""

    def __init__(self, pipe: Calibrator):
        from ...annotations import get_annotation
        from ...gold.checks import GoldWatch

        self._pipe, self._watch = pipe, GoldWatch(get_annotation(pipe.fit_info.layer))
        self.over = self._watch.over

    def check(self, corpus: ScoredCorpus, silent: bool, least: float = 0.0) -> None:
        """Check the gold that has passed; warn where it has hardly an error. RAISES C800 to C804: see `gold.checks`."""
        from ...errors import WARNINGS
        from ...gold.checks import check_corpus

        component = self._pipe.source.component or "the source"
        few = check_corpus(self._watch, self._pipe.fit_info.layer, component, corpus, least)
        if few is not None and not silent:
            warn(WARNINGS["CW65"].format(**few).removeprefix("[CW65] "))


def check_gold_says(
    pipe: Calibrator, examples: Iterable[Example], corpus: ScoredCorpus, silent: bool, least: float = 0.0
) -> None:
    """As `GoldSays.check`, of examples that are at hand."""
    says = GoldSays(pipe)
    deque(says.over(examples), maxlen=0)
    says.check(corpus, silent, least)


def check_has_gold(examples: Iterable[Example], pipe: Calibrator) -> None:
    """Check before the pipeline runs. RAISES C030, C080: no gold of the pipe's annotation. C263: categories of another scheme."""
    from ...annotations import has_gold
    from ...sources.find import readable_in

    annotation = pipe.source.annotation(pipe.lookup.component())
    references = [example.reference for example in examples]
    if any(has_gold(annotation, doc) for doc in references):
        return
    component, foreign = pipe.source.component or "the source", annotation.foreign_labels(references)
    if foreign:
        raise calib_error("C263", component=component, unknown=shorter(foreign), known=shorter(pipe.lookup.labels()))
    nlp = pipe.lookup.nlp
    others = [name for name in readable_in(nlp) if name != component and is_gold_of(nlp, name, references)]
    if others:
        names = " and ".join(f"'{name}'" for name in others)
        raise calib_error("C080", layer=annotation.gold.name, component=component, others=names, first=others[0])
    raise calib_error("C030", layer=annotation.gold.name, component=component)


def is_gold_of(nlp: Language, component: str, docs: Sequence[Doc]) -> bool:
    """Whether gold has labels for a trained component, whose scores the source that claims it reads."""
    from ...registry import registry
    from ...sources.find import source_block

    pipe: Any = nlp.get_pipe(component)
    source = registry.resolve({"source": source_block(pipe, component)})["source"]
    annotation = source.annotation(pipe)
    labels = {*annotation.count(docs), *annotation.count_spans(docs)} - {OUTSIDE, "", *annotation.no_label_names}
    return bool(labels if annotation.of_entities else labels & {*source.labels(pipe)}) and annotation.name != "sent"


# What fits into two lines: labels with a guess, and labels alone, which may be too long to be broken.
_NAMES, _ALONE = 32, 20


def unknown_sentence(words: Mapping[str, Any], component: str, unit: str, details: bool = False) -> str:
    """Which gold labels a component does not know, in two lines unless details are wanted. words (dict): Of `UnknownGold`. unit (str): What has labels."""
    pairs, unknown = words["pairs"], words["unknown"]
    unit = words.get("unit", unit)
    first = pairs if details else pairs.split(", ")[0]
    text = unknown if pairs == "-" or first.startswith("nothing for ") else f"{unknown}; it says {first}"
    if not details and len(text) > _NAMES:
        text = shorten(unknown, _ALONE)
    return (
        f"{words['n']} {unit}s ({words['share']} %) have a gold label that '{component}' does not know ({text}) and count as misses; "
        f"{advise(UNKNOWN_LABELS)}"
    )


def match_gold(pipes: Iterable[Calibrator], examples: list[Example], silent: bool = True, **options: Any) -> list[Example]:
    """Give gold entities their names in these pipes; return the examples. options: See `match_labels`."""
    from ...pipe.label_names import match_labels

    schemes = [match_labels(pipe, examples, **options) for pipe in pipes]
    for sentence in (
        () if silent else dict.fromkeys(scheme.loc_sentence for scheme in schemes if scheme and scheme.loc_sentence)
    ):
        inform(sentence)
    return examples


def report_dropped(annotation: Annotation, examples: Iterable[Example], silent: bool) -> None:
    """Report what of the gold takes no part. examples: Their predicted Docs have the tokens of the pipeline. silent (bool): True reports nothing."""
    from ...gold.left_out import DroppedGold

    for sentence in () if silent else DroppedGold.from_examples(annotation, examples).sentences():
        warn(sentence)


def check_whole_documents(unit: str, gold_preproc: bool) -> None:
    """RAISES C056: sentences are to be examples, but documents have the labels."""
    left_out = "left out for a component that labels whole documents"
    check_option("--gold-preproc", not (gold_preproc and unit == DOCUMENT), left_out, "it")


def check_bins(n_pairs: int, bins: int | None, threshold: float) -> None:
    """RAISES C005: more bins are requested than there are pairs."""
    if bins is not None and n_pairs < bins:
        raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, n_bins=bins)


TOO_FEW_TO_TELL = (
    "Too few texts to tell: as few texts of the fit data differ so much by chance alone that a difference which matters could not be seen. "
    "The intervals hold if the texts are of the same kind; give more documents to know."
)


class Seen:
    """Measures the overlap of texts with gold, as they pass, with the fit data of a pipe."""

    def __init__(self, pipe: Calibrator):
        from ...annotations import get_annotation
        from ...gold.reading import TextWatch

        self._watch = TextWatch(get_annotation(pipe.fit_info.layer))
        self._texts, self.over = pipe.learned.seen, self._watch.over

    def to_dict(self) -> dict[str, Any] | None:
        """Return the fields of `pairs.seen_texts.SeenShare`; None without a record, or without texts."""
        share = None if self._texts is None else self._texts.share_of(self._watch.units())
        return None if share is None else share.to_dict()


def check_apart(share: SeenShare | None, is_allowed: bool) -> None:
    """Warn that a pipe is fitted, in part, on its component's training data. RAISES C482: in great part, and not allowed."""
    if share is None or not share.some:
        return
    part = f"{share.seen:,} of {share.documents:,} documents ({100 * share.share:.0f} % of the words)"
    if not share.many:
        warn(f"{part} stand in --train-data too, where the model is surer of itself than on any other text: take them out.")
    elif not is_allowed:
        raise calib_error("C482", part=part)
    else:
        msg.fail(
            f"FITTED ON THE TRAINING DATA: {part} stand in --train-data too, so that scores on any other text will be too high."
        )


def show_seen(overlap: dict[str, Any] | None) -> None:
    """Warn that the data overlap with those of the fit."""
    from ...pairs.seen_texts import warning_of

    warning = warning_of(overlap)
    if warning:
        msg.fail(warning)


def show_other_weights(has_changed: bool | None) -> None:
    """Warn that the component has other weights than at the fit."""
    from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE

    if has_changed:
        msg.fail(OTHER_WEIGHTS_SENTENCE)


def differences_in(drift: dict[str, Any]) -> str:
    """Name the differences from the fit data."""
    return ", ".join(check["name"] for check in drift["checks"] if check["differs"])


def show_drift_of_counts(drift: dict[str, Any], from_found: Sequence[dict[str, Any]]) -> None:
    """Warn where texts are not known to be like the fit data. from_found: Queries that are counted from found numbers."""
    from ...pipe.record.drift import DIFFERENT, TOO_FEW

    if drift["verdict"] == TOO_FEW:
        msg.warn(TOO_FEW_TO_TELL)
    elif drift["verdict"] == DIFFERENT and from_found:
        n = max(query["effects"]["n_sources"] for query in from_found)
        sources = "one source of gold tells" if n == 1 else f"{n:,} sources of gold tell"
        msg.warn(
            f"Differs from the fit data ({differences_in(drift)}): counted from what was found, since on texts of another kind the expected number can be "
            f"farther off. The intervals are as wide as {sources}. Label a few of these texts: `count --gold` corrects the counts."
        )
    elif drift["verdict"] == DIFFERENT:
        msg.warn(
            f"Differs from the fit data ({differences_in(drift)}): DO NOT TRUST the expected numbers. Label a few of these texts: `count --gold` corrects the counts."
        )
