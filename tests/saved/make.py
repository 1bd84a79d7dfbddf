"""Make the saved pipelines of this folder: `python -m tests.saved.make`, once for each released version, never again.

Small pipelines as <version>-<name>.tar.xz, and in <version>.json what they said of TEXTS when they were saved. Later versions must load them
and say the same: see tests/test_saved_pipelines.py.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_calib.about import __version__
from spacy_calib.calibration.cutoffs import Cutoffs
from tests.cli.conftest import bare_docs, entity_docs, trained_recognizer
from tests.conftest import examples_for, run_upstream, train_pipeline

HERE = Path(__file__).parent
TEXTS = [
    "the old dog saw a light duck .",
    "every cat run light the red saw .",
    "Jordan lives in Paris .",
    "in New York Kim works for Bank of Rome .",
    "a",
]
_SETS = {"@calib_sets": "spacy-calib.ConformalSets.v1", "alpha": 0.2}
_AUTO = {
    "@calib_selections": "spacy-calib.Auto.v1", "n_groups": [1, 2], "methods": ["platt", "isotonic"], "scalings": ["vector", "matrix"],
}  # fmt: skip


def isotonic() -> Language:
    """A tagger with the default settings of the pipe."""
    return _tagger({})


def auto() -> Language:
    """A tagger with all that a token can be given."""
    pooling = {"@calib_poolings": "spacy-calib.TagOffsets.v1"}
    return _tagger({"selection": _AUTO, "pooling": pooling, "sets": _SETS, "intervals": True, "normalize": "other"})


def context() -> Language:
    """A tagger whose scores look at the words around."""
    return _tagger({"context": {"@calib_contexts": "spacy-calib.Context.v1", "when": "always"}})


def _tagger(settings: dict[str, Any]) -> Language:
    nlp = train_pipeline(["tagger"], listener=False)
    calib = nlp.add_pipe("calib", config=settings)
    with nlp.select_pipes(disable=["calib"]):
        examples = run_upstream(nlp, examples_for(nlp, 80, seed=2))
    calib.fit(examples)
    return nlp


def ner() -> Language:
    """A recognizer that keeps its probabilities, with maps of entities and a cut-off."""
    from spacy.training import Example

    saved = trained_recognizer("ner")
    config = saved["config"].copy()
    config["components"]["ner"]["factory"] = "calib_ner"
    nlp = spacy.util.load_model_from_config(config).from_bytes(saved["bytes"])
    nlp.remove_pipe("tagger")
    calib = nlp.add_pipe("calib", config={"source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}})
    gold = entity_docs(60, 31, nlp.vocab)
    examples = [Example(doc, right) for doc, right in zip(bare_docs(nlp, gold), gold, strict=True)]
    with nlp.select_pipes(disable=["calib"]):
        run_upstream(nlp, examples)
    calib.fit(examples)
    calib.spans.cutoffs = Cutoffs(0.8, 0.9, "all", {"all": 0.6})
    return nlp


PIPELINES: dict[str, Callable[[], Language]] = {"isotonic": isotonic, "auto": auto, "context": context, "ner": ner}


def what_it_says(nlp: Language) -> list[dict[str, Any]]:
    """All values of all tokens and entities of TEXTS, as plain data."""
    docs = nlp.pipe(Doc(nlp.vocab, words=text.split(" ")) for text in TEXTS)
    return [_values(doc) for doc in docs]


def _values(doc: Doc) -> dict[str, Any]:
    tokens = [
        {name: _plain(token._.get(f"calib_{name}")) for name in ("score", "raw", "scores", "interval", "set")} for token in doc
    ]
    ents = [
        {"text": ent.text, "label": ent.label_, "score": ent._.calib_score, "accept": ent._.calib_accept} for ent in doc.ents
    ]
    return {"labels": [token.tag_ or token.ent_type_ for token in doc], "tokens": tokens, "ents": ents}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def pack(folder: Path) -> bytes:
    """The files of a folder, compressed; the same bytes for the same files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            member = tarfile.TarInfo(file.relative_to(folder).as_posix())
            member.size = file.stat().st_size
            archive.addfile(member, io.BytesIO(file.read_bytes()))
    return packed.getvalue()


def main() -> None:
    said = {}
    for name, make in PIPELINES.items():
        nlp = make()
        said[name] = what_it_says(nlp)
        with tempfile.TemporaryDirectory() as folder:
            nlp.to_disk(folder)
            (HERE / f"{__version__}-{name}.tar.xz").write_bytes(pack(Path(folder)))
    (HERE / f"{__version__}.json").write_text(json.dumps(said) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
