"""The factory of `calib_answers`, a component that asks a language model about each text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...pipe.factory import component_factory


@dataclass(kw_only=True, eq=False)  # eq=True would make the component, a subclass, unhashable
class AnswersSettings:
    """Settings of `calib_answers`, a component that asks a language model.

    ask (Callable): (text) -> response that `Answer.from_response` reads; a function of the registry calib_asks.
    read (dict | None): Where JSON in an answer has a text and its type: arguments of `JsonFields`, such as {"text":
    "people[].name", "type": "people[].kind"}. None reads lines "text -> TYPE", and for categories the probability of each name
    at the start of the answer. types (dict | None): Name of a type in the prompt -> its label; fields of other types are left
    out and counted. None keeps all. into (str): Where spans go: "ents", "cats", or the key of a span group. key (str): With
    "ents", the key of a span group for all spans; with "cats", the prefix of the scores' names. threshold (float): Minimum
    score of entities. misaligned (str): "expand" or "contract" fits a span to the tokens, "strict" leaves it out. cache (str):
    File for answers, so that each text is sent once; "" for none. The answers in it quote the texts.
    """

    ask: Callable[[str], Any]
    read: dict[str, str] | None = None
    types: dict[str, str] | None = None
    into: str = "ents"
    key: str = "answers"
    threshold: float = 0.0
    misaligned: str = "expand"
    cache: str = ""


make_calib_answers = component_factory(
    "calib_answers", ".plugins.llm.asking:AnswersPipe", AnswersSettings, assigns=["doc.spans"]
)
