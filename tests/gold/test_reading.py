import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus

from spacy_calib.annotations.kinds import REJECTED
from spacy_calib.errors import CalibError
from spacy_calib.gold.file_readers import file_reader
from spacy_calib.gold.keys import DOC_KEY
from spacy_calib.gold.reading import document_of, gold_files, make_examples
from spacy_calib.pairs.documents import DOC, DOCUMENT, SENTENCE, DocumentNumbers
from tests.cli.conftest import save_docs

NLP = spacy.blank("en")
SENTENCE_ROWS = "1\tIt\tit\tPRON\tPRP\tPerson=3\t2\tnsubj\t_\t_\n2\truns\trun\tVERB\tVBZ\t_\t0\troot\t_\tSpaceAfter=No\n3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_\n"
SPLIT_ROWS = (
    "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tdo\tdo\tAUX\tVBP\t_\t3\taux\t_\t_\n2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n3.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_\n"
)  # fmt: skip


def two_sentences(**user_data) -> Doc:
    starts = [True, False, False, True, False]
    doc = Doc(NLP.vocab, words=["a", "b", ".", "c", "."], tags=["X", "Y", ".", "X", "."], sent_starts=starts)
    doc.user_data.update(user_data)
    return doc


def examples_in(file, *settings):
    """The examples of a gold file. settings: gold_preproc, and keys of arrays."""
    return list(make_examples(NLP, file_reader(file)(NLP, file), file, *settings))


def numbers_of(examples):
    numbers = DocumentNumbers()
    return [numbers.number(document_of(eg)) for eg in examples], numbers.unit


@pytest.mark.parametrize("gold_preproc", [False, True])
def test_the_examples_are_those_of_spacys_own_reader(tmp_path, gold_preproc):
    file = save_docs(tmp_path / "a.spacy", [two_sentences(), Doc(NLP.vocab, words=["d"], tags=["X"]), Doc(NLP.vocab)])
    ours = examples_in(file, gold_preproc)
    theirs = list(Corpus(file, gold_preproc=gold_preproc)(NLP))
    assert len(ours) == (3 if gold_preproc else 2)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.to_dict() == other.to_dict()
        assert [t.text for t in mine.predicted] == [t.text for t in other.predicted]


def test_sentences_of_gold_preprocessing_stay_one_document(tmp_path):
    """spaCy's reader makes a Doc of each, without its user data."""
    file = save_docs(tmp_path / "a.spacy", [two_sentences(), two_sentences()])
    assert numbers_of(examples_in(file, True)) == ([0, 0, 1, 1], DOC)
    assert numbers_of(Corpus(file, gold_preproc=True)(NLP)) == ([0, 1, 2, 3], SENTENCE)


def test_chunks_with_the_name_of_their_document_are_one_document(tmp_path):
    names = ["n1", "n2", "n1"]
    file = save_docs(tmp_path / "a.spacy", [two_sentences(**{DOC_KEY: name}) for name in names])
    for gold_preproc in (False, True):
        found, unit = numbers_of(examples_in(file, gold_preproc))
        assert found == [number for number in (0, 1, 0) for _ in range(1 + gold_preproc)]
        assert unit == DOCUMENT
    # Without our reader too: spaCy's keeps the user data of whole Docs.
    assert numbers_of(Corpus(file)(NLP)) == ([0, 1, 0], DOCUMENT)


def test_numbers_name_a_document_of_their_file_and_texts_one_of_all(tmp_path):
    for names, wanted in (((1, 2), [0, 1, 2, 3]), (("x", "y"), [0, 1, 0, 1])):
        docs = [two_sentences(**{DOC_KEY: name}) for name in names]
        files = [save_docs(tmp_path / name, docs) for name in ("a.spacy", "b.spacy")]
        assert numbers_of([eg for file in files for eg in examples_in(file)])[0] == wanted


def test_arrays_of_tokens_reach_the_predicted_doc(tmp_path):
    array = np.arange(10.0).reshape(5, 2)
    file = save_docs(tmp_path / "a.spacy", [two_sentences(probs=array), two_sentences()])
    whole, bare = examples_in(file, False, ["probs"])
    assert np.array_equal(whole.predicted.user_data["probs"], array)
    assert bare.predicted.user_data == {}
    assert not whole.predicted.has_annotation("TAG")
    parts = examples_in(file, True, ["probs"])
    assert [eg.predicted.user_data["probs"].tolist() for eg in parts[:2]] == [array[:3].tolist(), array[3:].tolist()]
    assert numbers_of(parts) == ([0, 0, 1, 1], DOC)


def test_arrays_do_not_part_a_doc_from_its_answers(tmp_path):
    """Sentences have no span groups, and would lose what annotators rejected."""
    answered = two_sentences(probs=np.arange(5.0))
    answered.spans[REJECTED] = [Span(answered, 3, 4, label="PER")]
    (example,) = examples_in(save_docs(tmp_path / "a.spacy", [answered]), True, ["probs"])
    assert [span.text for span in example.reference.spans[REJECTED]] == ["c"]
    assert example.predicted.user_data["probs"].tolist() == [0, 1, 2, 3, 4]


def test_conllu_documents_and_rows(tmp_path):
    file = tmp_path / "a.conllu"
    file.write_text(
        f"# global.columns = x\n# newdoc id = one\n# sent_id = 1\n{SENTENCE_ROWS}\n# sent_id = 2\n{SPLIT_ROWS}\n\n\n# newdoc\n{SENTENCE_ROWS}\n# newdoc id = one\n{SENTENCE_ROWS}",
        encoding="utf-8",
    )
    examples = examples_in(file)
    assert numbers_of(examples) == ([0, 1, 0], DOCUMENT)
    doc = examples[0].reference
    assert [t.text for t in doc] == ["It", "runs", ".", "do", "n't", "go"]
    assert [t.tag_ for t in doc] == ["PRP", "VBZ", ".", "VBP", "RB", "VB"]
    assert [t.pos_ for t in doc] == ["PRON", "VERB", "PUNCT", "AUX", "PART", "VERB"]
    assert [t.lemma_ for t in doc][:2] == ["it", "run"]
    assert str(doc[0].morph) == "Person=3"
    assert [t.head.i for t in doc] == [1, 1, 1, 5, 5, 5]
    assert [sent.text for sent in doc.sents] == ["It runs.", "don't go"]
    assert doc.vocab is NLP.vocab
    assert len(examples_in(file, True)) == 4


def test_conllu_without_documents_is_read_by_sentence(tmp_path):
    file = tmp_path / "a.conllu"
    file.write_text(f"{SENTENCE_ROWS}\n{SENTENCE_ROWS}", encoding="utf-8")
    assert numbers_of(examples_in(file)) == ([0, 1], SENTENCE)


@pytest.mark.parametrize("content", [b"1\tno\tcolumns\n", b"1\t\xff\xfe\t"])
def test_what_is_no_conllu_is_refused(tmp_path, content):
    file = tmp_path / "a.conllu"
    file.write_bytes(content)
    with pytest.raises(CalibError, match=r"\[C161\].*a\.conllu is not a CoNLL-U file"):
        examples_in(file)


def test_a_folder_holds_docbins_or_else_conllu(tmp_path):
    (tmp_path / ".hidden").mkdir()
    for name in ("b.conllu", "a.conllu", ".hidden/c.spacy"):
        (tmp_path / name).touch()
    assert [file.name for file in gold_files(tmp_path)] == ["a.conllu", "b.conllu"]
    (tmp_path / "d.spacy").touch()
    assert [file.name for file in gold_files(tmp_path)] == ["d.spacy"]
