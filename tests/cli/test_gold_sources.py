"""Gold from several sources by name: `calib fit --gold NAME=PATH`, and `--gold-source NAME` of what runs the pipe."""

from __future__ import annotations

import json

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_calib.cli.shared.options import sources_of
from spacy_calib.doc.reading import GoldReader
from spacy_calib.errors import CalibError
from tests.cli.conftest import calib, ok, refuses, save_gold


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two files of one source, and a folder of another."""
    folder = tmp_path_factory.mktemp("gold")
    (folder / "web").mkdir()
    save_gold(folder / "web" / "a.spacy", 40, seed=11)
    save_gold(folder / "web" / "b.spacy", 40, seed=12)
    save_gold(folder / "news.spacy", 60, seed=13)
    return folder


@pytest.fixture(scope="module")
def fitted(model, sources, tmp_path_factory):
    """Fitted on both, and what was printed."""
    out = tmp_path_factory.mktemp("fitted") / "out"
    named = ("--gold", f"EWT={sources / 'web'}", f"--gold=WSJ={sources / 'news.spacy'}")
    return out, ok(calib("fit", model, out, *named, "--method", "isotonic", "--context"))


def test_each_source_is_told_by_fit_and_info(fitted):
    out, printed = fitted
    assert "Sources: EWT (80 documents, " in printed.text
    assert "Sources EWT (80 documents, " in ok(calib("info", out)).text
    told = json.loads(ok(calib("info", out, "--format", "json")).printed)["calib"]
    assert [(one["name"], one["documents"]) for one in told["sources"]] == [("EWT", 80), ("WSJ", 60)]
    assert told["docs"] == 140
    assert told["pairs"] == sum(one["pairs"] for one in told["sources"])


def test_data_beside_named_gold_has_the_name_of_its_file(model, sources, tmp_path):
    options = ("--gold", f"WSJ={sources / 'news.spacy'}", "--method", "isotonic", "--format", "json")
    for data, name in ((sources / "web" / "a.spacy", "a"), (sources / "web", "web")):
        told = json.loads(ok(calib("fit", model, data, tmp_path / name, *options)).printed)
        assert [one["name"] for one in told["sources"]] == [name, "WSJ"]


def test_what_runs_the_pipe_names_the_source(fitted, sources, monkeypatch):
    from spacy_calib.pipe.component import Calibrator

    seen, predict = [], Calibrator.predict
    monkeypatch.setattr(Calibrator, "predict", lambda pipe, docs: (seen.append(pipe.gold_source), predict(pipe, docs))[1])
    out, _ = fitted
    ok(calib("evaluate", out, sources / "news.spacy", "--gold-source", "WSJ"))
    assert set(seen) == {"WSJ"}
    assert json.loads(ok(calib("evaluate", out, sources / "news.spacy", "--format", "json")).printed)["calib"]
    assert spacy.load(out).get_pipe("calib").gold_source is None


def test_bad_names_are_one_sentence(model, fitted, sources, tmp_path):
    web, news, out = sources / "web", sources / "news.spacy", tmp_path / "out"
    for given in ("dev.spacy", "=dev.spacy", "EWT=", "="):
        refuses(
            calib("fit", model, out, "--gold", given),
            "Option --gold names a source and where its gold lies, NAME=PATH, but '",
        )
    twice = calib("fit", model, out, "--gold", f"EWT={web}", "--gold", f"EWT={news}")
    refuses(twice, "Two sources of gold are called 'EWT'; give each a name of its own")
    refuses(calib("fit", model, news, out, "--gold", f"news={web}"), "Two sources of gold are called 'news'")
    refuses(calib("fit", model, out, "--gold", f"EWT={web}"), "Gold of a single source has a name ('EWT')")
    refuses(calib("fit", model, out, "--gold", f"EWT={web}", "--gold", f"X={sources / 'gone'}"), "gone")
    refuses(calib("fit", model, "--gold", f"EWT={web}", "--gold", f"WSJ={news}"), "Missing argument 'OUTPUT'", code=2)
    refuses(calib("fit", model), "Missing argument", code=2)
    asked = calib("evaluate", fitted[0], news, "--gold-source", "PTB")
    refuses(asked, "The gold source 'PTB' is none that the pipe 'calib' was fitted on; name EWT, WSJ or none.")
    refuses(calib("evaluate", model, news, "--gold-source", "PTB"), "Option --gold-source must be left out for a pipeline")


def test_what_runs_the_pipe_says_by_which_map(fitted, sources, calibrated, tmp_path):
    out, _ = fitted
    news, found = sources / "news.spacy", {}
    for map_for in ("home", "anywhere"):
        told = calib("evaluate", out, news, "--map-for", map_for, "--format", "json")
        found[map_for] = json.loads(ok(told).printed)["calib"]
    assert found["home"] != found["anywhere"]
    refuses(calib("evaluate", calibrated, news, "--map-for", "home"), "The pipe 'calib' has no map for texts of other sources")
    assert "--map-for" in calib("evaluate", out, news, "--map-for", "abroad").text
    named = ("--gold", f"EWT={sources / 'web'}", f"--gold=WSJ={news}")
    ok(calib("fit", out, tmp_path / "set", *named, "--components.calib.map_for", "anywhere"))
    assert spacy.load(tmp_path / "set").get_pipe("calib").map_for == "anywhere"
    assert "as set, all texts get the map for anywhere" in ok(calib("info", tmp_path / "set")).text


def test_tags_that_the_gold_calls_otherwise_are_listed(capsys):
    from spacy_calib.cli.shared.conventions import show_conventions

    show_conventions([])
    assert not capsys.readouterr().out
    some = {"source": "EWT", "gold": ",", "tokens": 43, "of": 145}
    rows = [some | {"said": "SYM"}, some | {"said": "HYPH", "tokens": 80}, some | {"said": "AFX", "gold": "NN", "tokens": 80}]
    show_conventions(rows)
    printed = capsys.readouterr().out
    assert "Looks like another convention" in printed
    assert "Source" in printed
    # Of HYPH it is so mostly too, but a comma cannot stand in --map.
    assert printed.splitlines()[-1] == "To go by the names of the gold: --map AFX=NN"
    show_conventions([{**row, "source": ""} for row in rows])
    assert "Source" not in capsys.readouterr().out  # where gold has no names


def test_where_no_source_was_named_none_can_be(calibrated, sources):
    asked = calib("evaluate", calibrated, sources / "news.spacy", "--gold-source", "EWT")
    refuses(asked, "'calib' was fitted on; its gold had no names, so name none.")


def test_names_are_told_from_paths(tmp_path):
    assert sources_of([], tmp_path / "dev.spacy") == {}
    assert sources_of(["A = x=y.spacy", "B=z"], None) == {"A": tmp_path.__class__("x=y.spacy"), "B": tmp_path.__class__("z")}
    with pytest.raises(CalibError, match="C545"):
        sources_of(["A\nB=x"], None)


def test_gold_documents_may_name_their_source_themselves(model, sources, tmp_path):
    vocab = Language().vocab
    docs = list(DocBin().from_disk(sources / "news.spacy").get_docs(vocab))
    for number, doc in enumerate(docs):
        doc._.calib_source = "odd" if number % 3 else "even"
    gold = tmp_path / "genres.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(gold)
    told = json.loads(ok(calib("fit", model, gold, tmp_path / "out", "--method", "isotonic", "--format", "json")).printed)
    assert [(one["name"], one["documents"]) for one in told["sources"]] == [("even", 20), ("odd", 40)]
    read = list(GoldReader(gold_preproc=True).examples(spacy.blank("xx"), gold))
    assert [example.predicted._.calib_source for example in read[:4]] == ["even", "odd", "odd", "even"]
