"""What is asked before a job begins, so that a fault is one sentence and not the traceback of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, DataType, StringType

from ..errors import CalibError, calib_error

TEXT, BYTES = StringType(), BinaryType()


def check_columns(df: DataFrame, names: Sequence[str]) -> None:
    """RAISES C452: the frame has not all of them."""
    for name in names:
        if name not in df.columns:
            raise calib_error("C452", given=name, available=", ".join(df.columns))


def check_type(df: DataFrame, name: str, wanted: DataType) -> None:
    """RAISES C453: the column is of another type."""
    given = df.schema[name].dataType
    if type(given) is not type(wanted):
        raise calib_error("C453", name=name, wanted=wanted.simpleString(), given=given.simpleString())


def ask_a_worker(session: SparkSession, question: Callable[[], Any]) -> None:
    """One small task that loads what the job needs; a worker that loaded a pipeline keeps it for the job.

    question (Callable): Raises a CalibError where something is missing. RAISES C454: with what it said.
    """
    told = session.range(0, 1, 1, 1).mapInArrow(partial(_told, question), "why string").collect()
    if told[0]["why"] is not None:
        raise_told(told[0]["why"])


def raise_told(why: str) -> None:
    """RAISES C454: what a worker told."""
    raise calib_error("C454", why=why)


def _told(question: Callable[[], Any], batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    why = None
    try:
        question()
    except CalibError as error:
        why = str(error)
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"why": pa.array([why], pa.string())})
