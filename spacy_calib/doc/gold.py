"""Gold labels in the order of the marginals, and the source whose gold a text is scored by (`Doc._.calib_source`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import calib_error
from ..types import Ints, Marginals
from .annotations import Hashes, columns_of, label_hashes


@dataclass(frozen=True)
class GoldColumns:
    """columns (Ints): As `pair_up` wants them. n_gold, n_unknown (int): Tokens with gold, with unknown gold labels."""

    columns: Ints
    n_gold: int
    n_unknown: int


def gold_columns(marginals: Marginals, gold: Hashes, labels: Sequence[str]) -> GoldColumns:
    """The gold column of each token: -1 where no column is the gold label, -2 without gold.

    gold (Hashes): Gold hash of each token, 0 for none, shape (n_tokens,). Where marginals have names of their own
    (lemmas), the column is that of the entry with the gold name.
    """
    has_gold = gold != 0
    if marginals.names is None:
        columns = columns_of(gold, labels)
    else:
        columns = np.where(has_gold, -1, -2)
        own = (label_hashes(marginals.names) == gold[marginals.rows]) & has_gold[marginals.rows]
        columns[marginals.rows[own]] = marginals.tags[own]
    return GoldColumns(columns, int(has_gold.sum()), int(np.count_nonzero(columns == -1)))


# The attribute of a Doc; one for all pipes, since it is the text that has a source.
SOURCE = "calib_source"


_KEY: Any = ("._.", SOURCE, None, None)


def register_source() -> None:
    """Make `Doc._.calib_source` known, None where nobody has set it."""
    if not Doc.has_extension(SOURCE):
        Doc.set_extension(SOURCE, default=None)


def keep_source(reference: Doc, predicted: Doc) -> None:
    """Let a predicted Doc name the source that its gold names."""
    if _KEY in reference.user_data:
        predicted.user_data[_KEY] = reference.user_data[_KEY]


def named_examples(sources: Mapping[str, Iterable[Example]]) -> Iterator[Example]:
    """The examples of all sources, each with its source on the predicted Doc. sources (Mapping): Name -> examples."""
    for name, examples in sources.items():
        for example in examples:
            example.predicted.user_data[_KEY] = name
            yield example


class GoldSources:
    """The number of each source. pipe (str): Name of the pipe that is fitted or run.

    known (Sequence[str] | None): The names of its fit, and no others; None adds every name that is met.
    """

    def __init__(self, pipe: str, known: Sequence[str] | None = None):
        self.pipe, self.names, self._grows = pipe, list(known or ()), known is None

    def number(self, name: Any) -> int:
        """The number of a source, -1 for None. RAISES C548: it is not known. C549: it is no name."""
        if name is None:
            return -1
        if not (isinstance(name, str) and name.strip()):
            raise calib_error("C549", given=repr(name))
        if name not in self.names:
            if not self._grows:
                known = f"name {', '.join(self.names)} or none" if self.names else "its gold had no names, so name none"
                raise calib_error("C548", given=name, name=self.pipe, known=known)
            self.names.append(name)
        return self.names.index(name)

    def of(self, docs: Iterable[Doc], default: str | None = None) -> Ints:
        """The source of each Doc, shape (n_docs,). Where a fit had no named sources, names on Docs do not count.

        default (str | None): The source of Docs that name none. RAISES C548, C549: see `number`.
        """
        unnamed, heard = self.number(default), self._grows or bool(self.names)
        named = (doc.user_data.get(_KEY) if heard else None for doc in docs)
        return np.array([unnamed if name is None else self.number(name) for name in named], dtype=np.intp)
