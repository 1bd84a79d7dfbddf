"""What stands under a key of a Doc: its genre, its customer, its date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.registered import REGISTRIES
from ..errors import brief, calib_error
from .collect import ORIGIN

# Where the reader of a line keeps what stands there under the key that is asked for.
IN_LINE = "value"
_REGISTRY = "calib_keys"


def value_of(doc: Doc, key: str) -> Any:
    """What the function of the registry `calib_keys` by this name gives for the Doc; without one what stands in its user data; else in its line.

    RETURNS (Any): None where there is nothing. RAISES C600: the function fails. C500: it cannot be imported.
    """
    registry = REGISTRIES[_REGISTRY]
    if key in registry:
        try:
            return registry.get(key)(doc)
        except Exception as error:  # whatever a registered function raises
            raise calib_error("C600", key=key, text=brief(repr(doc.text)), why=brief(repr(error), 160)) from error
    return doc.user_data[key] if key in doc.user_data else doc.user_data.get(ORIGIN, {}).get(IN_LINE)


def name_of(value: Any) -> str | None:
    """A value as the name of a group; None of what is no name: nothing, white space, a list, a mapping."""
    if value is None or isinstance(value, (dict, list, tuple, set, bytes)):
        return None
    return str(value).strip() or None


def names_under(docs: Iterable[Doc], key: str) -> list[str | None]:
    """The name under a key of each Doc, by which they are grouped; None where it has none.

    RAISES C601: no Doc has one. C602: each of several has one of its own. C600, C500: see `value_of`.
    """
    names = [name_of(value_of(doc, key)) for doc in docs]
    check_names(Counter(names), key)
    return names


def fields_of(docs: Iterable[Doc]) -> dict[str, list[str | None]]:
    """Key of the user data -> the name that each Doc has under it, for the keys under which this package keeps nothing."""
    held = list(docs)
    keys = {key for doc in held for key in doc.user_data if isinstance(key, str) and not key.startswith("calib_")}
    return {key: [name_of(doc.user_data.get(key)) for doc in held] for key in sorted(keys)}


class Names:
    """The names under a key of the Docs of examples that pass. key (str | None): None notes nothing."""

    def __init__(self, key: str | None):
        self._key = key
        self._passed: list[str | None] = []
        # Each name that was met, and how often.
        self._met: Counter[str | None] = Counter()

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes. RAISES C600, C500: see `value_of`."""
        for example in examples:
            if self._key is not None:
                self._passed.append(name_of(value_of(example.reference, self._key)))
            yield example

    def take(self) -> list[str | None]:
        """The names since the last `take`; [] without a key."""
        names, self._passed = self._passed, []
        self._met.update(names)
        return names

    def check(self) -> None:
        """Whether what passed can be grouped. RAISES C601, C602: see `names_under`."""
        check_names(self._met, str(self._key))


def check_names(names: Counter[str | None], key: str) -> None:
    """Whether Docs can be grouped. names (Counter): How many have each. RAISES C601, C602: see `names_under`."""
    times = [n for name, n in names.items() if name is not None]
    if not times:
        raise calib_error("C601", key=key)
    if len(times) > 2 and max(times) == 1:
        raise calib_error("C602", key=key, n=len(times))
