"""Names that a pipe and its attributes may not have, because spaCy keeps something of its own there."""

from __future__ import annotations

from keyword import iskeyword

from spacy.language import Language
from spacy.tokens.underscore import Underscore

from ..errors import calib_error

# What `Language.to_disk` and `to_bytes` write beside the pipes, under these names.
_BESIDE_PIPES = ("config.cfg", "meta.json", "tokenizer", "vocab")
_OF_UNDERSCORE = frozenset(dir(Underscore))
_OF_LANGUAGE = frozenset(dir(Language)) | set(_BESIDE_PIPES)


def check_attr(attr: str) -> str:
    """The prefix, as it is. RAISES C001: no Python identifier. C112: not readable as `Doc._.<attr>`, or spaCy's own."""
    if not isinstance(attr, str) or not attr.isidentifier():
        raise calib_error("C001", name="attr", wanted="a Python identifier", given=repr(attr))
    why = ""
    if iskeyword(attr):
        why = "it is a keyword of Python"
    elif attr.startswith("_"):
        why = "names that begin with '_' are for spaCy itself"
    elif attr in _OF_UNDERSCORE:
        why = f"spaCy has Doc._.{attr} already"
    elif attr in _OF_LANGUAGE:
        why = f"spaCy has nlp.{attr} already"
    if why:
        raise calib_error("C112", attr=attr, why=why)
    return attr


def check_pipe_name(name: str) -> str:
    """The name, as it is. RAISES C113: a pipeline with such a pipe cannot be saved, or not loaded again."""
    why = ""
    if name.lower() in _BESIDE_PIPES:
        why = "a saved pipeline has something else of this name"
    elif not name.strip(".") or set(name) & set("/\\\0"):
        why = "it is no name for a folder"
    if why:
        raise calib_error("C113", name=name, why=why)
    return name
