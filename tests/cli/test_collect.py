"""`spacy calib collect`, and `fit --from` what it wrote: through the real command, in 1, 2 and 7 shards."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from tests.cli.conftest import calib, in_shards, ok, refuses, save_docs, save_key

STATE = Path("calib") / "calibration.msgpack"


@pytest.fixture(scope="module")
def shards(model, dev, tmp_path_factory):
    """Statistics of dev.spacy, see `in_shards`."""
    docs = list(DocBin().from_disk(dev).get_docs(Vocab()))
    random.Random(1).shuffle(docs)
    return in_shards(tmp_path_factory.mktemp("shards"), model, docs, "--sample", 300)


def test_any_number_of_shards_gives_the_same_pipeline(model, shards, tmp_path):
    states = {}
    for n, files in shards.items():
        files = random.Random(n).sample(files, n)
        ok(calib("fit", model, "--from", *files, tmp_path / f"of{n}", "--method", "isotonic", "--intervals", "--silent"))
        states[n] = (tmp_path / f"of{n}" / STATE).read_bytes()
    assert states[1] == states[2] == states[7]


@pytest.mark.parametrize("method", ["histogram", "scaling-binning", "beta", "venn-abers"])
def test_so_do_other_methods(model, shards, tmp_path, method):
    states = set()
    for n in (1, 7):
        ok(calib("fit", model, "--from", *shards[n][::-1], tmp_path / f"of{n}", "--method", method, "--silent"))
        states.add((tmp_path / f"of{n}" / STATE).read_bytes())
    assert len(states) == 1


def test_maps_and_intervals_are_of_all_pairs_and_sets_of_the_sample(model, shards, tmp_path):
    options = ("--method", "isotonic", "--sets", 0.2, "--intervals")
    states = set()
    for n, files in shards.items():
        out = tmp_path / f"of{n}"
        told = json.loads(ok(calib("fit", model, "--from", *files, out, *options, "--format", "json")).printed)
        states.add((out / STATE).read_bytes())
    assert len(states) == 1
    assert told["sampled"]["tables"] == ["maps", "intervals"]
    assert told["sampled"]["pairs"] < 400
    assert 0 < told["sets"]["tokens"] < told["tokens"]
    assert "; maps, intervals of all pairs" in ok(calib("info", tmp_path / "of7")).text


def test_files_are_added_up_beforehand_and_a_folder_is_taken_too(model, shards, tmp_path):
    ok(calib("collect", "--merge", *shards[7][:3], tmp_path / "first.npz", "--silent"))
    ok(calib("collect", tmp_path / "all" / "all.npz", "--merge", tmp_path / "first.npz", *shards[7][3:], "--silent"))
    ok(calib("fit", model, tmp_path / "one", "--from", tmp_path / "all", "--method", "platt", "--silent"))
    ok(calib("fit", model, "--from", shards[7][0].parent, tmp_path / "other", "--method=platt", "--silent"))
    assert (tmp_path / "one" / STATE).read_bytes() == (tmp_path / "other" / STATE).read_bytes()


def test_long_lists_are_cut_unless_all_is_asked_for(shards, monkeypatch):
    monkeypatch.setattr("spacy_calib.cli.info._NAMES_SHOWN", 2)
    folder = shards[7][0].parent
    cut = ok(calib("info", folder)).text
    assert "documents) and 5 more" in cut
    assert "7/7" not in cut
    whole = ok(calib("info", folder, "--all")).text
    assert "7/7 (" in whole
    assert "more" not in whole


def test_what_was_gathered_is_told(model, dev, shards, tmp_path):
    outcome = ok(calib("collect", model, dev, tmp_path / "all.npz", "--sample", 300))
    assert "Statistics of tagger, " in outcome.text
    assert "of the documents are sampled whole (" in outcome.text
    assert "pairs, with those below the threshold)" in outcome.text
    told = json.loads(ok(calib("collect", "--merge", *shards[2], tmp_path / "two.npz", "--format", "json")).printed)
    assert [shard["name"] for shard in told["shards"]] == ["1/2", "2/2"]
    assert (told["component"], told["layer"]) == ("tagger", "tag")
    assert told["reading"] == "whole documents"
    shown = ok(calib("info", tmp_path / "two.npz"))
    assert "1/2" in shown.text
    assert "two.npz" not in ok(calib("info", shards[2][0].parent)).text
    held = json.loads(ok(calib("info", tmp_path / "two.npz", "--format", "json")).printed)
    raw = held.pop("raw")
    assert held == {key: value for key, value in told.items() if key != "output"}
    assert raw["pairs"] == told["pairs"]
    assert f"Raw scores of {told['pairs']:,} pairs" in shown.text
    assert f"Mean GMCE ({raw['groups']} groups)" in shown.text
    assert f"{raw['smce']:.4f}" in shown.text
    fitted = json.loads(
        ok(calib("fit", model, "--from", *shards[2], tmp_path / "out", "--method", "beta", "--format", "json")).printed
    )
    assert fitted["docs"] == told["documents"]
    assert fitted["sampled"]["pairs"] < fitted["pairs"] == told["pairs"]
    told_of_fit = ok(calib("info", tmp_path / "out")).text
    assert "Sampled" in told_of_fit
    assert "on the sample of the FIT data" in told_of_fit


def test_bad_input_is_one_sentence(model, changed_model, dev, test_file, shards, tmp_path):
    out = tmp_path / "out"
    one, other = shards[2]
    refuses(calib("fit", model, dev, "--from", one, other, out), "Option --from takes the place of DATA; give one of the two.")
    refuses(calib("fit", model, "--from", one, out), "Of 2 shards there are 1: 2/2 missing")
    refuses(calib("fit", model, "--from", one, one.parent / "gone.npz", out), "There are no statistics at")
    refuses(calib("fit", model, "--from", one, other, other.parent / ".." / "of2" / other.name, out), "is there twice; give")
    refuses(
        calib("fit", model, "--from", one, other, out, "--threshold", 0.1),
        "they differ in the threshold (--threshold) (0.01; 0.1)",
    )
    refuses(calib("fit", model, "--from", one, other, out, "--doc-key", "id"), "Option --doc-key looks at documents")
    refuses(calib("fit", model, "--from", one, other, out, "--n-process", 2), "Option --n-process looks at documents")
    refuses(calib("evaluate", "--from", one, other, "--n-process", 2), "Option --n-process looks at documents")
    refuses(calib("fit", model, "--from", one, other, out, "--event", "sentence"), "Option --event looks at documents")
    refuses(
        calib("fit", model, "--from", one, other, out, "--component", "morphologizer"),
        "they differ in the weights of the component",
    )
    cut = tmp_path / "cut.npz"
    cut.write_bytes(one.read_bytes()[:1000])
    refuses(calib("fit", model, "--from", cut, other, out), "cannot be read: it is no such file, or cut short")
    refuses(calib("fit", model, "--from", dev, out), "cannot be read: it is no such file, or cut short")
    refuses(calib("collect", model, dev, one), "exists already; choose another path or add --force")
    refuses(
        calib("collect", "--merge", one, one, tmp_path / "twice.npz"),
        "0.npz cannot be added to those before it. The shard '1/2' is there twice; give",
    )
    refuses(calib("fit", model, out, "--from"), "Option --from must be files or folders of statistics, but nothing was given.")
    refuses(calib("collect", "--merge", one.parent, one.parent / "all.npz"), "STATS must be outside the folder of --merge")
    refuses(calib("collect", model, dev, tmp_path / "stats"), "Option STATS must be a file that ends in .npz, but")
    for shard in ("3/2", "0/2", " "):
        refuses(
            calib("collect", model, dev, tmp_path / "a.npz", "--shard", shard), "must be a name, or the number of the shard"
        )
    refuses(calib("collect", model, dev, tmp_path / "a.npz", "--judge", "--second-pass"), "says it, but it was given.")
    for more in (["--sample", 10], ["--gold-preproc"], ["--shard", "x"], ["--map", "A=B"], ["--judge"]):
        merged = calib("collect", "--merge", one, other, tmp_path / "a.npz", *more)
        refuses(merged, f"Option {more[0]} must be left out beside --merge, which adds up what is there, but")
    assert not (tmp_path / "a.npz").exists()
    sentences = ["--gold-preproc", "--sample", 300, "--shard", "2/2", "--silent"]
    ok(calib("collect", model, dev, tmp_path / "gold.npz", *sentences))
    refuses(
        calib("fit", model, "--from", one, tmp_path / "gold.npz", out),
        "they differ in what is read (--gold-preproc) (whole documents; sentences of gold tokens)",
    )
    refuses(calib("info", tmp_path / "gone.npz"), "There are no statistics at")
    refuses(calib("collect", model, dev), "Missing argument", code=2)
    refuses(calib("fit", model, dev), "Missing argument", code=2)
    refuses(calib("fit", "--from", one), "Missing argument", code=2)
    trained = changed_model(lambda nlp: nlp.get_pipe("tagger").model.get_ref("output_layer").get_param("b").__iadd__(1))
    refuses(calib("fit", trained, "--from", one, other, out), "they differ in the weights of the component")
    assert not out.exists()


@pytest.fixture(scope="module")
def judged(calibrated, test_file, tmp_path_factory):
    """What a fitted pipeline says of test.spacy, see `in_shards`."""
    docs = list(DocBin().from_disk(test_file).get_docs(Vocab()))
    return in_shards(tmp_path_factory.mktemp("judged"), calibrated, docs, "--judge")


def test_any_number_of_shards_gives_the_same_figures(calibrated, test_file, judged, tmp_path):
    figures = {}
    for n, files in judged.items():
        files = random.Random(n).sample(files, n)
        ok(calib("evaluate", "--from", *files, "--output", tmp_path / f"{n}.json", "--silent"))
        figures[n] = (tmp_path / f"{n}.json").read_bytes()
    assert figures[1] == figures[2] == figures[7]
    shown = json.loads(figures[1])["calib"]
    ok(calib("evaluate", calibrated, test_file, "--output", tmp_path / "data.json", "--silent"))
    of_data = json.loads((tmp_path / "data.json").read_text())["calib"]
    assert list(shown) == list(of_data)
    for key in ("tokens", "pairs", "accuracy", "bins", "seen", "component", "never_right"):
        assert shown[key] == pytest.approx(of_data[key])
    for name, row in of_data["scores"].items():
        assert shown["scores"][name] == pytest.approx(row, abs=1e-9)
    for one, other in zip(shown["errors"], of_data["errors"], strict=True):
        assert [one[key] for key in ("raw", "calibrated")] == pytest.approx(
            [other[key] for key in ("raw", "calibrated")], abs=1e-9
        )


def test_judging_shards_says_what_evaluate_says_of_bad_gold(calibrated, tmp_path):
    """The pipeline itself may be at fault too."""
    vocab = Vocab()
    words = {"words": ["the", "dog"]}
    bare = save_docs(tmp_path / "bare.spacy", [Doc(vocab, **words)])
    other = save_docs(tmp_path / "other.spacy", [Doc(vocab, **words, tags=["A", "B"])])
    nlp = spacy.load(calibrated)
    nlp.disable_pipe("calib")
    nlp.to_disk(tmp_path / "disabled")
    for model, data, sentence in (
        (calibrated, bare, "The data has no gold tag annotation for component 'tagger'"),
        (calibrated, other, "knows none of the labels in the gold"),
        (tmp_path / "disabled", other, "disabled"),
    ):
        said = {
            calib("evaluate", model, data, "--silent").text,
            calib("collect", model, data, tmp_path / "x.npz", "--judge", "--silent").text,
        }
        assert len(said) == 1
        assert sentence in said.pop()


def test_statistics_know_what_they_were_collected_for(model, calibrated, shards, judged, test_file, tmp_path):
    one, other = judged[2]
    printed = ok(calib("evaluate", calibrated, "--from", one, other)).text
    assert "all (SMCE)" in printed
    assert "evaluate" in ok(calib("info", one)).text
    ok(calib("collect", "--merge", one, other, tmp_path / "both.npz", "--silent"))
    assert ok(calib("evaluate", "--from", tmp_path / "both.npz")).text == ok(calib("evaluate", "--from", one, other)).text
    refuses(
        calib("fit", model, "--from", one, tmp_path / "x"),
        "were collected for `calib evaluate`, not for `calib fit`; collect them without --judge",
    )
    refuses(
        calib("evaluate", "--from", *shards[2]),
        "were collected for `calib fit`, not for `calib evaluate`; collect them with --judge",
    )
    refuses(calib("evaluate", "--from", one), "Of 2 shards there are 1")
    refuses(calib("evaluate", calibrated, test_file, "--from", one, other), "Option --from takes the place of DATA")
    refuses(calib("evaluate", "--from", one, other, "--doc-key", "id"), "Option --doc-key looks at documents")
    refuses(calib("evaluate", "--from", one, one), "is there twice")
    ok(calib("fit", model, test_file, tmp_path / "refit", "--method", "platt", "--silent"))
    refuses(calib("evaluate", tmp_path / "refit", "--from", one, other), "they differ in")
    refuses(
        calib("collect", calibrated, test_file, tmp_path / "j.npz", "--judge", "--event", "exact"),
        "must be left out beside --judge",
    )
    refuses(calib("collect", model, test_file, tmp_path / "j.npz", "--judge"), "no")


def test_entities_go_the_same_way(ner_model, entity_dev, calibrated_ner, entity_test, tmp_path):
    docs = {
        name: list(DocBin().from_disk(path).get_docs(Vocab())) for name, path in (("dev", entity_dev), ("test", entity_test))
    }
    made, key = {}, save_key(tmp_path / "key")
    for n in (1, 3):
        for i in range(n):
            for name, model, option in (("dev", ner_model, "--component=ner"), ("test", calibrated_ner, "--judge")):
                gold = save_docs(tmp_path / f"{name}{n}-{i}.spacy", docs[name][i::n])
                stats = tmp_path / f"{name}{n}" / f"{i}.npz"
                ok(
                    calib(
                        "collect",
                        model,
                        gold,
                        stats,
                        option,
                        "--shard",
                        f"{i + 1}/{n}",
                        "--key",
                        key,
                        "--sample",
                        900,
                        "--silent",
                    )
                )
        fitted = tmp_path / f"fitted{n}"
        ok(calib("fit", ner_model, "--from", tmp_path / f"dev{n}", fitted, "--method", "platt", "--silent"))
        figures = json.loads(ok(calib("evaluate", "--from", tmp_path / f"test{n}", "--format", "json")).printed)
        made[n] = (next(fitted.glob("calib*/calibration.msgpack")).read_bytes(), figures["calib"])
    assert made[1][0] == made[3][0]
    assert made[1][1] == made[3][1]
    assert made[1][1]["entities"]["pairs"] > 0
