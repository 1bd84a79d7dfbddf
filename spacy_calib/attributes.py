"""The attributes that users read: Token._.<attr>_score, _raw, _scores and Doc._.<attr>. All are getters over the Doc's blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Token

from .blocks import claimed_rows, find_row
from .errors import calib_error
from .layers import get_layer
from .types import Floats, Ints

DEFAULT_ATTR = "calib"


def token_values(token: Token, attr: str) -> tuple[float, float] | None:
    """(raw, calibrated) probability of the label that the token now carries.

    RETURNS: None where the token carries no label, where its label has no value (one that the model does not know, or one set after the
        pipe ran whose raw score is below the threshold), and where the values on the Doc are not this token's.
    """
    found = find_row(token.doc.user_data, attr, token.idx, token.orth)
    if found is None:
        return None
    block, row = found
    label = get_layer(block.layer).label(token)
    return block.score_of(row, label) if label else None


def token_score(token: Token, attr: str) -> float | None:
    """Token._.<attr>_score: calibrated probability that the label the token now carries is right, in [0, 1]."""
    values = token_values(token, attr)
    return None if values is None else values[1]


def token_raw(token: Token, attr: str) -> float | None:
    """Token._.<attr>_raw: the probability before calibration, in [0, 1]."""
    values = token_values(token, attr)
    return None if values is None else values[0]


def token_scores(token: Token, attr: str) -> dict[str, float] | None:
    """Token._.<attr>_scores: tag -> calibrated probability, highest first, the tags above the threshold; None without values."""
    found = find_row(token.doc.user_data, attr, token.idx, token.orth)
    return None if found is None else found[0].scores_of(found[1])


@dataclass(frozen=True, eq=False)
class DocCalib:
    """Read-only view of a Doc's scores, sparse: one entry per token and tag above the threshold.

    rows (Ints): Token index of each entry, ascending. tags (NDArray[object]): Its tag.
    raw, calibrated (Floats): Its probability before and after calibration.
    columns (Ints): The tag's column in the labels of the source, -1 where the block does not keep it.
    layer (str): Which annotation the tags are of.
    scored (NDArray[bool]): Which tokens have values, shape (n_tokens,).
    """

    rows: Ints
    tags: NDArray[np.object_]
    raw: Floats
    calibrated: Floats
    columns: Ints
    layer: str
    scored: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dense(self, labels: list[str], calibrated: bool = True) -> Floats:
        """An array (n_tokens, len(labels)); 0 for what is below the threshold, NaN in the rows of tokens without values.

        labels (list[str]): The columns wanted; tags that it leaves out are dropped.
        """
        dense = np.where(self.scored[:, None], np.zeros((len(self.scored), len(labels))), np.nan)
        column = {label: i for i, label in enumerate(labels)}
        wanted = np.array([column.get(tag, -1) for tag in self.tags], dtype=np.intp)
        keep = wanted >= 0
        dense[self.rows[keep], wanted[keep]] = (self.calibrated if calibrated else self.raw)[keep]
        return dense


def doc_view(doc: Doc, attr: str) -> DocCalib | None:
    """Doc._.<attr>: the scores of all tokens as arrays; None where the Doc has no block."""
    place = doc.to_array(["IDX", "ORTH"]).astype(np.uint64).reshape(-1, 2)
    matches = claimed_rows(doc.user_data, attr, place[:, 0].astype(np.int64), place[:, 1])
    if not matches:
        return None
    scored = np.zeros(len(doc), dtype=bool)
    parts: list[tuple[Any, ...]] = []
    for block, tokens, rows in matches:
        scored[tokens] = True
        lengths = (block["indptr"][rows + 1] - block["indptr"][rows]).astype(np.intp)
        first = np.cumsum(lengths) - lengths
        entries = np.repeat(block["indptr"][rows].astype(np.intp) - first, lengths) + np.arange(lengths.sum())
        names = np.array([*block["tags"], None], dtype=object)[:-1]
        columns = block["column"][entries] if "column" in block else np.full(len(entries), -1, dtype=np.intp)
        parts.append((np.repeat(tokens, lengths), names[block["tag"][entries]], block["raw"][entries],
                      block["calibrated"][entries], columns))  # fmt: skip
    columns_of_parts: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns_of_parts[0], kind="stable")
    rows, tags, raw, calibrated, columns = (array[order] for array in columns_of_parts)
    for array in (rows, tags, raw, calibrated, columns, scored):
        array.flags.writeable = False
    return DocCalib(rows, tags, raw, calibrated, columns, matches[0][0]["layer"], scored)


_TOKEN_GETTERS = {"score": token_score, "raw": token_raw, "scores": token_scores}


def register(attr: str = DEFAULT_ATTR) -> None:
    """Make Token._.<attr>_score, _raw, _scores and Doc._.<attr> known in this process; doing it twice is harmless.

    attr (str): Prefix of the attributes; a Python identifier.
    RAISES C001: not an identifier. C025: an extension of this name exists that is not ours.
    """
    if not isinstance(attr, str) or not attr.isidentifier():
        raise calib_error("C001", name="attr", wanted="a Python identifier", given=repr(attr))
    extensions: list[tuple[Any, str, Any]] = [(Doc, attr, doc_view)]
    extensions += [(Token, f"{attr}_{suffix}", getter) for suffix, getter in _TOKEN_GETTERS.items()]
    for owner, name, getter in extensions:
        if owner.has_extension(name) and not _is_ours(owner.get_extension(name)[2], getter, attr):
            raise calib_error("C025", attr=attr, owner=f"the extension {owner.__name__}._.{name}")
    for owner, name, getter in extensions:
        if not owner.has_extension(name):
            owner.set_extension(name, getter=partial(getter, attr=attr))


def _is_ours(getter: Any, wanted: Any, attr: str) -> bool:
    return isinstance(getter, partial) and getter.func is wanted and getter.keywords == {"attr": attr}


def register_default() -> None:
    """Register the default attributes unless somebody else owns one of the names: importing us must never break spaCy."""
    import contextlib

    from .errors import CalibError

    with contextlib.suppress(CalibError):
        register()


register_default()
