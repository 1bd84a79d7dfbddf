"""What the Python processes of Spark's workers do: load a pipeline once, and run it over Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from spacy.language import Language

from ..doc.score_rows import score_rows, score_schema
from ..pipe.fitted import pipes_named
from ..pipe.loading import check_readable, load_pipeline

# A task numbers its rows from its own multiple of this, as Spark's monotonically_increasing_id does.
_ROWS_OF_A_TASK = 1 << 33
# What is known of a text that is null.
_OF_NO_TEXT = {"id", "doc", "attr"}


@dataclass(frozen=True)
class Model:
    """A pipeline by name or path: what travels to the workers in its place.

    attr (str | None): Prefix of the calib pipe; None for all fitted ones.
    """

    name: str
    attr: str | None = None

    def load(self) -> Language:
        """The pipeline, loaded once by each process, and again where its folder was written anew.

        RAISES C050, C010 to C020: it cannot be loaded. C027, C068: it has no such fitted pipe. C021, C069, C120: see `check_readable`.
        """
        return _loaded(self, _written(self.name))

    def attrs(self) -> tuple[str, ...]:
        """Prefixes of the calib pipes."""
        return tuple(pipe.attr for pipe in pipes_named(self.load(), self.attr))


@lru_cache(maxsize=2)
def _loaded(model: Model, written: int) -> Language:
    nlp = load_pipeline(model.name)
    for pipe in pipes_named(nlp, model.attr):
        check_readable(nlp, pipe)
    return nlp


def _written(name: str) -> int:
    """When a pipeline at this path was written; 0 for a package."""
    try:
        return os.stat(os.path.join(name, "meta.json")).st_mtime_ns
    except OSError:
        return 0


@dataclass(frozen=True)
class Scoring:
    """What a task is to do. text, id, keep: Names of columns. n_texts (int): Texts of a batch of the pipeline."""

    model: Model
    unit: str
    text: str
    id: str | None
    keep: tuple[str, ...]
    n_texts: int

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of a partition -> rows of its texts' units."""
        nlp, attrs, schema = self.model.load(), self.model.attrs(), score_schema(self.unit)
        first = _partition() * _ROWS_OF_A_TASK
        for whole in batches:
            for start in range(0, whole.num_rows, self.n_texts):
                batch = whole.slice(start, self.n_texts)
                yield self._scored(nlp, attrs, schema, batch, first)
                first += batch.num_rows

    def _scored(
        self, nlp: Language, attrs: tuple[str, ...], schema: pa.Schema, batch: pa.RecordBatch, first: int
    ) -> pa.RecordBatch:
        texts = batch.column(self.text).to_pylist()
        ids = [None] * len(texts) if self.id is None else batch.column(self.id).to_pylist()
        with _zone(nlp):
            docs = nlp.pipe([text or "" for text in texts], batch_size=len(texts))
            columns = score_rows(docs, attrs, self.unit, ids=ids, first=first)
        rows = np.array(columns["doc"], dtype=np.int64) - first
        for row in np.flatnonzero(batch.column(self.text).is_null().to_numpy(zero_copy_only=False)[rows]):
            for name in columns.keys() - _OF_NO_TEXT:
                columns[name][row] = None
        kept = [batch.column(name).take(pa.array(rows)) for name in self.keep]
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays([*kept, *arrays], [*self.keep, *schema.names])


def _zone(nlp: Language) -> AbstractContextManager[Any]:
    """Memory that is given back at the end of a batch, where spaCy knows that (3.8)."""
    return nlp.memory_zone() if hasattr(nlp, "memory_zone") else nullcontext()


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
