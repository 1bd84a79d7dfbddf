"""A file of scores, by its suffix, as arrays: the scores of each unit, its gold, and its place; and written as another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import brief, calib_error
from ...pairs.documents import DOCUMENT
from ...pairs.label_map import shorter
from ...types import Floats, Ints
from .columns import CALIBRATED, Chunk, Format, Texts, as_scores, length, row_error, with_column
from .npz import LABELS, MATRIX, OF_UNITS, Npz, Parquet, load_arrays, matrix_chunks
from .text import Delimited, JsonLines

_FORMATS: dict[str, Format] = {
    ".csv": Delimited(","),
    ".tsv": Delimited("\t"),
    ".jsonl": JsonLines(),
    ".parquet": Parquet(),
    ".npz": Npz(),
}
_RAW: dict[str, Format] = {".csv": Delimited(",", raw=True), ".tsv": Delimited("\t", raw=True)}
SUFFIXES = tuple(_FORMATS)


def is_score_file(path: Path) -> bool:
    """Whether a path ends as files of scores do."""
    return path.suffix.lower() in _FORMATS


def has_cells(path: Path) -> bool:
    """Whether a path ends as tables of text do."""
    return path.suffix.lower() in _RAW


def format_of(path: Path, raw_cells: bool = False) -> Format:
    """raw_cells (bool): See `Delimited`. RAISES C303: files that end so are no files of scores."""
    if not is_score_file(path):
        raise calib_error("C303", path=path, why=f"it ends in {path.suffix or 'nothing'}")
    return {**_FORMATS, **(_RAW if raw_cells else {})}[path.suffix.lower()]


def chunks_of(path: Path) -> Iterator[Chunk]:
    """The rows of a file. RAISES C301 to C304: see `Format`; C051: there is no such file, C303: it cannot be read."""
    try:
        yield from format_of(path).chunks(path)
    except FileNotFoundError:
        raise calib_error("C051", path=path) from None
    except OSError as error:
        raise calib_error("C303", path=path, why=error.strerror or error) from None


def with_calibrated(path: Path, output: Path, calibrated: Floats, raw_cells: bool = False) -> Iterator[bytes]:
    """The bytes of output: the rows of path, with a column of calibrated scores.

    calibrated (Floats): Of each row, NaN for none; or the matrix, where the file has one. raw_cells: See `Delimited`.
    RAISES C301, C303: a file cannot be read, or not be written in this format. C304: pyarrow is not installed.
    """
    source, target = format_of(path), format_of(output, raw_cells)
    if source is target:
        return source.extended(path, calibrated)
    if calibrated.ndim == 1:
        return target.written(with_column(chunks_of(path), calibrated))
    return target.written(matrix_chunks({**load_arrays(path), CALIBRATED: calibrated}))


# What tells units apart, and what is said of them; a file may lack each.
_TEXTS = ("document", "unit", "gold", "word", "sentence")
UNIT = "unit"


@dataclass(frozen=True, eq=False)
class Named:
    """A text for each of n units: codes (Ints), shape (n,), -1 for none; names (list[str])."""

    codes: Ints
    names: list[str]

    def at(self, unit: int) -> str:
        """The text of a unit, "" for none."""
        code = int(self.codes[unit])
        return self.names[code] if code >= 0 else ""

    def values(self) -> NDArray[np.object_]:
        """The text of each unit, None for none."""
        return np.array([*self.names, None], dtype=object)[self.codes]


class UnknownGold(NamedTuple):
    """Units whose gold tag is on no row: n of n_gold with gold. named (str): Such tags."""

    n: int
    n_gold: int
    named: str

    @property
    def share(self) -> float:
        return self.n / self.n_gold


@dataclass(frozen=True, eq=False)
class ScoreUnits:
    """n units of a file, in the order in which they are met.

    path (Path): The file. labels (list[str]): The tags that it names.
    P: The scores: (unit, place in labels, score) of each row of the file, in order; or the matrix in the file.
    documents, units, gold, words, sentences (Named | None): Of each unit; None where the file has no such column.
    """

    path: Path
    labels: list[str]
    P: Any
    n_units: int
    documents: Named | None
    units: Named | None
    gold: Named | None
    words: Named | None
    sentences: Named | None

    @property
    def groups(self) -> Ints | None:
        """The document of each unit; None where the file names none."""
        return None if self.documents is None else self.documents.codes

    @property
    def by(self) -> str:
        """What a document is."""
        return UNIT if self.documents is None else DOCUMENT

    def y(self) -> NDArray[np.object_]:
        """The gold label of each unit, None where there is none. RAISES C305: the file has no gold."""
        if self.gold is None or not (self.gold.codes >= 0).any():
            raise calib_error("C305", path=self.path)
        return self.gold.values()

    def unknown_gold(self) -> UnknownGold:
        """Gold labels that no row names. RAISES C305: the file has no gold."""
        counts = Counter(label for label in self.y().tolist() if label is not None)
        unknown = {label: n for label, n in counts.most_common() if label not in set(self.labels)}
        return UnknownGold(sum(unknown.values()), counts.total(), shorter(list(unknown)))

    def scores_for(self, classes: Sequence[Any]) -> Any:
        """The scores as a calibrator with these classes takes them. RAISES C294: a tag that it does not know."""
        columns = self._columns(classes)
        if isinstance(self.P, tuple):
            rows, tags, scores = self.P
            return rows, columns[tags], scores
        if columns.tolist() == list(range(len(classes))):
            return self.P
        whole = np.zeros((self.n_units, len(classes)), dtype=self.P.dtype)
        whole[:, columns] = self.P
        return whole

    def of_rows(self, calibrated: Any, classes: Sequence[Any], threshold: float) -> Floats:
        """Calibrated scores for `with_calibrated`. calibrated: A sparse matrix, or an array (units, classes)."""
        columns = self._columns(classes)
        if not isinstance(self.P, tuple):
            return calibrated[:, columns]
        rows, tags, scores = self.P
        return np.where(scores >= threshold, np.asarray(calibrated[rows, columns[tags]]).ravel(), np.nan)

    def _columns(self, classes: Sequence[Any]) -> Ints:
        column = {str(label): i for i, label in enumerate(classes)}
        for label in self.labels:
            if label not in column:
                raise calib_error("C294", given=repr(label), known=", ".join(column))
        return np.array([column[label] for label in self.labels], dtype=np.intp)

    def name_of(self, unit: int) -> str:
        """What a unit without a word is called."""
        name = str(unit + 1) if self.units is None else self.units.at(unit)
        return f"{UNIT} {name}" + ("" if self.documents is None else f" of {self.documents.at(unit)}")

    @property
    def n_entries(self) -> int:
        """Rows of the file, or scores above 0 of a matrix."""
        return len(self.P[2]) if isinstance(self.P, tuple) else int(np.count_nonzero(self.P))

    def n_reaching(self, threshold: float) -> int:
        """How many scores reach a threshold."""
        return int(np.count_nonzero((self.P[2] if isinstance(self.P, tuple) else self.P) >= threshold))


def read_units(path: Path) -> ScoreUnits:
    """Read a file of scores.

    RAISES C051: there is no such file. C300: a column is missing. C301: a row without a score, or a second one. C302:
    there are no scores. C303: no file of scores. C304: pyarrow is not installed.
    """
    if path.suffix.lower() == ".npz" and path.is_file():
        arrays = load_arrays(path)
        if MATRIX in arrays:
            return _of_matrix(path, arrays)
    return _of_rows(path)


def _of_rows(path: Path) -> ScoreUnits:
    held = {name: Texts() for name in (*_TEXTS, "tag")}
    scores: list[Floats] = []
    n, header = 0, None
    for chunk in chunks_of(path):
        if header is None:
            header = list(chunk)
            _check_columns(path, header, held)
        scores.append(as_scores(path, chunk["score"], n))
        for name, column in held.items():
            column.add(chunk[name])
        n += length(chunk)
    if not n:
        raise calib_error("C302", path=path)
    tags, score = held.pop("tag"), np.concatenate(scores)
    untagged = np.flatnonzero(tags.codes < 0)
    if len(untagged):
        raise row_error(path, int(untagged[0]), "there is no tag in it")
    rows, first = _units(held, n)
    texts = {name: _of_unit(path, name, held[name], rows, len(first)) for name in held}
    found = ScoreUnits(path, tags.names, (rows, tags.codes, score), len(first), **_by_name(texts))
    _check_once(found)
    return found


def _check_columns(path: Path, header: list[str], held: dict[str, Texts]) -> None:
    """Leave out columns that the file lacks. RAISES C300: tag or score among them. C302: the file is empty."""
    if not header:
        raise calib_error("C302", path=path)
    for name in ("tag", "score"):
        if name not in header:
            raise calib_error("C300", path=path, missing=name, known=", ".join(header))
    for name in [name for name in held if name not in header]:
        del held[name]


def _units(held: Mapping[str, Texts], n: int) -> tuple[Ints, Ints]:
    """(unit of each row, first row of each unit). Rows of one document and unit are one; without units each row is."""
    none = np.zeros(n, dtype=np.intp)
    documents = held["document"].codes if "document" in held else none
    units = held["unit"].codes if "unit" in held else np.arange(n)
    key = (documents + 1) * (int(units.max(initial=0)) + 2) + units + 1
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return place[inverse.reshape(-1)], first[order]


def _of_unit(path: Path, name: str, column: Texts, rows: Ints, n_units: int) -> Named:
    """The values of each unit's rows. RAISES C301: they differ."""
    codes = column.codes
    said = np.flatnonzero(codes >= 0)
    found = np.full(n_units, -1, dtype=np.intp)
    found[rows[said[::-1]]] = codes[said[::-1]]
    other = said[codes[said] != found[rows[said]]]
    if len(other):
        row = int(other[0])
        here, before = column.names[codes[row]], column.names[found[rows[row]]]
        raise row_error(path, row, f"its {name} is {here!r}, and that of an earlier row of the same unit {before!r}")
    return Named(found, column.names)


def _check_once(found: ScoreUnits) -> None:
    """RAISES C301: a unit has two scores of one tag."""
    rows, tags, _ = found.P
    order = np.lexsort((tags, rows))
    twice = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(tags[order]) == 0))
    if len(twice):
        row = int(order[twice[0] + 1])
        why = f"the tag {brief(repr(found.labels[tags[row]]))} stands twice for {brief(found.name_of(int(rows[row])))}"
        raise row_error(found.path, row, why)


def _by_name(texts: Mapping[str, Named]) -> dict[str, Named | None]:
    names = {"document": "documents", "unit": "units", "gold": "gold", "word": "words", "sentence": "sentences"}
    return {field: texts.get(name) for name, field in names.items()}


def _of_matrix(path: Path, arrays: Mapping[str, NDArray[Any]]) -> ScoreUnits:
    """The scores of a matrix. RAISES C300: no labels. C301: no score. C302: no scores. C303: arrays do not fit."""
    matrix = arrays[MATRIX]
    if LABELS not in arrays:
        raise calib_error("C300", path=path, missing=LABELS, known=", ".join(arrays))
    labels = arrays[LABELS].astype(str).ravel().tolist()
    beside = {name: array for name, array in arrays.items() if name in OF_UNITS}
    wrong = [f"{name} {array.shape}" for name, array in beside.items() if array.shape != matrix.shape[:1]]
    if (
        matrix.ndim != 2
        or matrix.dtype.kind not in "fiub"
        or matrix.shape[1] != len(labels)
        or len(set(labels)) != len(labels)
        or wrong
    ):
        shown = ", ".join([f"{MATRIX} {matrix.shape}", f"{len(set(labels))} labels", *wrong])
        raise calib_error("C303", path=path, why=f"its arrays do not go together: {shown}")
    if not matrix.size:
        raise calib_error("C302", path=path)
    low, high = matrix.min(axis=1), matrix.max(axis=1)
    bad = np.flatnonzero(~((low >= 0) & (high <= 1)))
    if len(bad):
        raise row_error(path, int(bad[0]), f"its scores from {low[bad[0]]:g} to {high[bad[0]]:g} are no numbers from 0 to 1")
    texts = {}
    for name, array in beside.items():
        column = Texts()
        column.add(array.tolist())
        texts[OF_UNITS[name]] = Named(column.codes, column.names)
    return ScoreUnits(path, labels, matrix, len(matrix), **_by_name(texts))
