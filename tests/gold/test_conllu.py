"""CoNLL-U -> Docs with the text of the file, whatever the words of its multiword tokens are."""

import re
import warnings

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.errors import CalibError
from spacy_calib.gold.conllu import read_conllu

NLP = spacy.blank("xx")
# id, form, lemma, UPOS, XPOS, features, head, relation, MISC
CLUB = [
    (1, "membres", "membre", "NOUN", "N", "Number=Plur", 0, "root", "_"),
    ("2-3", "du", "_", "_", "_", "_", "_", "_", "_"),
    (2, "de", "de", "ADP", "P", "_", 4, "case", "_"),
    (3, "le", "le", "DET", "D", "Definite=Def|Number=Sing", 4, "det", "_"),
    (4, "club", "club", "NOUN", "N", "Number=Sing", 1, "nmod", "NE=B-ORG|SpaceAfter=No"),
    (5, ".", ".", "PUNCT", "F", "_", 1, "punct", "_"),
]
DONT = [
    ("1-2", "DON'T", "_", "_", "_", "_", "_", "_", "SpaceAfter=No"),
    (1, "do", "do", "AUX", "VBP", "_", 0, "root", "_"),
    (2, "n't", "not", "PART", "RB", "_", 1, "advmod", "_"),
    (3, "!", "!", "PUNCT", ".", "_", 1, "punct", "_"),
]


def block(rows, *comments):
    lines = ["\t".join([*map(str, row[:8]), "_", row[8]]) for row in rows]
    return "\n".join([*comments, *lines]) + "\n\n"


def docs_in(tmp_path, text):
    (tmp_path / "a.conllu").write_text(text, encoding="utf8")
    return [doc for _, doc in read_conllu(NLP.vocab, tmp_path / "a.conllu")]


def test_words_that_do_not_spell_their_token_are_merged(tmp_path):
    (doc,) = docs_in(tmp_path, block(CLUB, "# text = membres du club."))
    assert doc.text == "membres du club. "
    assert [token.text for token in doc] == ["membres", "du", "club", "."]
    # As `spacy convert --merge-subtokens` writes it, and as models that were trained on that say it.
    du = doc[1]
    assert (du.tag_, du.pos_, du.lemma_, du.dep_, du.head.text) == ("P_D", "ADP", "de le", "case", "club")
    assert str(du.morph) == "Definite=Def|Number=Sing"
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("club", "ORG")]
    assert [token.head.i for token in doc] == [0, 2, 0, 0]


def test_words_that_spell_their_token_stay_in_its_writing(tmp_path):
    (doc,) = docs_in(tmp_path, block(DONT, "# text = DON'T!"))
    assert [(token.text, token.whitespace_) for token in doc] == [("DO", ""), ("N'T", ""), ("!", " ")]
    assert [token.lemma_ for token in doc] == ["do", "not", "!"]


def test_an_apostrophe_may_be_written_otherwise(tmp_path):
    rows = [(*row[:1], row[1].replace("DON'T", "don\u2019t"), *row[2:]) for row in DONT]
    (doc,) = docs_in(tmp_path, block(rows, "# text = don\u2019t!"))
    assert [token.text for token in doc] == ["do", "n\u2019t", "!"]


def test_a_multiword_token_without_its_words_is_refused(tmp_path):
    with pytest.raises(CalibError, match=r"\[C161\].*a multiword token 2-3 without its words"):
        docs_in(tmp_path, block(CLUB[:3]))


@pytest.mark.parametrize("comment", ["# text = membres  du club .", "# text=membres du club ."])
def test_spaces_are_those_of_the_text(tmp_path, comment):
    """The row says that none follows "club"."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (doc,) = docs_in(tmp_path, block(CLUB, comment))
    assert doc.text == "membres du club . "


def test_without_a_text_the_rows_say_where_spaces_are(tmp_path):
    assert [doc.text for doc in docs_in(tmp_path, block(CLUB) + block(DONT))] == ["membres du club. ", "DON'T! "]


@pytest.mark.parametrize("text", ["membres de le club.", "membres du club. Fin"])
def test_words_that_are_not_in_the_text_are_counted(tmp_path, text):
    with pytest.warns(UserWarning, match=r"\[CW60\] 1 of the 2 sentences in .*a\.conllu .*first: 'membres d") as said:
        docs = docs_in(tmp_path, block(CLUB, f"# text = {text}") + block(DONT, "# text = DON'T!"))
    assert len(said) == 1
    assert docs[0].text == "membres du club. "


@pytest.mark.parametrize(("n_joined", "warned"), [(20, True), (9, False)])
def test_a_docbin_whose_contractions_were_taken_apart_is_noticed(tmp_path, n_joined, warned):
    """Of 600 words, 20 or 9 are a "de" with a "le" behind it."""
    joined = Doc(NLP.vocab, words=["de", "le", "club", "ici", "!"], spaces=[False, True, True, False, True])
    split = Doc(NLP.vocab, words=["de", "l'", "or", "ici", "!"], spaces=[True, False, True, False, True])
    DocBin(docs=[joined] * n_joined + [split] * (120 - n_joined)).to_disk(tmp_path / "a.spacy")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(read_examples(NLP, tmp_path / "a.spacy", gold_preproc=False)) == 120
    share = "3.3 % of the words in .*a.spacy are joined .* 'dele'"
    assert [bool(re.search(share, str(one.message))) for one in said] == [True] * warned
