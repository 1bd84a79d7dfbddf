"""Gold documents in a DataFrame -> the statistics of a fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vocab import Vocab

from ..doc.reading import GoldReader, gold_docs, gold_files
from ..errors import CalibError, calib_error
from ..pairs.keyed import Key, hasher
from ..pairs.label_map import check_map
from ..pipe.collecting import collect_statistics
from ..pipe.component import Calibrator
from ..pipe.loading import reason
from ..pipe.upstream import pipes_to_read, without_presets
from ..statistics.collected import FitStatistics
from ..statistics.identity import Shard
from .models import Model
from .session import ask_a_worker, check_columns, check_type, raise_told

# What tasks hand on: the name of a shard and its statistics, or a fault.
_PARTS = "shard string, statistics binary, code string, why string"


def collect(
    df: DataFrame,
    model: str | Path,
    *,
    gold: str = "gold",
    component: str | None = None,
    settings: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    mergers: int = 16,
    key: Key | str | Path | None = None,
    code: str | Path | None = None,
    check: bool = True,
) -> FitStatistics:
    """What a fit needs of the gold documents of a DataFrame, as `calib collect` writes it for `calib fit --from`.

    Each partition is a shard; some workers merge shards, and the driver merges theirs. With one key the result is the
    same, bit for bit, for any partitions and whatever tasks are repeated: a shard is known by its content.
    model (str | Path): Package, or path, there on every worker. gold (str): Column of binary DocBins with gold, as in
        .spacy files: `spark.read.format("binaryFile")` reads them (column `content`), `gold_frame` makes one.
    component (str | None): What is calibrated; None takes the pipeline's first calib pipe, else the tagger.
    settings (Mapping | None): Of a new calib pipe, as in a config, such as {"threshold": 0.02}; None: the pipeline's.
    labels (Mapping | None): Label of the component -> gold label, as --map: {"PERSON": "PER"}; None: the pipeline's.
    gold_preproc (bool), doc_key (str | None): As for `calib fit`. mergers (int): Partitions that merge shards.
    key (Key | str | Path | None): Of all digests, as for `calib collect`, or the driver's file of it. None draws one
        and forgets it: the fit does not know its texts again, and its context does not see how often forms were met.
    code (str | Path | None): Python file there on every worker, or module, imported before the pipeline.
    check (bool): Let a worker load the pipeline before anything else.
    RAISES C452, C453: the column is missing, or not binary. C454: workers do not find the pipeline. C456: no documents.
        C457: no DocBin. C162: labels is no map. C480: no key. C062: the code cannot be imported. Others: as
        `collect_statistics` and `Model.to_fit`.
    """
    check_columns(df, [gold])
    check_type(df, gold, BinaryType())
    table = None if labels is None else check_map(labels.items(), labels)
    known = Key.draw() if key is None else key if isinstance(key, Key) else Key.read(key)
    reader = GoldReader(gold_preproc, doc_key)
    task = _Collecting(Model.named(model, code), gold, component, settings, table, reader, known)
    if check:
        ask_a_worker(df.sparkSession, task.loaded)
    shards = df.select(gold).mapInArrow(task.batches, _PARTS)
    parts = shards.repartition(mergers, "shard").mapInArrow(_merged, _PARTS).collect()
    for part in parts:
        if part["code"] is not None:
            raise_told(part["code"], part["why"])
    if not parts:
        raise calib_error("C456", name=gold)
    return FitStatistics.merged([FitStatistics.from_bytes(bytes(part["statistics"])) for part in parts])


def gold_frame(session: SparkSession, path: str | Path, *, docs: int = 64) -> DataFrame:
    """A gold file (.spacy, .conllu), or a folder of them, as a DataFrame with the column `gold` for `collect`.

    docs (int): Docs of a row. RAISES C051: the path does not exist. C052: no documents. C053, C161: unreadable.
    """
    place, vocab = Path(path), Vocab()
    if not place.exists():
        raise calib_error("C051", path=path)
    rows = []
    for file in gold_files(place) if place.is_dir() else [place]:
        try:
            left = gold_docs(vocab, file)
            while some := list(itertools.islice(left, docs)):
                rows.append((DocBin(docs=some, store_user_data=True).to_bytes(),))
        except CalibError:
            raise
        except Exception as error:
            raise calib_error("C053", path=file, why=reason(error)) from None
    if not rows:
        raise calib_error("C052", path=path)
    return session.createDataFrame(rows, "gold binary")


@dataclass(frozen=True)
class _Collecting:
    """What a task is to do: the arguments of `collect`."""

    model: Model
    gold: str
    component: str | None
    settings: Mapping[str, Any] | None
    labels: Mapping[str, str] | None
    reader: GoldReader
    key: Key

    def loaded(self) -> tuple[Language, Calibrator]:
        return self.model.to_fit(self.component, self.settings, self.labels)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of a partition -> one part; none of an empty partition."""
        rows: list[bytes] = []
        left = iter(batches)
        try:
            found = self._collected(left, rows)
        except CalibError as error:
            for _ in left:  # Spark waits until all are taken
                pass
            yield _part(code=error.code, why=error.message)
            return
        if rows:
            name = hasher(self.key)
            name.update(b"".join(sorted(rows)))
            content = name.hexdigest()
            shard = Shard(f"rows {content}", content, found.n_documents)
            yield _part(shard.name, replace(found, shards=(shard,)).to_bytes())

    def _collected(self, batches: Iterable[pa.RecordBatch], rows: list[bytes]) -> FitStatistics:
        """The statistics of a partition. rows (list): Gets the digest of each row."""
        nlp, calib = self.loaded()
        reader = replace(self.reader, arrays=calib.source.user_data_keys)
        upstream, _ = pipes_to_read(nlp, calib)

        def examples() -> Iterator[Example]:
            for batch in batches:
                for data in filter(None, batch.column(self.gold).to_pylist()):
                    digest = blake2b(data, digest_size=16)
                    rows.append(digest.digest())
                    yield from reader.examples_of(nlp, self._docs(nlp.vocab, data), Path(f"row {digest.hexdigest()}"))

        to_run, kept = itertools.tee(examples())
        with nlp.select_pipes(enable=upstream):
            ready = _with_docs(kept, nlp.pipe(example.predicted for example in to_run))
            return collect_statistics(calib, without_presets(calib, ready), "", key=self.key)

    def _docs(self, vocab: Vocab, data: bytes) -> Iterator[Doc]:
        """The Docs of a DocBin. RAISES C457: it is none."""
        try:
            yield from (doc for doc in DocBin().from_bytes(data).get_docs(vocab) if len(doc))
        except Exception as error:
            raise calib_error("C457", name=self.gold, why=reason(error)) from None


def _with_docs(examples: Iterable[Example], docs: Iterable[Doc]) -> Iterator[Example]:
    for example, doc in zip(examples, docs, strict=True):
        example.predicted = doc
        yield example


def _merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parts -> one part, and all faults. Parts of one name, which repeated tasks may give, come to one call of this."""
    known: set[str] = set()
    merged: FitStatistics | None = None
    for batch in batches:
        for row in batch.to_pylist():
            if row["code"] is not None:
                yield _part(code=row["code"], why=row["why"])
            elif row["shard"] not in known:
                known.add(row["shard"])
                part = FitStatistics.from_bytes(row["statistics"])
                merged = part if merged is None else merged.merge(part)
    if merged is not None:
        yield _part(merged.name, merged.to_bytes())


def _part(shard: str | None = None, statistics: bytes | None = None, code: str | None = None, why: str | None = None) -> Any:
    names = (("shard", pa.string()), ("statistics", pa.binary()), ("code", pa.string()), ("why", pa.string()))
    values = (shard, statistics, code, why)
    arrays = [pa.array([value], kind) for value, (_, kind) in zip(values, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _ in names])
