"""What may be written where, and what is written through."""

import json
import os
import socket
import stat
import sys
import threading

import pytest

from spacy_calib import CalibError
from spacy_calib.cli.shared import writing
from spacy_calib.cli.shared.outputs import Output, check_files, check_folder, check_pipeline_folder, is_pipeline
from spacy_calib.cli.shared.writing import write_chunks, write_file
from tests.sentences import says


def save_pipeline(folder, *components, meta=None):
    """What `nlp.to_disk` writes, without the weights."""
    for name in ("vocab", *components):
        (folder / name).mkdir(parents=True)
    (folder / "config.cfg").write_text('[nlp]\nlang = "xx"\n')
    held = {"lang": "xx", "pipeline": list(components)} if meta is None else meta
    (folder / "meta.json").write_text(held if isinstance(held, str) else json.dumps(held))
    return folder


def with_factories(folder, **factories):
    """The same folder, with the factories of its components in its config."""
    with (folder / "config.cfg").open("a") as file:
        file.write("[components]\n")
        file.writelines(f'[components.{name}]\nfactory = "{factory}"\n' for name, factory in factories.items())
    return folder


def check(path, force=False, **given):
    check_files([Output("--output", path)], force, **given)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_an_existing_file_is_replaced_with_force_only(tmp_path):
    (tmp_path / "x.json").write_text("old")
    with pytest.raises(CalibError, match="exists already; choose another path or add --force"):
        check(tmp_path / "x.json")
    check(tmp_path / "x.json", force=True)


@pytest.mark.parametrize("name", ["meta.json", "vocab/new.json", "tagger/model"])
def test_no_file_is_written_into_a_pipeline(tmp_path, name):
    folder = save_pipeline(tmp_path / "model", "tagger")
    (tmp_path / "link").symlink_to("model")
    for place in (folder, tmp_path / "link"):
        with pytest.raises(CalibError, match=says("C100")):
            check(place / name, force=True)


def test_no_file_is_written_into_the_package_that_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "xx_package").mkdir()
    (tmp_path / "xx_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CalibError, match=says("C100", folder=tmp_path / "xx_package")):
        check(tmp_path / "xx_package" / "x.json", model="xx_package")
    check(tmp_path / "x.json", model="xx_package")


def test_two_outputs_are_not_one_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for other in (tmp_path / "x.svg", tmp_path / "link" / "x.svg", tmp_path / "y" / ".." / "x.svg"):
        with pytest.raises(CalibError, match=says("C102", first="--output", second="--plot")):
            check_files([Output("--output", tmp_path / "x.svg"), Output("--plot", other)], force=False)


def test_a_file_is_not_written_into_a_folder_that_is_replaced(tmp_path):
    for path in (tmp_path / "out", tmp_path / "out" / "x.json"):
        with pytest.raises(CalibError, match=says("C102")):
            check(path, folder=tmp_path / "out")


def test_what_is_read_is_no_output(tmp_path):
    (tmp_path / "code.py").touch()
    (tmp_path / "data").mkdir()
    with pytest.raises(CalibError, match="Option --output must be none of the files that are read"):
        check(tmp_path / "code.py", force=True, inputs=[None, tmp_path / "code.py"])
    with pytest.raises(CalibError, match="must be outside the folder of the data"):
        check(tmp_path / "data" / "x.jsonl", inputs=[tmp_path / "data"])


def test_a_name_of_255_bytes_is_written_and_a_longer_one_refused(tmp_path):
    longest = tmp_path / ("ü" * 125 + ".json")
    assert len(os.fsencode(longest.name)) == 255
    check(longest)
    write_file(longest, b"new")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"new"]
    with pytest.raises(CalibError, match="File name too long"):
        check(tmp_path / ("x" * 256))


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes no such names")
def test_a_name_that_is_not_utf8_is_written(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.json")
    check(path)
    write_file(path, b"new")
    assert os.listdir(os.fsencode(tmp_path)) == [b"caf\xe9.json"]


def test_a_circle_of_links_is_a_sentence(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CalibError, match="Cannot write the output"):
        check(tmp_path / "a")


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.json").write_text("old")
    (tmp_path / "there" / "x.json").chmod(0o640)
    (tmp_path / "link").symlink_to("there/x.json")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "x.json").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "there" / "x.json").stat().st_mode) == 0o640
    assert names(tmp_path / "there") == ["x.json"]


def test_a_link_to_no_file_yet_makes_that_file(tmp_path):
    (tmp_path / "link").symlink_to("new.json")
    check(tmp_path / "link")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new.json").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_a_fifo_is_written_through(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    check(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_file(path, b"new")
    reader.join(timeout=600)
    assert read == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["fifo"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_device_is_a_sentence_and_stays_a_device(tmp_path):
    (tmp_path / "link").symlink_to("/dev/full")
    check(tmp_path / "link")
    with pytest.raises(CalibError, match="No space left on device"):
        write_file(tmp_path / "link", b"new")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert names(tmp_path) == ["link"]


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="the system has no such sockets")
def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
        with pytest.raises(CalibError, match="it is a socket"):
            check(tmp_path / "socket", force=True)


def test_a_pipeline_is_known_by_what_is_in_it(tmp_path):
    assert is_pipeline(save_pipeline(tmp_path / "whole", "tagger"))
    assert is_pipeline(save_pipeline(tmp_path / "bare"))
    for number, meta in enumerate(["{", "[]", "{}", {"lang": "xx"}, {"lang": "xx", "pipeline": ["parser"]}]):
        assert not is_pipeline(save_pipeline(tmp_path / f"{number}", "tagger", meta=meta))
    (tmp_path / "whole" / "config.cfg").write_text("[tool]\nx = 1\n")
    assert not is_pipeline(tmp_path / "whole")
    (tmp_path / "bare" / "config.cfg").unlink()
    assert not is_pipeline(tmp_path / "bare")


def test_a_folder_with_any_meta_json_is_not_replaced(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "meta.json").write_text('{"title": "years of work"}')
    with pytest.raises(CalibError, match="something that is not a spaCy pipeline, which --force would delete"):
        check_folder(tmp_path / "site", force=True)


FOREIGN = [
    "thesis.txt", "photos/", "tagger.txt", "tagger/notes.md", "vocab/photos/", ".env", "tagger2/", "my/", "cfg", "model", "readme.d",
]  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("force", [False, True])
def test_a_pipeline_with_files_of_somebody_else_is_not_replaced(tmp_path, force, name):
    out = with_factories(save_pipeline(tmp_path / "out", "tagger"), tagger="tagger")
    (out / name).mkdir() if name.endswith("/") else (out / name).write_text("years of work")
    with pytest.raises(CalibError, match=says("C070", path=out, names=name)):
        check_pipeline_folder(out, force=force)


@pytest.mark.parametrize("factory", ["calib", "calib_ent"])
def test_a_text_of_somebody_in_the_folder_of_a_calib_pipe_is_kept(tmp_path, factory):
    out = with_factories(save_pipeline(tmp_path / "out", "tagger"), tagger=factory)
    (out / "tagger" / "notes.txt").write_text("years of work")
    with pytest.raises(CalibError, match=says("C070", path=out, names=os.path.join("tagger", "notes.txt"))):
        check_pipeline_folder(out, force=True)


def test_three_foreign_files_are_named_and_the_others_counted(tmp_path):
    out = save_pipeline(tmp_path / "out", "tagger")
    for name in "edcba":
        (out / name).touch()
    with pytest.raises(CalibError, match=says("C070", names="a, b, c and 2 more")):
        check_folder(out, force=True)


def test_what_components_hubs_and_git_write_is_part_of_a_pipeline(tmp_path):
    out = with_factories(
        save_pipeline(tmp_path / "out", "tagger", "own"), tagger="tagger", own="somebody.v1", sents="sentencizer"
    )
    (out / "own" / "weights").mkdir()
    for name in (
        "own/weights/shard 1.bin",
        "own.pkl",
        "sents.json",
        "tagger/cfg",
        "tagger/model",
        "tokenizer",
        "vocab/strings.json",
    ):
        (out / name).touch()
    for name in ("README.md", "LICENSE", "LICENSES_SOURCES", "accuracy.json", ".gitattributes", "en_x-any-py3-none-any.whl"):
        (out / name).touch()
    (out / ".git").mkdir()
    check_folder(out, force=True)


@pytest.mark.parametrize("name", ["dev.spacy", "data/dev.spacy"])
def test_a_folder_with_an_input_in_it_is_not_replaced(tmp_path, name):
    out = save_pipeline(tmp_path / "out", "tagger")
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).touch()
    (tmp_path / "link.spacy").symlink_to(out / name)
    for given in (out / name, out / "vocab" / ".." / "dev.cfg", tmp_path / "link.spacy"):
        with pytest.raises(CalibError, match="Replacing .*out would delete .*, which this command reads"):
            check_pipeline_folder(out, force=True, inputs=[given])


def test_a_folder_in_the_data_is_not_written(tmp_path):
    (tmp_path / "data").mkdir()
    for place in ("data", "data/out"):
        with pytest.raises(CalibError, match="Option OUTPUT must be outside the folder of the data|would delete|not a spaCy"):
            check_pipeline_folder(tmp_path / place, force=True, inputs=[tmp_path / "data"])


def test_the_loaded_pipeline_may_be_replaced_but_not_what_holds_it_or_lies_in_it(tmp_path):
    outer = save_pipeline(tmp_path / "outer", "tagger")
    inner = save_pipeline(tmp_path / "outer" / "inner", "tagger")
    with pytest.raises(CalibError, match=says("C070", names=f"inner{os.sep}")):
        check_pipeline_folder(outer, force=True, model=str(outer))
    with pytest.raises(CalibError, match="would delete .*inner"):
        check_pipeline_folder(outer, force=True, model=str(inner))
    with pytest.raises(CalibError, match=says("C100")):
        check_pipeline_folder(outer / "new", force=False, model=str(outer))


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    with writing._partial(tmp_path / "out") as left:
        pass
    (left / "vocab").mkdir(parents=True)
    write_file(tmp_path / "out", b"new")
    assert names(tmp_path) == ["out"]


def test_a_file_whose_pieces_cannot_be_made_stays_as_it_was(tmp_path):
    def pieces():
        yield b"new"
        raise RuntimeError("no more")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="no more"):
        write_chunks(tmp_path / "file", pieces())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]
