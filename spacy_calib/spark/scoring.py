"""A DataFrame of texts -> a DataFrame of calibrated scores."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..doc.score_rows import score_schema
from ..errors import calib_error
from .checks import TEXT, ask_a_worker, check_columns, check_type
from .workers import Model, Scoring


def score(
    df: DataFrame,
    model: str,
    *,
    text: str = "text",
    id: str | None = None,
    keep: Sequence[str] = (),
    unit: str = "token",
    attr: str | None = None,
    batch_size: int = 1000,
    check: bool = True,
) -> DataFrame:
    """Run a pipeline with a fitted calib pipe over the texts of a DataFrame; the rows are those that `calib apply` writes.

    Workers load the pipeline by its name or path, once each, and keep it for later jobs; nothing of it is pickled. The frame that is returned is
    computed when Spark asks for it, as any.
    model (str): Package or path, there on every worker. text (str): Column of the texts. A null has no rows; with unit document a row
        without score.
    id (str | None): Column of the texts' own ids, for the column `id`. The column `doc` numbers texts: unique, not without gaps.
    keep (Sequence[str]): Columns that go along, before those of the scores. unit (str): token, entity, sentence or document.
    attr (str | None): Prefix of the calib pipe; None for all fitted ones. batch_size (int): Texts that the pipeline sees at a time; memory of a
        worker grows with it.
    check (bool): Let a worker load the pipeline before anything else, so that a fault is said at once.
    RAISES C001: there is no such unit, or batch_size is below 1. C452, C453: a column is missing, or no text. C455: two columns of one name.
        C454: a worker cannot use the pipeline.
    """
    schema = from_arrow_schema(score_schema(unit))
    if batch_size < 1:
        raise calib_error("C001", name="batch_size", wanted="a whole number of at least 1", given=batch_size)
    used = list(dict.fromkeys([text, *([] if id is None else [id]), *keep]))
    check_columns(df, used)
    check_type(df, text, TEXT)
    for name in keep:
        if name in schema.names:
            raise calib_error("C455", given=name)
    todo = Scoring(Model(model, attr), unit, text, id, tuple(keep), batch_size)
    if check:
        ask_a_worker(df.sparkSession, todo.model.load)
    kept = [df.schema[name] for name in keep]
    return df.select(*used).mapInArrow(todo.batches, StructType([*kept, *schema.fields]))
