"""Fetch public data sets into a folder for SPACY_CALIB_DATA, so that the golden numbers can be tested without the maintainers' copy of them.

    python tests/fetch_data.py FOLDER

Each file is taken from a pinned commit, brought into the form that the tests read, and compared with the sha256 digest of the
copy that the numbers were measured on. A file whose digest differs is not kept. The addresses were not tried where this was
written, which has no way to them; forms and digests were, on the copy.
"""

import gzip
import hashlib
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HOST = "https://raw.githubusercontent.com"
EWT = f"{HOST}/UniversalDependencies/UD_English-EWT/r2.16/en_ewt-ud"
UNER = f"{HOST}/UniversalNER/UNER_English-EWT/8ed072de2fd24022cc62458997fe96a8fe191ea4/en_ewt-ud"
WNUT = f"{HOST}/leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603"
WIKI = f"{HOST}/Babelscape/wikineural/d2e28c770cba2b285e742529ae18ed849e336c65/data/wikineural/en"


def treebank(text: str) -> str:
    """CoNLL-U without enhanced dependencies; of the last column only SpaceAfter=No, of the comments three."""
    rows = []
    for line in text.splitlines():
        columns = line.split("\t")
        if len(columns) == 10:
            no_space = "SpaceAfter=No" in columns[9].split("|")
            rows.append("\t".join([*columns[:8], "_", "SpaceAfter=No" if no_space else "_"]))
        elif not line or line.startswith(("# newdoc", "# sent_id", "# text =")):
            rows.append(line)
    return "\n".join(rows) + "\n"


def numbered_words(text: str) -> str:
    """Number, word and tag, without the column of the annotator."""
    rows = (line if line.startswith("# ") else "\t".join(line.split("\t")[:3]) for line in text.splitlines())
    return "\n".join(rows) + "\n"


def tagged_words(tenths: int) -> Callable[[str], str]:
    """Word and tag, an empty line after each sentence. tenths (int): 10 for all sentences, 1 for every tenth, 9 for the rest."""

    def read(text: str) -> str:
        sentences: list[list[str]] = [[]]
        for line in text.split("\n"):
            if line.strip():
                sentences[-1].append("\t".join(line.split("\t")[-2:]))
            elif sentences[-1]:
                sentences.append([])
        kept = [rows for i, rows in enumerate(filter(None, sentences)) if tenths == 10 or (i % 10 == 9) == (tenths == 1)]
        return "".join("\n".join(rows) + "\n\n" for rows in kept)

    return read


class Source(NamedTuple):
    """file (str): In FOLDER. address (str). form (Callable): Text from there -> text of the file. digest (str): Of that text."""

    file: str
    address: str
    form: Callable[[str], str]
    digest: str


SOURCES = (
    Source(
        "ud_english_ewt/train.conllu.gz",
        f"{EWT}-train.conllu",
        treebank,
        "33210ecd330ba4c3ad29c1e6e33dd56f90705be41525913bbb0dcf1eeae0b6f8",
    ),
    Source(
        "ud_english_ewt/dev.conllu.gz",
        f"{EWT}-dev.conllu",
        treebank,
        "5697ccf64e7eca8c535aa20b0d60890be5f5322b2736e0a1d03aed88e78cd04f",
    ),
    Source(
        "ud_english_ewt/test.conllu.gz",
        f"{EWT}-test.conllu",
        treebank,
        "b5692a1146e5a226d6bb5bf13627b969e0efdf76a03a2880d7fc99974b143611",
    ),
    Source(
        "uner_english_ewt/dev.iob2.gz",
        f"{UNER}-dev.iob2",
        numbered_words,
        "156e525a811926ed3af0ebe19974b7d95a9a5aebf641a528d05ab584d60459d4",
    ),
    Source(
        "uner_english_ewt/test.iob2.gz",
        f"{UNER}-test.iob2",
        numbered_words,
        "d2f5e8e7cb39d9ebd4f38dafb2eb36d0709638dafe11805299fa882b58e5d227",
    ),
    Source(
        "wnut17/train.conll.gz",
        f"{WNUT}/wnut17train.conll",
        tagged_words(10),
        "707d8fbadf7ab186e7998fdcbea41470d25d0a453049f531d0c8d0c810a8d8cb",
    ),
    Source(
        "wnut17/dev.conll.gz",
        f"{WNUT}/emerging.dev.conll",
        tagged_words(10),
        "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8",
    ),
    Source(
        "wnut17/test.conll.gz",
        f"{WNUT}/emerging.test.annotated",
        tagged_words(10),
        "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0",
    ),
    Source(
        "wikineural_en/train.conll.gz",
        f"{WIKI}/val.conllu",
        tagged_words(9),
        "f63e8863397b8238bf415885d96e0c5bc37b940ebded09bd4e2f7353813f3e3c",
    ),
    Source(
        "wikineural_en/dev.conll.gz",
        f"{WIKI}/val.conllu",
        tagged_words(1),
        "81436b19f2defab618cf2974ce87c9fb6b55731a30fe2d1f6c5282a291452636",
    ),
    Source(
        "wikineural_en/test.conll.gz",
        f"{WIKI}/test.conllu",
        tagged_words(10),
        "8f42f635685289b6df10f7fd06fb46c4282b912075c81d4179510adc2f6ff3ee",
    ),
)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf8")).hexdigest()


def fetch(source: Source, folder: Path) -> bool:
    """Fetch a file, unless it is there. RETURNS (bool): Whether its text is that of the numbers."""
    path = folder / source.file
    if path.exists():
        return digest_of(gzip.decompress(path.read_bytes()).decode("utf8")) == source.digest
    with urllib.request.urlopen(source.address, timeout=60) as response:
        text = source.form(response.read().decode("utf8").replace("\r\n", "\n"))
    if digest_of(text) != source.digest:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode("utf8"), mtime=0))
    return True


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").split("\n\n")[1].strip())
    differing = 0
    for source in SOURCES:
        same = fetch(source, Path(sys.argv[1]))
        differing += not same
        sys.stdout.write(f"{source.file}: {'as measured' if same else 'differs from what was measured, not kept'}\n")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
