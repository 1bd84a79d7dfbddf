"""`card="universal"`: two numbers, what they are refused for, and that the result is an ordinary fitted pipeline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.lang.es.examples import sentences as SPANISH
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config

from spacy_calib import CalibError, pretrained
from spacy_calib.annotations.label_schemes import coarse_name
from spacy_calib.plugins.pretrained.universal import make_universal_card, read_examples
from spacy_calib.types import Spans
from tests.cli.conftest import calib, refuses, save_docs
from tests.sentences import says

# In the sentences that spaCy has for Spanish.
ENTITIES = {
    "Apple": "ORG", "Reino Unido": "LOC", "San Francisco": "LOC", "Londres": "LOC", "Argentina": "LOC", "José de San Martín": "PER",
    "startup": "MISC", "gato": "MISC",
}  # fmt: skip
SENTENCE = "The mean score on texts of a new source is expected to be between 0.125 too low and 0.160 too high (95 % prediction interval, from 6 corpora in English and Spanish)"


def gold_docs(nlp: Any, relabel: dict[str, str]) -> list[Doc]:
    docs = [nlp.make_doc(sentence) for sentence in SPANISH]
    for doc in docs:
        places = [(doc.text.find(text), text, label) for text, label in ENTITIES.items() if text in doc.text]
        spans = [doc.char_span(start, start + len(text), relabel.get(label, label)) for start, text, label in places]
        doc.set_ents([span for span in spans if span is not None], default="outside")
    return docs


def train(language: str = "es", factory: str = "ner", steps: int = 25, **relabel: str) -> Any:
    """A recognizer that knows the example sentences by heart."""
    fix_random_seed(0)
    nlp = spacy.blank(language)
    nlp.add_pipe(factory, "ner")
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold_docs(nlp, relabel)]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return nlp


@pytest.fixture(scope="module")
def trained() -> dict[str, Any]:
    nlp = train()
    return {"config": nlp.config.copy(), "bytes": nlp.to_bytes()}


@pytest.fixture
def spanish(trained) -> Any:
    return load_model_from_config(trained["config"]).from_bytes(trained["bytes"])


@pytest.fixture
def folder(spanish, tmp_path) -> Path:
    spanish.to_disk(tmp_path / "spanish")
    return tmp_path / "spanish"


def test_the_two_numbers(spanish):
    labels = spanish.get_pipe("ner").labels
    state = make_universal_card(spanish, None).pipe_state
    raw, n = np.array([0.5, 0.9, 0.99, 1.0, 0.9]), 5
    chosen = np.array([True, True, True, True, False])
    spans = Spans(np.arange(n), np.arange(n) + 1, np.zeros(n, np.intp), raw, raw, chosen)
    scores, accepted = state.spans.calibrate(spans, raw, labels)
    # Log-odds 0, log 9 = 2.1972, log 99 = 4.5951, and 13.8155 at the bound of 1 - 1e-6; times .3 less .9: -.9, -.2408, .4785, 3.2447;
    # 1 / (1 + exp(.9)) = .28905, and so on. What is not on the Doc stays.
    assert scores == pytest.approx([0.28905, 0.44008, 0.61740, 0.96248, 0.9], abs=5e-6)
    assert accepted.tolist() == [-1] * n  # no cut-off


@pytest.mark.parametrize(("label", "name"), [
    ("PER", "PER"), ("PERSON", "PER"), ("pers", "PER"), ("People", "PER"), ("GPE", "LOC"), ("FAC", "LOC"), ("FACILITY", "LOC"), ("LOC", "LOC"),
    ("Location", "LOC"), ("ORG", "ORG"), ("ORGANIZATION", "ORG"), ("MISC", ""), ("NORP", ""), ("DATE", ""), ("PERCENT", ""), ("", ""),
])  # fmt: skip
def test_kin_of_three_types(label, name):
    assert coarse_name(label) == name


def test_persons_places_and_organizations_get_scores_and_other_labels_none(spanish):
    nlp = pretrained(spanish, card="universal")
    assert nlp is spanish
    scored = {(ent.label_, ent._.calib_ent_raw, ent._.calib_ent_score) for doc in nlp.pipe(SPANISH) for ent in doc.ents}
    assert {label for label, *_ in scored} == {"PER", "LOC", "ORG", "MISC"}
    for label, raw, score in scored:
        if label == "MISC":
            assert (raw, score) == (None, None)
        else:
            log_odds = min(np.log(raw / (1 - raw)), np.log((1 - 1e-6) / 1e-6))
            assert np.log(score / (1 - score)) == pytest.approx(-0.9 + 0.3 * log_odds, abs=1e-4)
            assert score < raw


def test_labels_of_another_scheme():
    nlp = pretrained(train(PER="PERSON", LOC="GPE", MISC="DATE"), card="universal")
    scores = {ent.label_: ent._.calib_ent_score for doc in nlp.pipe(SPANISH) for ent in doc.ents}
    assert {label for label, score in scores.items() if score is None} == {"DATE"}
    assert {label for label, score in scores.items() if score is not None} == {"PERSON", "GPE", "ORG"}


def test_the_universal_card_is_never_the_default(spanish):
    with pytest.raises(CalibError, match=says("C834")):
        pretrained(spanish)
    assert spanish.pipe_names == ["ner"]


def test_a_universal_calibration_is_saved_described_adapted_and_fitted_anew(folder, tmp_path):
    written = calib("pretrained", folder, tmp_path / "calibrated", "--card", "universal").text
    assert "'calib_ent': card universal (MIT)" in written
    nlp, again = pretrained(str(folder), card="universal"), spacy.load(tmp_path / "calibrated")
    pairs = zip(nlp.pipe(SPANISH), again.pipe(SPANISH), strict=True)
    scores = [[[ent._.calib_ent_score for ent in doc.ents] for doc in pair] for pair in pairs]
    assert sum(len(first) for first, _ in scores) >= 5
    assert all(first == second for first, second in scores)
    shown = calib("info", tmp_path / "calibrated").text
    assert f"Trust {SENTENCE}." in shown
    assert "Errors by cross-validation" not in shown
    gold = save_docs(tmp_path / "gold.spacy", gold_docs(again, {}))
    assert "as their labels have no map: MISC" in calib("evaluate", tmp_path / "calibrated", gold).text
    assert "Adapted ner to" in calib("adapt", tmp_path / "calibrated", gold, tmp_path / "adapted").text
    spans = spacy.load(tmp_path / "adapted").get_pipe("calib_ent").spans
    assert len(spans.adaptations) == 2
    assert spans.adaptations[0].leading.line.state() == {"slope": 0.3, "intercept": -0.9}


def test_calling_it_twice_is_harmless_and_another_card_is_refused(spanish):
    assert pretrained(pretrained(spanish, card="universal"), card="universal").pipe_names == ["ner", "calib_ent"]
    with pytest.raises(CalibError, match=r"\[C835\].*'en_core_web_sm-ner'"):
        pretrained(spanish, card="en_core_web_sm-ner")


def alter_to_one_sentence(monkeypatch: Any, sentences: list[str]) -> None:
    monkeypatch.setattr("spacy_calib.plugins.pretrained.universal.read_examples", lambda language: sentences)


def test_few_entities_are_refused_in_a_sentence(folder, tmp_path, monkeypatch):
    alter_to_one_sentence(monkeypatch, SPANISH[:1])
    outcome = calib("pretrained", folder, tmp_path / "refused", "--card", "universal")
    refuses(outcome, says("C843", component="ner", language="es", n_sentences=1, n=2, fewest=5, lowest=1.5))
    assert not (tmp_path / "refused").exists()


def test_entities_of_other_types_do_not_count(spanish, monkeypatch):
    alter_to_one_sentence(monkeypatch, ["El gato come pescado."] * 9)
    assert any(doc.ents for doc in spanish.pipe(["El gato come pescado."]))
    with pytest.raises(CalibError, match=says("C843", n=0, fewest=5)):
        pretrained(spanish, card="universal")
    assert spanish.pipe_names == ["ner"]


def test_unsure_scores_are_refused(spanish):
    upper = spanish.get_pipe("ner").model.get_ref("upper")
    for name in ("W", "b"):  # the same entities, with a tenth of the log-odds between actions
        upper.set_param(name, upper.get_param(name) / 10)
    mean = read_log_odds(spanish).mean()
    with pytest.raises(CalibError, match=says("C843", n=7, mean=f"{mean:.2f}", fewest=5, lowest=1.5)):
        pretrained(spanish, card="universal")
    assert spanish.pipe_names == ["ner"]


def read_log_odds(nlp: Any) -> Any:
    """Raw log-odds of persons, places and organizations in the example sentences, as a pipe that is not fitted gives them."""
    nlp.add_pipe("calib", "raw", config={"attr": "raw", "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}})
    with pytest.warns(UserWarning, match="CW01"):
        docs = list(nlp.pipe(SPANISH))
    nlp.remove_pipe("raw")
    raw = np.array([ent._.raw_raw for doc in docs for ent in doc.ents if ent.label_ != "MISC"], dtype=np.float64)
    return np.log(raw / (1 - raw))


def test_a_language_without_examples_is_refused():
    assert read_examples("is") == []
    with pytest.raises(CalibError, match=r"\[C843\].*of language 'is' \(0 sentences\) it finds 0 persons, .*fit on gold"):
        pretrained(train("is", steps=1), card="universal")


def test_heads_of_another_kind_are_refused(folder, tmp_path):
    nlp = spacy.blank("es")
    with pytest.raises(CalibError, match=r"\[C842\].*the pipeline has no components"):
        pretrained(nlp, card="universal")
    nlp.add_pipe("sentencizer")
    with pytest.raises(CalibError, match=r"\[C842\].*'sentencizer' is no recognizer of spaCy \(ner\)"):
        pretrained(nlp, card="universal")
    nlp.add_pipe("ner").add_label("PER")
    with pytest.raises(CalibError, match=r"\[C842\].*'ner' is not trained"):
        pretrained(nlp, components="ner", card="universal")
    beam = train(factory="beam_ner", steps=1)
    with pytest.raises(CalibError, match=r"\[C842\].*'ner' was trained with a beam"):
        pretrained(beam, card="universal")
    other_labels = train(steps=1, PER="DATE", LOC="DATE", ORG="DATE")
    with pytest.raises(CalibError, match=r"\[C842\].*'ner' has no label for persons, places or organizations"):
        pretrained(other_labels, card="universal")
    outcome = calib("pretrained", folder, tmp_path / "refused", "--card", "universal", "-C", "tagger")
    refuses(outcome, "but 'tagger' is not in the pipeline; name such a component (--component), or fit")


def test_a_precision_is_refused(folder, tmp_path):
    outcome = calib("pretrained", folder, tmp_path / "refused", "--card", "universal", "--precision", "0.9")
    refuses(outcome, says("C840", cards="universal"))
