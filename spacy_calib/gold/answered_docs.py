"""Makes gold Docs from the answers of people; rejected labels are stored in span groups, which a DocBin saves."""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.morphology import Morphology
from spacy.parts_of_speech import IDS
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, Span

from ..annotations import SPANS_PREFIX, Annotation, MappedAnnotation
from ..annotations.annotation import UNKNOWN
from ..annotations.kinds import REJECTED, REJECTED_CATS, REJECTED_LINKS, REJECTED_TOKENS
from ..doc.top_labels import erase_label, write_labels
from ..errors import WARNINGS
from ..pairs.documents import TOKEN
from ..pairs.label_map import map_label
from ..types import OUTSIDE, Ints
from .answer_files import read_answers, read_values
from .contradictions import AGREED, CONFLICTS, PERSON, GoldConflicts
from .keys import DOC_KEY, DRAWN_KEY
from .tool_exports import AT_RANDOM, BY_DOUBT, TextAnswers, TextSpan
from .training_forms import doc_from_json, is_doc_json

_SPANS_KEY = "sc"  # key of span groups if no component has another one, as in spaCy


def answered_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    """Yield a gold Doc for each text and person in a file of answers, tokenized by the pipeline.

    Tokens are split where a labelled span begins or ends. The user data of a Doc contains the person and how the text was
    sampled. A file whose records are all from `Doc.to_json` yields these Docs. Warns (CW55) of tokens with several labels.
    RAISES C082, C692 to C696, C785 to C790: the file cannot be read.
    """
    values = read_values(file)
    if values and all(is_doc_json(value) for _, value in values):
        yield from (doc_from_json(nlp, file, where, value) for where, value in values)
        return
    labels = {label for _, pipe in nlp.components for label in getattr(pipe, "labels", ()) if isinstance(label, str)}
    answers = read_answers(file, labels, values)
    n_ambiguous = sum(len(_ambiguous_spans(answer)) for answer in answers if answer.meta.get("unit") == TOKEN)
    if n_ambiguous:  # tokens with several accepted labels
        warnings.warn(WARNINGS["CW55"].format(n=n_ambiguous, path=file), stacklevel=2)
    cuts: dict[str, set[TextSpan]] = defaultdict(set)  # all persons' Docs of a text get the same tokens
    for answer in answers:
        cuts[answer.text] |= {mark._replace(label="") for mark in answer.spans}
    settings: dict[str, Any] = {  # arguments of `answered_doc` that depend on the whole file
        "keys": _span_keys(nlp),
        "labels": labels,
        "of_links": _are_identities(nlp, {mark.label for answer in answers for mark in answer.spans}),
        "is_open": any(map(_leaves_open, answers)),
        "has_spans": any(answer.spans for answer in answers),
    }
    for answer in answers:
        doc = answered_doc(nlp, answer, cuts=cuts[answer.text], **settings)
        doc.user_data[PERSON] = answer.person
        if answer.agreed:
            doc.user_data[AGREED] = True
        if answer.meta.get("drawn") in (BY_DOUBT, AT_RANDOM):  # a queue of `rank` or `audit` chose the text
            doc.user_data[DRAWN_KEY] = answer.meta["drawn"]
            if isinstance(answer.meta.get("doc"), int):
                doc.user_data[DOC_KEY] = answer.meta["doc"]
        yield doc


def _span_keys(nlp: Language) -> list[str]:
    """Return the keys of the span groups that components of the pipeline write or read, and spaCy's default key."""
    keys = [getattr(pipe, "key", None) for _, pipe in nlp.components]
    keys += [getattr(getattr(pipe, "source", None), "spans_key", None) for _, pipe in nlp.components]
    return list(dict.fromkeys([*(key for key in keys if isinstance(key, str) and key), _SPANS_KEY]))


def _are_identities(nlp: Language, labels: Collection[str]) -> bool:
    """Return whether any label names an entity in a knowledge base of the pipeline, or is NIL."""
    bases = [pipe.kb for _, pipe in nlp.components if isinstance(pipe, EntityLinker)]
    # A knowledge base without the method may contain any label but "", so `bool` stands for the method.
    lookups = [getattr(kb, "contains_entity", bool) for kb in bases]
    return any(label == EntityLinker.NIL or contains(label) for contains in lookups for label in labels)


def _leaves_open(answer: TextAnswers) -> bool:
    """Return whether an answer rejects a label of a span and accepts none for it, so that the span's label is unknown."""
    with_label = {(mark.start, mark.end) for mark, is_right in answer.spans.items() if is_right}
    return any((mark.start, mark.end) not in with_label for mark, is_right in answer.spans.items() if is_right is False)


def answered_doc(
    nlp: Language,
    answer: TextAnswers,
    *,
    keys: Iterable[str] = (_SPANS_KEY,),
    labels: Collection[str] = (),
    of_links: bool = False,
    is_open: bool = True,
    has_spans: bool = False,
    cuts: Iterable[TextSpan] = (),
) -> Doc:
    """Return a gold Doc of a text with the answers as entities, span groups and categories, and as labels of single tokens.

    A token with two accepted labels gets none. The other arguments describe the whole file that the answer is from:
    keys (Iterable[str]): Keys of the span groups that get the accepted spans. labels (Collection[str]): Labels of the pipeline,
    which take precedence among overlapping entities. of_links (bool): Whether labels are identities in a knowledge base.
    is_open (bool): Whether any span has rejected labels but no accepted one. If so, rejected labels of tokens and links are
    stored; else accepted labels show that all others are wrong. has_spans (bool): Whether any answer is about spans.
    cuts (Iterable): Further spans at whose bounds tokens are split. RAISES ValueError: spaCy cannot read the text.
    """
    doc = _cut_at(nlp.make_doc(answer.text), [*answer.spans, *cuts])
    spans = _spans_by_answer(doc, answer, of_links)
    right, wrong, unknown = spans[True], spans[False], spans[None]
    if answer.cats:
        _set_cats(doc, answer)
        if not (answer.spans or has_spans):  # a file about categories alone has no gold of entities
            return doc
    _set_entities(doc, answer, spans, labels)
    for key in keys:
        doc.spans[key] = right
    if unknown:
        doc.spans[UNKNOWN] = unknown
    if of_links and is_open:
        doc.spans[REJECTED_LINKS] = wrong
    # Labels of single tokens may be tags, so they are stored as labels of tokens, too.
    is_about_tokens = answer.meta.get("unit") == TOKEN or all(len(span) == 1 for span in (*right, *wrong))
    if not answer.whole:  # the person was not asked for all labels: spans without an answer are unknown, not wrong
        doc.spans[REJECTED] = wrong
        if is_about_tokens and is_open:
            doc.spans[REJECTED_TOKENS] = [span for span in wrong if len(span) == 1]
    ambiguous_spans = _ambiguous_spans(answer)
    for span in right if is_about_tokens else []:
        if len(span) == 1 and (span.start_char, span.end_char) not in ambiguous_spans:
            _set_label(span[0], span.label_)
    return doc


def _set_cats(doc: Doc, answer: TextAnswers) -> None:
    """Set the categories of a Doc by an answer: 1 for accepted, 0 for rejected ones, none for unknown ones."""
    doc.cats = {name: float(has) for name, has in answer.cats.items() if has is not None}
    if not answer.whole:  # if it is, all labels that are not accepted are wrong, and need not be stored
        absent = [name for name, has in answer.cats.items() if has is False]
        doc.spans[REJECTED_CATS] = [doc[:].char_span(0, len(doc.text), label=name) for name in absent]


def _spans_by_answer(doc: Doc, answer: TextAnswers, of_links: bool) -> dict[bool | None, list[Span]]:
    """Return the spans of an answer on a Doc whose tokens fit them: True -> right ones, False -> wrong, None -> unknown.

    of_links (bool): Whether labels are identities in a knowledge base, so that they also become the `kb_id` of the spans.
    """
    spans: dict[bool | None, list[Span]] = {True: [], False: [], None: []}
    for mark, is_right in answer.spans.items():
        span = doc.char_span(*_trim(answer.text, mark), label=mark.label, kb_id=mark.label if of_links else 0)
        assert span is not None  # `_cut_at` has split the tokens
        spans[is_right].append(span)
    return spans


def _set_entities(doc: Doc, answer: TextAnswers, spans: dict[bool | None, list[Span]], labels: Collection[str]) -> None:
    """Set a Doc's entities; tokens without gold are missing. spans: From `_spans_by_answer`. labels: Those of the pipeline."""
    entities, doubtful = _resolve_overlaps(doc, spans[True], labels)
    if doubtful:
        doc.user_data[CONFLICTS] = GoldConflicts(overlapping=len(doubtful)).to_dict()
    # In a text that was not annotated as a whole, `default` makes all tokens outside of entities missing.
    is_missing = _count_spans(doc, [*doubtful, *spans[None]] if answer.whole else []) > 0
    entities = [span for span in entities if not is_missing[span.start : span.end].any()]
    gaps = [doc[i : i + 1] for i in np.flatnonzero(is_missing).tolist()]
    doc.set_ents(entities, missing=gaps, default="outside" if answer.whole else "missing")


def _count_spans(doc: Doc, spans: Iterable[Span]) -> Ints:
    """Return for each token of a Doc the number of these spans that it is in, shape (n_tokens,)."""
    counts = np.zeros(len(doc), dtype=np.intp)
    for span in spans:
        counts[span.start : span.end] += 1
    return counts


def _resolve_overlaps(doc: Doc, spans: Sequence[Span], labels: Collection[str]) -> tuple[list[Span], list[Span]]:
    """Divide accepted spans into (entities, undecided spans), as entities cannot overlap.

    A span that overlaps no other is an entity, and so is one with a label of the pipeline (`labels`) that overlaps no other
    with such a label. A span without such a label is dropped if it overlaps one that has it. All further ones are undecided.
    """
    entities, undecided = [], []
    counts, known_counts = _count_spans(doc, spans), _count_spans(doc, (span for span in spans if span.label_ in labels))
    for span in spans:
        tokens, is_known = slice(span.start, span.end), span.label_ in labels
        # The counts include the span itself.
        overlaps_none = counts[tokens].max() == 1
        overlaps_known = known_counts[tokens].max() > (1 if is_known else 0)
        if overlaps_none or (is_known and not overlaps_known):
            entities.append(span)
        elif is_known or not overlaps_known:
            undecided.append(span)
    return entities, undecided


def _ambiguous_spans(answer: TextAnswers) -> set[tuple[int, int]]:
    """Return (start, end), in characters, of the spans to which an answer gives two or more right labels."""
    counts = Counter(_trim(answer.text, mark) for mark, is_right in answer.spans.items() if is_right)
    return {offsets for offsets, n in counts.items() if n > 1}


def _set_label(token: Any, label: str) -> None:
    """Store a label as the tag and lemma of a token, and as its part of speech or features if it is a valid value of these."""
    token.tag_ = token.lemma_ = label
    has_features = all(part.count("=") == 1 for part in label.split("|"))  # other labels may contain "=" or "|", too
    feats = Morphology.feats_to_dict(label) if has_features else {}
    pos = feats.pop("POS", label)  # "POS=NOUN|Number=Sing", or a label that is a part of speech
    if pos in IDS:
        token.pos_ = pos
    if has_features:
        token.set_morph(Morphology.dict_to_feats(feats))


def _trim(text: str, mark: TextSpan) -> tuple[int, int]:
    """Return (start, end), in characters, of the span `mark` of a text without white space at its ends."""
    words = text[mark.start : mark.end]
    return mark.start + len(words) - len(words.lstrip()), mark.end - len(words) + len(words.rstrip())


def _cut_at(doc: Doc, marks: Iterable[TextSpan]) -> Doc:
    """Return a Doc of the same text whose tokens are split where one of the spans `marks` begins or ends."""
    text = doc.text  # spaCy joins it anew each time
    cuts = sorted({offset for mark in marks for offset in _trim(text, mark)})
    words, spaces = [], []
    for token in doc:
        inner_cuts = cuts[bisect_right(cuts, token.idx) : bisect_left(cuts, token.idx + len(token))]
        offsets = [cut - token.idx for cut in inner_cuts]
        for start, end in zip([0, *offsets], [*offsets, len(token)], strict=True):
            words.append(token.text[start:end])
            spaces.append(end == len(token) and bool(token.whitespace_))
    return Doc(doc.vocab, words=words, spaces=spaces)


def write_gold_names(doc: Doc, annotation: Annotation) -> None:
    """Replace a Doc's predicted labels by their gold names, for people to correct, if their `annotation` has a label map."""
    if not isinstance(annotation, MappedAnnotation):
        return
    layer, table = annotation.inner.name, annotation.table
    if annotation.kind.of_documents:
        values: dict[str, float] = {}
        for label, value in doc.cats.items():  # of categories with one gold name the highest value counts
            name = map_label(table, label)
            values[name] = max(value, values.get(name, 0.0))
        doc.cats = {name: value for name, value in values.items() if name}
        return
    spans = [
        Span(doc, span.start, span.end, label=name, kb_id=span.kb_id)
        for span in annotation.spans_on(doc)
        if (name := map_label(table, span.label_)) not in ("", OUTSIDE)
    ]
    if layer.startswith(SPANS_PREFIX):
        doc.spans[layer.removeprefix(SPANS_PREFIX)] = spans
    elif annotation.kind.has_prefixes or layer == "ner":
        doc.set_ents(spans, default="outside")
    else:
        names = [annotation.label(token) for token in doc]
        for token, name in zip(doc, names, strict=True):
            if not name:
                erase_label(token, layer)
        write_labels(doc, layer, names)
