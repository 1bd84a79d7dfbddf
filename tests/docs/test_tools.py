"""The adapters of the pages on language models and on other tools' spans.

Those of language models get what the real tools returned (tests/recorded); llama-cpp-python and the tools of spans, what their documentation says. The packages
are stood in for.
"""

import re
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, Iterable, get_type_hints  # noqa: UP035  # spacy-llm knows those of typing alone

import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib import spans_from
from spacy_calib.registry import registry
from tests.asked import TYPES, recorded, respond
from tests.docs.pages import DOCS, blocks_of
from tests.plugins.llm.test_response import objects
from tests.sources.test_tool_spans import TEXT, TOOLS
from tests.tiny_transformers import save_token_model

# Recorded answers are cut.
pytestmark = [pytest.mark.usefixtures("registered_here"), pytest.mark.filterwarnings("ignore:.*CW86")]
BLOCKS = {
    block.title: block
    for page in ("language-models", "other-tools")
    for block in blocks_of(DOCS / "components" / f"{page}.md")
    if block.title
}
ASKED = "Ann saw Rome"


@pytest.fixture
def adapter(monkeypatch):
    """A function that runs the block of a page beside packages that are not installed: name of a module -> what it holds."""

    def run(title: str, **modules: dict[str, Any]) -> dict[str, Any]:
        for name, held in modules.items():
            made = ModuleType(name.replace("__", "."))
            vars(made).update(held)
            monkeypatch.setitem(sys.modules, made.__name__, made)
        names: dict[str, Any] = {"__name__": title}
        exec(compile(BLOCKS[title].text, title, "exec"), names)
        return names

    return run


def found_by(ask: Any, text: str) -> list[tuple[str, str]]:
    """What the component makes of it."""
    registry.calib_asks("tests.Adapter.v1", func=lambda: ask)
    nlp = spacy.blank("xx")
    nlp.add_pipe("calib_answers", config={"ask": {"@calib_asks": "tests.Adapter.v1"}, "types": TYPES})
    return [(ent.text, ent.label_) for ent in nlp(text).ents]


NAMES = [("Zoë Łuk", "PER"), ("Berlin", "LOC")]


class Recorded:
    """A client that keeps what it is asked, as keywords or as one dict, and returns what was recorded. make: Of the response."""

    def __init__(self, name: str, make: Any = dict):
        held = recorded(name)
        self.text, self.response, self.asked = held["text"], make(held["response"]), {}

    def __call__(self, asked: dict[str, Any] | None = None, **more: Any) -> Any:
        self.asked = {**(asked or {}), **more}
        assert self.asked["messages"][-1] == {"role": "user", "content": self.text}
        return self.response


def as_openai(held: dict[str, Any]) -> Any:
    """The object of the client, where that is installed; another one with the same attributes where it is not."""
    if find_spec("openai") is None:
        return objects(held)
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate(held)


def test_openai(adapter):
    client = Recorded("openai-chat", as_openai)
    openai = lambda: SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=client)))  # noqa: E731
    ask = adapter("ask_openai.py", openai={"OpenAI": openai})["make_ask"]("a-model")
    assert found_by(ask, client.text) == NAMES
    assert (client.asked["model"], client.asked["logprobs"], client.asked["temperature"]) == ("a-model", True, 0)


def test_xllamacpp(adapter):
    client, loaded = Recorded("xllamacpp-chat"), []

    def server(params: Any) -> Any:
        loaded.append(params.model.path)
        return SimpleNamespace(handle_chat_completions=client)

    params = lambda: SimpleNamespace(model=SimpleNamespace(path=""))  # noqa: E731
    ask = adapter("ask_llama.py", xllamacpp={"Server": server, "CommonParams": params})["make_ask"]("a.gguf")
    assert not loaded
    assert found_by(ask, client.text) == found_by(ask, client.text) == NAMES
    assert loaded == ["a.gguf"]


def test_llama_cpp_python(adapter):
    """Completions: lists of tokens and of numbers, and a mapping of the likeliest tokens for each."""

    def complete(prompt: str, **asked: Any) -> dict[str, Any]:
        content = respond(re.search("Text: (.*)", prompt)[1])["choices"][0]["logprobs"]["content"]
        lists = {
            "tokens": [one["token"] for one in content],
            "token_logprobs": [one["logprob"] for one in content],
            "top_logprobs": [{top["token"]: top["logprob"] for top in one.get("top_logprobs", ())} for one in content],
            "text_offset": [0] * len(content),
        }
        return {"choices": [{"text": "".join(lists["tokens"]), "index": 0, "logprobs": lists, "finish_reason": "stop"}]}

    llama = lambda path, logits_all: SimpleNamespace(create_completion=complete)  # noqa: E731
    ask = adapter("ask_llama_cpp.py", llama_cpp={"Llama": llama})["make_ask"]("a.gguf")
    assert found_by(ask, ASKED) == found_by(respond, ASKED) != []


def test_spacy_llm(adapter):
    """It hands a list of one response for each Doc to the task, and finds out by the types that this is meant."""
    held, kept = recorded("spacy-llm"), lambda name: lambda made: made
    modules = {"spacy_llm": {}, "spacy_llm__registry": {"registry": SimpleNamespace(llm_tasks=kept, llm_models=kept)}}
    task, doc = adapter("kept.py", **modules)["Names"](), spacy.blank("xx")(held["text"])
    model = adapter("kept_model.py", **modules)["make_model"]({held["text"]: held["response"][0][0]}.__getitem__)
    responses = model([prompt] for prompt in task.generate_prompts([doc]))
    assert responses == held["response"]
    (left,) = task.parse_responses([doc], responses)
    assert [(ent.text, ent.label_) for ent in left.ents] == NAMES
    assert set(left.spans["found"].attrs) == {"scores", "least", "first", "margin", "counts"}
    wanted = [
        {"docs": Iterable[Doc], "return": Iterable[str]},
        {"docs": Iterable[Doc], "responses": Iterable[Any], "return": Iterable[Doc]},
    ]
    assert [get_type_hints(one) for one in (task.generate_prompts, task.parse_responses)] == wanted
    assert get_type_hints(model) == {"prompts": Iterable[Iterable[str]], "return": Iterable[Iterable[Any]]}


def test_langextract(adapter):
    """Its extractions name the type in front of each text, and once more behind it ("person_attributes")."""
    held = recorded("langextract")

    def extract(text: str, *, model: Any, **how: Any) -> Any:
        ((scored,),) = model.infer([text])
        assert scored.output == held["response"]["choices"][0]["message"]["content"]
        return SimpleNamespace(extractions=[SimpleNamespace(**one) for one in held["extractions"]])

    model = {"BaseLanguageModel": type("BaseLanguageModel", (), {})}
    modules = {
        "langextract": {"extract": extract},
        "langextract__core": {},
        "langextract__core__base_model": model,
        "langextract__core__types": {"ScoredOutput": SimpleNamespace},
    }
    modules["kept_answers"] = {"KeptAnswers": adapter("kept_answers.py", **modules)["KeptAnswers"]}
    doc = adapter("extracted.py", **modules)["extract"](
        spacy.blank("xx")(held["text"]), lambda text: held["response"], examples=[]
    )
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Zoë Łuk", "person")]
    # of "person" and "place" in front of the text; the keys behind it have .627 and .852
    found = doc.spans["found"]
    first = dict(zip([span.label_ for span in found], found.attrs["first"], strict=True))
    assert first == pytest.approx({"person": 0.509091, "place": 0.799235}, abs=1e-6)


def run_tool(names: dict[str, Any], **settings: Any) -> Doc:
    return names["make_names"](spacy.blank("en"), "names", **settings)(spacy.blank("en")(TEXT))


def says(doc: Doc) -> list[tuple[str, str]]:
    return [(ent.text, ent.label_) for ent in doc.ents]


WANTED = [("Ann Lee", "PER"), ("New York", "LOC")]


def test_gliner(adapter):
    def predict(text: str, labels: list[str], threshold: float) -> list[dict[str, Any]]:
        assert (text, threshold) == (TEXT, 0.05)
        return [*TOOLS["GLiNER"], {"start": 12, "end": 15, "text": "Bob", "label": labels[0], "score": 0.1}]

    gliner = SimpleNamespace(from_pretrained=lambda model: SimpleNamespace(predict_entities=predict))
    doc = run_tool(adapter("gliner_names.py", gliner={"GLiNER": gliner}), model="m", labels=["PER", "LOC"])
    assert says(doc) == WANTED
    assert [span.text for span in doc.spans["found"]] == ["Ann Lee", "New York", "Bob"]


def test_flair(adapter):
    found = [SimpleNamespace(to_dict=lambda one=one: one) for one in TOOLS["flair"]]

    class Sentence(str):
        def get_spans(self, kind: str) -> list[Any]:
            return found if kind == "ner" else []

    tagger = SimpleNamespace(load=lambda model: SimpleNamespace(predict=lambda sentence: None))
    modules = {"flair": {}, "flair__data": {"Sentence": Sentence}, "flair__models": {"SequenceTagger": tagger}}
    assert says(run_tool(adapter("flair_names.py", **modules), model="ner")) == WANTED


def test_span_marker(adapter):
    marker = SimpleNamespace(from_pretrained=lambda model: SimpleNamespace(predict=lambda text: TOOLS["SpanMarker"]))
    assert says(run_tool(adapter("span_marker_names.py", span_marker={"SpanMarkerModel": marker}), model="m")) == WANTED


@pytest.mark.parametrize("aggregation", ["simple", "first"])
def test_a_pipeline_of_transformers(adapter, tmp_path, aggregation):
    """A tiny model, really run. Its tokenizer writes in lower case, its labels begin and go on."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    words = [["ann", "lee", "met", "bob", "in", "new", "york", "."]] * 8
    tags = [["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "I-LOC", "O"]] * 8
    save_token_model(tmp_path / "m", words, tags)
    doc = run_tool(adapter("transformers_names.py"), model=str(tmp_path / "m"), aggregation=aggregation)
    assert says(doc) == [("Ann Lee", "PER"), ("Bob", "PER"), ("New York", "LOC")]
    assert all(0.5 < score <= 1 for score in doc.spans["found"].attrs["scores"])


def test_parts_of_words_with_labels_of_their_own_are_mended():
    """What `simple` gives where the parts of a word have different labels: "New Yor" and "k"."""
    doc = spacy.blank("en")(TEXT)
    cut = [
        {"entity_group": "LOC", "score": 0.8, "start": 19, "end": 26},
        {"entity_group": "PER", "score": 0.4, "start": 26, "end": 27},
    ]
    spans_from(doc, cut)
    assert says(doc) == [("New York", "LOC")]
    assert [(span.text, span.label_) for span in doc.spans["found"]] == [("New York", "LOC"), ("York", "PER")]
    assert doc.spans["found"].attrs["counts"] == {"found": 2, "mended": 2}
