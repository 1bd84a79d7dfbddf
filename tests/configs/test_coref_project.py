"""The spaCy project for coreference: its steps fit together, and it reads GUM's brackets."""

from __future__ import annotations

import gzip
import runpy
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from tests.configs import CONFIGS

PROJECT = CONFIGS / "gum_coref"

# "Anna's dog" holds "Anna's"; "she" is Anna; "don't" is two words of one token; the dog is named twice at one place.
GUM = """# newdoc id = GUM_made_one
# global.Entity = GRP-etype-infstat-salience-centering-minspan-link-identity
# meta::genre = made
# sent_id = 1
1\tAnna\tAnna\tPROPN\tNNP\t_\t3\tnmod\t_\tEntity=(2-animal-new-nnnnn-cf1-3-sgl(1-person-new-nnnnn-cf1-1-coref-Anna|SpaceAfter=No
2\t's\t's\tPART\tPOS\t_\t1\tcase\t_\tEntity=1)
3\tdog\tdog\tNOUN\tNN\t_\t5\tnsubj\t_\tEntity=2)
4-5\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
4\tdo\tdo\tAUX\tVBP\t_\t5\taux\t_\t_
5\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
5.1\tsleep\tsleep\tVERB\tVB\t_\t_\t_\t_\t_
6\t.\t.\tPUNCT\t.\t_\t5\tpunct\t_\t_

# sent_id = 2
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\tEntity=(1-person-giv:act-nnnnn-cf1*-1-ana)
2\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_

# newdoc id = GUM_made_two
# sent_id = 1
1\tIt\tit\tPRON\tPRP\t_\t0\troot\t_\tEntity=(3-animal-new-nnnnn-cf1-1-sgl)(4-animal-new-nnnnn-cf1-1-sgl)

"""


def test_the_brackets_of_gum_become_mentions_and_clusters(tmp_path, monkeypatch, capsys):
    for part in ("train", "dev"):
        (tmp_path / f"{part}.conllu.gz").write_bytes(gzip.compress(GUM.encode()))
    monkeypatch.setattr(sys, "argv", ["convert.py", str(tmp_path / "corpus"), "--data", str(tmp_path)])
    runpy.run_path(str(PROJECT / "scripts" / "convert.py"), run_name="__main__")
    assert "dev: 2 documents, 9 words, 4 mentions, 3 pairs" in capsys.readouterr().out
    one, two = DocBin().from_disk(tmp_path / "corpus" / "dev.spacy").get_docs(spacy.blank("en").vocab)
    assert one.text == "Anna's dog don't. She sleeps "
    assert [(span.start, span.end) for span in one.spans["coref_mentions"]] == [(0, 2), (6, 7), (0, 3)]
    assert [span.text for span in one.spans["coref_clusters_1"]] == ["Anna's", "She"]
    assert "coref_clusters_2" not in one.spans
    assert [token.i for token in one if token.is_sent_start] == [0, 6]
    assert (one.user_data["id"], one.user_data["genre"]) == ("GUM_made_one", "made")
    assert [span.text for span in two.spans["coref_mentions"]] == ["It"]


def test_without_data_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("SPACY_CALIB_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["convert.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="SPACY_CALIB_DATA"):
        runpy.run_path(str(PROJECT / "scripts" / "convert.py"), run_name="__main__")
