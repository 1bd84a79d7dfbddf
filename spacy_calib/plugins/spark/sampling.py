"""Sample gold documents from a DataFrame: a fit needs some 100,000 tokens, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ...gold.keys import DOC_KEY
from ...pipe.pipeline import reason
from .messages import calib_error
from .session import check_columns, check_type

_SCHEMA = pa.schema([("document", pa.int64()), ("doc", pa.binary()), ("fault", pa.string())])
# Number of a document that cannot be read; it sorts before all others.
_FIRST = -(1 << 63)


def gold_docs(df: DataFrame, vocab: Vocab, *, gold: str = "gold", n_tokens: int = 100_000) -> Iterator[Doc]:
    """Sample whole documents until they have `n_tokens` tokens, the same ones however the rows are partitioned.

    Documents are taken in the order of their digests. Docs with the same name in `Doc.user_data["calib_document"]` are one
    document, even in several rows; any other Doc is a document by itself.
    df (DataFrame): Rows with gold. vocab (Vocab): Vocab of the returned Docs. gold (str): Column of binary DocBins;
    `spark.read.format("binaryFile")` reads .spacy files into the column `content`. n_tokens (int): Minimum number of tokens.
    RAISES C001: df is no DataFrame, or n_tokens is below 1. C452, C453: the column is missing, or not binary. C457: a row is no
    DocBin.
    """
    if n_tokens < 1:
        raise calib_error("C001", name="n_tokens", wanted="a whole number of at least 1", given=n_tokens)
    check_columns(df, [gold])
    check_type(df, gold, BinaryType())
    rows = df.select(gold).where(col(gold).isNotNull()).mapInArrow(_unpack_docs, from_arrow_schema(_SCHEMA))
    return _take_docs(rows.orderBy("document", "doc").toLocalIterator(), vocab, gold, n_tokens)


def _unpack_docs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each Doc of the DocBins, or a row with the fault if the bytes are no DocBin."""
    for batch in batches:
        for data in batch.column(0).to_pylist():
            try:
                docs = DocBin().from_bytes(data).get_docs(Vocab())
                rows: list[dict[str, Any]] = [
                    {"document": _hash_document(doc), "doc": DocBin(docs=[doc], store_user_data=True).to_bytes()}
                    for doc in docs
                    if len(doc)
                ]
            except Exception as error:
                rows = [{"document": _FIRST, "fault": reason(error)}]
            yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def _hash_document(doc: Doc) -> int:
    """Return a digest of the name of the Doc's document, or of its text if the document has no name."""
    name = repr(doc.user_data.get(DOC_KEY, doc.text)).encode("utf8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "little", signed=True)


def _take_docs(rows: Iterable[Any], vocab: Vocab, gold: str, n_tokens: int) -> Iterator[Doc]:
    """Yield the Docs of the first rows, until a document ends after `n_tokens` tokens. RAISES C457: a row is no DocBin."""
    n_taken, document = 0, None
    for row in rows:
        if row["fault"] is not None:
            raise calib_error("C457", name=gold, why=row["fault"])
        if n_taken >= n_tokens and row["document"] != document:
            return
        document = row["document"]
        for doc in DocBin().from_bytes(bytes(row["doc"])).get_docs(vocab):
            n_taken += len(doc)
            yield doc
