"""`spacy calib collect`, and `fit --from` what it wrote: through the real command, in 1, 2 and 7 shards."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from tests.cli.conftest import calib, refuses, save_docs

STATE = Path("calib") / "calibration.msgpack"


def ok(outcome):
    assert outcome.code == 0, outcome.text
    return outcome


@pytest.fixture(scope="module")
def shards(model, dev, tmp_path_factory):
    """n -> files with the statistics of n shards of dev.spacy."""
    folder = tmp_path_factory.mktemp("shards")
    vocab = Vocab()
    docs = list(DocBin().from_disk(dev).get_docs(vocab))
    random.Random(1).shuffle(docs)
    found = {}
    for n in (1, 2, 7):
        for i in range(n):
            gold = save_docs(folder / f"{n}-{i}.spacy", docs[i::n])
            ok(
                calib(
                    "collect",
                    model,
                    gold,
                    folder / f"of{n}" / f"{i}.npz",
                    "--shard",
                    f"{i + 1}/{n}",
                    "--sample",
                    300,
                    "--silent",
                )
            )
        found[n] = sorted((folder / f"of{n}").glob("*.npz"))
    return found


def test_any_number_of_shards_gives_the_same_pipeline(model, shards, tmp_path):
    states = {}
    for n, files in shards.items():
        random.Random(n).shuffle(files)
        ok(calib("fit", model, "--from", *files, tmp_path / f"of{n}", "--method", "isotonic", "--intervals", "--silent"))
        states[n] = (tmp_path / f"of{n}" / STATE).read_bytes()
    assert states[1] == states[2] == states[7]


def test_files_are_added_up_beforehand_and_a_folder_is_taken_too(model, shards, tmp_path):
    ok(calib("collect", "--merge", *shards[7][:3], tmp_path / "first.npz", "--silent"))
    ok(calib("collect", tmp_path / "all" / "all.npz", "--merge", tmp_path / "first.npz", *shards[7][3:], "--silent"))
    ok(calib("fit", model, tmp_path / "one", "--from", tmp_path / "all", "--method", "platt", "--silent"))
    ok(calib("fit", model, "--from", shards[7][0].parent, tmp_path / "other", "--method=platt", "--silent"))
    assert (tmp_path / "one" / STATE).read_bytes() == (tmp_path / "other" / STATE).read_bytes()


def test_what_was_gathered_is_told(model, dev, shards, tmp_path):
    outcome = ok(calib("collect", model, dev, tmp_path / "all.npz", "--sample", 300))
    assert "Statistics of" in outcome.text
    assert "of the documents are sampled whole" in outcome.text
    told = json.loads(ok(calib("collect", "--merge", *shards[2], tmp_path / "two.npz", "--format", "json")).printed)
    assert [shard["name"] for shard in told["shards"]] == ["1/2", "2/2"]
    assert (told["component"], told["layer"], told["bounded"]) == ("tagger", "tag", False)
    shown = ok(calib("info", tmp_path / "two.npz"))
    assert "1/2" in shown.text
    assert json.loads(ok(calib("info", tmp_path / "two.npz", "--format", "json")).printed) == {
        key: value for key, value in told.items() if key != "output"
    }
    fitted = json.loads(ok(calib("fit", model, "--from", *shards[2], tmp_path / "out", "--format", "json")).printed)
    assert fitted["docs"] == told["documents"]
    assert fitted["sampled"]["pairs"] < fitted["pairs"] == told["pairs"]
    assert "Sampled" in ok(calib("info", tmp_path / "out")).text


def test_bounded_statistics_go_with_bounded_ones_only(model, dev, shards, tmp_path):
    ok(calib("collect", model, dev, tmp_path / "cells.npz", "--bounded", "--sample", 300, "--silent"))
    ok(calib("fit", model, "--from", tmp_path / "cells.npz", tmp_path / "out", "--method", "isotonic", "--silent"))
    refuses(
        calib("fit", model, "--from", tmp_path / "cells.npz", shards[2][0], tmp_path / "two"),
        "they differ in the form of the tables (--bounded)",
    )


def test_bad_input_is_one_sentence(model, changed_model, dev, test_file, shards, tmp_path):
    out = tmp_path / "out"
    one, other = shards[2]
    refuses(calib("fit", model, dev, "--from", one, other, out), "Option --from takes the place of DATA; give one of the two.")
    refuses(calib("fit", model, "--from", one, out), "Of 2 shards there are 1: 2/2 missing")
    refuses(calib("fit", model, "--from", one, one.parent / "gone.npz", out), "There are no statistics at")
    refuses(calib("fit", model, "--from", one, other, other.parent / ".." / "of2" / other.name, out), "is there twice: '")
    refuses(
        calib("fit", model, "--from", one, other, out, "--threshold", 0.1),
        "they differ in the threshold (--threshold) (0.01; 0.1)",
    )
    refuses(calib("fit", model, "--from", one, other, out, "--doc-key", "id"), "Option --doc-key looks at documents")
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
    refuses(calib("collect", "--merge", one, one, tmp_path / "twice.npz"), "is there twice: '1/2' has the same content")
    refuses(calib("collect", model, dev), "Missing argument", code=2)
    refuses(calib("fit", model, dev), "Missing argument", code=2)
    refuses(calib("fit", "--from", one), "Missing argument", code=2)
    trained = changed_model(lambda nlp: nlp.get_pipe("tagger").model.get_ref("output_layer").get_param("b").__iadd__(1))
    refuses(calib("fit", trained, "--from", one, other, out), "they differ in the weights of the component")
    assert not out.exists()
