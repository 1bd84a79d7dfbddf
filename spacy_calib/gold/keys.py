"""Values under a key of a Doc: its genre, its customer, its date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.registered import REGISTRIES
from ..errors import brief, calib_error

# Key of `Doc.user_data` that names the source document: a text or a number, or what the readers here put there.
DOC_KEY = "calib_document"
# Key of `Doc.user_data` for how a text came to be labelled, "drawn" in the record of a queue.
DRAWN_KEY = "calib_drawn"
# Key of `Doc.user_data` with which the reader of a text says where it comes from: see `ScoredCorpus.origins`.
ORIGIN = "calib_origin"
# Where the reader of a line keeps what stands there under the key that is asked for.
IN_LINE = "value"
_REGISTRY = "calib_keys"


def value_of(doc: Doc, key: str) -> Any:
    """Return the value from this function of `calib_keys`, the user data, or the Doc's line; or None. RAISES C600, C500."""
    registry = REGISTRIES[_REGISTRY]
    if key in registry:
        try:
            return registry.get(key)(doc)
        except Exception as error:  # whatever a registered function raises
            raise calib_error("C600", key=key, text=brief(repr(doc.text)), why=brief(repr(error), 160)) from error
    return doc.user_data[key] if key in doc.user_data else doc.user_data.get(ORIGIN, {}).get(IN_LINE)


def name_of(value: Any) -> str | None:
    """Return a value as the name of a group; None for white space, lists and mappings."""
    if value is None or isinstance(value, (dict, list, tuple, set, bytes)):
        return None
    return str(value).strip() or None


def names_under(docs: Iterable[Doc], key: str) -> list[str | None]:
    """Return each Doc's name under a key, or None. RAISES C601: there is none. C602: each has its own. Others: see `value_of`."""
    names = [name_of(value_of(doc, key)) for doc in docs]
    check_names(Counter(names), key)
    return names


def fields_of(docs: Iterable[Doc]) -> dict[str, list[str | None]]:
    """Return, for each key of the user data but our own, the name that each Doc has under it."""
    doc_list = list(docs)
    keys = {key for doc in doc_list for key in doc.user_data if isinstance(key, str) and not key.startswith("calib_")}
    return {key: [name_of(doc.user_data.get(key)) for doc in doc_list] for key in sorted(keys)}


class Names:
    """The names under a key of the Docs of examples that pass. key (str | None): None notes nothing."""

    def __init__(self, key: str | None):
        self._key = key
        self._new_names: list[str | None] = []
        # Each name that was met, and how often.
        self._counts: Counter[str | None] = Counter()

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples, each noted as it passes. RAISES C600, C500: see `value_of`."""
        for example in examples:
            if self._key is not None:
                self._new_names.append(name_of(value_of(example.reference, self._key)))
            yield example

    def take(self) -> list[str | None]:
        """Return the names since the last `take`; [] without a key."""
        names, self._new_names = self._new_names, []
        self._counts.update(names)
        return names

    def check(self) -> None:
        """Check that what passed can be grouped. RAISES C601, C602: see `names_under`."""
        check_names(self._counts, str(self._key))


def check_names(names: Counter[str | None], key: str) -> None:
    """Check that Docs can be grouped. names (Counter): How many Docs have each. RAISES C601, C602: see `names_under`."""
    times = [n for name, n in names.items() if name is not None]
    if not times:
        raise calib_error("C601", key=key)
    if len(times) > 2 and max(times) == 1:
        raise calib_error("C602", key=key, n=len(times))
