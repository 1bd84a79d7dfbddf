"""Gold as one sentence a line, each word with its tag: "the/DET dog/NOUN"."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

SEPARATOR = "/"


def slash_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    """Yield a Doc for each line. RAISES ValueError: a word without a tag."""
    for line in file.read_text(encoding="utf8").splitlines():
        words, tags = zip(*(pair.rsplit(SEPARATOR, 1) for pair in line.split()), strict=True)
        yield Doc(nlp.vocab, words=words, tags=tags, sent_starts=[i == 0 for i in range(len(words))])


def words_of(nlp: Language, file: Path) -> list[str]:
    """Return the words, which are no Docs."""
    return file.read_text(encoding="utf8").split()
