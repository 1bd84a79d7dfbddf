"""A DataFrame of texts -> a DataFrame of calibrated scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructType
from spacy.language import Language

from ...doc.zones import pipe_in_zones
from ...pipe.component import check_unit
from .messages import calib_error
from .models import Model
from .score_rows import score_rows, score_schema
from .session import ask_a_worker, check_columns, check_type

# A task numbers its texts from its own multiple of this, as Spark's monotonically_increasing_id does.
_TEXTS_OF_A_TASK = 1 << 33
# Columns that have a value for a text that is null.
_OF_NO_TEXT = {"id", "doc", "attr"}


def score(
    df: DataFrame,
    model: str | Path,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    unit: str = "token",
    attr: str | None = None,
    batch_size: int = 1024,
    code: str | Path | None = None,
    check: bool = True,
) -> DataFrame:
    """Run a pipeline with a fitted calib pipe over the texts of a DataFrame; the rows are those of `plugins.spark.score_rows`.

    Workers load the pipeline by its name or path, once each, and keep it for later jobs.
    model (str | Path): Package, or path, there on every worker. text (str): Column of the texts. A null has no rows; with unit
    document a row without score.
    id (str | None): Column of the texts' ids, for the column `id`. The column `doc` numbers the texts, each number once but
    with gaps, and otherwise when Spark computes the frame again.
    keep (str | Sequence[str]): Columns that go along, before those of the scores. unit (str): token, entity, sentence or
    document. attr (str | None): Prefix of the calib pipe; None for all fitted ones. batch_size (int): Texts whose rows are made
    at a time; memory of a worker grows with it.
    code (str | Path | None): Python file there on every worker, or module, imported before the pipeline. check (bool): Let a
    worker load the pipeline first, so that a fault is reported at once.
    RAISES C001: df is no DataFrame, unit or batch_size out of range. C452, C453: a column is missing, or no text. C455: two
    columns of one name. C454: workers do not find the pipeline. C027, C068: it has no such fitted pipe. C446, C447: none that
    scores such units. C062: the code cannot be imported.
    """
    schema = from_arrow_schema(score_schema(unit))
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    if batch_size < 1:
        raise calib_error("C001", name="batch_size", wanted="a whole number of at least 1", given=batch_size)
    used = list(dict.fromkeys([text, *([] if id is None else [id]), *keep]))
    check_columns(df, used)
    check_type(df, text, StringType())
    for name in keep:
        if name in schema.names:
            raise calib_error("C455", given=name)
    task = _Scoring(Model.named(model, code), attr, unit, text, id, keep, batch_size)
    if check:
        ask_a_worker(df.sparkSession, task.loaded)
    kept_fields = [df.schema[name] for name in keep]
    return df.select(*used).mapInArrow(task.batches, StructType([*kept_fields, *schema.fields]))


@dataclass(frozen=True)
class _Scoring:
    """The task of a worker. text, id, keep: Names of columns. n_texts (int): Texts scored at a time."""

    model: Model
    attr: str | None
    unit: str
    text: str
    id: str | None
    keep: tuple[str, ...]
    n_texts: int

    def loaded(self) -> tuple[Language, list[str]]:
        """Return the pipeline, and the prefixes of the pipes. RAISES C446, C447: no such unit. Others: as `Model.fitted`."""
        nlp, pipes = self.model.fitted(self.attr)
        check_unit(nlp, pipes, self.unit)
        return nlp, [pipe.attr for pipe in pipes]

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of texts -> rows of scores."""
        context: Any = TaskContext.get()
        first = context.partitionId() * _TEXTS_OF_A_TASK
        for whole in batches:
            for start in range(0, whole.num_rows, self.n_texts):
                batch = whole.slice(start, self.n_texts)
                yield self._score(batch, first)
                first += batch.num_rows

    def _score(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        nlp, attrs = self.loaded()
        texts = batch.column(self.text)
        ids = [None] * len(texts) if self.id is None else batch.column(self.id).to_pylist()
        items = [(text or "", None) for text in texts.to_pylist()]
        docs = (doc for doc, _ in pipe_in_zones(nlp, items, in_zone=self.n_texts))
        columns = score_rows(docs, attrs, self.unit, ids=ids, first=first)
        rows = np.array(columns["doc"], dtype=np.int64) - first
        for row in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)[rows]):
            for name in columns.keys() - _OF_NO_TEXT:
                columns[name][row] = None
        schema = score_schema(self.unit)
        kept_columns = [batch.column(name).take(pa.array(rows)) for name in self.keep]
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays([*kept_columns, *arrays], [*self.keep, *schema.names])
