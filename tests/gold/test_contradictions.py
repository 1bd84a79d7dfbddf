"""Gold of one text from several files, people and records: what agrees counts once, what contradicts is unknown and counted."""

import json

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_calib.annotations import get_annotation
from spacy_calib.annotations.span_events import span_hits
from spacy_calib.cli.shared.examples import read_examples
from spacy_calib.errors import CalibError
from spacy_calib.gold.contradictions import merge_gold, reconcile
from spacy_calib.gold.left_out import DroppedGold
from spacy_calib.pipe.label_names import match_labels
from tests.gold.contradictory_gold import ALONE, write_pair
from tests.sentences import says

NLP = spacy.blank("en")


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_merged_gold_of_planted_contradictions_is_that_of_the_rules(start, tmp_path):
    for seed in range(start, start + 20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        files, planned = write_pair(folder, seed)
        examples = read_examples(NLP, files[0], False, more=files[1:])
        docs = {example.reference.text.rstrip(): example.reference for example in examples}
        assert len(docs) == len(examples) == len(planned)
        for text in planned:
            doc = docs[text.text]
            assert {(ent.start, ent.end, ent.label_) for ent in doc.ents} == text.entities, text.kind
            assert {token.i for token in doc if not token.ent_iob_} == text.unknown, text.kind
            assert doc.cats == text.cats, text.kind
            if text.kind not in ALONE:
                assert {token.i for token in doc if not token.tag} == text.untagged, text.kind
        counts = {name: DroppedGold.from_examples(get_annotation(name), examples).conflicts for name in ("ner", "tag", "cats")}
        assert counts["ner"].differing["ner"] == sum(text.differing for text in planned)
        assert counts["tag"].differing["TAG"] == sum(len(text.untagged) for text in planned)
        assert counts["cats"].differing["cats"] == 2 * sum(text.kind == "category" for text in planned)
        assert counts["ner"].overlapping == 2 * sum(text.kind in ("two labels", "overlap") for text in planned)
        # once for each text that two files, or two people, have
        assert counts["ner"].copies == sum(
            text.kind not in ("single", "two labels", "overlap", "changed mind") for text in planned
        )


def gold_doc(*entities, words="Mira Olsen left Tarvo", group=False, rejected=None):
    doc = Doc(NLP.vocab, words=words.split())
    spans = [Span(doc, *entity) for entity in entities]
    doc.set_ents(spans, default="outside" if rejected is None else "missing")
    if group:
        doc.spans["sc"] = spans
    if rejected is not None:
        doc.spans["calib_rejected"] = [Span(doc, *entity) for entity in rejected]
    return doc


def test_the_sentence_counts_copies_and_differences():
    docs = [gold_doc((0, 2, "P"), (3, 4, "O")), gold_doc((0, 2, "P"))]
    (first, second) = reconcile([docs[:1], docs[1:]])
    assert second == [None]
    examples = [spacy.training.Example(NLP.make_doc(first[0].text), first[0])]
    sentence = DroppedGold.from_examples(get_annotation("ner"), examples).sentences()[0]
    assert sentence.startswith("1 text was given again (in several files")
    assert "annotators differ on 1 of 2 entities (50.0 %), which are unknown and take no part" in sentence


def test_extension_attributes_on_which_annotators_differ_are_dropped_and_counted():
    first, second = gold_doc(), gold_doc()
    for doc, values in ((first, {0: "a", 1: "b", 2: "c"}), (second, {0: "a", 1: "x", 3: "d"})):
        doc.user_data |= {("._.", "sure", doc[i].idx, None): value for i, value in values.items()}
        doc.user_data |= {("._.", "_own", 0, None): values[1], ("other", "sure", 0, None): values[1], "._.": values[1]}
    merged = merge_gold(first, [first, second])
    sure = {key[2]: value for key, value in merged.user_data.items() if key[:2] == ("._.", "sure")}
    assert sure == {first[0].idx: "a", first[2].idx: "c", first[3].idx: "d"}
    kept = [("._.", "_own", 0, None), ("other", "sure", 0, None), "._."]
    assert [merged.user_data[key] for key in kept] == ["b"] * 3
    assert {name: n for name, n in merged.user_data["calib_conflicts"]["differing"].items() if n} == {"ext:sure": 1}


def test_what_one_corpus_repeats_stays_as_it_is():
    docs = [gold_doc((0, 2, "P")), gold_doc((0, 2, "O")), gold_doc()]
    assert reconcile([docs]) == [docs]


def test_three_that_differ_are_unknown_whatever_their_order():
    docs = [gold_doc((0, 2, "P")), gold_doc(), gold_doc((0, 2, "P"))]
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        merged = merge_gold(docs[order[0]], [docs[i] for i in order])
        assert [token.ent_iob_ for token in merged] == ["", "", "O", "O"]


def test_rejections_and_acceptances_of_two_files_are_joined_or_contradict():
    docs = [gold_doc((0, 2, "P"), rejected=[]), gold_doc(rejected=[(3, 4, "O")]), gold_doc(rejected=[(0, 2, "P")])]
    merged = merge_gold(docs[0], docs[:2])
    assert ([ent.text for ent in merged.ents], [s.text for s in merged.spans["calib_rejected"]]) == (["Mira Olsen"], ["Tarvo"])
    merged = merge_gold(docs[0], docs)
    assert (list(merged.ents), [s.text for s in merged.spans["calib_rejected"]]) == ([], ["Tarvo"])


def test_contradictory_spans_of_a_group_are_neither_right_nor_wrong():
    merged = merge_gold(
        gold_doc((0, 2, "P"), group=True), [gold_doc((0, 2, "P"), group=True), gold_doc((0, 2, "O"), group=True)]
    )
    merged = next(DocBin().from_bytes(DocBin(docs=[merged], store_user_data=True).to_bytes()).get_docs(NLP.vocab))
    example, group = spacy.training.Example(NLP.make_doc(merged.text), merged), get_annotation("spans:sc")
    keys = [(0, 2, NLP.vocab.strings["P"]), (3, 4, NLP.vocab.strings["P"])]
    assert span_hits(example, group, keys, "exact").tolist() == [-1, 0]
    assert (group.aligned_gold(example) != 0).tolist() == [False, False, True, True]


def with_unknown(doc, *places):
    doc.spans["calib_unknown"] = [Span(doc, *place) for place in places]
    return doc


def group_hits(*docs, key="sc", places=((0, 2, "PER"), (2, 3, "PER"), (3, 4, "PER"))):
    """Whether spans are right by the merged gold; -1: unknown."""
    spans = [(start, end, NLP.vocab.strings.add(label)) for start, end, label in places]
    example = Example(NLP.make_doc(docs[0].text), merge_gold(docs[0], docs))
    return span_hits(example, get_annotation(f"spans:{key}"), spans, "exact").tolist()


def test_tokens_that_nobody_decided_stay_unknown():
    def mira(*places):
        return with_unknown(gold_doc((0, 2, "PER"), group=True), *places)

    assert group_hits(mira((3, 4)), mira((3, 4))) == [1, 0, -1]
    assert group_hits(mira((3, 4)), mira()) == [1, 0, 0]  # by the second Doc nothing else is a span
    assert group_hits(mira((1, 4)), mira((2, 3))) == [1, -1, 0]  # token by token
    answered = gold_doc((3, 4, "PER"), group=True, rejected=[])
    assert group_hits(mira((2, 4)), mira((2, 4)), answered) == [1, -1, 1]  # an answer decides about its own span


def test_unknown_tokens_of_one_group_leave_the_gold_of_another_group():
    corpus = gold_doc((0, 2, "PER"))
    corpus.spans["x"] = [Span(corpus, 0, 2, label="PER")]
    answers = with_unknown(gold_doc(), (0, 2))
    answers.spans["x"] = answers.spans["sc"] = []
    assert group_hits(corpus, answers, key="x") == group_hits(answers, corpus, key="x") == [1, 0, 0]


def test_arcs_that_differ_are_unknown():
    docs = [Doc(NLP.vocab, words=["a", "b", "c"], heads=[1, 1, head], deps=["x", "ROOT", "y"]) for head in (1, 0)]
    merged = merge_gold(docs[0], docs)
    assert [token.dep_ for token in merged] == ["x", "ROOT", ""]
    assert np.array_equal(merged.to_array(["HEAD"]), docs[0].to_array(["HEAD"]))


def test_answers_about_entities_contradict_no_tags_of_a_corpus():
    corpus, answer = (Doc(NLP.vocab, words=["Mira", "left"], tags=tags) for tags in (["N", "V"], ["P", ""]))
    for doc in (corpus, answer):
        doc.set_ents([Span(doc, 0, 1, label="P")], default="outside")
    answer.user_data["calib_person"] = "1"
    ((merged,), (none,)) = reconcile([[corpus], [answer]])
    assert none is None
    assert [token.tag_ for token in merged] == ["N", "V"]
    assert merged.user_data["calib_conflicts"]["differing"].get("TAG", 0) == 0


def test_a_text_that_two_corpora_repeat_is_merged_once_and_each_keeps_its_document(monkeypatch):
    """Merging it anew for each of its Docs took ten seconds for 400 of them."""
    calls = []
    monkeypatch.setattr(
        "spacy_calib.gold.contradictions.merge_gold", lambda base, docs: calls.append(len(docs)) or merge_gold(base, docs)
    )
    files = [[gold_doc((0, 2, "P"), (3, 4, "O")) for _ in range(5)], [gold_doc((0, 2, "P")) for _ in range(3)]]
    for number, doc in enumerate(files[0]):
        doc.user_data["calib_document"] = f"doc {number}"
    first, second = reconcile(files)
    assert (calls, second) == ([8], [None] * 3)
    assert [doc.user_data["calib_document"] for doc in first] == [f"doc {number}" for number in range(5)]
    assert {tuple((ent.text, ent.label_) for ent in doc.ents) for doc in first} == {(("Mira Olsen", "P"),)}
    counted = [doc.user_data.get("calib_conflicts") for doc in first]
    assert (counted[0]["copies"], counted[0]["differing"]["ner"], counted[1:]) == (3, 1, [None] * 4)


def two_people(folder, labels, n=1):
    """Texts that two people labelled: the label of each person for 'Anna', and one on which all agree if n is 2."""
    texts = [
        {"text": "Anna left", "_annotator_id": str(i), "spans": [{"start": 0, "end": 4, "label": label}]}
        for i, label in enumerate(labels)
    ]
    texts += [{"text": "Rome fell", "spans": [{"start": 0, "end": 4, "label": "GPE"}]}] * (n - 1)
    file = folder / "a.jsonl"
    file.write_text("\n".join(json.dumps({**text, "answer": "accept", "_view_id": "ner_manual"}) for text in texts))
    return file


def test_a_file_whose_annotators_disagree_about_every_entity_is_named(tmp_path):
    file = two_people(tmp_path, ["PERSON", "ORG"])
    with pytest.raises(CalibError, match=says("C791", path=file, n="2")):
        read_examples(NLP, file, False)


def test_a_type_that_annotators_contradict_is_one_that_the_gold_uses(tmp_path):
    examples = read_examples(NLP, two_people(tmp_path, ["PERSON", "ORG"], n=2), False)
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("ner")
    for label in ("PERSON", "ORG", "GPE", "DATE"):
        ner.add_label(label)
    pipe = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}})
    assert match_labels(pipe, examples).unused_labels == ("DATE",)
