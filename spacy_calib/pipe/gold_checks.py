"""Checks that gold suits a pipe: it has labels, the component knows them, and some predictions are right and some wrong."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import has_gold, label_hashes
from ..annotations.annotation import ONLY_REJECTED
from ..annotations.label_schemes import span_confusions
from ..errors import brief, calib_error
from ..gold.checks import GoldWatch
from ..gold.example_reader import unknown_spans
from ..pairs.label_map import UnknownGold, shorten_list
from ..pairs.scored_corpus import ScoredCorpus
from ..registry import registry
from ..sources.find import readable_in, source_block
from ..types import OPEN, OUTSIDE

if TYPE_CHECKING:
    from .component import Calibrator

_WIDTH = 90  # characters of a list of labels in a message


def check_has_gold(examples: Iterable[Example], pipe: Calibrator) -> None:
    """Check, before pipes run on the texts, that some gold Doc has the annotation that a pipe calibrates.

    RAISES C030: none has it. C080: none has it, but there is gold for other components. C263: the gold has other categories.
    """
    annotation = pipe.source.annotation(pipe.lookup.component())
    references = [example.reference for example in examples]
    if any(has_gold(annotation, doc) for doc in references):
        return
    nlp, component = pipe.lookup.nlp, pipe.source.component or "the source"
    if foreign := annotation.foreign_labels(references):
        raise calib_error("C263", component=component, unknown=shorten_list(foreign), known=shorten_list(pipe.lookup.labels()))
    others = [name for name in readable_in(nlp) if name != component and has_gold_for(nlp, name, references)]
    if others:
        names = " and ".join(f"'{name}'" for name in others)
        raise calib_error("C080", layer=annotation.gold.name, component=component, others=names, first=others[0])
    raise calib_error("C030", layer=annotation.gold.name, component=component)


def has_gold_for(nlp: Language, component: str, docs: Sequence[Doc]) -> bool:
    """Return whether gold Docs have a label of this component, or any entities if it predicts entities; False for sentences."""
    pipe: Any = nlp.get_pipe(component)
    source = registry.resolve({"source": source_block(pipe, component)})["source"]
    annotation = source.annotation(pipe)
    labels = {*annotation.count_gold(docs), *annotation.count_spans(docs)} - {OUTSIDE, "", *annotation.kind.no_label_names}
    known_labels = labels if annotation.kind.of_entities else labels & {*source.labels(pipe)}
    return bool(known_labels) and annotation.name != "sent"  # gold Docs have sentence bounds whatever they are made for


def unknown_in_examples(pipe: Calibrator, examples: Sequence[Example]) -> UnknownGold:
    """Return the gold labels of examples that a pipe's component does not know. RAISES C151: it knows no gold label."""
    annotation, labels = pipe.annotation, pipe.lookup.labels()
    gold_counts = annotation.count_gold(example.reference for example in examples)
    known_hashes = label_hashes((*labels, *annotation.kind.no_label_names))
    hash_pairs: Counter[tuple[int, int]] = Counter()  # (predicted, unknown gold label), as hashes -> number of tokens
    span_pairs: Counter[tuple[str, str]] = Counter()  # (predicted, gold label) -> number of gold spans
    for example in examples:
        gold_hashes = annotation.aligned_gold(example)
        # 0 is no gold, ONLY_REJECTED gold that only excludes labels.
        is_unknown = (gold_hashes != 0) & (gold_hashes != ONLY_REJECTED) & ~np.isin(gold_hashes, known_hashes)
        predicted_hashes = annotation.hashes(example.predicted)
        hash_pairs.update(zip(predicted_hashes[is_unknown].tolist(), gold_hashes[is_unknown].tolist(), strict=True))
        predicted_spans = annotation.spans_on(example.predicted) if annotation.kind.has_types else ()
        spans = [(span.start, span.end, span.label_) for span in predicted_spans]
        span_pairs.update(span_confusions(annotation, example, spans))
    names = {get_string_id(label): label for label in (*labels, *gold_counts)}  # hash -> label
    pairs = {(names.get(label, ""), names[gold_label]): n for (label, gold_label), n in hash_pairs.items()}
    of_tokens = UnknownGold.from_confusions(pairs, hash_pairs.total(), gold_counts, labels)
    return _check_any_known(pipe, gold_counts, unknown_spans(annotation, pipe.lookup.span_labels(), span_pairs, of_tokens))


def unknown_in_corpus(pipe: Calibrator, corpus: ScoredCorpus) -> UnknownGold:
    """Return the gold labels of a scored corpus that a pipe's component does not know. RAISES C151: it knows no gold label."""
    gold_rows = np.flatnonzero(corpus.gold >= 0)
    names = (*corpus.names, "")  # index -1 stands for no label
    index_pairs = Counter(zip(corpus.labels[gold_rows].tolist(), corpus.gold[gold_rows].tolist(), strict=True))
    pairs = {(names[label], names[gold_index]): n for (label, gold_index), n in index_pairs.items()}
    gold_counts = Counter(names[gold_index] for gold_index in corpus.gold[gold_rows].tolist())
    known_labels = {*pipe.lookup.labels(), *pipe.annotation.kind.no_label_names}
    unknown_pairs = Counter({pair: n for pair, n in pairs.items() if pair[1] not in known_labels})
    unknown = UnknownGold.from_confusions(unknown_pairs, unknown_pairs.total(), gold_counts, pipe.lookup.labels())
    return _check_any_known(pipe, gold_counts, unknown)


def _check_any_known(pipe: Calibrator, gold_counts: Counter[str], unknown: UnknownGold) -> UnknownGold:
    """Check that the component knows a gold label. Return `unknown`; if labels are not fixed (lemmas), one with n = 0.

    gold_counts (Counter): Gold label -> number of tokens; empty if only spans have gold. unknown (UnknownGold): Gold labels
    that the component does not know. RAISES C151: it knows no gold label but "O".
    """
    labels = pipe.lookup.labels()
    if pipe.annotation.name in OPEN or pipe.source.annotation(pipe.lookup.component()).kind.any_label:
        return UnknownGold(0, 0.0, labels, (), {})
    gold_labels: list[Any] = sorted(set(gold_counts) - {OUTSIDE}) or [name for _, name, _ in unknown.pairs]
    # With a `unit`, such as "entity", `unknown` is about spans; else about tokens (or documents), whose labels are compared.
    is_none_known = unknown.share == 1 if unknown.unit else set(labels).isdisjoint(gold_labels)
    if gold_labels and is_none_known:
        gold, known = (brief(", ".join(names), _WIDTH) for names in (dict.fromkeys(gold_labels), labels))
        component = pipe.source.component or "the source"
        raise calib_error("C151", component=component, gold=gold, known=known, map=unknown.message_fields()["map"])
    return unknown


def watch_all(pipe: Calibrator, examples: Iterable[Example]) -> GoldWatch:
    """Return a GoldWatch of the pipe's annotation that has counted the gold of all examples."""
    watch = GoldWatch(pipe.annotation)
    deque(watch.watch(examples), maxlen=0)  # runs through the examples without keeping them
    return watch


def check_outcomes_of(
    pipe: Calibrator, watch: GoldWatch, corpus: ScoredCorpus, silent: bool, min_expected: float = 0.0
) -> None:
    """Check that by the gold some predictions of a pipe are right and some wrong. Warn (CW65) if hardly any is wrong.

    watch (GoldWatch): It has counted the gold. corpus (ScoredCorpus): The pipe's scores with gold. silent (bool): Do not warn.
    min_expected (float): Gold without any label ("O" or no category) is an error if by the scores so many units have one.
    RAISES C800 to C804: all gold labels are the same, or the predictions are all right or all wrong.
    """
    warning_fields = watch.check_corpus(pipe.source.component or "the source", corpus, min_expected)
    if warning_fields is not None and not silent:
        pipe.warn("CW65", **warning_fields)
