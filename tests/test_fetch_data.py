"""tests/fetch_data.py: the forms of the public files, and the digests of the copy that the numbers were measured on."""

import gzip

import pytest

from tests.fetch_data import SOURCES, Source, digest_of, fetch, numbered_words, tagged_words, treebank


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_the_copy_is_what_the_digests_say_and_has_its_form_already(source, shared_data):
    assert fetch(source, shared_data)
    text = gzip.decompress((shared_data / source.file).read_bytes()).decode("utf8")
    form = tagged_words(10) if source.file.startswith("wikineural") else source.form  # a tenth of it was taken
    assert form(text) == text


def test_forms_of_the_files_as_they_are_published(tmp_path):
    row = "1\tThey\tthey\tPRON\tPRP\t_\t2\tnsubj\t2:nsubj\tEntity=x|SpaceAfter=No\n"
    assert treebank(f"# newpar id = a\n# text = They\n{row}\n") == (
        "# text = They\n1\tThey\tthey\tPRON\tPRP\t_\t2\tnsubj\t_\tSpaceAfter=No\n\n"
    )
    assert numbered_words("# text = Rome\n1\tRome\tB-LOC\t-\tann\n\n") == "# text = Rome\n1\tRome\tB-LOC\n\n"
    sentences = "".join(f"0\tw{i}\tO\n1\t#\tO\n\t\n" for i in range(11))
    assert tagged_words(1)(sentences) == "w9\tO\n#\tO\n\n"
    assert tagged_words(9)(sentences).count("\n\n") == 10


def test_a_file_that_differs_is_not_kept(tmp_path):
    (tmp_path / "there.txt").write_text("another text", encoding="utf8")
    address = (tmp_path / "there.txt").as_uri()
    source = Source("set/train.gz", address, str.upper, digest_of("A TEXT"))
    assert not fetch(source, tmp_path)
    assert not (tmp_path / "set").exists()
    assert fetch(source._replace(digest=digest_of("ANOTHER TEXT")), tmp_path)
    assert gzip.decompress((tmp_path / "set" / "train.gz").read_bytes()) == b"ANOTHER TEXT"
