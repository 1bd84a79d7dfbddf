"""The saved form of sequence models: plain data and arrays with a version and a checksum, checked whole before any of it is taken over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..calibration.saved import LaterVersion, Unreadable, pack, unpack
from ..errors import CalibError, calib_error
from ..schema import Form, Misfit, flag, listed, maybe, text

FORMAT, FORMAT_VERSION = "spacy-calib-labeller", 1

# What every labeller keeps of its settings.
CHAIN: dict[str, Form] = {
    "labels": listed(text),
    "target": text,
    "by_sentence": flag,
    "overwrite": flag,
    "constraints": maybe(listed(listed(text, 2, 2))),
}  # fmt: skip


def dump(kind: str, state: dict[str, Any]) -> bytes:
    """kind (str): The factory of the labeller. state (dict): Plain data and numpy arrays."""
    return pack({"kind": kind, "state": state}, FORMAT, FORMAT_VERSION)


def read(data: bytes, form: Form, *, kind: str, name: str, path: str) -> dict[str, Any]:
    """The state that `dump` wrote, of the form declared. name (str), path (str): For the message.

    RAISES C335: not such bytes, truncated or changed, of another kind of labeller, or not of that form. C336: of a later format.
    """
    with unreadable_as_such(name, path):
        held = unpack(data, FORMAT, FORMAT_VERSION)
        given = held.get("kind") if isinstance(held, dict) else None
        if given != kind:
            raise Unreadable(f"it was written by a {given}, and this is a {kind}")
        return form(held.get("state"), "state")


@contextmanager
def unreadable_as_such(name: str, path: str) -> Iterator[None]:
    """Say of any fault in here that the component cannot be loaded. RAISES C335, C336."""
    try:
        yield
    except CalibError:
        raise
    except LaterVersion as error:
        raise calib_error("C336", name=name, given=error.given, wanted=FORMAT_VERSION) from None
    except (Unreadable, Misfit) as error:
        raise calib_error("C335", name=name, path=path, why=error) from None
    except Exception as error:  # whatever spaCy, thinc or json say of a file that is not whole
        raise calib_error(
            "C335", name=name, path=path, why=" ".join(f"{type(error).__name__}: {error}".split())[:200]
        ) from None
