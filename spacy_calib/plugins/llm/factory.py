"""The factory of a component that asks a language model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import registry as _registry  # noqa: F401
from ...pipe.settings import block_or_none, component_factory


@dataclass(kw_only=True)
class AnswersSettings:
    """What a config says of a component that asks a language model.

    ask (Callable): (text) -> response, see `Answer.of`; a function of the registry calib_asks.
    read (Callable | None): (answer) -> fields, pairs of a text and a type, or a mapping of names to probabilities; of the registry calib_readers. None reads lines
        "text -> TYPE", and of categories the probability of each name where the answer begins.
    types (dict | None): What the prompt calls each type -> its label; what is no such type is left out and counted. None keeps all.
    into (str): "ents", "cats", or the key of the span group that the spans go into.
    key (str): Beside "ents", of the span group that holds all that was found. threshold (float), misaligned (str): See `spans_from`.
    cache (str): A file for answers, so that each text is asked for once; "" for none. It holds answers, and so parts of texts.
    """

    ask: Callable[[str], Any]
    read: Callable[..., Any] | None = block_or_none("@calib_readers")
    types: dict[str, str] | None = None
    into: str = "ents"
    key: str = "answers"
    threshold: float = 0.0
    misaligned: str = "expand"
    cache: str = ""


make_calib_answers = component_factory("calib_answers", ".plugins.llm.asking:Asking", AnswersSettings, assigns=["doc.spans"])
