"""Read the data sets of the quality benchmark as sentences with their documents, and cut them into parts and Docs."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).resolve().parents[2] / "configs" / "scripts"))

from convert_entities import open_entities
from frame import blocks, data_lines

from spacy_calib.pairs.label_map import map_label

SENTENCES_PER_DOC = 10
CHECK_EVERY = 20
# Porttinari-base: train, what chooses the checkpoint, fit, test; DANTEStocks: fit, test
PORTTINARI_SHARES = {"train": 0.65, "dev": 0.05, "fit": 0.15, "test": 0.15}
DANTE_SHARES = {"porttinari": PORTTINARI_SHARES, "dantestocks": {"fit": 0.5, "test": 0.5}}


@dataclass(frozen=True)
class Sentence:
    """A sentence with its gold.

    document (str): Name of its document, unique in its part. words (list[str]): As the data has them.
    gold (dict): Keyword arguments of Doc with a value for each word: tags; pos and morphs; or ents in IOB2.
    spaces (list[bool] | None): Whether a space follows each word; None where the data does not say.
    """

    document: str
    words: list[str]
    gold: dict[str, list[str]]
    spaces: list[bool] | None = None


Documents = list[list[Sentence]]


def documents_of(sentences: Iterable[Sentence]) -> Documents:
    """The sentences by document, documents in the order in which they begin."""
    documents: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.document, []).append(sentence)
    return list(documents.values())


def hold_out(documents: Documents, step: int = CHECK_EVERY) -> tuple[Documents, Documents]:
    """(the rest, every nth document): the model is trained on the first, its checkpoint chosen on the second."""
    check_documents = documents[step - 1 :: step]
    return [document for number, document in enumerate(documents, 1) if number % step], check_documents


def make_docs(documents: Documents, vocab: Vocab, size: int = SENTENCES_PER_DOC) -> Iterator[tuple[int, Doc]]:
    """(number of the document, gold Doc): Docs of at most `size` sentences, none across two documents."""
    for number, document in enumerate(documents):
        for start in range(0, len(document), size):
            part = document[start : start + size]
            gold: dict[str, Any] = {key: [value for sentence in part for value in sentence.gold[key]] for key in part[0].gold}
            words = [word for sentence in part for word in sentence.words]
            spaces = [space for sentence in part for space in sentence.spaces or ()]
            starts: list[bool | int | None] = [i == 0 for sentence in part for i in range(len(sentence.words))]
            yield number, Doc(vocab, words=words, spaces=spaces or None, sent_starts=starts, **gold)


# Rows of word and label


def tab_blocks(folder: str, file: str) -> Iterator[tuple[str, list[list[str]]]]:
    """(comment, rows) of each block of a gzipped file, the comment being the last line without a tab up to there."""
    comment = ""
    rows: list[list[str]] = []
    for line in (*data_lines(folder, file), ""):
        cells = line.split("\t")
        if len(cells) > 1:
            rows.append(cells)
            continue
        if rows:
            yield comment, rows
            rows = []
        comment = cells[0] or comment


def ark(split: str) -> Documents:
    """Tweets of the ARK Twitter data. split: train, dev, test or daily547."""
    blocks = tab_blocks("ark_twpos", f"{split}.tsv")
    return [
        [Sentence(str(i), [row[0] for row in rows], {"tags": [row[1] for row in rows]})] for i, (_, rows) in enumerate(blocks)
    ]


def streusle(split: str) -> Documents:
    """Reviews of STREUSLE with their lextags; a sentence is called reviews-REVIEW-NUMBER."""
    sentences = []
    for comment, rows in tab_blocks("streusle_lsr", f"{split}.tsv"):
        review = comment.removeprefix("# sent_id = ").rpartition("-")[0]
        sentences.append(Sentence(review, [row[0] for row in rows], {"tags": [row[3] for row in rows]}))
    return documents_of(sentences)


def ptb() -> dict[str, Documents]:
    """The Penn Treebank sample in parts by the number of the file modulo 5: 1 to 3 train, 4 fit, 0 test."""
    parts: dict[str, Documents] = {"train": [], "fit": [], "test": []}
    sentences = []
    for comment, rows in tab_blocks("ptb_sample", "wsj_tagged.tsv"):
        file = comment.removeprefix("# file = ")
        sentences.append(Sentence(file, [row[0] for row in rows], {"tags": [row[1] for row in rows]}))
    for document in documents_of(sentences):
        number = int(document[0].document.removeprefix("wsj_"))
        parts[{0: "test", 4: "fit"}.get(number % 5, "train")].append(document)
    return parts


def brown(split: str) -> Documents:
    """Documents of Brown: a line for each word, an empty one behind each sentence, and one that is no word before each document."""
    documents: Documents = [[]]
    for block in blocks(data_lines("brown", f"{split}.tsv")):
        cells = [line.split("\t") for line in block]
        if len(cells[0]) == 1 and documents[-1]:
            documents.append([])
        words = [cell for cell in cells if len(cell) == 2]
        if words:
            tags = {"tags": [tag for _, tag in words]}
            documents[-1].append(Sentence(str(len(documents) - 1), [word for word, _ in words], tags))
    return documents


def brown_to_train(n_documents: int) -> tuple[Documents, Documents]:
    """(train, check): the documents to train on, and those that choose its checkpoint."""
    documents = brown("train")
    step = max(1, len(documents) // n_documents)
    return documents[::step][:n_documents], documents[1::step][:8] if step > 1 else documents[-8:]


def entities(name: str, split: str, step: int = 1, rename: Mapping[str, str] | None = None) -> Documents:
    """Sentences of wnut17 or wikineural_en, each a document of its own.

    step (int): Keep the first of so many. rename (Mapping | None): Type -> what it is called instead. An I- tag whose entity was not opened
        opens one.
    """
    names = rename or {}
    blocks = list(tab_blocks(name, f"{split}.conll"))[::step]
    return [
        [
            Sentence(
                str(i),
                [row[0] for row in rows],
                {"ents": open_entities([map_label(names, row[1], has_prefix=True) for row in rows])},
            )
        ]
        for i, (_, rows) in enumerate(blocks)
    ]


# CoNLL-U


def ewt(split: str, layer: str, folder: str = "ud_english_ewt") -> Documents:
    """Documents (`# newdoc`) of UD English EWT, or of another treebank in CoNLL-U, with gold words and spaces.

    `spacy convert` differs in that it puts a space behind every sentence, also where the file has none.
    layer (str): "tags" for XPOS, "morphs" for UPOS and FEATS. folder (str): Of the treebank.
    """
    document, sentences = "", []
    for lines in blocks(data_lines(folder, f"{split}.conllu")):
        block = "\n".join(lines)
        begun = re.search(r"^# newdoc id = (\S+)", block, re.MULTILINE)
        document = begun[1] if begun else document
        words, spaces = [], []
        last_of_word, has_space = 0, True  # of the multiword token (ID 3-4) that is open
        for row in (line.split("\t") for line in lines if line[:1].isdigit()):
            follows = "SpaceAfter=No" not in row[9]
            if "-" in row[0]:
                last_of_word, has_space = int(row[0].partition("-")[2]), follows
            elif "." not in row[0]:
                number = int(row[0])
                words.append(row)
                spaces.append(follows if number > last_of_word else number == last_of_word and has_space)
        feats = ["" if row[5] == "_" else row[5] for row in words]
        gold = {"tags": [row[4] for row in words]} if layer == "tags" else {"pos": [row[3] for row in words], "morphs": feats}
        sentences.append(Sentence(document, [row[1] for row in words], gold, spaces))
    return documents_of(sentences)


# Treebanks of dante-corpora. `spacy convert` cannot read them: they have no heads, some FEATS are malformed, and a few rows have eleven columns.

FEATURE = re.compile(r"[A-Z][A-Za-z0-9\[\]]*=[A-Za-z0-9]+(,[A-Za-z0-9]+)*")


def dante_file(name: str) -> Path:
    """Where dante-corpora keeps a treebank. The package is not imported: that would need pandas."""
    spec = importlib.util.find_spec("dante")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This needs the package dante-corpora: pip install --no-deps dante-corpora")
    return Path(next(iter(spec.submodule_search_locations))) / "data" / name / "annotated.conllu"


def read_dante(path: Path, n_skipped: Counter[str]) -> Documents:
    """Forms, UPOS and FEATS of syntactic words: rows of contractions (ID 3-4) and empty nodes (ID 8.1) are skipped.

    n_skipped (Counter): Takes the malformed features (not Name=Value), which are left out. RAISES ValueError: a sentence without sent_id.
    """

    def clean(feats: str) -> str:
        features = [] if feats == "_" else feats.split("|")
        n_skipped.update(feature for feature in features if not FEATURE.fullmatch(feature))
        return "|".join(feature for feature in features if FEATURE.fullmatch(feature))

    sentences = []
    for lines in blocks(path.read_text(encoding="utf8").split("\n")):
        sent_id = next((line[len("# sent_id = ") :].split()[0] for line in lines if line.startswith("# sent_id = ")), None)
        if sent_id is None:
            raise ValueError(f"A sentence of {path} has no sent_id; it begins {lines[0][:60]!r}.")
        rows = [row for row in (line.split("\t") for line in lines) if row[0].isdigit()]
        gold = {"pos": [row[3] for row in rows], "morphs": [clean(row[5]) for row in rows]}
        sentences.append(Sentence(document_of(sent_id), [row[1] for row in rows], gold))
    return documents_of(sentences)


def document_of(sent_id: str) -> str:
    """The document of a sentence, from its sent_id.

    Porttinari-base numbers the sentences of a news text at the end (FOLHA_DOC000001_SENT003 is of FOLHA_DOC000001), and so does PetroGold
    with its theses (247-20140910-MONOGRAFIA_0-1 is of 247-20140910-MONOGRAFIA_0). In DANTEStocks every tweet is a sentence and a document.
    """
    return re.sub(r"(_SENT\d+|(?<=_\d)-\d+)$", "", sent_id)


def split(documents: Documents, shares: Mapping[str, float], seed: int = 0) -> dict[str, Documents]:
    """The documents of each part, in their order. shares (Mapping): Part -> share of them; the last part takes what is left."""
    names = sorted(document[0].document for document in documents)
    random.Random(seed).shuffle(names)
    *parts, last = shares
    part_of, share_before, begin = dict.fromkeys(names, last), 0.0, 0
    for part in parts:
        share_before += shares[part]
        end = round(share_before * len(names))
        part_of.update(dict.fromkeys(names[begin:end], part))
        begin = end
    return {part: [cell for cell in documents if part_of[cell[0].document] == part] for part in shares}


def dante(name: str, part: str) -> Documents:
    """A part of porttinari or dantestocks, which are split by document."""
    return split(read_dante(dante_file(name), Counter()), DANTE_SHARES[name])[part]
