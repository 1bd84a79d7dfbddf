"""Scored Docs -> the bytes of a file of their rows, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inputs import ScoredDoc
    from .tables import Chunk

# Format -> what its files end in.
SUFFIXES = {"parquet": ".parquet", "jsonl": ".jsonl", "csv": ".csv", "spacy": ".spacy"}
FILE_FORMATS = tuple(SUFFIXES)
# So many rows are written at once.
_ROWS = 50_000
_PIECE = 1 << 20


def format_of(path: Path) -> str | None:
    """The format of a file by its suffix; None for another one."""
    return next((name for name, suffix in SUFFIXES.items() if path.suffix == suffix), None)


@dataclass
class RowWriter:
    """form (str): The format. attrs (Sequence[str]): Prefixes of the calib pipes. unit (str): What has a row. raw_cells (bool): Of
    CSV, see `csv_bytes`. written (int): Rows so far; of .spacy Docs.
    """

    form: str
    attrs: Sequence[str]
    unit: str
    raw_cells: bool = False
    written: int = 0

    def pieces(self, docs: Iterable[ScoredDoc]) -> Iterator[bytes]:
        """The bytes of one file."""
        from ...doc.score_rows import load_pyarrow, score_schema
        from .tables import bytes_of_tables, csv_bytes, json_bytes

        if self.form == "spacy":
            yield self._docbin(docs)
        elif self.form == "parquet":
            pa, schema = load_pyarrow(), score_schema(self.unit)
            yield from bytes_of_tables(pa.table(chunk, schema=schema) for chunk in self._chunks(docs))
        else:
            chunks = self._chunks(docs)
            yield from json_bytes(chunks) if self.form == "jsonl" else csv_bytes(chunks, self.raw_cells)

    def _chunks(self, docs: Iterable[ScoredDoc]) -> Iterator[Chunk]:
        """The rows, many at a time; the first chunk has none, so that a file without rows has its columns too."""
        from ...doc.score_rows import ScoreRows

        held = ScoreRows(self.attrs, self.unit)
        yield {name: [] for name in held.columns}
        for doc, row in docs:
            held.add(doc, row.id, row.number)
            if len(held) >= _ROWS:
                self.written += len(held)
                yield {**held.columns}
                held = ScoreRows(self.attrs, self.unit)
        self.written += len(held)
        yield {**held.columns}

    def _docbin(self, docs: Iterable[ScoredDoc]) -> bytes:
        from spacy.tokens import DocBin

        from ...doc.collect import ORIGIN

        held = DocBin(store_user_data=True)
        for doc, row in docs:
            doc.user_data[ORIGIN] = {"doc": row.number, **row.origin}
            held.add(doc)
            self.written += 1
        return held.to_bytes()


# Shards -> one file


def joined(form: str, files: Sequence[Path]) -> Iterator[bytes]:
    """The bytes of one file with the rows of several of its format, one after the other."""
    from spacy.tokens import DocBin

    if form == "spacy":
        held = DocBin(store_user_data=True)
        for file in files:
            held.merge(DocBin(store_user_data=True).from_disk(file))
        yield held.to_bytes()
    elif form == "parquet":
        yield from _joined_tables(files)
    else:
        for place, file in enumerate(files):
            with file.open("rb") as stream:
                if form == "csv" and place:
                    stream.readline()  # the header, which the first has
                while piece := stream.read(_PIECE):
                    yield piece


def _joined_tables(files: Sequence[Path]) -> Iterator[bytes]:
    from ...doc.score_rows import load_pyarrow
    from .tables import bytes_of_tables

    parquet = load_pyarrow().parquet

    def tables() -> Iterator[Any]:
        for place, file in enumerate(files):
            with parquet.ParquetFile(file) as shard:
                if not place:
                    yield shard.schema_arrow.empty_table()
                for group in range(shard.num_row_groups):
                    yield shard.read_row_group(group)

    return bytes_of_tables(tables())
