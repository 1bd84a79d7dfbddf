"""Score the texts of a Spark DataFrame: a function for `DataFrame.mapInPandas`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spacy.language import Language

from ...doc.zones import memory_zone
from ...pipe.pipeline import check_readable, check_unit, fitted_pipes_with, import_user_code, load_pipeline
from .messages import calib_error
from .score_rows import get_columns, score_rows

# Number of texts that are scored, and whose rows are made, at a time.
_N_TEXTS = 1000


@dataclass(frozen=True)
class TextScorer:
    """A function for `DataFrame.mapInPandas`: rows of texts -> rows of their scores, as `score_rows` makes them.

    The pipeline is loaded when a TextScorer is made, so that a fault is reported at once, and again once in each process of a
    worker. A null text has no rows. A task that Spark runs again, since its worker was killed, returns the same rows.

    model (str): Package or path of the pipeline, which each worker needs. text, id (str): Columns of the texts and of their
        ids. unit (str): What gets a row: token, entity, sentence or document. attr (str | None): Prefix of the calib pipe; None
        for all fitted ones. code (str | None): Python file or module, on every worker, to import before the pipeline is loaded.
    RAISES C001: there is no such unit. C062: the code cannot be imported. C050, C010 to C020: the pipeline cannot be loaded.
        C027, C068: no such fitted pipe. C021, C069, C084: its component is missing or disabled. C446, C447: no pipe scores this
        unit. On a worker: C452, C453: a column is missing, or of another type.

        scorer = TextScorer("./calibrated", id="number")
        scores = texts.mapInPandas(scorer, scorer.schema)
    """

    model: str
    text: str = "text"
    id: str = "id"
    unit: str = "token"
    attr: str | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        # Workers have other working directories.
        object.__setattr__(self, "model", _make_absolute(str(self.model)))
        if self.code is not None and str(self.code).endswith(".py"):
            object.__setattr__(self, "code", _make_absolute(str(self.code)))
        get_columns(self.unit)  # raises C001 if there is no such unit
        self._load()  # raises here, before Spark starts a worker, if the pipeline cannot score the unit

    @property
    def schema(self) -> str:
        """The columns of the rows with their types, in Spark's notation."""
        return ", ".join(f"{name} {kind}" for name, (kind, _) in get_columns(self.unit).items())

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield DataFrames with the rows of `score_rows`. batches: pandas DataFrames with columns `self.text` and `self.id`."""
        for batch in batches:
            texts, ids = self._read(batch)
            for start in range(0, len(texts), _N_TEXTS):
                yield self._score(texts[start : start + _N_TEXTS], ids[start : start + _N_TEXTS])

    def _read(self, batch: Any) -> tuple[list[str], list[Any]]:
        """Return (texts of a DataFrame that are not null, their ids). RAISES C452: a column is missing. C453: another type."""
        for name in (self.text, self.id):
            if name not in batch.columns:
                raise calib_error("C452", given=name, available=", ".join(map(str, batch.columns)))
        batch = batch[batch[self.text].notna()]
        texts, ids = batch[self.text].tolist(), batch[self.id]
        if not all(isinstance(text, str) for text in texts):
            raise calib_error("C453", name=self.text, given=batch[self.text].dtype)
        if ids.dtype.kind == "f":  # pandas has whole numbers with nulls as fractions, and large ones are rounded
            raise calib_error("C453", name=self.id, given=ids.dtype)
        return texts, [text_id if has_id else None for text_id, has_id in zip(ids.tolist(), ids.notna(), strict=True)]

    def _score(self, texts: list[str], ids: list[Any]) -> Any:
        """Return a DataFrame with the rows of `score_rows` for some texts. ids: Id of each text."""
        import pandas as pd

        nlp, attrs = self._load()
        with memory_zone(nlp):
            return pd.DataFrame(score_rows(nlp.pipe(texts), attrs, self.unit, ids=ids), dtype=object)

    def _load(self) -> tuple[Language, tuple[str, ...]]:
        """Return (pipeline, prefixes of its calib pipes) from a cache; a pipeline that was written anew is reloaded."""
        meta = os.path.join(self.model, "meta.json")
        return _load_checked(self, os.stat(meta).st_mtime_ns if os.path.exists(meta) else 0)


@lru_cache(maxsize=2)
def _load_checked(scorer: TextScorer, mtime: int) -> tuple[Language, tuple[str, ...]]:
    """Load the pipeline of a scorer, and check that it scores the unit. mtime (int): Makes the cache notice a new pipeline."""
    import_user_code(scorer.code)
    nlp = load_pipeline(scorer.model)
    pipes = fitted_pipes_with(nlp, scorer.attr)
    for pipe in pipes:
        check_readable(nlp, pipe)
    check_unit(nlp, pipes, scorer.unit)
    return nlp, tuple(pipe.attr for pipe in pipes)


def _make_absolute(path: str) -> str:
    """Return the absolute path of an existing file or folder; other texts, such as names of packages, unchanged."""
    return os.path.abspath(path) if os.path.exists(path) else path
