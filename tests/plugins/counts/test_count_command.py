"""`spacy calib count`: through the real command, on texts and on gold."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_calib import CalibError
from spacy_calib.pipe.component import pipes_named
from spacy_calib.pipe.record.fit_record import read_record
from spacy_calib.plugins.counts.count_command import count
from spacy_calib.plugins.counts.text_counts import select_pipes
from spacy_calib.plugins.expect.expect_command import expect
from tests.cli.conftest import calib, docs_in, fitted_to, ok, refuses, save_docs
from tests.conftest import made_up_sentences
from tests.plugins.expect.test_expect_command import strange_texts
from tests.sentences import says

THE, A = "NOUN", "VERB"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Made-up texts of three years."""
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    held = [" ".join(word for word, _ in sentence) for sentence in made_up_sentences(30, 3)]
    lines = [{"text": text, "meta": {"year": 1990 + i % 3, "on": f"199{i % 3}-05-0{1 + i % 2}"}} for i, text in enumerate(held)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def some_tag(gold):
    """A frequent tag of the gold."""
    docs = docs_in(gold)
    tags, n = np.unique([token.tag_ for doc in docs for token in doc], return_counts=True)
    return str(tags[n.argmax()]), int(n.max())


def test_the_number_of_a_tag(calibrated, test_file):
    tag, gold = some_tag(test_file)
    result = count(str(calibrated), test_file, query=[tag])
    (one,) = result["queries"]
    assert one["total"]["low"] <= gold <= one["total"]["high"]
    assert one["total"]["low"] < one["total"]["expected"] < one["total"]["high"]
    assert one["effects"]["shift_variance"] >= 0
    assert (one["unit"], one["rows"], one["total"]["documents"]) == ("token", [], result["documents"])


def test_by_year_as_table_json_csv_and_picture(calibrated, texts, test_file, tmp_path):
    pytest.importorskip("matplotlib")
    tag, _ = some_tag(test_file)
    options = ("-q", tag, "-q", THE, "--name", "Tags", "--name", "The word", "--per", "10", "--by", "year")
    outputs = ("-o", tmp_path / "c.json", "--plot", tmp_path / "c.svg")
    outcome = ok(calib("count", calibrated, texts, *options, *outputs))
    assert "95 % interval ---" in outcome.text
    assert " 1990 10 " in outcome.text
    assert "The word (tokens for each 10 tokens)" in outcome.text
    assert "Tags" in (tmp_path / "c.svg").read_text()
    held = json.loads((tmp_path / "c.json").read_text())
    rows = held["queries"][0]["rows"]
    assert [(row["group"], row["documents"]) for row in rows] == [("1990", 10), ("1991", 10), ("1992", 10)]
    total = held["queries"][0]["total"]
    assert f"{total['raw'] * 10 / total['tokens']:.2f} " in outcome.text
    assert (held["queries"][0]["name"], held["queries"][0]["query"], held["per"]) == ("Tags", tag, 10)
    assert total["raw_low"] <= total["raw_expected"] <= total["raw_high"]
    assert total["raw_expected"] != total["expected"]
    for name in ("raw", "tokens"):
        assert sum(row[name] for row in rows) == total[name]
    assert sum(row["expected"] for row in rows) == pytest.approx(total["expected"], rel=1e-6)
    assert total["high"] - total["low"] < sum(row["high"] - row["low"] for row in rows)
    assert b"<svg" in (tmp_path / "c.svg").read_bytes()
    assert calib("count", calibrated, texts, "-q", tag, "--by", "year", "-o", tmp_path / "c.csv", "--silent").printed == ""
    with (tmp_path / "c.csv").open() as lines:
        table = list(csv.DictReader(lines))
    assert [row["group"] for row in table] == ["1990", "1991", "1992"]
    assert float(table[1]["expected"]) == rows[1]["expected"]


def test_periods_of_dates(calibrated, texts):
    result = count(str(calibrated), texts, query=[THE], unit="document", by="on", every="decade")
    assert [(row["group"], row["documents"]) for row in result["queries"][0]["rows"]] == [("1990s", 30)]
    result = count(str(calibrated), texts, query=[THE], by="on", every="month")
    assert [row["group"] for row in result["queries"][0]["rows"]] == ["1990-05", "1991-05", "1992-05"]


def test_entities(calibrated_ner, entity_test, entity_dev):
    result = count(str(calibrated_ner), entity_test, query=["PER"])
    docs = docs_in(entity_test)
    gold = sum(ent.label_ == "PER" for doc in docs for ent in doc.ents)
    (entities,) = (one["total"] for one in result["queries"])
    tokens = count(str(calibrated_ner), entity_test, query=["PER"], unit="token")["queries"][0]["total"]
    inside = sum(token.ent_type_ == "PER" for doc in docs for token in doc)
    assert tokens["low"] <= inside <= tokens["high"]
    assert result["queries"][0]["unit"] == "entity"
    assert entities["low"] < entities["expected"] < tokens["expected"]
    checked = count(str(calibrated_ner), entity_test, query=["PER"], gold=entity_dev)["queries"][0]["total"]
    assert checked["low"] <= gold <= checked["high"]
    documents = count(str(calibrated_ner), entity_test, query=["PER"], unit="document")["queries"][0]["total"]
    assert documents["expected"] <= min(entities["expected"], documents["documents"])


def test_labelled_documents_correct_the_counts(calibrated, test_file, dev):
    tag, gold = some_tag(test_file)
    result = count(str(calibrated), test_file, query=[tag], gold=dev)
    total = result["queries"][0]["total"]
    assert result["gold"] > 2
    assert total["low"] <= gold <= total["high"]
    assert total != count(str(calibrated), test_file, query=[tag])["queries"][0]["total"]
    told = calib("count", calibrated, test_file, "-q", tag, "--gold", dev).text
    assert f"Corrected by {result['gold']} labelled documents" in told


def test_labelled_documents_among_the_texts_count_once(calibrated, test_file, tmp_path):
    tag, gold = some_tag(test_file)
    docs = docs_in(test_file)
    result = count(str(calibrated), test_file, query=[tag], gold=test_file)
    assert result["queries"][0]["total"]["low"] == result["queries"][0]["total"]["high"] == gold
    some = save_docs(tmp_path / "some.spacy", docs[:8])
    outcome = calib("count", calibrated, test_file, "-q", tag, "--gold", some, "-o", tmp_path / "c.json")
    assert "are among the texts, and are counted by their labels" in outcome.text
    held = json.loads((tmp_path / "c.json").read_text())
    own = sum(token.tag_ == tag for doc in docs[:8] for token in doc)
    assert held["gold"] == 8 <= held["gold_among"] < result["gold"]  # a text may stand there twice
    assert own <= held["queries"][0]["total"]["low"] <= gold <= held["queries"][0]["total"]["high"]


def test_pipes_that_a_query_has_no_use_for_do_not_run(calibrated_ner):
    nlp = spacy.load(calibrated_ner)
    pipes = pipes_named(nlp, None)
    nlp.add_pipe("parse_by_fives", first=True)
    assert select_pipes(nlp, pipes)[0] == "parse_by_fives"  # nobody knows what it does
    nlp.remove_pipe("parse_by_fives")
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"}, before=pipes[0].source.component)
    nlp.add_pipe("parser", first=True)
    assert select_pipes(nlp, pipes) == ["tok2vec", pipes[0].source.component, pipes[0].name]


def test_a_fit_without_effects_takes_units_for_independent(calibrated, test_file, tmp_path):
    tag, _ = some_tag(test_file)
    nlp = spacy.load(calibrated)
    pipe = nlp.get_pipe("calib")
    assert tag in read_record(pipe).effects
    pipe.learned = replace(pipe.learned, record=replace(read_record(pipe), effects={}).to_bytes())
    nlp.to_disk(tmp_path / "old")
    outcome = calib("count", tmp_path / "old", test_file, "-q", tag)
    assert "the interval takes units as independent" in outcome.text


@pytest.mark.parametrize(("options", "sentence"), [
    (["-q", "ANIMAL"], "No calib pipe of the pipeline knows the label 'ANIMAL' of the query 'ANIMAL'; they know: "),
    (["-q", THE, "--unit", "entity"], says("C398", given="entity", wanted="token or document")),
    (["-q", THE, "--by", "month"], "Text 1 of"),
    (["-q", THE, "--by", "year", "--every", "day"], "1990: no day in it"),
    (["-q", THE, "--every", "day"], "left out without --by"),
    (["-q", THE, "--name", "a", "--name", "b"], "given once for each of the 1 queries"),
    (["-q", THE, "-q", A, "--name", "a", "--name", "a"], "must be another one for each query, but a was given"),
    (["-q", THE, "--per", "0"], "Option --per must be at least 1, but 0 was given"),
    (["-q", THE, "--per", "9", "--unit", "document"], "left out where documents are counted"),
    (["-q", THE, "--plot", "x.png"], "left out without --by"),
    (["-q", THE, "--by", "year", "--plot", "x.gif"], "ends in .png or .svg"),
    (["-q", THE, "-o", "x.html"], "ends in .json or .csv"),
])  # fmt: skip
def test_bad_input(options, sentence, calibrated, texts):
    refuses(calib("count", calibrated, texts, *options), sentence)


def test_no_query_and_no_texts(calibrated, texts, tmp_path):
    with pytest.raises(CalibError, match="C056"):
        count(str(calibrated), texts, query=[])
    (tmp_path / "empty.jsonl").write_text('{"text": " "}\n')
    refuses(calib("count", calibrated, tmp_path / "empty.jsonl", "-q", THE), "empty.jsonl")
    shutil.copy(texts, tmp_path / "texts.txt")
    refuses(calib("count", calibrated, tmp_path / "texts.txt", "-q", THE, "--by", "year"), says("C397", key="year"))
    refuses(calib("count", calibrated, texts, "-q", THE, "--gold", tmp_path / "none.spacy"), "none.spacy")


@Language.component("parse_by_fives", assigns=["token.dep", "token.head"])
def parse_by_fives(doc):
    """Sentences of five tokens: who does it, the verb, an article, what it is done to, a full stop."""
    n = len(doc) // 5
    for i, (offset, dep) in enumerate(zip([1, 0, 1, -2, -3] * n, ["nsubj", "ROOT", "det", "dobj", "punct"] * n, strict=True)):
        doc[i].head, doc[i].dep_, doc[i].lemma_ = doc[i + offset], dep, doc[i].lower_
    doc.spans["coref_mentions"] = [doc[5 * i + a : 5 * i + b] for i in range(n) for a, b in ((0, 1), (2, 4))]
    return doc


def test_texts_of_another_kind_are_counted_from_what_was_found(calibrated, test_file, tmp_path):
    tag, _ = some_tag(test_file)
    path = strange_texts(calibrated, test_file, tmp_path / "strange.spacy")
    outcome = calib("count", calibrated, path, "-q", tag, "-o", tmp_path / "counts.json")
    told = json.loads((tmp_path / "counts.json").read_text())
    (one,) = told["queries"]
    assert told["drift"] == {"calib": expect(str(calibrated), path)["drift"]}
    assert told["drift"]["calib"]["verdict"] == "differs from the fit data"
    assert one["centre"] == "found"
    assert one["effects"]["n_sources"] == 1
    assert one["total"]["expected"] == one["total"]["raw"]
    assert one["total"]["low"] < one["total"]["raw"] < one["total"]["high"]
    assert "the intervals are centred on the plain counts" in outcome.text
    assert "width is estimated from one source of gold. Label a few of these texts: `count --gold`" in outcome.text
    labelled = count(str(calibrated), path, query=[tag], gold=test_file)
    assert (labelled["queries"][0]["centre"], labelled["gold"]) == ("labels", 80)


def test_texts_like_the_fit_data_are_not_warned_of(calibrated, dev):
    tag, _ = some_tag(dev)
    told = count(str(calibrated), dev, query=[tag])
    assert told["drift"]["calib"]["verdict"] == "like the fit data"
    assert told["queries"][0]["centre"] == "expected"
    assert "Differs" not in calib("count", calibrated, dev, "-q", tag).text


def test_differences_between_the_files_of_a_fit_widen_intervals(model, dev, test_file, tmp_path):
    """The second file calls other things by the tag. Its texts are longer by a full stop: equal texts with other gold would be unknown."""
    vocab = Language().vocab
    tag, _ = some_tag(dev)
    tokens = [[(token.text, token.tag_) for token in doc] + [(".", ".")] for doc in docs_in(dev)]
    docs = [Doc(vocab, words=[word for word, _ in own], tags=[name for _, name in own]) for own in tokens]
    for doc in docs:
        for token in doc:
            token.tag_ = "ADJ" if token.tag_ == tag and token.i % 3 == 0 else token.tag_
    other, options = save_docs(tmp_path / "other.spacy", docs), ("-m", "isotonic", "--silent")
    ok(calib("fit", model, dev, tmp_path / "apart", "--gold", other, *options))
    both = save_docs(tmp_path / "both.spacy", [*DocBin().from_disk(dev).get_docs(vocab), *docs])
    ok(calib("fit", model, both, tmp_path / "pooled", *options))
    apart, pooled = (count(str(tmp_path / name), test_file, query=[tag])["queries"][0] for name in ("apart", "pooled"))
    assert (apart["effects"]["n_sources"], pooled["effects"]["n_sources"]) == (2, 1)
    assert apart["total"]["expected"] == pytest.approx(pooled["total"]["expected"], rel=0.02)
    assert apart["total"]["high"] - apart["total"]["low"] > 1.3 * (pooled["total"]["high"] - pooled["total"]["low"])
    apart, pooled = (expect(str(tmp_path / name), test_file)["accuracy"] for name in ("apart", "pooled"))
    assert apart["high"] - apart["low"] > 1.1 * (pooled["high"] - pooled["low"])


def test_a_label_that_is_counted_with_others_is_refused_by_its_own_name(ner_model, entity_gold, tmp_path):
    """A map merges LOC and ORG: the scores know `place` alone, and a line says what that is."""
    docs = docs_in(entity_gold / "dev.spacy")
    for doc in docs:
        doc.set_ents([Span(doc, ent.start, ent.end, "PER" if ent.label_ == "PER" else "place") for ent in doc.ents])
    dev = save_docs(tmp_path / "dev.spacy", docs)
    merged = fitted_to(tmp_path / "merged", ner_model, dev, "-C", "ner", "--map", "LOC=place,ORG=place,PER=PER")
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(doc.text for doc in docs_in(entity_gold / "test.spacy")[:20]), encoding="utf8")
    sentence = "does not distinguish LOC and ORG: the label 'LOC' of the query {} is counted together with the others as place; query that."
    refuses(calib("count", merged, texts, "--query", "LOC"), sentence.format("'LOC'"))
    outcome = ok(calib("count", merged, texts, "--query", "place"))
    assert "place stands for LOC and ORG, which 'calib_ent' does not tell apart." in outcome.text
    assert "stands for" not in ok(calib("count", merged, texts, "--query", "PER")).text
