"""Components of somebody else's that leave one score with each entity, token and document: as if by chance, from the text."""

from zlib import crc32

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

for owner in (Doc, Span, Token):
    owner.set_extension("trust", default=None, force=True)


def sure(text: str) -> float:
    return 0.5 + 0.49 * (crc32(text.encode()) % 100) / 100


@Language.component("guess")
def guess(doc: Doc) -> Doc:
    """Words with a capital are names, longer words are NOUN, texts are of one kind or the other."""
    names = [token.i for token in doc if token.text[0].isupper()]
    doc.set_ents([Span(doc, i, i + 1, "NAME") for i in names], default="outside")
    for number, ent in enumerate(doc.ents):
        ent._.trust = sure(f"{number}{doc.text}")
    for token in doc:
        token.tag_ = "NOUN" if len(token.text) > 4 else "X"
        token._.trust = sure(f"{token.i}{token.text}{len(doc)}")
    doc._.trust = {"even": sure(doc.text), "odd": 1 - sure(doc.text)}
    doc.user_data["known"] = 2 * sure(doc.text[::-1]) - 1
    return doc


Span.set_extension("half_trust", getter=lambda span: 0.5 * span._.trust, force=True)
