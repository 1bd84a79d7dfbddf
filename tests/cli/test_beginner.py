"""Mistakes of a beginner, and the sentence that each gets: clear, none silent, no traceback."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import calib, copy_with, docs_in, refuses, save_docs


class Mistake(NamedTuple):
    """line (str): What is typed after `spacy calib`; words in capitals stand for the files of `places`. sentence (str): A part of the answer.
    code (int): How it ends; 0 where the command goes on, but says so.
    """

    line: str
    sentence: str
    code: int = 1


MISTAKES = [
    # The pipeline
    Mistake("fit NOWHERE GOLD OUT", "no package, shortcut or folder of this name; install it, or give the path of a pipeline"),
    Mistake("fit en_core_web_lgx GOLD OUT", "Cannot load the pipeline 'en_core_web_lgx': no package, shortcut or folder of this name"),
    Mistake("fit GOLD STOCK OUT", "it is a file, and a pipeline is a folder: MODEL comes first, then DATA."),
    Mistake("evaluate GOLD GOLD", "Cannot load the pipeline 'GOLD': it is a file, and a pipeline is a folder"),
    Mistake("rank STOCK TEXTS", "no fitted calib pipe; it has: tok2vec, tagger, ner; with gold run `python -m spacy calib fit MODEL DATA OUTPUT`"),
    Mistake("expect STOCK TEXTS", "without gold `python -m spacy calib pretrained MODEL OUTPUT`, if there is a card (`pretrained --list`)"),
    Mistake("adapt STOCK GOLD OUT", "The pipeline has no fitted calib pipe"),
    Mistake("pretrained STOCK OUT", "There is no pretrained calibration for any component of the pipeline"),
    Mistake("pretrained STOCK", "No pipeline and output folder were given; give both (`calib pretrained MODEL OUTPUT`), or --list."),
    # The component
    Mistake("fit STOCK ENTITIES OUT", "no gold tag annotation for component 'tagger', but has gold for 'ner'; give data annotated with it, or calibrate that (--component ner)."),
    Mistake("evaluate STOCK ENTITIES", "no gold tag annotation for component 'tagger', but has gold for 'ner'; give data annotated with it, or calibrate that (--component ner)."),
    Mistake("fit STOCK TAGS OUT -C ner", "no gold ner annotation for component 'ner', but has gold for 'tagger'; give data annotated with it, or calibrate that (--component tagger)."),
    Mistake("fit STOCK GOLD OUT -C NER", "no component 'NER'; of its components calib can read: tagger, ner. Name one of them (--component)."),
    Mistake("fit STOCK GOLD OUT -C entities", "The pipeline has no component 'entities'"),
    Mistake("fit STOCK GOLD OUT -C tok2vec", "Component 'tok2vec' (Tok2Vec) cannot be calibrated: it gives vectors, and no label"),
    Mistake("fit STOCK GOLD OUT -C tagger -C ner --event type", "Option --event must be left out with several --component"),
    Mistake("adapt BOTH GOLD OUT", "choose one: --component tagger (tag) or --component ner (ner)."),
    Mistake("rank BOTH TEXTS", "choose one: --component tagger (tag) or --component ner (ner)."),
    Mistake("rank BOTH TEXTS -C parser", "no fitted calib pipe for the component or prefix 'parser'; calibrated are: tagger (calib), ner (calib_ent). Name one of them (--component)."),
    Mistake("rank TAGGER TEXTS --unit entity", "'calib' calibrates 'tagger', which predicts no entities; calibrate one that does"),
    Mistake("threshold TAGGER GOLD -p .9", "'calib' calibrates 'tagger', which predicts no entities"),
    # The gold
    Mistake("fit STOCK MISSING OUT", "Data not found: MISSING. Give a file, or a folder of files, that exists."),
    Mistake("fit STOCK TEXTS OUT", "TEXTS contains texts, but no gold, which this command needs; give"),
    Mistake("fit STOCK TEXTFOLDER OUT", "TEXTFOLDER contains texts, but no gold"),
    Mistake("evaluate BOTH EMPTYFOLDER", "The data in EMPTYFOLDER contains no documents"),
    Mistake("fit STOCK OWN OUT -C ner", 'has the fields sentence, names, but should be an answer exported by Prodigy, Label Studio, doccano or Argilla'),
    Mistake("fit STOCK QUEUE OUT -C ner", "(a queue without answers is none)"),
    Mistake("evaluate BOTH BROKEN", "BROKEN is not a readable DocBin"),
    Mistake("evaluate BOTH OTHERLABELS", "so there is nothing to evaluate; give gold with the labels of the component"),
    Mistake("fit STOCK OTHERLABELS OUT -C ner", "map its labels to those of the data (`fit --map PER=XPER,ORG=XORG,LOC=XLOC`)"),
    Mistake("adapt ENTS OTHERLABELS OUT", "map its labels to those of the data (`fit --map PER=XPER,ORG=XORG,LOC=XLOC`)"),
    # Options and outputs
    Mistake("fit STOCK GOLD OUT --threshold 0.02", "no option --threshold, but the pipe has a setting of this name; give --components.calib.threshold VALUE."),
    Mistake("fit STOCK GOLD OUT -m isotone", "Option --method must be one of auto"),
    Mistake("fit STOCK GOLD EXISTS", "EXISTS exists already; choose another path or add --force"),
    Mistake("fit STOCK GOLD OUT --groups 0", "Invalid value for '--groups'", 2),
    Mistake("evaluate BOTH GOLD -o page.txt", "Option --output must be a file that ends in .json"),
    Mistake("threshold ENTS GOLD", "No target was given; give --precision"),
    Mistake("threshold ENTS GOLD -p 90", "Option --precision must be between 0 and 1, but 90.0 was given."),
    Mistake("rank ENTS TEXTS --not-accepted", "has no cut-offs for accepting entities; find and save them with `spacy calib threshold --precision .9 --apply OUTPUT`"),
    # What goes on, and is said
    Mistake("evaluate BOTH ENTITIES", "Left out, as the data has no gold for it: 'calib' (tag of 'tagger').", 0),
    Mistake("rank BOTH TEXTS --unit token", "--unit token is for 'tagger', so the pipe is 'calib' (--component ner for 'calib_ent').", 0),
    Mistake("evaluate STOCK TAGS", "This command calibrates them, on gold that the pipeline was not trained on", 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(ner_model, two_pipes, calibrated_ner, calibrated, entity_test, tmp_path_factory) -> dict[str, Path]:
    """What the words in capitals stand for."""
    folder = tmp_path_factory.mktemp("beginner")
    docs = docs_in(entity_test)[:60]
    texts = [doc.text for doc in docs[:10]]
    for name in ("textfolder", "emptyfolder", "exists"):
        (folder / name).mkdir()
    (folder / "exists" / "notes.txt").write_text("mine")
    written = {
        "texts.txt": "\n".join(texts), "textfolder/a.txt": texts[0], "broken.spacy": "no DocBin",
        "own.jsonl": json.dumps({"sentence": "Anna left.", "names": [[0, 4, "PER"]]}),
        "queue.jsonl": json.dumps({"text": "Anna left.", "label": [[0, 4, "PER"]], "meta": {}}),
    }  # fmt: skip
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf8")

    return {
        "STOCK": ner_model, "BOTH": two_pipes, "ENTS": calibrated_ner, "TAGGER": calibrated, "GOLD": entity_test,
        "ENTITIES": save_docs(folder / "entities.spacy", [copy_with(doc, "ents") for doc in docs]),
        "OTHERLABELS": save_docs(folder / "other.spacy", [copy_with(doc, "ents", "X") for doc in docs]),
        "TAGS": save_docs(folder / "tags.spacy", [copy_with(doc, "tags") for doc in docs]),
        "TEXTS": folder / "texts.txt", "TEXTFOLDER": folder / "textfolder", "EMPTYFOLDER": folder / "emptyfolder",
        "EXISTS": folder / "exists", "BROKEN": folder / "broken.spacy", "OWN": folder / "own.jsonl",
        "QUEUE": folder / "queue.jsonl", "MISSING": folder / "missing.spacy", "NOWHERE": folder / "nowhere", "OUT": folder / "out",
    }  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line)
def test_a_mistake_gets_its_sentence(places, mistake):
    outcome = calib(*(places.get(word, word) for word in mistake.line.split()))
    sentence = re.sub("[A-Z]{3,}", lambda word: str(places.get(word[0], word[0])), mistake.sentence)
    if mistake.code == 1:
        refuses(outcome, sentence)
    else:
        assert outcome.code == mistake.code, outcome.text
        assert sentence in outcome.text
    assert "Traceback" not in outcome.text
    assert not places["OUT"].exists()


def test_python_says_it_without_options(places):
    """The same faults in Python name arguments."""
    import spacy_calib

    for call, sentence in [
        (lambda: spacy_calib.fit(places["STOCK"], places["ENTITIES"], places["OUT"]), "calibrate that (--component ner)"),
        (
            lambda: spacy_calib.adapt(places["STOCK"], places["GOLD"], places["OUT"]),
            "with gold run `python -m spacy calib fit MODEL DATA OUTPUT` first",
        ),
        (lambda: spacy_calib.fit(places["STOCK"], places["OTHERLABELS"], places["OUT"], component="ner"), "`fit --map "),
    ]:
        with pytest.raises(spacy_calib.CalibError) as error:
            call()
        assert sentence in error.value.message
