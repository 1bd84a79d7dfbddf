"""Every fault of a user's input: exit code 1 (2 where typer itself rejects an option) and one sentence, never a traceback."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.util import import_file
from thinc.api import get_current_ops, set_current_ops

from tests.cli.conftest import calib, entity_docs, files_of, ok, refuses, save_docs, save_gold, save_recognizer, setting
from tests.conftest import gold_doc
from tests.sentences import says


@pytest.fixture
def out(tmp_path):
    """Where no failed run may leave anything."""
    yield tmp_path / "out"
    assert not list(tmp_path.glob("*out*"))


def blank_vocab():
    return spacy.blank("xx").vocab


def test_a_model_of_spacy_that_is_not_installed_can_be_downloaded(dev, out):
    hint = "install it (`python -m spacy download xx_sent_ud_sm`), or give the path of a pipeline"
    refuses(calib("fit", "xx_sent_ud_sm", dev, out), hint)
    refuses(calib("info", "xx_sent_ud_sm"), hint)
    assert "download" not in calib("info", "my_model_sm").text  # which is nobody's that `spacy download` knows


def test_nothing_in_the_pipeline_can_be_calibrated(dev, tmp_path, out):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "ruled")
    refuses(calib("fit", tmp_path / "ruled", dev, out), says("C318", available="sentencizer"))


@pytest.mark.parametrize("factory", ["sentencizer", "attribute_ruler", "entity_ruler"])
def test_the_component_cannot_be_trained(factory, changed_model, dev, out):
    path = changed_model(lambda nlp: nlp.add_pipe(factory))
    outcome = calib("fit", path, dev, out, "-C", factory)
    refuses(outcome, f"Component '{factory}' (")
    refuses(outcome, "cannot be calibrated: a rule has no score; calib reads: tagger, morphologizer")
    refuses(outcome, "in this pipeline: tagger, morphologizer, senter, trainable_lemmatizer.")


@pytest.mark.parametrize("factory", ["tagger", "textcat", "entity_linker"])
def test_a_component_before_was_never_trained(factory, changed_model, dev, out):
    path = changed_model(lambda nlp: nlp.add_pipe(factory, "untrained", before="tagger"))
    refuses(calib("fit", path, dev, out, "-C", "tagger"), "Component 'untrained' is in the pipeline and not trained")
    refuses(calib("evaluate", path, dev, "-C", "tagger"), "train it, or disable it (nlp.disable_pipe('untrained'), or [nlp]")


def write_half(path):
    save_gold(path, 5, 1)
    path.write_bytes(path.read_bytes()[:100])


def write_entity_without_begin(path):
    """IOB tags O I: spaCy reads such a file, and fails when somebody asks for the entities."""
    doc = gold_doc(blank_vocab(), [("the", "DET"), ("dog", "NOUN")])
    doc.from_array(["ENT_IOB", "ENT_TYPE"], np.array([[2, 0], [1, doc.vocab.strings.add("PER")]], dtype=np.uint64))
    save_docs(path, [doc])


FILES = {
    "bad.spacy is not a readable DocBin ([E093]": write_entity_without_begin,
    "is not a readable DocBin (it is empty)": lambda path: path.write_bytes(b""),
    "is not a readable DocBin (": lambda path: path.write_text("1\tthe\tDET\n"),
    "is not a readable DocBin ([E1014]": write_half,
    "contains no documents": lambda path: save_docs(path, []),
}


@pytest.mark.parametrize("sentence", FILES)
def test_the_data_cannot_be_read(sentence, model, dev, calibrated, tmp_path, out):
    FILES[sentence](tmp_path / "bad.spacy")
    refuses(calib("fit", model, tmp_path / "bad.spacy", out), sentence)
    refuses(calib("fit", model, dev, out, "--train-data", tmp_path / "bad.spacy"), sentence)
    refuses(calib("evaluate", calibrated, tmp_path / "bad.spacy"), sentence)


def test_the_data_has_documents_of_spaces_only(model, calibrated, tmp_path, out):
    doc = Doc(blank_vocab(), words=["  ", "\n"], spaces=[False, False], tags=["DET", "NOUN"])
    spaces = save_docs(tmp_path / "spaces.spacy", [doc] * 3)
    refuses(calib("fit", model, spaces, out), "has no gold tag annotation")
    refuses(calib("evaluate", calibrated, spaces), "has no gold tag annotation")


def test_fewer_pairs_than_bins(model, tmp_path, out):
    one = save_docs(tmp_path / "one.spacy", [gold_doc(blank_vocab(), [("dog", "NOUN")])])
    refuses(calib("fit", model, one, out), "fewer than the 10 that are needed, at least one for each bin; give more data.")


@pytest.mark.parametrize(("options", "sentence"), [
    (["-C", ""], "Option --component must be the name of a component"),
    (["-C", "senter", "--gold-preproc"], "Option --gold-preproc must be left out for a component that finds sentences"),
    (["--attr", "senter"], "a component 'senter' already (it is no calib pipe); give the new pipe another name with --attr."),
    (["--config", "missing.cfg"], "No such file or directory"),
    ([setting("threshold", "NaN")], "threshold must be a number in [0, 1), but 'NaN' was given."),
    ([setting("threshold", "low")], "'low'"),
    (["--method", "spacy-calib.Isotonic.v99"], "but 'spacy-calib.Isotonic.v99' was given."),
    (["--attr", "a-b"], "attr must be a Python identifier, but 'a-b' was given."),
])  # fmt: skip
def test_an_option_of_fit_is_out_of_range(options, sentence, model, dev, out):
    refuses(calib("fit", model, dev, out, *options), sentence)


def test_there_is_no_such_gpu(model, dev, out):
    ops = get_current_ops()
    try:
        refuses(calib("fit", model, dev, out, "--gpu-id", 99), "Cannot use GPU 99:")
        refuses(calib("view", model, "--gpu-id", 99), "Cannot use GPU 99:")
    finally:
        set_current_ops(ops)  # where there is a GPU, thinc has switched to it before it finds that it has not that many


def test_the_code_file_is_missing_or_broken(model, dev, tmp_path, out):
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    outcome = calib("fit", model, dev, out, "--code", tmp_path / "broken.py")
    refuses(outcome, "No module named 'nothing_of_this_name'")
    missing = calib("evaluate", model, dev, "--code", tmp_path / "missing.py")
    refuses(missing, "No such file or directory")
    assert "Cannot import the code in" in outcome.text
    assert "Cannot import the code in" in missing.text


BLOCK = '[components]\n[components.calib]\nfactory = "calib"\n'
CONFIGS = {
    "not a config": ("the dog sat\n", "Cannot read the config"),
    "not text": (b"\xff\xfe\x00\x01", "Cannot read the config"),
    "no components": ("[nlp]\nx = 1\n", "it has no [components.calib] block"),
    "an attribute that is a number": (BLOCK + "attr = 5\n", "cannot be used: calib -> attr: "),
    "another factory": ('[components]\n[components.calib]\nfactory = "tagger"\n', "it has no [components.calib] block"),
    "a component that is a number": ("[components]\ncalib = 3\n", "it has no [components.calib] block"),
    "an open variable": (BLOCK + "threshold = ${nothing.here}\n", "nothing.here"),
    "an unknown key": (BLOCK + "treshold = 0.1\n", "treshold"),
    "an unknown method": (BLOCK + '[components.calib.recalibrator]\n@calib_recalibrators = "None.v1"\n', "None.v1"),
    "a source that is a word": (BLOCK + 'source = "tagger"\n', "source"),
    "a component that is missing": (BLOCK + '[components.calib.source]\n@calib_sources = "spacy-calib.Softmax.v1"\ncomponent = "x"\n',
                                    "The pipeline has no component 'x'"),
    "a threshold out of range": (BLOCK + "threshold = 2\n", "threshold must be a number in [0, 1), but 2 was given."),
}  # fmt: skip


@pytest.mark.parametrize("fault", CONFIGS)
def test_the_config_cannot_be_used(fault, model, dev, tmp_path, out):
    content, sentence = CONFIGS[fault]
    path = tmp_path / "fit.cfg"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = calib("fit", model, dev, out, "--config", path)
    refuses(outcome, sentence)
    assert len(outcome.text) < 500 + len(str(path))  # no whole config is poured out
    assert not outcome.text.endswith(("error", ":"))


def test_the_name_belongs_to_the_pipe_of_another_component(calibrated, dev, out):
    outcome = calib("fit", calibrated, dev, out, "-C", "morphologizer", "--attr", "calib")
    refuses(outcome, "a component 'calib' already (it calibrates 'tagger'); give the new pipe another name with --attr.")


def test_an_event_that_there_is_not(ner_model, entity_dev, out):
    sentence = "Option --event must be one of exact, article, type, overlap, head, arc, but 'right' was given."
    refuses(calib("fit", ner_model, entity_dev, out, "-C", "ner", "--event", "right"), sentence)


def test_an_option_of_recognizers_for_another_component(ner_model, entity_dev, out):
    sentence = "Option --second-pass is for entity recognizers, but component 'tagger' is a Tagger; leave it out."
    refuses(calib("fit", ner_model, entity_dev, out, "--second-pass"), sentence)


@pytest.mark.parametrize(("factory", "options", "labels"), [
    *((factory, options, ()) for factory in ("ner", "beam_ner") for options in ((), ("--second-pass",))),
    *(
        (factory, (), ())
        for factory in ("tagger", "morphologizer", "trainable_lemmatizer", "spancat", "spancat_singlelabel")
    ),
    ("ner", (), ("PER",)),  # labels, but no weights
])  # fmt: skip
def test_the_component_is_not_trained(factory, options, labels, changed_model, dev, out):
    path = changed_model(lambda nlp: [*map(nlp.add_pipe(factory, name="untrained").add_label, labels)])
    refuses(calib("fit", path, dev, out, "-C", "untrained", *options), "Component 'untrained' has no labels or is not trained")


ENTITY_CODE = """
from spacy.language import Language
from spacy.tokens import Span

@Language.component("spacy_calib_test_presets")
def set_entities(doc):
    doc.ents = [Span(doc, 0, 1, "PER")]
    return doc
"""


@pytest.mark.filterwarnings("ignore:.*CW05")
def test_a_second_pass_behind_a_component_of_the_users_that_sets_entities(entity_dev, tmp_path, out):
    """It does not say that it sets entities: the Docs show it."""
    (tmp_path / "code.py").write_text(ENTITY_CODE)
    import_file("python_code", tmp_path / "code.py")
    path = save_recognizer("ner", tmp_path / "ruled", lambda nlp: nlp.add_pipe("spacy_calib_test_presets", before="ner"))
    options = ["-C", "ner", "--code", tmp_path / "code.py", "--silent"]
    outcome = calib("fit", path, entity_dev, out, *options, "--second-pass", "-m", "isotonic")
    refuses(outcome, "a component before it sets entities, and a second pass cannot tell them from its own")
    ok(calib("fit", path, entity_dev, tmp_path / "inline", *options, "-m", "isotonic"))
    doc = spacy.load(tmp_path / "inline")("Ann lives in New York .")
    assert doc.ents[0].text == "Ann"
    assert doc.ents[0]._.calib_score is None
    assert doc._.calib_ent.scored.tolist() == [False, *[True] * 5]


def test_gold_of_a_type_that_the_ruler_brings_while_the_fit_runs(tmp_path):
    """From the first batch on the recognizer knows the type: its gold is no unknown gold."""
    docs = entity_docs(60, 44)
    for doc in docs:
        tools = [Span(doc, token.i, token.i + 1, "TOOL") for token in doc if token.text in ("duck", "dog")]
        doc.set_ents([*doc.ents, *tools], default="outside")
    patterns = [{"label": "PER", "pattern": "Kim"}, {"label": "TOOL", "pattern": "dog"}]
    path = save_recognizer(
        "ner", tmp_path / "ruled", lambda nlp: nlp.add_pipe("entity_ruler", before="ner").add_patterns(patterns)
    )
    data = save_docs(tmp_path / "tools.spacy", docs)
    ok(calib("fit", path, data, tmp_path / "done", "-C", "ner", "--silent", "-m", "isotonic"))
    pipe = spacy.load(tmp_path / "done").get_pipe("calib_ent")
    assert "TOOL" in pipe.labels
    assert pipe.fit_info.unknown_gold == 0


def test_the_recognizer_has_other_labels_than_at_the_fit(calibrated_ner, entity_test, tmp_path):
    copy = Path(shutil.copytree(calibrated_ner, tmp_path / "copy"))
    moves = (copy / "ner" / "moves").read_bytes()
    assert moves.count(b"LOC") >= 2
    (copy / "ner" / "moves").write_bytes(moves.replace(b"LOC", b"GPE"))
    for outcome in (
        calib("evaluate", copy, entity_test),
        calib("threshold", copy, entity_test, "-p", 0.8),
        calib("info", copy),
    ):
        refuses(outcome, says("C020", component="ner", name="calib_ent", detail="'LOC' is gone"))


def poison_last_layer(name):
    """No number at all in the bias of a component's last layer."""

    def alter(nlp):
        nodes = [node for node in nlp.get_pipe(name).model.walk() if "b" in node.param_names and node.has_param("b")]
        bias = nodes[-1].get_param("b").copy()
        bias[...] = np.nan
        nodes[-1].set_param("b", bias)

    return alter


@pytest.mark.parametrize("options", [[], ["--second-pass"]])
def test_the_scores_of_a_recognizer_are_no_numbers(options, calibrated_ner, entity_dev, tmp_path, out):
    bad = save_recognizer("ner", tmp_path / "bad", poison_last_layer("ner"))
    sentence = says("C024", component="ner")
    refuses(calib("fit", bad, entity_dev, out, "-C", "ner", *options), sentence)
    nlp = spacy.load(calibrated_ner)
    poison_last_layer("ner")(nlp)
    nlp.to_disk(tmp_path / "poisoned")
    before = files_of(tmp_path / "poisoned")
    refuses(calib("evaluate", tmp_path / "poisoned", entity_dev, "-o", tmp_path / "table.json"), sentence)
    refuses(calib("threshold", tmp_path / "poisoned", entity_dev, "-p", 0.8, "-a", tmp_path / "poisoned", "-F"), sentence)
    assert files_of(tmp_path / "poisoned") == before
    assert not (tmp_path / "table.json").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("factory", ["spancat", "spancat_singlelabel"])
def test_the_scores_of_a_span_categorizer_are_no_numbers(factory, span_gold, tmp_path, out):
    """It finds no spans then, which must not look like a fit."""
    bad = save_recognizer(factory, tmp_path / "bad", poison_last_layer(factory))
    refuses(calib("fit", bad, span_gold / "dev.spacy", out, "-C", factory), "NaN or infinite values")


def test_the_recognizer_is_disabled(entity_dev, tmp_path, out):
    path = save_recognizer("ner", tmp_path / "disabled", lambda nlp: nlp.disable_pipe("ner"))
    outcome = calib("fit", path, entity_dev, out, "-C", "ner", "--silent")
    refuses(outcome, says("C069", name="ner"))
