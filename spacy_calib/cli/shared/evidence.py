"""Checks that data suit a pipe: there are gold and scores, labels are known, texts are new and like those of the fit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import CalibError, calib_error
from ...pairs.documents import DOCUMENT
from ...pairs.label_map import UnknownGold, shorten_list
from ...types import OPEN, OUTSIDE
from .command import check_option
from .screen import inform, msg, shorten, warn

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ...annotations import Annotation
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pairs.seen_texts import TrainTestOverlap
    from ...pipe.component import Calibrator


_WIDTH = 90


def why_silent(nlp: Language, pipe: Calibrator, docs: Iterable[Doc]) -> str:
    """Return why a pipe scored none of these Docs, by the first that it should have scored; "" if it had nothing to score."""
    from ...annotations import get_annotation

    annotation = get_annotation(pipe.fit_info.layer)
    source = pipe.lookup.component()
    doc = next((doc for doc in docs if annotation.n_units(doc) > annotation.first), None)
    if doc is None:
        return f"they contain no {annotation.unit}s that it could score"
    obstacle = pipe.lookup.obstacle(source) or pipe.source.missing(source, [doc])[0]
    no_annotation = "" if annotation.spans_are_units else f"no {annotation.unit} has a {annotation.gold.name} annotation"
    return obstacle or no_annotation


def no_scores_error(pipe: Calibrator, n_docs: int, why: str) -> CalibError:
    """Build C075, or C745 for an empty reason, for a pipe that scored none of n_docs Docs. why (str): From `why_silent`."""
    if not why:
        return calib_error("C745", name=pipe.name, n_docs=n_docs)
    no_unit = "none" if pipe.fit_info.row_unit == DOCUMENT else "no token"
    return calib_error("C075", name=pipe.name, none=no_unit, n_docs=n_docs, why=why)


class SilenceCheck:
    """Finds out why a pipe scores nothing while a stream of Docs passes, as the Docs are freed afterwards."""

    def __init__(self, nlp: Language, pipe: Calibrator):
        from ...annotations import get_annotation

        self._nlp, self._pipe, self._annotation = nlp, pipe, get_annotation(pipe.fit_info.layer)
        self._why: str | None = None
        self.n_docs = 0

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples, and check the first predicted Doc that the pipe should have scored."""
        for example in examples:
            self.n_docs += 1
            # The reason is found out now, since the Doc is freed after it has passed; one Doc is enough.
            if self._why is None and self._annotation.n_units(example.predicted) > self._annotation.first:
                self._why = why_silent(self._nlp, self._pipe, [example.predicted])
            yield example

    def error(self) -> CalibError:
        """Build C075 or C745, for a pipe that scored none of the Docs that passed."""
        why = why_silent(self._nlp, self._pipe, ()) if self._why is None else self._why
        return no_scores_error(self._pipe, self.n_docs, why)


def check_scored(nlp: Language, pipe: Calibrator, examples: Sequence[Example]) -> None:
    """Check that a pipe has written on one of the predicted Docs. RAISES C075, C745: it has not."""
    from ...doc.view import doc_view

    docs = [example.predicted for example in examples]
    if not any(doc_view(doc, pipe.attr) is not None for doc in docs):
        raise no_scores_error(pipe, len(docs), why_silent(nlp, pipe, docs))


def check_gold_of_examples(pipe: Calibrator, examples: Sequence[Example], silent: bool) -> None:
    """Warn of gold labels of annotated examples that the component does not know. RAISES C151: it knows none of them."""
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
        predicted_spans = annotation.spans_on(example.predicted) if has_types(annotation) else ()
        spans.update(span_confusions(annotation, example, [(span.start, span.end, span.label_) for span in predicted_spans]))
    names = {get_string_id(label): label for label in (*labels, *gold)}
    pairs = {(names.get(label, ""), names[gold_label]): n for (label, gold_label), n in unknown_pairs.items()}
    of_tokens = UnknownGold.from_confusions(pairs, unknown_pairs.total(), gold, labels)
    check_gold(pipe, gold, unknown_spans(annotation, pipe.lookup.span_labels(), spans, of_tokens), silent)


def check_gold_of_corpus(pipe: Calibrator, corpus: ScoredCorpus, silent: bool) -> None:
    """Warn of gold labels of a scored corpus that the component does not know. RAISES C151: it knows none of them."""
    from ...annotations import get_annotation

    gold_rows = np.flatnonzero(corpus.gold >= 0)
    names = (*corpus.names, "")  # index -1 stands for no label
    pairs = Counter(zip(corpus.labels[gold_rows].tolist(), corpus.gold[gold_rows].tolist(), strict=True))
    gold: Counter[str] = Counter()
    for (_, gold_index), n in pairs.items():
        gold[names[gold_index]] += n
    labels = {*pipe.lookup.labels(), *get_annotation(pipe.fit_info.layer).no_label_names}
    unknown_pairs = Counter(
        {(names[label], names[gold_index]): n for (label, gold_index), n in pairs.items() if names[gold_index] not in labels}
    )
    check_gold(
        pipe, gold, UnknownGold.from_confusions(unknown_pairs, unknown_pairs.total(), gold, pipe.lookup.labels()), silent
    )


def check_gold(pipe: Calibrator, gold: Counter[str], unknown: UnknownGold, silent: bool) -> None:
    """Warn of gold labels that the component does not know, as `fit` does.

    gold (Counter): Gold label -> number of tokens; empty without gold. RAISES C151: the component knows no gold label but "O".
    """
    if pipe.fit_info.layer in OPEN or pipe.source.annotation(pipe.lookup.component()).any_label:
        return
    labels, words = pipe.lookup.labels(), unknown.message_fields()
    gold_labels: list[Any] = sorted(set(gold) - {OUTSIDE}) or [name for _, name, _ in unknown.pairs]
    component = pipe.source.component or "the source"
    if gold_labels and (unknown.share == 1 if unknown.unit else set(labels).isdisjoint(gold_labels)):
        texts = [shorten(", ".join(names), _WIDTH) for names in (dict.fromkeys(gold_labels), labels)]
        raise calib_error("C151", component=component, gold=texts[0], known=texts[1], map=words["map"])
    if unknown.n and not silent:
        warn(unknown_sentence(words, component, pipe.fit_info.row_unit))


class GoldCheck:
    """Checks that gold has right and wrong predictions of a fitted pipe, while examples pass through `watch`."""

    def __init__(self, pipe: Calibrator):
        from ...annotations import get_annotation
        from ...gold.checks import GoldWatch

        self._pipe, self._watch = pipe, GoldWatch(get_annotation(pipe.fit_info.layer))
        self.watch = self._watch.watch

    def check(self, corpus: ScoredCorpus, silent: bool, min_expected: float = 0.0) -> None:
        """Check the gold of the examples that `watch` has seen; warn if hardly any prediction is wrong.

        min_expected (float): As in `gold.checks.check_outcomes`.

        RAISES C800 to C804: the gold has one outcome only, or looks like the output of the component.
        """
        from ...errors import WARNINGS
        from ...gold.checks import check_corpus

        component = self._pipe.source.component or "the source"
        few_errors = check_corpus(self._watch, self._pipe.fit_info.layer, component, corpus, min_expected)
        if few_errors is not None and not silent:
            warn(WARNINGS["CW65"].format(**few_errors).removeprefix("[CW65] "))


def check_gold_outcomes(
    pipe: Calibrator, examples: Iterable[Example], corpus: ScoredCorpus, silent: bool, min_expected: float = 0.0
) -> None:
    """Check that the gold of examples in memory has right and wrong predictions of a fitted pipe; warn if hardly one is wrong.

    corpus (ScoredCorpus): Scores of the examples. min_expected: As in `GoldCheck.check`. RAISES C800 to C804: as there.
    """
    gold_check = GoldCheck(pipe)
    deque(gold_check.watch(examples), maxlen=0)
    gold_check.check(corpus, silent, min_expected)


def check_has_gold(examples: Iterable[Example], pipe: Calibrator) -> None:
    """Check before a run that there is gold for a pipe. RAISES C030, C080: there is none. C263: other categories."""
    from ...annotations import has_gold
    from ...sources.find import readable_in

    annotation = pipe.source.annotation(pipe.lookup.component())
    references = [example.reference for example in examples]
    if any(has_gold(annotation, doc) for doc in references):
        return
    component, foreign = pipe.source.component or "the source", annotation.foreign_labels(references)
    if foreign:
        raise calib_error("C263", component=component, unknown=shorten_list(foreign), known=shorten_list(pipe.lookup.labels()))
    nlp = pipe.lookup.nlp
    components = [name for name in readable_in(nlp) if name != component and has_gold_for(nlp, name, references)]
    if components:
        names = " and ".join(f"'{name}'" for name in components)
        raise calib_error("C080", layer=annotation.gold.name, component=component, others=names, first=components[0])
    raise calib_error("C030", layer=annotation.gold.name, component=component)


def has_gold_for(nlp: Language, component: str, docs: Sequence[Doc]) -> bool:
    """Whether gold Docs have labels that a trained component of the pipeline predicts."""
    from ...registry import registry
    from ...sources.find import source_block

    pipe: Any = nlp.get_pipe(component)
    source = registry.resolve({"source": source_block(pipe, component)})["source"]
    annotation = source.annotation(pipe)
    labels = {*annotation.count(docs), *annotation.count_spans(docs)} - {OUTSIDE, "", *annotation.no_label_names}
    return bool(labels if annotation.of_entities else labels & {*source.labels(pipe)}) and annotation.name != "sent"


# Characters that fit into two lines: labels with the label predicted for them, and labels alone, whose text cannot be broken.
_PAIR_WIDTH, _LABELS_WIDTH = 36, 20


def unknown_sentence(words: Mapping[str, Any], component: str, unit: str, details: bool = False) -> str:
    """Return two lines about the gold labels that a component does not know, or a longer text if `details`.

    words (dict): From `UnknownGold.words`. unit (str): What has labels, "token".
    """
    pairs, unknown = words["pairs"], words["unknown"]
    unit = words.get("unit", unit)
    first = pairs if details else pairs.split(", ")[0]
    text = unknown if pairs == "-" or first.startswith("nothing for ") else f"{unknown}; it predicts {first}"
    if not details and len(text) > _PAIR_WIDTH:
        text = shorten(unknown, _LABELS_WIDTH)
    return (
        f"{words['n']} {unit}s ({words['share']} %) have a gold label that '{component}' does not know ({text}) and count as misses; "
        "`fit --map` renames them"
    )


def match_gold(pipes: Iterable[Calibrator], examples: list[Example], silent: bool = True, **options: Any) -> list[Example]:
    """Rename the labels of gold entities to those of these pipes, in place; return the examples. options: Of `match_labels`."""
    from ...pipe.label_names import match_labels

    schemes = [match_labels(pipe, examples, **options) for pipe in pipes]
    for sentence in (
        () if silent else dict.fromkeys(scheme.loc_sentence for scheme in schemes if scheme and scheme.loc_sentence)
    ):
        inform(sentence)
    return examples


def report_dropped(annotation: Annotation, examples: Iterable[Example], silent: bool) -> None:
    """Warn of gold that takes no part, unless silent. examples: Their predicted Docs have the tokens of the pipeline."""
    from ...gold.left_out import DroppedGold

    for sentence in () if silent else DroppedGold.from_examples(annotation, examples).sentences():
        warn(sentence)


def check_whole_documents(unit: str, gold_preproc: bool) -> None:
    """Check --gold-preproc. RAISES C056: it makes examples of sentences, but the labels are those of documents."""
    expected = "left out for a component that labels whole documents"
    check_option("--gold-preproc", not (gold_preproc and unit == DOCUMENT), expected, "it")


def check_bins(n_pairs: int, bins: int | None, threshold: float) -> None:
    """RAISES C005: there are fewer pairs than bins."""
    if bins is not None and n_pairs < bins:
        raise calib_error("C005", n_pairs=n_pairs, threshold=threshold, n_bins=bins)


TOO_FEW_TO_TELL = (
    "Too few texts to tell: samples of so few texts from the fit data differ so much by chance that a real difference could not be seen. "
    "The intervals hold if the texts are of the same kind; give more documents to find out."
)


class FitOverlap:
    """Measures the overlap of texts with the fit data of a pipe, while a stream of examples passes through `watch`."""

    def __init__(self, pipe: Calibrator):
        from ...annotations import get_annotation
        from ...gold.reading import TextWatch

        self._watch = TextWatch(get_annotation(pipe.fit_info.layer))
        self._texts, self.watch = pipe.learned.seen_texts, self._watch.watch

    def to_dict(self) -> dict[str, Any] | None:
        """Return the fields of `TrainTestOverlap`; None without texts, or if the pipe has no record of its fit data."""
        share = None if self._texts is None else self._texts.overlap_with(self._watch.units())
        return None if share is None else share.to_dict()


def check_apart(share: TrainTestOverlap | None, is_allowed: bool) -> None:
    """Warn if the fit data overlap with the training data. RAISES C482: most of them do, and it is not allowed."""
    if share is None or not share.is_overlapping:
        return
    part = f"{share.seen:,} of {share.documents:,} documents ({100 * share.share:.0f} % of the words)"
    if not share.is_fit_data:
        warn(f"{part} are in --train-data too, where the model is more confident than on any other text: leave them out.")
    elif not is_allowed:
        raise calib_error("C482", part=part)
    else:
        msg.fail(f"FITTED ON THE TRAINING DATA: {part} are in --train-data too, so scores on any other text will be too high.")


def show_seen(overlap: dict[str, Any] | None) -> None:
    """Warn if the data overlap with those of the fit."""
    from ...pairs.seen_texts import format_overlap_warning

    warning = format_overlap_warning(overlap)
    if warning:
        msg.fail(warning)


def show_other_weights(has_changed: bool | None) -> None:
    """Warn if the component has other weights than at the fit."""
    from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE

    if has_changed:
        msg.fail(OTHER_WEIGHTS_SENTENCE)


def differences_in(drift: dict[str, Any]) -> str:
    """List the checks by which texts differ from the fit data."""
    return ", ".join(check["name"] for check in drift["checks"] if check["differs"])
