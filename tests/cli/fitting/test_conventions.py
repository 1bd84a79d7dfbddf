"""Two conventions that meet: told by `fit`, `info`, `evaluate` and the page, with the --map to paste."""

from collections import Counter

import pytest
from spacy.language import Language

from spacy_calib.cli.fitting.conventions import SHOWN, page_conventions, show_conventions, suggested_map
from tests.cli.conftest import calib, json_of, ok, save_docs, save_gold
from tests.conftest import gold_doc, made_up_sentences, revive

# The gold calls determiners otherwise.
SAID, OTHER = "DET", "VERB"


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """(gold in which another name stands, the same with as many errors of any kind)."""
    folder, vocab = tmp_path_factory.mktemp("met"), Language().vocab
    tags = sorted({tag for sentence in made_up_sentences(50, 5) for _, tag in sentence} - {SAID})
    for name in ("named", "random"):
        docs, seen = [], Counter()
        for sentence in made_up_sentences(150, 5):
            changed = []
            for word, tag in sentence:
                seen[tag] += 1
                moved = tag == SAID
                changed.append((word, tag if not moved else OTHER if name == "named" else tags[seen[tag] % len(tags)]))
            docs.append(gold_doc(vocab, changed))
        save_docs(folder / f"{name}.spacy", docs)
    return folder / "named.spacy", folder / "random.spacy"


def save_overconfident(trained_bytes, path):
    """Save the small pipeline with a tagger that is much too sure of itself."""
    nlp = revive(trained_bytes)
    for layer in nlp.get_pipe("tagger").model.walk():
        if layer.name == "softmax":
            layer.set_param("W", layer.get_param("W") * 400)
            layer.set_param("b", layer.get_param("b") * 400)
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def sure(trained_bytes, tmp_path_factory):
    """An overconfident pipeline, and the same with a fit on its own kind of gold."""
    folder = tmp_path_factory.mktemp("sure")
    save_overconfident(trained_bytes, folder / "model")
    ok(calib("fit", folder / "model", save_gold(folder / "gold.spacy", 60, 4), folder / "calibrated", "--method", "platt"))
    return folder / "model", folder / "calibrated"


def told(*arguments):
    (table,) = json_of(*arguments).values()
    return table["conventions"]


def test_evaluate_fit_and_info_name_the_same_ones(sure, met, tmp_path):
    (model, calibrated), (named, random) = sure, met
    rows = told("evaluate", model, named)
    assert [row["gold"] for row in rows if row["said"] == SAID] == [OTHER]
    assert told("evaluate", calibrated, named) == rows  # raw scores, whatever a fit on other gold made of them
    assert SAID not in {row["said"] for row in told("evaluate", model, random)}
    fitted = ok(calib("fit", model, named, tmp_path / "m", "--method", "platt"))
    for printed in (fitted, calib("info", tmp_path / "m"), calib("evaluate", tmp_path / "m", named)):
        assert "Looks like another convention" in ok(printed).text
        assert f"{SAID}={OTHER}" in printed.text.split("--map")[1]
    assert told("info", tmp_path / "m") == told("evaluate", tmp_path / "m", named) == rows


def test_the_page_has_a_section_where_conventions_meet(sure, met, tmp_path):
    for data, there in zip(met, (True, False), strict=True):
        ok(calib("evaluate", sure[1], data, "-o", tmp_path / f"{data.stem}.html"))
        page = (tmp_path / f"{data.stem}.html").read_text()
        assert "Looks like another convention</h3>" in page
        assert (f'<th scope="row">{SAID}</th><td>{OTHER}</td>' in page) == there


def test_the_first_ones_are_shown(capsys):
    rows = [{"file": 0, "said": f"T{i}", "gold": "X", "tokens": 99 - i, "of": 100, "in_gold": 0} for i in range(SHOWN + 2)]
    show_conventions(rows)
    printed = capsys.readouterr().out
    assert "File" not in printed  # where there is DATA alone
    assert "T9" in printed.split("...")[0]
    assert "... and 2 more, with fewer tokens." in printed
    assert len(page_conventions(rows)["rows"]) == SHOWN
    assert page_conventions(None) == {"rows": [], "map": ""}
    show_conventions(None)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(("row", "advice"), [
    ({"said": "PERSON", "gold": "PER", "in_gold": 0}, "PERSON=PER"),
    ({"said": "MISC", "gold": "LOC", "in_gold": 445}, ""),  # the gold has it: nothing would be given it any more
    ({"said": "ORG", "gold": "O", "in_gold": 0}, ""),  # gold without a label there is no other name
    ({"said": "PERSON", "gold": "PER", "in_gold": 0, "of": 200}, ""),  # in most places it agrees
    ({"said": "HYPH", "gold": ",", "in_gold": 0}, 'map.json, a file with {"HYPH": ","}'),
])  # fmt: skip
def test_advice_takes_no_label_of_the_gold_away(row, advice):
    assert suggested_map([{"file": 0, "tokens": 80, "of": 100, **row}]) == advice
