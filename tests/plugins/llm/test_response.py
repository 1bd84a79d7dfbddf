"""What an answer of a language model says of stretches of its text: responses by hand, and recorded ones."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib import Answer
from spacy_calib.errors import CalibError
from spacy_calib.plugins.llm.response import MIN_LOGPROB, SCORES, Field
from tests.asked import recorded
from tests.sentences import says


def token(text: str | bytes, p: float = 0.5, **tops: float) -> dict:
    held = text if isinstance(text, bytes) else text.encode()
    others = [{"token": name, "bytes": list(name.encode()), "logprob": math.log(q)} for name, q in tops.items()]
    return {"token": held.decode("utf8", "replace"), "bytes": list(held), "logprob": math.log(p), "top_logprobs": others}


def chat(*tokens: dict, content: str = "") -> dict:
    """As the API of OpenAI answers a chat."""
    message = {"role": "assistant", "content": content or "".join(one["token"] for one in tokens)}
    return {"choices": [{"index": 0, "message": message, "logprobs": {"content": list(tokens), "refusal": None}}]}


LINES = chat(
    token("Ann", 0.9), token(" ->", 0.8), token(" person", 0.7, **{" person": 0.7, " place": 0.2}), token("\n", 1.0),
    token("Rome", 0.5), token(" ->", 1.0), token(" pl", 0.6, **{" pl": 0.6, " person": 0.3}), token("ace", 0.9, ace=0.9, um=0.05),
)  # fmt: skip
TYPES = {"person": "PER", "place": "LOC"}


def objects(held):
    """The same as the clients of Python give it: objects with attributes."""
    if isinstance(held, dict):
        return SimpleNamespace(**{key: objects(value) for key, value in held.items()})
    return [objects(one) for one in held] if isinstance(held, list) else held


def test_scores_of_fields_by_hand():
    answer = Answer.from_response(LINES)
    ann, rome = answer.lines()
    assert (ann.text, ann.label, rome.text, rome.label) == ("Ann", "person", "Rome", "place")
    # .9 x .8 x .7; of " person" .7, and .2 for the next one
    assert answer.scores(ann) == pytest.approx(dict(zip(SCORES, (0.504, 0.7, 0.7, 0.5), strict=True)))
    # .5 x 1 x .6 x .9; of " pl" .6, and .3 for the next one
    assert answer.scores(rome) == pytest.approx(dict(zip(SCORES, (0.27, 0.5, 0.6, 0.3), strict=True)))


def test_names_at_a_place_are_compared_among_themselves():
    answer = Answer.from_response(LINES)
    ann, rome = answer.lines()
    assert answer.among(["person", "place"], ann.label_start) == pytest.approx({"person": 7 / 9, "place": 2 / 9})
    # " pl" begins two names, and what follows it says which: .6 x (.9, .05) / .95, beside .3
    told = answer.among(["person", "place", "plum"], rome.label_start)
    assert told == pytest.approx({"person": 0.3 / 0.9, "place": 0.6 * 0.9 / 0.95 / 0.9, "plum": 0.6 * 0.05 / 0.95 / 0.9})
    assert answer.among(["thing"], rome.label_start) == answer.among(["person"], 0) == answer.among(["person"], 999) == {}


def test_a_token_that_begins_names_which_were_not_written_counts_for_all_alike():
    answer = Answer.from_response(chat(token("yes", 0.6, yes=0.6, n=0.4)))
    assert answer.among(["yes", "no", "never"]) == pytest.approx({"yes": 0.6, "no": 0.2, "never": 0.2})


def test_of_names_that_begin_alike_a_token_means_the_longest_that_it_holds():
    answer = Answer.from_response(chat(token("placement", 0.6, placement=0.6, place=0.3)))
    assert answer.among(["place", "placement"]) == pytest.approx({"place": 0.3 / 0.9, "placement": 0.6 / 0.9})


@given(st.text("aé€😀\n\u0301", min_size=1, max_size=12), st.data())
def test_every_cut_of_the_bytes_gives_the_text_and_covers_it(text, data):
    whole = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole)), max_size=6)) | {0, len(whole)})
    parts = [whole[first:last] for first, last in zip(cuts, cuts[1:], strict=False)]
    answer = Answer(tuple(parts), (math.log(0.5),) * len(parts), ((),) * len(parts))
    assert answer.text == text
    assert answer._find_tokens(0, len(text)) == list(range(len(parts)))
    for at in range(len(text)):
        first, last = len(text[:at].encode()), len(text[: at + 1].encode())
        wanted = sum(begin < last and end > first for begin, end in zip(cuts, cuts[1:], strict=False))
        assert len(answer._find_tokens(at, at + 1)) == wanted


@pytest.mark.parametrize("number", [-9999.0, -math.inf])
def test_what_a_server_calls_impossible_has_no_probability(number):
    answer = Answer.from_response({"tokens": ["a"], "logprobs": [number]})
    assert answer.logprobs == (MIN_LOGPROB,)
    assert answer.scores(Field("a", "a", 0, 1, 0))["product"] == pytest.approx(0.0, abs=1e-40)


@pytest.mark.parametrize("logprobs", [None, {"content": None, "refusal": None}])
def test_no_log_probabilities_are_a_sentence(logprobs):
    with pytest.raises(CalibError, match=says("C642", given="Ann -> person")):
        Answer.from_response({"choices": [{"message": {"content": "Ann -> person"}, "logprobs": logprobs}]})


def test_a_token_of_which_nothing_is_known():
    """The first token of an echoed prompt has None."""
    answer = Answer.from_response({"tokens": ["Ann", " met"], "logprobs": [None, -1.0]})
    assert answer.scores(Field("met", "met", 4, 7, 4))["product"] == math.exp(-1.0)
    with pytest.raises(CalibError, match="C642"):
        answer.scores(Field("Ann", "met", 0, 3, 4))
    assert Answer.from_response(answer.plain()).plain() == answer.plain()


@pytest.mark.parametrize("numbers", [[-1.0], [-1.0, 0.5], [-1.0, "x"], [-1.0, math.nan], [-1.0, True]])
def test_no_log_probabilities_at_all(numbers):
    with pytest.raises(CalibError, match=r"\[C643\] Each token of an answer needs one log-probability"):
        Answer.from_response({"tokens": ["a", "b"], "logprobs": numbers})


def test_fields_are_placed_and_what_is_not_there_is_counted():
    answer = Answer.from_response(
        {"tokens": [said := "Ann -> person\nann -> Person\nBob -> person\nRome -> town\n- An -> person"], "logprobs": [-0.1]}
    )
    assert [field.text for field in answer.lines()] == ["Ann", "ann", "Bob", "Rome", "An"]
    found, left_out = answer.found_in("Ann met  Rome and ANN", answer.lines(), TYPES)
    assert [(one["start"], one["end"], one["label"]) for one in found] == [(0, 3, "PER"), (18, 21, "PER")]
    assert left_out == {"absent": 2, "invented": 1}  # "An" stands in no text as a word
    assert said.count("\n") == 4


def test_white_space_and_scripts_without_spaces():
    answer = Answer.from_response({"tokens": ["New York -> place\n東京 -> place"], "logprobs": [-0.1]})
    found, _ = answer.found_in("私は東京とNew\nYorkにいた", answer.lines(), TYPES)
    assert sorted((one["start"], one["end"]) for one in found) == [(2, 4), (5, 13)]


def test_a_name_twice_is_two_places():
    answer = Answer.from_response({"tokens": ["Ann -> person\nAnn -> person\nAnn -> person"], "logprobs": [-0.1]})
    found, left_out = answer.found_in("Ann met Ann", answer.lines(), TYPES)
    assert [one["start"] for one in found] == [0, 8]
    assert left_out == {"absent": 1}


def test_white_space_that_a_server_held_back_is_no_other_token():
    """llama.cpp writes a line end that might have begun a stop word before the token behind it."""
    answer = Answer.from_response(chat(token(b"", 1.0), token("\nplace", 0.6, place=0.6, person=0.4)))
    assert answer.among(["person", "place"], 1) == pytest.approx({"person": 0.4, "place": 0.6})
    assert answer.scores(Field("", "place", 1, 1, 1))["margin"] == pytest.approx(0.2)


@given(st.lists(st.binary(max_size=3), max_size=5))
def test_bytes_that_are_no_text_leave_each_character_to_its_tokens(tokens):
    answer = Answer(tuple(tokens), tuple(-1.0 for _ in tokens), tuple(() for _ in tokens))
    covering = [answer._find_tokens(at, at + 1) for at in range(len(answer.text))]
    assert all(covering)
    assert sum(bool(one) for one in tokens) == len({place for places in covering for place in places})
    for start in range(len(answer.text)):
        for end in range(start, len(answer.text) + 1):
            held = [place for place, (first, last) in enumerate(answer._token_spans) if first < end and start < last]
            assert answer._find_tokens(start, end) == held


def test_an_answer_that_is_cut_off_or_damaged_keeps_its_scores():
    tokens = (b"\x80", b"A", b" -> person", b"\n\xf0\x9f")
    answer = Answer(tokens, (-1.0, -0.5, -0.25, -3.0), ((), (), (), ()))
    field = answer.lines()[0]
    assert (answer.text, field.text) == ("\ufffdA -> person\n\ufffd\ufffd", "\ufffdA")
    assert answer.scores(field)["product"] == pytest.approx(math.exp(-1.75))


def test_likely_tokens_without_a_number_are_not_looked_at():
    tops = [{"token": "place"}, {"token": "person", "logprob": math.log(0.2)}]
    told = {"token": "place", "logprob": math.log(0.6), "top_logprobs": tops}
    answer = Answer.from_response({"logprobs": {"content": [told]}})
    assert answer.among(["person", "place"]) == pytest.approx({"person": 0.25, "place": 0.75})
    assert answer.scores(Field("", "place", 0, 0, 0))["margin"] == pytest.approx(0.4)


def test_a_model_that_writes_white_space_without_end():
    """As small ones do. Minutes went by where each way to share out the white space was tried."""
    tokens = (b" " * 3000, b"Ann", b" " * 3000, b"\nBob -> PER")
    assert [field.text for field in Answer(tokens, (-1.0,) * 4, ((),) * 4).lines()] == ["Bob"]


@pytest.mark.parametrize("given", [
    None, 3, "text", [], {}, {"choices": None}, {"tokens": 3}, [[]], [{}],
    {"tokens": ["a"], "logprobs": [-(10**400)]},
    {"tokens": ["a"], "logprobs": [[-1.0, -2.0]]},
    {"tokens": ["a"], "logprobs": [-1.0], "top_logprobs": [[3]]},
    {"tokens": ["a"], "logprobs": [-1.0], "top_logprobs": 5},
    {"logprobs": {"content": 5}},
    {"logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": 5}]}},
])  # fmt: skip
def test_what_is_no_response_is_a_sentence(given):
    with pytest.raises(CalibError, match=r"\[C64[13]\]"):
        Answer.from_response(given)


FORMS = ["openai-chat", "openai-completion", "llama-completion", "xllamacpp-chat"]


@pytest.mark.parametrize("make", [dict, objects])
@pytest.mark.parametrize("name", FORMS)
def test_recorded_responses(name, make):
    answer = Answer.from_response(make(recorded(name)["response"]))
    assert [(field.text, field.label) for field in answer.lines()] == [("Zoë Łuk", "person"), ("Berlin", "place")]
    assert Answer.from_response(answer.plain()) == answer
    person, place = (answer.scores(field) for field in answer.lines())
    assert 0.4 < person["product"] <= person["least"] <= person["first"]
    tokens = [token.decode() for token in answer.tokens]
    (own, other, _) = answer.tops[tokens.index(" place")]
    assert place["margin"] == pytest.approx(math.exp(own[1]) - math.exp(other[1]))


@pytest.mark.parametrize("name", FORMS)
def test_parts_of_a_character_that_llama_cpp_held_back_belong_to_all_likeliest_tokens(name):
    """The tokens were "\xc5" behind a space, and one more byte; what is written is the whole character, and one byte beside it."""
    answer = Answer.from_response(recorded(name)["response"])
    place = answer.tokens.index(" Ł".encode())
    assert [token.decode() for token, _ in answer.tops[place]][:2] == [" Ł", " Ś"]
    at = answer.text.index("Ł")
    assert answer.among(["Ł", "Ś"], at)["Ł"] > 0.99
    assert answer.scores(Field("Ł", "Ł", at, at + 1, at))["margin"] > 0.99


@pytest.mark.parametrize("make", [dict, objects])
@pytest.mark.parametrize("name", ["openai-responses", "openai-chat-without"])
def test_recorded_responses_without_log_probabilities(name, make):
    with pytest.raises(CalibError, match=r"\[C642\] The answer 'Zoë"):
        Answer.from_response(make(recorded(name)["response"]))
