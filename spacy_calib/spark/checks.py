"""What is asked before a job begins, and how workers tell of faults: in one sentence, not by a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from ..errors import CalibError, calib_error


def check_columns(df: DataFrame, names: Sequence[str]) -> None:
    """RAISES C001: it is no DataFrame. C452: it has not all of them."""
    if not isinstance(df, DataFrame):
        raise calib_error("C001", name="df", wanted="a DataFrame of Spark", given=type(df).__name__)
    for name in names:
        if name not in df.columns:
            raise calib_error("C452", given=name, available=", ".join(df.columns))


def check_type(df: DataFrame, name: str, wanted: DataType) -> None:
    """RAISES C453: the column is of another type."""
    given = df.schema[name].dataType
    if type(given) is not type(wanted):
        raise calib_error("C453", name=name, wanted=wanted.simpleString(), given=given.simpleString())


def ask_a_worker(session: SparkSession, load: Callable[[], Any]) -> None:
    """One small task that loads what the job needs; the process that did keeps it for the job.

    load (Callable): Raises a CalibError where something is amiss. RAISES C454: workers do not find the pipeline. Others: what `load` raised.
    """
    told = session.range(0, 1, 1, 1).mapInArrow(partial(_told, load), "code string, why string").collect()
    if told:
        raise_told(told[0]["code"], told[0]["why"])


def raise_told(code: str, why: str) -> None:
    """Raise what a worker told. RAISES C454: it does not find the pipeline. Others: as they are."""
    if code == "C050":
        raise calib_error("C454", why=why)
    raise CalibError(code, why)


def _told(load: Callable[[], Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        try:
            load()
        except CalibError as error:
            yield pa.RecordBatch.from_pydict({"code": [error.code], "why": [error.message]})
