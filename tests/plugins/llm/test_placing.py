"""Where the fields of an answer stand: generated JSON whose places are known, and what is asked for is found, absent or invented."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib import Answer
from spacy_calib.plugins.llm.paths import JsonFields
from spacy_calib.plugins.llm.placing import AnswerText
from tests.asked import asking

TEXTS = [
    "York", "New York", "New York City", "Ann", "ann", "Zoë", 'the "Sun"', "a\\b", "東京", "A, B: {C}", "line\nend", "text", "12", "-",
]  # fmt: skip
LABELS = ["LOC", "ORG", "person", "Größe"]


class Writer:
    """Writes JSON and remembers where each text and each type stands. places (list): ((start, end), start of the type) of each field."""

    def __init__(self, rng: random.Random):
        self.rng, self.text, self.places = rng, "", []
        self.ascii, self.gap = rng.random() < 0.5, rng.choice(["", " ", "\n  "])

    def put(self, sign: str) -> None:
        self.text += sign + self.gap

    def quote(self, value: str) -> tuple[int, int]:
        quoted = json.dumps(value, ensure_ascii=self.ascii)
        self.text += quoted
        return len(self.text) - len(quoted) + 1, len(self.text) - 1

    def record(self, text: str, label: str) -> None:
        """An object or a list of two."""
        form = self.rng.choice(["text first", "type first", "pair", "noise"])
        self.put("[" if form == "pair" else "{")
        order = ["type", "text"] if form == "type first" else ["text", "type"]
        at: dict[str, Any] = {}
        for number, name in enumerate(order):
            if number:
                self.put(",")
            if form != "pair":
                self.quote(name)
                self.put(":")
            at[name] = self.quote(text if name == "text" else label)
            if form == "noise" and not number:
                self.put(",")
                self.quote("why")
                self.put(":")
                self.quote(self.rng.choice(["because", "York is"]))
        self.put("]" if form == "pair" else "}")
        self.places.append((at["text"], at["type"][0]))

    def records(self, pairs: list[tuple[str, str]]) -> None:
        self.put("[")
        for number, pair in enumerate(pairs):
            self.put("," if number else "")
            self.record(*pair)
        self.put("]")

    def groups(self, pairs: list[tuple[str, str]]) -> None:
        """A list of texts for each type; the pairs are in this order then."""
        self.put("{")
        for number, label in enumerate(dict.fromkeys(label for _, label in pairs)):
            self.put("," if number else "")
            at = self.quote(label)
            self.put(":")
            self.put("[")
            for place, text in enumerate(text for text, other in pairs if other == label):
                self.put("," if place else "")
                self.places.append((self.quote(text), at[0]))
            self.put("]")
        self.put("}")


def answer_of(text: str, rng: random.Random) -> Answer:
    """Tokens of any length, which cut characters too."""
    data = text.encode()
    cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(len(data) // 4))})
    tokens = tuple(data[start:end] for start, end in zip(cuts, cuts[1:], strict=False))
    return Answer(tokens, tuple(-rng.random() for _ in tokens), tuple(() for _ in tokens))


def written(pairs: list[tuple[str, str]], seed: int) -> tuple[Answer, list[tuple[str, str]], list[Any], bool]:
    """(an answer, the pairs in its order, their places, whether it is grouped)."""
    rng = random.Random(seed)
    writer, grouped = Writer(rng), rng.random() < 0.5
    before, after = rng.choice(
        [("", ""), ("```json\n", "\n```"), ("Sure! They're:\n", "\nI hope it's 5\" long."), ("York: ", " York LOC")]
    )
    writer.text = before
    (writer.groups if grouped else writer.records)(pairs)
    writer.text += after
    if grouped:
        pairs = sorted(pairs, key=lambda pair: [label for _, label in pairs].index(pair[1]))
    return answer_of(writer.text, rng), pairs, writer.places, grouped


PAIRS = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(LABELS)), min_size=1, max_size=8)


@given(PAIRS, st.integers(0, 10**6))
def test_every_field_of_json_is_found_where_it_stands(pairs, seed):
    answer, pairs, places, _ = written(pairs, seed)
    fields = answer.fields(pairs)
    assert [(field.text, field.label) for field in fields] == pairs
    assert [((field.start, field.end), field.label_start) for field in fields] == places


@given(PAIRS, st.integers(0, 10**6))
def test_a_field_alone_scores_as_among_others(pairs, seed):
    answer, pairs, _, _ = written(pairs, seed)
    fields = answer.fields(pairs)
    for pair in set(pairs):
        (alone,) = answer.fields([pair])
        same = [field for field, other in zip(fields, pairs, strict=True) if other == pair]
        assert alone in same
        assert answer.scores(alone) in [answer.scores(field) for field in same]


@given(PAIRS, st.integers(0, 10**6))
def test_the_reader_of_paths_gives_the_pairs_of_the_answer(pairs, seed):
    answer, pairs, _, grouped = written(pairs, seed)
    if grouped:
        assert JsonFields("*[]")(answer) == pairs
    elif '["' not in answer.text.replace("\n", "").replace(" ", ""):  # no list of two among the records
        assert JsonFields("[].text", "[].type")(answer) == pairs


@given(
    PAIRS,
    st.lists(st.tuples(st.sampled_from([*TEXTS, "nobody", ""]), st.sampled_from([*LABELS, "nothing", ""])), max_size=5),
    st.lists(st.sampled_from([*TEXTS, "and", ","]), max_size=12),
    st.sets(st.sampled_from(LABELS)),
    st.integers(0, 10**6),
)
def test_asked_for_is_found_and_absent_and_invented(pairs, more, words, known, seed):
    answer, pairs, _, _ = written(pairs, seed)
    asked = [*pairs, *more]
    random.Random(seed).shuffle(asked)
    nlp = NLP
    pipe = nlp.get_pipe("names")
    pipe.types, pipe.reader = {name: name.upper() for name in known}, lambda answer: asked
    doc = nlp.make_doc(" ".join(words) or "-")
    pipe._write(doc, answer)
    counts = doc.spans["answers"].attrs["counts"]
    assert counts["fields"] == len(asked)
    assert len(asked) == sum(counts.get(name, 0) for name in ("found", "absent", "invented"))
    assert len(doc.spans["answers"]) == counts.get("found", 0) - counts.get("same", 0) - counts.get("misaligned", 0)
    starts = [(span.start_char, span.label_) for span in doc.spans["answers"]]
    assert len(starts) == len(set(starts))


NLP = asking()


def one(text: str) -> Answer:
    return Answer.from_response({"tokens": [text], "logprobs": [-0.1]})


def test_a_list_under_a_type_gives_each_text_its_own_tokens():
    parts = [
        ('{"', 0), ("LOC", -0.01), ('":["', 0), ("New", -0.1), (" York", -0.05), ('","', 0), ("Rome", -0.4), ('"],"', 0),
        ("ORG", -0.01), ('":["', 0), ("York", -0.3), ('"]}', 0),
    ]  # fmt: skip
    answer = Answer.from_response({"tokens": [text for text, _ in parts], "logprobs": [number for _, number in parts]})
    fields = answer.fields([("New York", "LOC"), ("Rome", "LOC"), ("York", "ORG")])
    # LOC and New York with what is between; LOC and Rome without New York; ORG and York
    expected = [math.exp(-0.16), math.exp(-0.41), math.exp(-0.31)]
    assert [answer.scores(field)["product"] for field in fields] == pytest.approx(expected)
    # No part of New York, as it stands by itself.
    assert answer.fields([("York", "LOC")])[0].start == answer.text.index('York"]')


@pytest.mark.parametrize(("text", "pairs", "places"), [
    # (start of the text, start of the type)
    ("person: Ann\nplace: Rome", [("Ann", "person"), ("Rome", "place")], [(8, 0), (19, 12)]),
    ("Ann person\nBob person", [("Bob", "person")], [(11, 15)]),
    ("Ann, person, Bob, person", [("Ann", "person"), ("Bob", "person")], [(0, 5), (13, 18)]),
    ("Annie and Ann -> person", [("Ann", "person")], [(10, 17)]),
    ('{"person": {"name": "Ann", "boss": "Bob"}}', [("Bob", "person"), ("Ann", "person")], [(36, 2), (21, 2)]),
    ('[{"a": "Ann", "b": "person"}, {"a": "Ann', [("Ann", "person"), ("Ann", "person")], [(8, 20)]),  # cut off
    ('{"note": "Ann and Bob", "type": "person"}', [("Bob", "person")], [(18, 33)]),
    # the nearer type is meant
    ('{"person": "Ann", "person_attributes": {}}, {"person": "Kim"}', [("Ann", "person"), ("Kim", "person")], [(12, 2), (56, 46)]),
    ('The person names: [{"text": "Ann", "type": "person"}]', [("Ann", "person")], [(29, 44)]),
    ("Ann", [("Ann", "person")], []),
    ("", [("", "")], []),
])  # fmt: skip
def test_texts_and_their_types(text, pairs, places):
    fields = one(text).fields(pairs) if text else []
    assert [(field.start, field.label_start) for field in fields] == places


def test_many_fields_take_little_longer_than_few():
    """Each place is looked at once: counted, not timed."""
    looked = []

    class Counting(AnswerText):
        def _distance(self, text, label):
            looked.append(text)
            return super()._distance(text, label)

    for n in (100, 1000):
        looked.clear()
        records = json.dumps([{"text": "Ann", "type": "person"}] * n)
        assert len(Counting(records).locate("Ann", "person", n)) == n
        assert len(looked) <= 2 * n


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 50_000, '"\\"' * 50_000, '["' + '\\"' * 100_000, "{}" * 100_000, "]" * 10]
)
def test_answers_that_a_tree_cannot_hold(text):
    assert one(text).fields([("Ann", "person")]) == []


def test_longer_names_are_placed_first_and_shorter_ones_on_what_is_left():
    answer = one("York -> place\nNew York -> place\nYork -> person\nYork -> place")
    spans, counts = answer.found_in("New York, York", answer.lines(), {"place": "LOC", "person": "PER"})
    expected = [(10, 14, "LOC"), (0, 8, "LOC"), (4, 8, "PER"), (4, 8, "LOC")]
    assert [(span["start"], span["end"], span["label"]) for span in spans] == expected
    assert counts == {}
    assert answer.found_in("York", answer.lines(), {"place": "LOC", "person": "PER"})[1] == {"absent": 2}
