"""How sequence models are saved: the settings that all have, and that labels, target and constraints fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..calibration.saved import Unreadable
from ..errors import brief, calib_error
from ..pipe.saved import Kept
from ..pipe.saved import dump as dump_kept
from ..pipe.saved import read as read_kept
from ..schema import Form, Misfit, Optional, flag, listed, maybe, record, text
from .factory import ChainSettings
from .targets import get_target

LABELLER = Kept("spacy-calib-labeller", 1, "C335", "C336")


def taken(by: Callable[[Any], object], form: Form = text) -> Form:
    """A form of what a function takes without an error. by (Callable): RAISES CalibError: it takes it not."""

    def checked(value: Any, where: str) -> Any:
        held = form(value, where)
        by(held)
        return held

    return checked


# What every labeller keeps of its settings.
_CHAIN: dict[str, Form | Optional] = {
    "labels": listed(text),
    "target": taken(get_target),
    "by_sentence": flag,
    "overwrite": flag,
    "constraints": maybe(listed(listed(text, 2, 2))),
}


def _labels_agree(held: dict[str, Any]) -> str:
    labels = held["labels"]
    if len(set(labels)) < len(labels):
        return "each label stands in 'labels' once"
    if not all(map(get_target(held["target"]).is_label, labels)):
        return f"'labels' are those of the target '{brief(held['target'])}'"
    # Before it learned any, constraints may name labels to come.
    unknown = labels and {one for pair in held["constraints"] or () for one in pair} - set(labels)
    return "'constraints' name labels" if unknown else ""


def chain_settings(more: Mapping[str, Form | Optional]) -> Form:
    """The form of the settings of a labeller. more (Mapping): Those that only its kind has."""
    return record({**_CHAIN, **more}, _labels_agree)


def check_settings(form: Form, settings: ChainSettings) -> dict[str, Any]:
    """What a labeller keeps of the settings that it is built with, of the form in which they are saved.

    RAISES C001: one is not of its form. C324: see `get_target`.
    """
    given = {"labels": [], **vars(settings)}
    try:
        held: dict[str, Any] = form(given, "settings")
    except Misfit as error:
        name = error.where.partition(".")[2].partition("[")[0]
        raise calib_error("C001", name=name, wanted=error.wanted, given=repr(given.get(name))) from None
    return held


def dump(kind: str, state: dict[str, Any]) -> bytes:
    """The bytes of a labeller. kind (str): Its factory. state (dict): Plain data and numpy arrays."""
    return dump_kept({"kind": kind, "state": state}, LABELLER)


def read(data: bytes, form: Form, *, kind: str, name: str, path: str) -> dict[str, Any]:
    """The state that `dump` wrote, of the form declared. name (str), path (str): For the message.

    RAISES C335: not such bytes, damaged, of another kind of labeller, or not of that form. C336: of a later format.
    """

    def of_kind(held: Any) -> dict[str, Any]:
        given = held.get("kind") if isinstance(held, dict) else None
        if given != kind:
            raise Unreadable(f"it was written by a {brief(given)}, and this is a {kind}")
        found: dict[str, Any] = form(held.get("state"), "state")
        return found

    return read_kept(data, of_kind, name=name, path=path, kept=LABELLER)
