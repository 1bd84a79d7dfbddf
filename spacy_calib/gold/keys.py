"""Values of Docs under a key by which Docs are grouped, such as genre, customer or date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example

from ..errors import brief, calib_error
from ..registry import REGISTRIES

DOC_KEY = "calib_document"  # key of `Doc.user_data` with the source document: a string, a number, or a SourceDocument
DRAWN_KEY = "calib_drawn"  # key of `Doc.user_data` for how a text was sampled for annotation, "drawn" in the record of a queue
ORIGIN = "calib_origin"  # key of `Doc.user_data` with the origin of a text, for `ScoredCorpus.origins`
IN_LINE = "value"  # key in the origin of a text with the value of the field to group by in its line


def value_of(doc: Doc, key: str) -> Any:
    """Return the value of a Doc under a key such as "genre", None without one.

    It comes from the function of this name in the registry `calib_keys`, else from `Doc.user_data`, else from the line or
    row of the text, in which its reader has looked up the key. RAISES C600: the function fails. C500: it cannot be loaded.
    """
    registry = REGISTRIES["calib_keys"]
    if key in registry:
        try:
            return registry.get(key)(doc)
        except Exception as error:  # a registered function may raise anything
            raise calib_error("C600", key=key, text=brief(repr(doc.text)), why=brief(repr(error), 160)) from error
    return doc.user_data[key] if key in doc.user_data else doc.user_data.get(ORIGIN, {}).get(IN_LINE)


def name_of(value: Any) -> str | None:
    """Return a value as text, as the name of a group; None for white space, bytes, lists and other collections."""
    if value is None or isinstance(value, (dict, list, tuple, set, bytes)):
        return None
    return str(value).strip() or None


def names_under(docs: Iterable[Doc], key: str) -> list[str | None]:
    """Return for each Doc its value under a key as a group name, None without one.

    RAISES C600, C500: a value cannot be computed. C601: no Doc has a name. C602: all names differ, and there are more than two.
    """
    names = [name_of(value_of(doc, key)) for doc in docs]
    check_names(Counter(names), key)
    return names


class Names:
    """Records the group names of examples that pass through `watch`.

    key (str | None): What examples are grouped by, such as "genre": the value of a gold Doc under this key (`value_of`), as
    text, is the name of its group. None records nothing.
    """

    def __init__(self, key: str | None):
        self._key = key
        self._new_names: list[str | None] = []  # of the examples since the last `take`, None for one without a name
        self._counts: Counter[str | None] = Counter()  # name -> number of examples taken

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples unchanged, and record the name of each. RAISES C600, C500: its value cannot be computed."""
        for example in examples:
            if self._key is not None:
                self._new_names.append(name_of(value_of(example.reference, self._key)))
            yield example

    def take(self) -> list[str | None]:
        """Return the names recorded since the last call, None for an example without a name; [] without a key."""
        names, self._new_names = self._new_names, []
        self._counts.update(names)
        return names

    def check(self) -> None:
        """Check that the names taken so far form groups. RAISES C601: there is none. C602: all of more than two differ."""
        check_names(self._counts, str(self._key))


def check_names(names: Counter[str | None], key: str) -> None:
    """Check that names (name -> number of Docs) form groups. RAISES C601: there is none. C602: all of more than two differ."""
    name_counts = [n for name, n in names.items() if name is not None]
    if not name_counts:
        raise calib_error("C601", key=key)
    if len(name_counts) > 2 and max(name_counts) == 1:
        raise calib_error("C602", key=key, n=len(name_counts))
