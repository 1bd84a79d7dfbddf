"""GUM's CoNLL-U with entities -> corpus/*.spacy: a Doc per document, every mention in doc.spans["coref_mentions"], the clusters of two or
more in doc.spans["coref_clusters_1"] and so on, and who speaks, where anybody is said to, as the labels of doc.spans["speakers"].

    python scripts/convert.py corpus [--data FOLDER] [--most DOCUMENTS]

Reads {train,dev}.conllu.gz in the folder, which is gum_coref in $SPACY_CALIB_DATA where nothing is said.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from wasabi import msg

# "(4-abstract-new-nnnnn-cf1-1-coref" opens a mention of cluster 4, "4)" closes it, "(4-...)" is one of a single word.
_BRACKET = re.compile(r"\((?P<open>[^-()]+)-[^()]*(?P<single>\))?|(?P<close>[^-()]+)\)")


@dataclass
class Document:
    """What is read of one. mentions: (cluster, first word, the one after the last). speakers: Of each word, "" where it is not said."""

    name: str
    genre: str = ""
    words: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    starts: list[bool] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    pos: list[str] = field(default_factory=list)
    mentions: list[tuple[str, int, int]] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    open: dict[str, list[int]] = field(default_factory=dict)

    def add(self, columns: list[str], space: bool, first: bool, speaker: str) -> None:
        place = len(self.words)
        self.speakers.append(speaker)
        self.words.append(columns[1])
        self.spaces.append(space)
        self.starts.append(first)
        self.pos.append(columns[3])
        self.tags.append(columns[4])
        entity = next((part[len("Entity=") :] for part in columns[9].split("|") if part.startswith("Entity=")), "")
        for bracket in _BRACKET.finditer(entity):
            if bracket["close"]:
                self.mentions.append((bracket["close"], self.open[bracket["close"]].pop(), place + 1))
            elif bracket["single"]:
                self.mentions.append((bracket["open"], place, place + 1))
            else:
                self.open.setdefault(bracket["open"], []).append(place)

    def doc(self, vocab: Vocab) -> Doc:
        made = Doc(vocab, words=self.words, spaces=self.spaces, sent_starts=self.starts, tags=self.tags, pos=self.pos)
        clusters: dict[str, list[Span]] = {}
        seen: set[tuple[int, int]] = set()
        for name, start, end in sorted(self.mentions, key=lambda one: one[1:]):
            if (start, end) not in seen:  # a span that the treebank names twice belongs to the first cluster
                seen.add((start, end))
                clusters.setdefault(name, []).append(made[start:end])
        made.spans["coref_mentions"] = [span for cluster in clusters.values() for span in cluster]
        several = [cluster for cluster in clusters.values() if len(cluster) > 1]
        for number, cluster in enumerate(several, start=1):
            made.spans[f"coref_clusters_{number}"] = cluster
        starts = [0, *(i for i in range(1, len(made)) if self.speakers[i] != self.speakers[i - 1]), len(made)]
        made.spans["speakers"] = [Span(made, a, b, self.speakers[a]) for a, b in itertools.pairwise(starts) if self.speakers[a]]
        made.user_data.update(id=self.name, genre=self.genre)
        return made


def read(lines: Iterable[str]) -> Iterator[Document]:
    """The documents of a CoNLL-U file."""
    document: Document | None = None
    first, speaker, word_end, word_space = True, "", 0, True
    for line in map(str.rstrip, lines):
        if line.startswith("# newdoc id = "):
            if document is not None:
                yield document
            document = Document(line.removeprefix("# newdoc id = "))
        elif document is not None and line.startswith("# meta::genre = "):
            document.genre = line.removeprefix("# meta::genre = ")
        elif line.startswith("# speaker = "):
            speaker = line.removeprefix("# speaker = ")
        elif not line:
            first, speaker, word_end = True, "", 0
        elif document is not None and not line.startswith("#"):
            columns = line.split("\t")
            space = "SpaceAfter=No" not in columns[9].split("|")
            if "-" in columns[0]:  # "don't" of the words "do" and "n't": its own space follows the last of them
                word_end, word_space = int(columns[0].partition("-")[2]), space
            elif "." not in columns[0]:
                number = int(columns[0])
                document.add(columns, word_space if number == word_end else space and number > word_end, first, speaker)
                first = False
    if document is not None:
        yield document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most", type=int, help="take no more documents of a split, at equal distances")
    given = parser.parse_args()
    if given.data is None and "SPACY_CALIB_DATA" not in os.environ:
        sys.exit("Name the folder with --data, or set SPACY_CALIB_DATA.")
    folder = given.data or Path(os.environ["SPACY_CALIB_DATA"]) / "gum_coref"
    given.output.mkdir(parents=True, exist_ok=True)
    vocab = spacy.blank("en").vocab
    for part in ("train", "dev"):
        with gzip.open(folder / f"{part}.conllu.gz", "rt", encoding="utf8") as lines:
            documents = list(read(lines))
        step = -(-len(documents) // given.most) if given.most else 1
        docs = [document.doc(vocab) for document in documents[::step]]
        DocBin(docs=docs, store_user_data=True).to_disk(given.output / f"{part}.spacy")
        counts = [len(doc.spans["coref_mentions"]) for doc in docs]
        pairs = sum(count * (count - 1) // 2 for count in counts)
        msg.good(f"{part}: {len(docs)} documents, {sum(map(len, docs)):,} words, {sum(counts):,} mentions, {pairs:,} pairs")


if __name__ == "__main__":
    main()
