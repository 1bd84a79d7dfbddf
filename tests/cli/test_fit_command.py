import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests.cli.conftest import calib, ok, refuses, save_docs, save_gold, setting
from tests.conftest import gold_doc, made_up_sentences
from tests.sentences import says


def loaded(path):
    return spacy.load(path)


def some_docs(nlp, n=10, seed=5):
    return [Doc(nlp.vocab, words=[word for word, _ in sentence]) for sentence in made_up_sentences(n, seed)]


def test_fit_says_what_it_fitted_and_shows_held_out_errors(model, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", "-m", "isotonic")
    n_tokens = sum(len(doc) for doc in DocBin().from_disk(dev).get_docs(spacy.blank("xx").vocab))
    assert f"Calibrated tagger on {n_tokens} tokens" in outcome.text
    assert "Tag frequencies were counted on the fit data (no --train-data was given)" in outcome.text
    assert "120 sentences stand for documents, as nothing tells which document each is from" in outcome.text
    assert "Errors of tags by cross-validation" in outcome.text
    assert "Score Pairs Raw TFG-5 isotonic Calibrated" in outcome.text


def test_the_paper_beside_a_fit_is_a_fit_by_the_paper(model, dev, tmp_path):
    """Other groups of errors change only the rows of groups."""
    errors = {}
    for n_groups in (1, 5):
        options = ["-m", "isotonic", "--groups", n_groups, "--format", "json"]
        rows = json.loads(ok(calib("fit", model, dev, tmp_path / str(n_groups), *options)).printed)["errors"]
        errors[n_groups] = {row.pop("score"): row for row in rows}
    assert list(errors[1]) == ["SMCE", "GMCE 1", "GMCE, mean", "Log loss", "Brier"]
    for score in ("SMCE", "Log loss", "Brier"):
        one, five = errors[1][score], errors[5][score]
        assert one["tfg_isotonic"] == five["tfg_isotonic"] == pytest.approx(five["calibrated"])
        assert one["raw"] == five["raw"] > one["calibrated"] != one["tfg_isotonic"]
    assert errors[1]["SMCE"]["raw"] == pytest.approx(loaded(tmp_path / "1").get_pipe("calib").fit_info.table[0].raw)


def test_fit_options_reach_the_pipe(model, dev, tmp_path):
    dotted = ["--components.sure.scorer.n_bins", 5, "--components.sure.threshold", 0.05]
    ok(calib("fit", model, dev, tmp_path / "out", "--groups", 2, "-m", "histogram", *dotted, "--attr", "sure"))
    nlp = loaded(tmp_path / "out")
    pipe = nlp.get_pipe("sure")
    assert (pipe.attr, pipe.threshold, pipe.tokens.maps.prototype.n_bins, pipe.scorer.n_bins) == ("sure", 0.05, 5, 5)
    assert len(pipe.tokens.maps.groups) == 2
    doc = nlp.get_pipe("tagger")(nlp.get_pipe("tok2vec")(some_docs(nlp, 1)[0]))
    assert pipe(doc)[0]._.sure_score is not None
    assert all(raw >= 0.05 for raw in doc._.sure.raw)


def test_gold_preproc_splits_documents_into_sentences(model, tmp_path):
    """The component reads sentence by sentence; what is resampled is still the documents."""
    vocab = spacy.blank("xx").vocab
    docs = [gold_doc(vocab, sentence) for sentence in made_up_sentences(40, 3)]
    data = save_docs(tmp_path / "pairs.spacy", [Doc.from_docs([a, b]) for a, b in zip(docs[::2], docs[1::2], strict=True)])
    alone = save_docs(tmp_path / "alone.spacy", docs)
    infos = []
    for name, given, *options in (("split", data, "--gold-preproc"), ("alone", alone), ("whole", data)):
        ok(calib("fit", model, given, tmp_path / name, "-m", "isotonic", *options, "--silent"))
        infos.append(loaded(tmp_path / name).get_pipe("calib").fit_info)
    assert [info.docs for info in infos] == [20, 40, 20]
    split, as_docs, whole = ([row.raw for row in info.table] for info in infos)
    assert split == pytest.approx(as_docs)
    assert split != pytest.approx(whole)


def test_a_group_with_too_few_pairs_falls_back_and_the_output_says_so(model, tmp_path):
    data = save_gold(tmp_path / "few.spacy", 120, seed=4)
    # Few of this tagger's scores are as high as .22.
    settings = (setting("scorer.n_bins", 12), setting("threshold", 0.22))
    outcome = ok(calib("fit", model, data, tmp_path / "out", "-m", "histogram", "--groups", 5, *settings))
    fits = loaded(tmp_path / "out").get_pipe("calib").tokens.maps.fits_
    few = [fit for fit in fits if 1 < fit.pairs < 12]
    assert few
    assert all(fit.fallback == f"pooled map: {fit.pairs} pairs, 12 needed" for fit in few)
    assert all(fit.fallback in outcome.text for fit in few)


@pytest.mark.parametrize("unreadable", [b"", b"\x80", None])
def test_a_pipe_whose_state_cannot_be_read_is_fitted_anew(calibrated_copy, dev, tmp_path, unreadable):
    file = calibrated_copy / "calib" / "calibration.msgpack"
    if unreadable is None:
        file.unlink()
    else:
        file.write_bytes(unreadable)
    refuses(calib("info", calibrated_copy), says("C010"))
    outcome = ok(calib("fit", calibrated_copy, dev, tmp_path / "again", "--method", "isotonic"))
    assert "cannot be read" in outcome.text
    assert "It is left out of the new pipeline unless this fit replaces it." in outcome.text
    assert spacy.load(tmp_path / "again").get_pipe("calib").fitted
