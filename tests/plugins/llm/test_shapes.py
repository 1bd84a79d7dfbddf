"""Forms in which servers and libraries give one answer: the same tokens and numbers are read from each, and how it ended."""

import copy
import enum
import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib import Answer
from spacy_calib.errors import CalibError
from tests.plugins.llm.test_response import objects as as_objects
from tests.sentences import says

TOKENS = [("dog", -0.1), (" ->", -0.01), (" animal", -0.2)]
TEXT = "dog -> animal"
THING = (" thing", -2.0)
EXPECTED = Answer(
    (b"dog", b" ->", b" animal"), (-0.1, -0.01, -0.2), ((), (), ((b" animal", -0.2), (b" thing", -2.0)))
)  # fmt: skip


def items(token: str = "token", number: str = "logprob") -> list[dict[str, Any]]:
    """An object for each token, with these names."""
    made = [{token: text, number: value} for text, value in TOKENS]
    made[2]["top_logprobs"] = [{token: text, number: value} for text, value in (TOKENS[2], THING)]
    return made


def of_vllm() -> Any:
    def number(value, text):
        return SimpleNamespace(logprob=value, rank=1, decoded_token=text)

    places = [{n: number(value, text)} for n, (text, value) in enumerate(TOKENS)]
    places[2] = {9: number(THING[1], THING[0]), **places[2]}  # not in order
    return SimpleNamespace(text=TEXT, token_ids=[0, 1, 2], logprobs=places, finish_reason="stop", index=0)


class Reason(enum.Enum):
    """As Gemini's client has them."""

    STOP = "STOP"
    SAFETY = "SAFETY"


CHAT = {"choices": [{"message": {"content": TEXT}, "logprobs": {"content": items()}, "finish_reason": "stop"}]}
TRIPLES = [[number, place, text] for place, (text, number) in enumerate(TOKENS)]
GEMINI_TOPS = [{"candidates": []}, {"candidates": []}, {"candidates": items("token", "logProbability")[2]["top_logprobs"]}]
FORMS: dict[str, Any] = {
    "OpenAI, chat": CHAT,
    "OpenAI, responses": {"status": "completed", "output": [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [
            {"type": "output_text", "text": "dog", "logprobs": items()[:1]}, {"type": "output_text", "text": " -> animal", "logprobs": items()[1:]},
        ]},
    ]},
    "OpenAI, streamed": [
        {"choices": [{"delta": {"content": "dog"}, "logprobs": {"content": items()[:1]}, "finish_reason": None}]},
        {"choices": [{"delta": {"content": " -> animal"}, "logprobs": {"content": items()[1:]}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "logprobs": None, "finish_reason": "stop"}]},
        {"choices": []},
    ],
    "Ollama, chat": {"message": {"content": TEXT}, "done": True, "done_reason": "stop", "logprobs": items()},
    "Ollama, generate": {"response": TEXT, "done": True, "done_reason": "stop", "logprobs": items()},
    "vLLM": SimpleNamespace(prompt="x", outputs=[of_vllm()]),
    "vLLM, one output": of_vllm(),
    "SGLang": {"text": TEXT, "meta_info": {
        "finish_reason": {"type": "stop", "matched": 2}, "output_token_logprobs": TRIPLES,
        "output_top_logprobs": [None, None, [[-2, 9, " thing"], [-0.2, 2, " animal"]]],
    }},
    "LangChain": {"content": TEXT, "response_metadata": {"logprobs": {"content": items()}, "finish_reason": "stop"}},
    "LangChain, parts": {"content": [{"type": "text", "text": TEXT}], "response_metadata": {"logprobs": {"content": items()}}},
    "LangChain, Ollama": {"content": TEXT, "response_metadata": {"logprobs": items(), "done_reason": "stop"}},
    "LangChain, generations": SimpleNamespace(generations=[[
        SimpleNamespace(text=TEXT, generation_info={"logprobs": {"content": items()}}, message=None),
    ]]),
    "llama.cpp": {"content": TEXT, "stop_type": "eos", "completion_probabilities": items()},
    "Gemini": {"candidates": [{
        "content": {"parts": [{"text": "hm", "thought": True}, {"text": TEXT}]}, "finishReason": "STOP",
        "logprobsResult": {"chosenCandidates": items("token", "logProbability"), "topCandidates": GEMINI_TOPS},
    }]},
    "Gemini, Python": as_objects({"candidates": [{
        "content": {"parts": [{"text": TEXT, "thought": None}]}, "finish_reason": Reason.STOP,
        "logprobs_result": {
            "chosen_candidates": items(number="log_probability"),
            "top_candidates": [{"candidates": inner} for inner in ([], [], items(number="log_probability")[2]["top_logprobs"])],
        },
    }]}),
    "TGI": {"generated_text": TEXT, "details": {
        "finish_reason": "eos_token", "tokens": items("text"), "top_tokens": [[], [], items("text")[2]["top_logprobs"]],
    }},
    "objects of tokens": items(),
    "logprobs of a chat": {"content": items()},
}  # fmt: skip


TEXTS = [text for text, _ in TOKENS]
NUMBERS = [number for _, number in TOKENS]
TOPS = [{}, {}, dict([TOKENS[2], THING])]
# Mappings that hold a mapping of tokens, or are no response but a part of one.
MORE_FORMS = {
    "OpenAI, completion": {"text": TEXT, "logprobs": {"tokens": TEXTS, "token_logprobs": NUMBERS, "top_logprobs": TOPS}},
    "lists": {"tokens": TEXTS, "logprobs": NUMBERS, "top_logprobs": TOPS},
    "choice": CHAT["choices"][0],
    "ours": EXPECTED.plain(),
    "ours, as JSON": json.loads(json.dumps(EXPECTED.plain())),
}


@pytest.mark.parametrize("form", [*FORMS, *MORE_FORMS])
def test_each_form_gives_the_same(form):
    answer = Answer.from_response({**FORMS, **MORE_FORMS}[form])
    assert (answer.tokens, answer.outcome) == (EXPECTED.tokens, "")
    assert answer.logprobs == pytest.approx(EXPECTED.logprobs)
    assert [token for token, _ in answer.tops[2]] == [b" animal", b" thing"]
    assert [number for _, number in answer.tops[2]] == pytest.approx([-0.2, -2.0])
    (field,) = answer.lines()
    assert answer.scores(field)["product"] == pytest.approx(math.exp(-0.31))


OF_DICTS = [name for name, form in FORMS.items() if isinstance(form, dict)]


@pytest.mark.parametrize("form", OF_DICTS)
def test_objects_are_read_as_mappings_are(form):
    assert Answer.from_response(as_objects(FORMS[form])) == Answer.from_response(FORMS[form])


def with_tokens(before: list[str], after: list[str], content: str | None = None) -> dict[str, Any]:
    around = [[{"token": text, "logprob": -3.0} for text in texts] for texts in (before, after)]
    choice = {"logprobs": {"content": [*around[0], *items(), *around[1]]}}
    return {"choices": [choice if content is None else {**choice, "message": {"content": content}}]}


@pytest.mark.parametrize("content", [None, TEXT])
@pytest.mark.parametrize(("before", "after"), [
    ([], ["<|im_end|>"]),
    ([], ["</s>", "\n"]),
    ([], ["<end_of_turn>", "<eos>"]),
    ([], ["<\uff5cend\u2581of\u2581sentence\uff5c>"]),
    (["<think>", "\n", "dog -> animal? cat -> animal", "</think>", "\n\n"], []),
    (["a cat", "</think>"], ["<|eot_id|>"]),  # the prompt opened the thought
    (["<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant", "<|channel|>", "final", "<|message|>"], ["<|return|>"]),
])  # fmt: skip
def test_thoughts_and_special_tokens_are_no_part_of_the_answer(before, after, content):
    answer = Answer.from_response(with_tokens(before, after, content))
    (field,) = answer.lines()
    assert (field.text, field.label) == ("dog", "animal")
    assert answer.scores(field)["product"] == pytest.approx(math.exp(-0.31))
    assert Answer.from_response(answer.plain()) == answer
    assert answer.found_in("a dog", answer.lines(), {"animal": "A"})[1] == {}


@pytest.mark.parametrize(
    "line", ["**dog** -> animal", "- `dog` -> **animal**", '"dog" -> "animal"', "* _dog_ -> animal.", "1. dog -> 'animal'"]
)
def test_markdown_around_a_value_does_not_make_it_invented(line):
    answer = Answer.from_response({"tokens": list(line), "logprobs": [-0.1] * len(line)})
    spans, counts = answer.found_in("a dog", answer.lines(), {"animal": "A"})
    assert [(span["start"], span["label"]) for span in spans] == [(2, "A")]
    assert counts == {}
    (field,) = answer.lines()
    assert line[field.start : field.end] == "dog"
    assert line[field.label_start :].startswith("animal")


def ended(reason: Any, text: str | None = TEXT) -> list[Any]:
    """An answer with a reason to end, in several forms; without a text one that has no tokens."""
    tokens = items() if text else None
    chat = {"message": {"content": text}, "logprobs": {"content": tokens}, "finish_reason": reason}
    return [
        {"choices": [chat]},
        {"message": {"content": text or ""}, "logprobs": tokens, "done_reason": reason},
        {"text": text or "", "meta_info": {"finish_reason": {"type": reason}, "output_token_logprobs": TRIPLES if text else []}},
        {"content": text or "", "response_metadata": {"logprobs": {"content": tokens}, "finish_reason": reason}},
        {"content": text or "", "stop_type": reason, "completion_probabilities": tokens or []},
        {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": [{"content": [{"text": text or "", "logprobs": tokens}]}]},
    ]  # fmt: skip


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "limit"])
def test_a_cut_answer_keeps_its_tokens(reason):
    for response in ended(reason):
        answer = Answer.from_response(response)
        assert (answer.outcome, answer.text) == ("cut", TEXT)
        assert answer.lines() == []  # its last line may be cut: animal or animals
        assert Answer.from_response(answer.plain()) == answer
    for response in ended(reason, None):
        assert (Answer.from_response(response).outcome, Answer.from_response(response).text) == ("cut", "")


@pytest.mark.parametrize(("reason", "outcome"), [
    ("content_filter", "filtered"), ("SAFETY", "filtered"), (Reason.SAFETY, "filtered"), ("refusal", "refused"),
    ("tool_calls", "called"),
])  # fmt: skip
def test_an_answer_that_is_none(reason, outcome):
    for text in (TEXT, None):
        for response in ended(reason, text)[: 1 if isinstance(reason, Reason) else None]:
            answer = Answer.from_response(response)
            assert (answer.outcome, answer.tokens) == (outcome, ())
            assert Answer.from_response(answer.plain()) == answer


@pytest.mark.parametrize(("response", "outcome"), [
    ({"choices": []}, "filtered"),
    ({"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}, "filtered"),
    (SimpleNamespace(candidates=None, prompt_feedback=SimpleNamespace(block_reason=Reason.SAFETY)), "filtered"),
    ({"choices": [{"message": {"content": None, "refusal": "no"}, "logprobs": {"content": None, "refusal": items()}}]}, "refused"),
    ({"output": [{"content": [{"type": "refusal", "refusal": "no"}]}], "status": "completed"}, "refused"),
    ({"content": "", "additional_kwargs": {"refusal": "no"}, "response_metadata": {"finish_reason": "stop"}}, "refused"),
    ({"choices": [{"message": {"content": None, "tool_calls": [{}]}, "logprobs": None, "finish_reason": "tool_calls"}]}, "called"),
])  # fmt: skip
def test_refusals_and_filters(response, outcome):
    assert (Answer.from_response(response).outcome, Answer.from_response(response).text) == (outcome, "")


@pytest.mark.parametrize("response", [
    {"text": TEXT, "meta_info": {"output_token_logprobs": [[-0.1, 1, None], [-0.2, 2, None]]}},
    {"choices": [{"text": TEXT, "logprobs": {"tokens": ["token_id:1", "token_id:2"], "token_logprobs": [-0.1, -0.2]}}]},
])  # fmt: skip
def test_numbers_in_place_of_tokens_are_a_sentence(response):
    with pytest.raises(CalibError, match=r"\[C647\].*return_text_in_logprobs"):
        Answer.from_response(response)


def silenced(value: Any) -> Any:
    """A response without its log-probabilities."""
    gone = ("logprobs", "completion_probabilities", "logprobsResult", "meta_info", "details")
    if isinstance(value, dict):
        return {key: silenced(inner) for key, inner in value.items() if key not in gone}
    return [silenced(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", [name for name in OF_DICTS if name != "logprobs of a chat"])
def test_no_form_is_read_without_log_probabilities(form):
    with pytest.raises(CalibError, match=says("C642", given="dog -> animal")):
        Answer.from_response(silenced(FORMS[form]))


VALUES = st.sampled_from(
    [None, True, 0, 1, -1.5, 2.5, math.nan, math.inf, "", "x", b"x", [], [None], {}, {"x": 1}, [["a"]], [[]], object()]
)


@given(st.sampled_from(sorted(OF_DICTS)), st.data())
def test_damaged_responses_are_a_sentence_or_an_answer(form, data):
    response = copy.deepcopy(FORMS[form])
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = response, data.draw(st.sampled_from(sorted(response)))
        while isinstance(holder[key], (dict, list)) and holder[key] and data.draw(st.integers(0, 4)):
            holder = holder[key]
            key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        holder[key] = copy.deepcopy(data.draw(VALUES))
    try:
        answer = Answer.from_response(response)
    except CalibError as refusal:
        error = refusal
    else:
        assert all(math.isnan(number) or number <= 0 for number in answer.logprobs)
        assert Answer.from_response(answer.plain()).text == answer.text
        return
    assert error.code in ("C641", "C642", "C643", "C647")
    assert len(str(error)) < 500


def test_a_deep_response_is_a_sentence():
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for response in (deep, {"choices": deep}, {"message": {"content": deep}}):
        with pytest.raises(CalibError, match=r"\[C64[12]\]"):
            Answer.from_response(response)
