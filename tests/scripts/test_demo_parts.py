"""The parts of scripts/demo.py that read and split the treebanks."""

from collections import Counter

import pytest
from quality.readers import PORTTINARI_SHARES, Sentence, make_docs, read_dante, split
from spacy.vocab import Vocab

TREEBANK = """\
# newdoc id = all.conllu
# sent_id = FOLHA_DOC000001_SENT003
# text = Vim da rua .
1\tVim\tvir\tVERB\t_\tMood=Ind|XXX|Number=Sing\t_\t_\t_\t_
2-3\tda\t_\t_\t_\t_\t_\t_\t_\t_
2\tde\tde\tADP\t_\t_\t_\t_\t_\t_
3\ta\to\tDET\t_\tGender=Fem=|Number=Sing\t_\t_\t_\t_
4\trua\trua\tNOUN\t_\tForeign=YesNumber=Inv\t_\t_\t_\t_\tTrunc=Yes
4.1\tvazio\t_\tX\t_\t_\t_\t_\t_\t_
5\t.\t.\tPUNCT\t_\t_\t_\t_\t_\t_

# sent_id = FOLHA_DOC000001_SENT004
1\t#vale5\t_\tX\t_\t_\t_\t_\t_\t_

# sent_id = FOLHA_DOC000022_SENT001
1\tSim\tsim\tADV\t_\tPolarity=Neg,Pos\t_\t_\t_\t_

"""


@pytest.fixture
def documents(tmp_path):
    (tmp_path / "annotated.conllu").write_text(TREEBANK, encoding="utf8")
    skipped: Counter[str] = Counter()
    return read_dante(tmp_path / "annotated.conllu", skipped), skipped


def test_reading_skips_contractions_empty_nodes_and_malformed_features(documents):
    ((first, second), (third,)), skipped = documents
    assert first.words == ["Vim", "de", "a", "rua", "."]
    assert first.gold["pos"] == ["VERB", "ADP", "DET", "NOUN", "PUNCT"]
    assert first.gold["morphs"] == ["Mood=Ind|Number=Sing", "", "Number=Sing", "", ""]
    assert second.words == ["#vale5"], "a word that begins with # is no comment"
    assert third.gold["morphs"] == ["Polarity=Neg,Pos"]
    assert skipped == {"XXX": 1, "Gender=Fem=": 1, "Foreign=YesNumber=Inv": 1}


def test_docs_hold_sentences_of_one_document(documents):
    assert [len(doc) for _, doc in make_docs(documents[0], Vocab(), 1)] == [5, 1, 1]
    (_, first), (_, second) = make_docs(documents[0], Vocab())
    assert [sent.text for sent in first.sents] == ["Vim de a rua .", "#vale5"]
    assert [token.pos_ for token in second] == ["ADV"]
    assert str(first[0].morph) == "Mood=Ind|Number=Sing"
    assert first.has_unknown_spaces


def test_split_keeps_documents_whole_and_loses_nothing():
    given = [[Sentence(f"FOLHA_DOC{d:06}", ["a"], {})] * (d % 4 + 1) for d in range(200)]
    parts = split(given, PORTTINARI_SHARES)
    assert {part: len(held) for part, held in parts.items()} == {"train": 130, "dev": 10, "fit": 30, "test": 30}
    held = {one[0].document: one for inside in parts.values() for one in inside}
    assert held == {one[0].document: one for one in given}
    # As the data behind the documentation were drawn.
    assert " ".join(one[0].document[-3:] for one in parts["dev"]) == "020 027 031 074 081 125 151 164 191 198"
    assert split(given, PORTTINARI_SHARES, seed=0) == parts
    assert split(given, PORTTINARI_SHARES, seed=1) != parts
