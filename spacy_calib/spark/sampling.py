"""Gold documents in a DataFrame -> a sample of them to fit on: a fit looks at some 100,000 tokens, however many there are."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, xxhash64
from pyspark.sql.types import BinaryType
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import calib_error
from ..pipe.loading import reason
from .session import check_columns, check_type


def gold_docs(df: DataFrame, vocab: Vocab, *, gold: str = "gold", tokens: int = 100_000) -> Iterator[Doc]:
    """Documents of the rows whose hash is lowest, the same for any partitions, until they have so many tokens.

    gold (str): Column of binary DocBins, as in .spacy files: `spark.read.format("binaryFile")` reads them (column `content`).
    RAISES C452, C453: the column is missing, or not binary. C457: a row is no DocBin.
    """
    check_columns(df, [gold])
    check_type(df, gold, BinaryType())
    for (data,) in df.select(gold).where(col(gold).isNotNull()).dropDuplicates().orderBy(xxhash64(gold)).toLocalIterator():
        try:
            docs = [doc for doc in DocBin().from_bytes(bytes(data)).get_docs(vocab) if len(doc)]
        except Exception as error:
            raise calib_error("C457", name=gold, why=reason(error)) from None
        yield from docs
        tokens -= sum(map(len, docs))
        if tokens <= 0:
            return
