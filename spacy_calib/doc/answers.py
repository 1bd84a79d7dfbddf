"""Answers of people -> gold Docs. What was rejected stands in span groups of its own, which DocBin keeps; beside them the gold is what was accepted."""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.morphology import Morphology
from spacy.parts_of_speech import IDS
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..corpus.queue.answers import read_answers
from ..corpus.queue.exports import Answer, Mark
from ..errors import WARNINGS
from ..pairs.documents import TOKEN
from .annotations.base import REJECTED, REJECTED_CATS, REJECTED_LINKS, REJECTED_TOKENS

# Of spans where no component of the pipeline names another key, as in spaCy's own.
_SPANS_KEY = "sc"


def answered_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    """A gold Doc for each text that people answered about, with the tokens of the pipeline, cut where an answer begins or ends.

    Its user data says how the text was drawn. RAISES C692 to C696: see `corpus.queue.answers`.
    """
    from .reading import DOC_KEY, DRAWN_KEY

    keys, answers = _span_keys(nlp), read_answers(file)
    of_links = _are_identities(nlp, {mark.label for one in answers for mark in one.spans})
    is_open = any(_leaves_open(one) for one in answers)
    if n := sum(len(_torn(one)) for one in answers if one.meta.get("unit") == TOKEN):
        warnings.warn(WARNINGS["CW55"].format(n=n, path=file), stacklevel=2)
    for answer in answers:
        doc = answered_doc(nlp, answer, keys, of_links, is_open)
        if "drawn" in answer.meta:
            doc.user_data[DRAWN_KEY] = answer.meta["drawn"]
            if isinstance(answer.meta.get("doc"), int):
                doc.user_data[DOC_KEY] = answer.meta["doc"]
        yield doc


def _span_keys(nlp: Language) -> list[str]:
    """The keys of span groups that components of the pipeline write or read."""
    found = [getattr(pipe, "key", None) for _, pipe in nlp.components]
    found += [getattr(getattr(pipe, "source", None), "spans_key", None) for _, pipe in nlp.components]
    return list(dict.fromkeys([*(key for key in found if isinstance(key, str) and key), _SPANS_KEY]))


def _are_identities(nlp: Language, labels: Collection[str]) -> bool:
    """Whether one of these labels is an identity of a knowledge base of the pipeline, or NIL."""
    bases = [pipe.kb for _, pipe in nlp.components if isinstance(pipe, EntityLinker)]
    return any(label == EntityLinker.NIL or getattr(kb, "contains_entity", bool)(label) for kb in bases for label in labels)


def _leaves_open(answer: Answer) -> bool:
    """Whether a label of some span was rejected, and none accepted in its stead."""
    right = {mark[:2] for mark, is_right in answer.spans.items() if is_right}
    return any(mark[:2] not in right for mark in answer.spans)


def answered_doc(
    nlp: Language, answer: Answer, keys: Iterable[str] = (_SPANS_KEY,), of_links: bool = False, is_open: bool = True
) -> Doc:
    """Entities, span groups, categories, and where all spans are single words, or tokens were asked about, labels of tokens: none where two were accepted.

    keys (Iterable[str]): Of the span groups. of_links (bool): Whether labels are identities, too. is_open (bool): Whether some answer of the file leaves open
    which label is right: then of tokens and links that alone is known which was asked about, in all texts; else what was accepted is gold like any other.
    RAISES ValueError: what spaCy says of a text that it cannot take.
    """
    doc = _cut_at(nlp.make_doc(answer.text), answer.spans)
    spans: dict[bool, list[Span]] = {True: [], False: []}
    for mark, is_right in answer.spans.items():
        found = doc.char_span(*_trimmed(answer.text, mark), label=mark.label, kb_id=mark.label if of_links else 0)
        assert found is not None
        spans[is_right].append(found)
    right, wrong = spans[True], spans[False]
    if answer.cats:
        doc.cats = {name: float(has) for name, has in answer.cats.items()}
        if not answer.whole:
            doc.spans[REJECTED_CATS] = [
                doc[:].char_span(0, len(doc.text), label=name) for name, has in answer.cats.items() if not has
            ]
        return doc
    entities = list({(span.start, span.end): span for span in right}.values())  # the last of two labels counts
    if len(filter_spans(entities)) == len(entities):
        doc.set_ents(entities, default="outside" if answer.whole else "missing")
    if of_links and is_open:
        doc.spans[REJECTED_LINKS] = wrong
    for key in keys:
        doc.spans[key] = right
    single = answer.meta.get("unit") == TOKEN or all(len(span) == 1 for span in (*right, *wrong))
    if not answer.whole:
        doc.spans[REJECTED] = wrong
        if single and is_open:
            doc.spans[REJECTED_TOKENS] = [span for span in wrong if len(span) == 1]
    torn = _torn(answer)
    for span in right if single else ():
        if len(span) == 1 and (span.start_char, span.end_char) not in torn:
            _set_label(span[0], span.label_)
    return doc


def _torn(answer: Answer) -> set[tuple[int, int]]:
    """Where two labels were accepted."""
    places = Counter(_trimmed(answer.text, mark) for mark, is_right in answer.spans.items() if is_right)
    return {place for place, n in places.items() if n > 1}


def _set_label(token: Any, label: str) -> None:
    token.tag_ = token.lemma_ = label
    written = all(part.count("=") == 1 for part in label.split("|"))  # as features are; another label may have these signs too
    feats = Morphology.feats_to_dict(label) if written else {}
    pos = feats.pop("POS", label)
    if pos in IDS:
        token.pos_ = pos
    if written:
        token.set_morph(Morphology.dict_to_feats(feats))


def _trimmed(text: str, mark: Mark) -> tuple[int, int]:
    """Without white space around it, which a mouse takes along."""
    held = text[mark.start : mark.end]
    return mark.start + len(held) - len(held.lstrip()), mark.end - len(held) + len(held.rstrip())


def _cut_at(doc: Doc, marks: Iterable[Mark]) -> Doc:
    """The Doc with a token boundary where a mark begins or ends."""
    text = doc.text  # which spaCy joins anew each time
    cuts = sorted({place for mark in marks for place in _trimmed(text, mark)})
    words, spaces = [], []
    for token in doc:
        first, behind = bisect_right(cuts, token.idx), bisect_left(cuts, token.idx + len(token))
        inside = [place - token.idx for place in cuts[first:behind]]
        for start, end in zip([0, *inside], [*inside, len(token)], strict=True):
            words.append(token.text[start:end])
            spaces.append(end == len(token) and bool(token.whitespace_))
    return Doc(doc.vocab, words=words, spaces=spaces)
