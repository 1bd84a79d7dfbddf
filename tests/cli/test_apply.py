"""`calib apply`: scores of many texts as files."""

import spacy
from spacy.tokens import Span

from spacy_calib.doc.score_rows import score_rows
from tests.cli.conftest import bare_docs, entity_docs


def rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_entities_are_those_of_the_doc(calibrated_ner):
    nlp = spacy.load(calibrated_ner)
    docs = list(nlp.pipe(bare_docs(nlp, entity_docs(5, 3, nlp.vocab))))
    docs[0].set_ents([*docs[0].ents, Span(docs[0], len(docs[0]) - 1, len(docs[0]), "NEW")])
    held = rows(score_rows(docs, "calib", "entity"))
    found = [ent for doc in docs for ent in doc.ents]
    assert [(row["start"], row["end"], row["text"], row["label"]) for row in held] == [
        (ent.start_char, ent.end_char, ent.text, ent.label_) for ent in found
    ]
    assert [(row["score"], row["raw"]) for row in held] == [(ent._.calib_score, ent._.calib_raw) for ent in found]
    assert any(row["score"] is None for row in held if row["label"] == "NEW")
