"""Compute a DataFrame of calibrated scores from a DataFrame of texts."""

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
from .session import check_columns, check_type, check_worker

# Task i numbers its texts from i times this number, as Spark's monotonically_increasing_id does.
_TASK_OFFSET = 1 << 33
# Columns that have a value even if the text is null.
_ID_COLUMNS = {"id", "doc", "attr"}


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
    """Run a pipeline with a fitted calib pipe over the texts of a DataFrame, and return the columns of `score_rows`.

    Each worker loads the pipeline once, by its name or path, and keeps it for later jobs.
    df (DataFrame): The texts. model (str | Path): Package or path that exists on every worker. text (str): Column of the texts;
    a null has no rows, or with unit document a row without score.
    id (str | None): Column of the texts' ids, copied to the column `id`. The column `doc` numbers the texts; numbers are unique
    but have gaps, and change when Spark computes the frame again.
    keep (str | Sequence[str]): Columns of df to copy, before those of the scores. unit (str): What gets a row: token, entity,
    sentence or document. attr (str | None): Prefix of the calib pipe; None for all fitted ones.
    batch_size (int): Number of texts whose rows are made at a time; the memory of a worker grows with it.
    code (str | Path | None): Python file that exists on every worker, or module, imported before the pipeline is loaded.
    check (bool): Whether a worker loads the pipeline first, so that a fault is reported at once.
    RETURNS (DataFrame): A row for each unit, computed when Spark needs it.
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
    task = _Scoring(Model.from_name(model, code), attr, unit, text, id, keep, batch_size)
    if check:
        check_worker(df.sparkSession, task.load)
    kept_fields = [df.schema[name] for name in keep]
    return df.select(*used).mapInArrow(task.batches, StructType([*kept_fields, *schema.fields]))


@dataclass(frozen=True)
class _Scoring:
    """The task of a worker. text, id, keep: Names of columns. n_texts (int): Number of texts scored at a time."""

    model: Model
    attr: str | None
    unit: str
    text: str
    id: str | None
    keep: tuple[str, ...]
    n_texts: int

    def load(self) -> tuple[Language, list[str]]:
        """Return the pipeline and the prefixes of its pipes. RAISES C446, C447: no such unit. Others: `Model.load_fitted`."""
        nlp, pipes = self.model.load_fitted(self.attr)
        check_unit(nlp, pipes, self.unit)
        return nlp, [pipe.attr for pipe in pipes]

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of scores for batches of rows of texts."""
        context: Any = TaskContext.get()
        first = context.partitionId() * _TASK_OFFSET
        for arrow_batch in batches:
            for start in range(0, arrow_batch.num_rows, self.n_texts):
                batch = arrow_batch.slice(start, self.n_texts)
                yield self._score(batch, first)
                first += batch.num_rows

    def _score(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return the rows of scores for a batch of texts. first (int): Number of the first text, in the column `doc`."""
        nlp, attrs = self.load()
        texts = batch.column(self.text)
        ids = [None] * len(texts) if self.id is None else batch.column(self.id).to_pylist()
        items = [(text or "", None) for text in texts.to_pylist()]
        docs = (doc for doc, _ in pipe_in_zones(nlp, items, in_zone=self.n_texts))
        columns = score_rows(docs, attrs, self.unit, ids=ids, first=first)
        text_of_row = np.array(columns["doc"], dtype=np.int64) - first
        # A null is scored as "", whose row (of a document) must have no score.
        for row in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)[text_of_row]):
            for name in columns.keys() - _ID_COLUMNS:
                columns[name][row] = None
        schema = score_schema(self.unit)
        kept_columns = [batch.column(name).take(pa.array(text_of_row)) for name in self.keep]
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays([*kept_columns, *arrays], [*self.keep, *schema.names])
