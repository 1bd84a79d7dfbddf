"""Convert FORM<TAB>TAG rows with IOB2 tags to spaCy's format, one Doc for each sentence.

python convert_entities.py INPUT OUTPUT [--cutoffs-every N]

INPUT holds train.conll, dev.conll and test.conll; OUTPUT gets train.spacy, dev.spacy and test.spacy. With --cutoffs-every N every Nth
sentence of test goes to cutoffs.spacy instead: gold from the same texts on which to find score cut-offs. There are no comments: a row that begins with # is a word. Where the words had spaces between them is not known, and the Docs say so; so spaCy's readers
keep the words as they are. An I- tag whose entity was not opened (after O, after another type, or at the start) opens one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

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


def write_docs(sentences: list[Rows], path: Path) -> tuple[str, ...]:
    """Write one Doc for each sentence. RETURNS: numbers of Docs, tokens, entities, and entities opened by an I- tag."""
    docs, vocab = DocBin(), Vocab()
    tokens = entities = opened = 0
    for rows in sentences:
        words, tags = zip(*rows, strict=True)
        strict = open_entities(list(tags))
        opened += sum(a != b for a, b in zip(tags, strict, strict=True))
        tokens += len(words)
        entities += sum(tag.startswith("B-") for tag in strict)
        docs.add(Doc(vocab, words=list(words), ents=strict))
    docs.to_disk(path)
    return tuple(f"{number:,}" for number in (len(docs), tokens, entities, opened))


def main(
    source: Path,
    output: Path,
    cutoffs_every: Annotated[int, typer.Option(help="Put every Nth sentence of test into cutoffs.spacy", min=0)] = 0,
) -> None:
    """Convert the three splits in SOURCE, and print what they hold."""
    output.mkdir(parents=True, exist_ok=True)
    table = []
    for split in SPLITS:
        path = source / f"{split}.conll"
        if not path.is_file():
            msg.fail(f"There is no {path}", "Run the step 'data' first.", exits=1)
        sentences = list(read_sentences(path))
        for_cutoffs = sentences[cutoffs_every - 1 :: cutoffs_every] if split == "test" and cutoffs_every else []
        if for_cutoffs:
            del sentences[cutoffs_every - 1 :: cutoffs_every]
            table.append(("cutoffs", *write_docs(for_cutoffs, output / "cutoffs.spacy")))
        table.append((split, *write_docs(sentences, output / f"{split}.spacy")))
    msg.table(table, header=("Split", "Docs", "Tokens", "Entities", "Opened by I-"), divider=True, aligns=("l", *"r" * 4))


if __name__ == "__main__":
    typer.run(main)
