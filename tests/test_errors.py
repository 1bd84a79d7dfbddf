"""Every message has a code, and every place that raises one gives just the values that its sentence names."""

import ast
import pickle
import string
from functools import cache

import numpy as np
from spacy.errors import Errors, Warnings

from spacy_calib.errors import CalibError, calib_error

from .looping import each
from .sentences import HOLDERS, MESSAGES, PACKAGE, WARNINGS

# The one message of a plug-in of one file, which imports Presidio.
PRESIDIO = {"C064": 'Presidio is not installed; run `pip install "spacy-calib[presidio]"`.'}
SOURCES = {path: path.read_text(encoding="utf8") for path in sorted(PACKAGE.rglob("*.py"))}


def fields_of(sentence: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(sentence) if field is not None}


@cache
def raised() -> list[tuple[str, str, set[str] | None]]:
    """(where, code, names of the values) of every call of calib_error with a literal code; None for names behind **."""
    found = []
    for path, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "calib_error":
                if not (node.args and isinstance(node.args[0], ast.Constant)):
                    continue
                names = {keyword.arg for keyword in node.keywords}
                found.append(
                    (f"{path.relative_to(PACKAGE)}:{node.lineno}", node.args[0].value, None if None in names else names)
                )
    return found


def test_an_error_is_a_coded_sentence():
    error = calib_error("C001", name="threshold", wanted="a number", given="'x'")
    assert str(error) == "[C001] threshold must be a number, but 'x' was given."
    assert (error.code, error.message) == ("C001", "threshold must be a number, but 'x' was given.")
    assert isinstance(error, ValueError)


def test_what_was_given_is_cut_and_paths_and_lists_of_what_is_allowed_are_not(tmp_path):
    given, known = "x" * 5000, ", ".join(f"label_{i}" for i in range(100))
    sentence = str(calib_error("C195", setting="when", registry="calib_sources", given=given, names=known))
    assert f"{'x' * 37}..." in sentence
    assert given not in sentence
    assert known in sentence
    path = tmp_path / ("y" * 100)
    assert str(path) in str(calib_error("C056", option="--output", wanted="new", given=path))
    held = {"maps": [np.zeros(500)] * 50}
    sentence = str(calib_error("C001", name="maps", wanted="a number", given=held))
    assert len(sentence) < 100
    assert "\n" not in sentence


def test_an_error_survives_pickling():
    # Errors raised in the workers of nlp.pipe(n_process=2) come back pickled.
    error = calib_error("C004", what="Thing")
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, CalibError)
    assert (str(back), back.code, back.message) == (str(error), error.code, error.message)


def test_calls_were_found():
    assert len(raised()) > 40


def messages_for(module: str) -> dict[str, str]:
    """The messages that a module may raise: those of the core, and those of its own plug-in."""
    own = next((holder.MESSAGES for folder, holder in HOLDERS.items() if module.startswith(f"{folder}/")), {})
    return {**HOLDERS["errors"].MESSAGES, **own, **(PRESIDIO if module.startswith("plugins/presidio.py") else {})}


def test_a_code_belongs_to_one_holder():
    codes = [code for holder in HOLDERS.values() for code in (*holder.MESSAGES, *getattr(holder, "WARNINGS", {}))]
    assert len(codes) == len(set(codes))


@each(sorted(path.relative_to(PACKAGE).as_posix() for path in SOURCES))
def test_a_plugin_with_messages_builds_errors_of_them(module):
    folder = next((folder for folder in HOLDERS if folder != "errors" and module.startswith(f"{folder}/")), None)
    if folder is None or module == f"{folder}/messages.py":
        return
    for node in ast.walk(ast.parse(SOURCES[PACKAGE / module])):
        if isinstance(node, ast.ImportFrom) and "calib_error" in {alias.name for alias in node.names}:
            assert node.module == "messages", f"{module} imports calib_error of {node.module}"


@each(raised)
def test_every_call_gives_the_values_that_the_sentence_names(call):
    where, code, names = call
    assert code in messages_for(where), f"{where} raises an unknown code"
    if names is not None:
        assert names == fields_of(messages_for(where)[code]), where


@each(sorted(MESSAGES))
def test_every_message_is_used(code):
    assert any(f'"{code}"' in source for path, source in SOURCES.items() if path.name != "messages.py")


@each(sorted(MESSAGES))
def test_messages_are_sentences(code):
    message = MESSAGES[code]
    assert code.startswith("C")
    assert len(code) == 4
    assert message.endswith((".", "{why}")), "a sentence ends with a full stop, or with the reason that it quotes"
    assert message[0].isupper() or message[0] == "{"
    assert "  " not in message


@each(sorted(WARNINGS))
def test_warnings_name_their_code(code):
    assert WARNINGS[code].startswith(f"[{code}] ")
    assert WARNINGS[code].endswith(".")


def test_our_codes_do_not_look_like_those_of_spacy():
    theirs = {name.rstrip(string.digits) for holder in (Errors, Warnings) for name in dir(holder) if not name.startswith("_")}
    assert theirs >= {"E", "W"}
    assert not theirs & {code.rstrip(string.digits) for code in (*MESSAGES, *WARNINGS)}
