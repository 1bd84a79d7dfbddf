import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.annotations import MappedAnnotation, get_annotation
from spacy_calib.errors import CalibError
from spacy_calib.pairs.scores import DenseScores
from spacy_calib.sources.left_scores import DocTensorSource
from spacy_calib.sources.mapped import MappedScores, MappedSource, biluo_prefixes, check_map_labels, map_of, with_map
from tests.cli.conftest import entity_docs, revive_recognizer

NLP = spacy.blank("xx")
TABLE = {"PER": "person", "LOC": "place", "ORG": ""}


def test_probabilities_of_merged_labels_add_up():
    probabilities = np.array([[0.5, 0.3, 0.15, 0.05], [0.004, 0.007, 0.0, 0.989], [np.nan] * 4])
    column = np.array([0, 1, 1, -1])
    mapped = MappedScores(DenseScores(probabilities), column, False, None)
    found = mapped.marginals_above(0.01)
    assert list(zip(found.rows.tolist(), found.tags.tolist(), found.scores.round(9).tolist(), strict=True)) == [
        (0, 0, 0.5), (0, 1, 0.45),
    ]  # fmt: skip
    assert found.n_tokens == 3
    assert mapped.scores_at(np.array([0, 1, 2]), np.array([1, 1, 0]))[:2] == pytest.approx([0.45, 0.007])
    assert np.isnan(mapped.scores_at(np.array([2]), np.array([1]))).all()
    assert MappedScores(DenseScores(probabilities), column, True, None).marginals_above(0.2).scores.tolist() == [0.5, 0.3]


def test_a_layer_maps_what_is_predicted_and_not_the_gold():
    doc = Doc(NLP.vocab, words=list("abcde"), ents=["B-PER", "I-PER", "O", "B-ORG", "B-LOC"])
    for inner, wanted in (
        ("ner", ["person", "person", "O", "O", "place"]),
        ("biluo", ["B-person", "L-person", "O", "O", "U-place"]),
    ):
        annotation = get_annotation(MappedAnnotation(get_annotation(inner), TABLE).name)
        assert isinstance(annotation, MappedAnnotation)
        assert [annotation.label(token) for token in doc] == wanted
        named = Doc(NLP.vocab, words=list("abcde"), ents=["B-person", "I-person", "O", "O", "B-place"])
        assert annotation.hashes(doc).tolist() == get_annotation(inner).hashes(named).tolist()
        assert annotation.gold_hashes(doc).tolist() == get_annotation(inner).gold_hashes(doc).tolist()
    tags = Doc(NLP.vocab, words=["a", "b", "c"], tags=["X", "Y", ""])
    annotation = get_annotation(MappedAnnotation(get_annotation("tag"), {"X": "Z", "Y": ""}).name)
    assert [annotation.label(token) for token in tags] == ["Z", "", ""]
    assert annotation.hashes(tags)[1:].tolist() == [0, 0]


def test_entities_of_a_recognizer_keep_their_labels_and_lose_those_without_counterpart():
    nlp = revive_recognizer("ner")
    from spacy_calib.sources.ner.source import NerSource

    for granularity in ("type", "biluo"):
        inner = NerSource("ner", granularity)
        source = MappedSource(inner, {"PER": "any", "LOC": "any", "ORG": ""})
        pipe = nlp.get_pipe("ner")
        assert set(source.labels(pipe)) == ({"O", "any"} if granularity == "type" else {"O", *(f"{c}-any" for c in "BILU")})
        docs = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in entity_docs(12, 23, nlp.vocab)]
        with nlp.select_pipes(enable=["tok2vec"]):
            docs = list(nlp.pipe(docs))
        plain, mapped = inner.read(pipe, docs), source.read(pipe, docs)
        names = np.array(inner.span_labels(pipe))
        assert "ORG" in names[plain.spans.labels]
        assert set(names[mapped.spans.labels]) <= {"PER", "LOC"}
        assert len(mapped.spans) == int((names[plain.spans.labels] != "ORG").sum())
        kept = plain.spans.take(np.flatnonzero(names[plain.spans.labels] != "ORG"))
        assert (mapped.spans.token_scores >= kept.token_scores - 1e-9).all()
        assert (mapped.spans.token_scores > kept.token_scores + 1e-4).any()
        assert summed(mapped) == pytest.approx(summed(plain), abs=1e-4)


def summed(scores):
    """The probabilities of each token, together."""
    sums, entries = np.zeros(scores.n_tokens), scores.marginals_above(0.0)
    np.add.at(sums, entries.rows, entries.scores)
    return sums


def test_prefixes():
    assert [biluo_prefixes(n) for n in (1, 2, 4)] == [["U-"], ["B-", "L-"], ["B-", "I-", "I-", "L-"]]


def test_a_map_replaces_another_and_names_known_labels():
    plain = DocTensorSource(["A", "B"])
    mapped = with_map(with_map(plain, {"A": "C"}), {"B": "D"})
    assert (map_of(mapped), mapped.labels(None), map_of(plain)) == ({"B": "D"}, ("A", "D"), None)
    assert with_map(mapped, None) is plain
    check_map_labels(plain, None, {"A": "C"})
    with pytest.raises(CalibError, match=r"\[C165\].*'X'.*A, B"):
        check_map_labels(plain, None, {"X": "C"})
    with pytest.raises(CalibError, match=r"\[C163\].*lemma"):
        check_map_labels(DocTensorSource(["A"], layer="lemma"), None, {"A": "C"})
