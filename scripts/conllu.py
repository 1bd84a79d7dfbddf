"""Read the CoNLL-U files of dante-corpora into gold Docs.

`spacy convert` cannot read them: they have no heads, some FEATS are malformed, and a few rows have eleven columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

FEATURE = re.compile(r"[A-Z][A-Za-z0-9\[\]]*=[A-Za-z0-9]+(,[A-Za-z0-9]+)*")


class Sentence(NamedTuple):
    """sent_id, and the form, UPOS and FEATS of each syntactic word (contractions are split: "na" is "em", "a")."""

    sent_id: str
    words: list[str]
    pos: list[str]
    feats: list[str]


def clean_feats(feats: str, skipped: Counter[str]) -> str:
    """FEATS without its malformed features (not Name=Value), which are counted in `skipped`; "" for none."""
    if feats == "_":
        return ""
    given = feats.split("|")
    skipped.update(feature for feature in given if not FEATURE.fullmatch(feature))
    return "|".join(feature for feature in given if FEATURE.fullmatch(feature))


def read_sentences(path: Path, skipped: Counter[str]) -> Iterator[Sentence]:
    """The sentences of a file. Rows of contractions (ID 3-4) and empty nodes (ID 8.1) are skipped, and columns past the tenth.

    skipped (Counter): Takes the malformed features.
    RAISES ValueError: a sentence without sent_id.
    """
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf8").strip()):
        sent_id = re.search(r"^# sent_id = (\S+)", block, re.MULTILINE)
        if sent_id is None:
            raise ValueError(f"A sentence of {path} has no sent_id; it begins {block[:60]!r}.")
        rows = [line.split("\t") for line in block.split("\n") if line[:1].isdigit()]
        rows = [row for row in rows if row[0].isdigit()]
        feats = [clean_feats(row[5], skipped) for row in rows]
        yield Sentence(sent_id[1], [row[1] for row in rows], [row[3] for row in rows], feats)


def document_of(sent_id: str) -> str:
    """The document of a sentence, from its sent_id.

    Porttinari-base numbers the sentences of a news text at the end (FOLHA_DOC000001_SENT003 is of FOLHA_DOC000001), and so does PetroGold
    with its theses (247-20140910-MONOGRAFIA_0-1 is of 247-20140910-MONOGRAFIA_0). In DANTEStocks every tweet is a sentence and a document.
    """
    return re.sub(r"(_SENT\d+|(?<=_\d)-\d+)$", "", sent_id)


def gold_docs(sentences: list[Sentence], vocab: Vocab, n_sents: int = 10) -> Iterator[Doc]:
    """Docs of at most n_sents sentences of one document, with part of speech, features and sentence starts.

    The files do not say where spaces stand, so the Docs do not either (`Doc.has_unknown_spaces`), and spaCy keeps their words.
    """
    for _, group in groupby(sentences, key=lambda sentence: document_of(sentence.sent_id)):
        document = list(group)
        for start in range(0, len(document), n_sents):
            part = document[start : start + n_sents]
            yield Doc(
                vocab,
                words=[word for sentence in part for word in sentence.words],
                pos=[pos for sentence in part for pos in sentence.pos],
                morphs=[feats for sentence in part for feats in sentence.feats],
                sent_starts=[i == 0 for sentence in part for i in range(len(sentence.words))],
            )
