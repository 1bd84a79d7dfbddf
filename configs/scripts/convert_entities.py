"""Convert FORM<TAB>TAG rows with IOB2 tags to spaCy's format, one Doc for each sentence.

python convert_entities.py INPUT OUTPUT

INPUT holds train.conll, dev.conll and test.conll; OUTPUT gets train.spacy, dev.spacy and test.spacy. There are no comments: a
row that begins with # is a word. Where the words had spaces between them is not known, and the Docs say so; so spaCy's readers
keep the words as they are. An I- tag whose entity was not opened (after O, after another type, or at the start) opens one.
"""

from collections.abc import Iterator
from pathlib import Path

import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from wasabi import msg

SPLITS = ("train", "dev", "test")
Rows = list[tuple[str, str]]


def read_sentences(path: Path) -> Iterator[Rows]:
    """The (word, tag) rows of each sentence. Another form of row, or a tag not O, B-TYPE or I-TYPE, ends the program."""
    rows: Rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                word, _, tag = line.rstrip("\n").partition("\t")
                if not word or not (tag == "O" or (tag[:2] in ("B-", "I-") and tag[2:].strip())):
                    msg.fail(f"{path}, line {number}: not a word, a tab, and a tag O, B-TYPE or I-TYPE.", exits=1)
                rows.append((word, tag))
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def open_entities(tags: list[str]) -> list[str]:
    """The tags in strict IOB2: an I- tag that carries on no entity of its type becomes B-, as in the CoNLL scorer."""
    before = ["O", *tags]
    return [
        f"B-{tag[2:]}" if tag[0] == "I" and previous[1:] != tag[1:] else tag
        for previous, tag in zip(before, tags, strict=False)
    ]


def main(source: Path, output: Path) -> None:
    """Convert the three splits in SOURCE, and print what they hold."""
    output.mkdir(parents=True, exist_ok=True)
    table = []
    for split in SPLITS:
        path = source / f"{split}.conll"
        if not path.is_file():
            msg.fail(f"There is no {path}", "Run the step 'data' first.", exits=1)
        docs, opened = DocBin(), 0
        vocab = Vocab()
        tokens = entities = 0
        for rows in read_sentences(path):
            words, tags = zip(*rows, strict=True)
            strict = open_entities(list(tags))
            opened += sum(a != b for a, b in zip(tags, strict, strict=True))
            tokens += len(words)
            entities += sum(tag.startswith("B-") for tag in strict)
            docs.add(Doc(vocab, words=list(words), ents=strict))
        docs.to_disk(output / f"{split}.spacy")
        table.append((split, f"{len(docs):,}", f"{tokens:,}", f"{entities:,}", f"{opened:,}"))
    msg.table(table, header=("Split", "Docs", "Tokens", "Entities", "Opened by I-"), divider=True, aligns=("l", *"r" * 4))


if __name__ == "__main__":
    typer.run(main)
