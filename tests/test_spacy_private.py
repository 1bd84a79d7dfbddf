"""Private parts of spaCy and thinc are used in one module, and are where it says."""

import ast
import contextlib
import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import PyTorchShim
from thinc.shims.shim import Shim

from spacy_calib import spacy_private

from .test_imports import MODULES, PACKAGE

PRIVATE = ("_pipe_meta", "_components", "_pipe_configs", "_disabled", "_model", "_mixed_precision")
OF_LANGUAGE = {name for name in vars(spacy.blank("en")) if re.match("_[a-z]", name)}
# Private parts of other libraries that one module each uses: Presidio, Python and scikit-learn.
PRIVATE_ELSEWHERE = {
    "plugins/presidio": {"_get_updated_entities"},
    "pipe/component": {"_getframe"},
    "plugins/arrays/tag_calibrator": {"_validate_data"},
}
NAMEDTUPLE = {"_asdict", "_replace"}


def private_names(module: str) -> Iterator[tuple[str, bool]]:
    """(name, whether it is defined here) of every private name that a module defines, or reads from something else."""
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr, isinstance(node.ctx, ast.Store)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, True
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((part, False) for part in (node.module or "").split("."))
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "setattr")
        ):
            yield f"getattr {node.args[1].value}" if isinstance(node.args[1], ast.Constant) else "", False
        elif isinstance(node, ast.Constant) and node.value in OF_LANGUAGE:
            yield f"getattr {node.value}", False


def test_private_parts_of_other_libraries_stand_in_one_file():
    names = {module: {pair for pair in private_names(module) if re.match("(getattr )?_[a-z]", pair[0])} for module in MODULES}
    ours = {name for pairs in names.values() for name, is_defined in pairs if is_defined} | NAMEDTUPLE
    used = {module: {name for name, _ in pairs} - ours for module, pairs in names.items()}
    private = {"spacy_private": {f"getattr {name}" for name in PRIVATE}}
    assert {module: names for module, names in used.items() if names} == private | PRIVATE_ELSEWHERE
    source = (PACKAGE / "spacy_private.py").read_text(encoding="utf8")
    assert all(f"{name}`" in source for name in PRIVATE)
    assert [module for module in MODULES if '"._."' in (PACKAGE / f"{module}.py").read_text(encoding="utf8")] == [
        "spacy_private"
    ]


def test_each_private_part_is_there():
    """Without one, something less is done, as `spacy_private` says; scores stay the same."""
    nlp = spacy.blank("en")
    doc = nlp("A dog.")
    set_an_extension(doc)
    assert {key[0] for key in doc.user_data} == {spacy_private.EXTENSION_KEY}
    nlp.add_pipe("sentencizer")
    meta = nlp.get_pipe_meta("sentencizer")
    assert spacy_private.torch_module(Shim("module")) == "module"
    assert set(spacy_private._PIPES) <= OF_LANGUAGE
    before = (nlp.components, nlp.disabled, nlp.config.to_str())
    with contextlib.suppress(KeyError), spacy_private.pipes_restored_on_failure(nlp):
        nlp.add_pipe("senter")
        nlp.disable_pipe("sentencizer")
        raise KeyError
    assert (nlp.components, nlp.disabled, nlp.config.to_str()) == before
    assert nlp.get_pipe_meta("sentencizer") is meta


def set_an_extension(doc):
    Doc.set_extension("private_part", default=None, force=True)
    doc._.private_part = 1
    Doc.remove_extension("private_part")


def test_mixed_precision_is_read():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    shims = [PyTorchShim(torch.nn.Linear(1, 1), mixed_precision=mixed) for mixed in (True, False)]
    assert [spacy_private.has_mixed_precision(shim) for shim in shims] == [True, False]


def test_without_the_private_parts():
    nothing = SimpleNamespace()
    assert (spacy_private.torch_module(nothing), spacy_private.has_mixed_precision(nothing)) == (None, False)
