"""How many functions of this package a reader meets who follows one Doc, or one fit, through it.

    SPACY_CALIB_DATA=../shared/data python scripts/tools/count_functions.py

Counts the distinct functions that run, by `sys.setprofile`, and the modules that they are in; lambdas, comprehensions, class bodies and generated
methods are not counted. One Doc: `nlp(text)` of en_core_web_sm with a `calib` pipe behind its tagger, fitted on EWT dev with the defaults of
`calib fit`, after a first Doc. A fit: `Calibrator.fit` with the same settings on examples that were read before, and `spacy_calib.fit` from file to
folder, each after a first one. Without SPACY_CALIB_DATA the text is Python's own documentation, with the tagger's own tags for gold, and no file.
--list prints the functions.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import spacy

import spacy_calib

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what scripts share

from clocks import METHODS, bench_parser, fit_tagger_calib, gold_docs, texts_of
from frame import MODEL, ewt_file, head, row

PACKAGE = str(Path(spacy_calib.__file__).parent) + os.sep
NOT_COUNTED = {"<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


def functions_run(call: Callable[[], object]) -> set[CodeType]:
    """The functions of this package that run during a call."""
    codes: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {code for code in codes if code.co_filename.startswith(PACKAGE) and _is_function(code)}


def _is_function(code: CodeType) -> bool:
    """False for modules, bodies of classes, lambdas and comprehensions."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name not in NOT_COUNTED


def print_counts(what: str, call: Callable[[], object], show_all: bool) -> None:
    """Print a row of the table; with show_all also the functions by module."""
    call()
    functions = functions_run(call)
    modules = Counter(code.co_filename.removeprefix(PACKAGE) for code in functions)
    row(what, len(functions), len(modules))
    for module in sorted(modules if show_all else ()):
        print(f"  {module}: {', '.join(sorted(code.co_name for code in functions if code.co_filename == PACKAGE + module))}")


def main() -> int:
    parser = bench_parser(__doc__, 1)
    parser.add_argument("--list", action="store_true", help="print the functions of each module")
    options = parser.parse_args()
    nlp = spacy.load(MODEL)
    calib: Any = nlp.add_pipe("calib", after="tagger", config=METHODS["context"])
    texts, where = texts_of(options)
    references = gold_docs(nlp, texts, options.cache)
    print(f"{where}\n")
    head("| what runs | functions | modules |")
    fit_tagger_calib(nlp, calib, references)
    print_counts("nlp(text)", lambda: nlp(texts[0]), options.list)
    print_counts("Calibrator.fit", lambda: fit_tagger_calib(nlp, calib, references), options.list)
    if os.environ.get("SPACY_CALIB_DATA"):
        data = ewt_file("dev", options.cache)
        with tempfile.TemporaryDirectory() as folder:
            outputs = (f"{folder}/{number}" for number in range(2))
            print_counts(
                "spacy_calib.fit", lambda: spacy_calib.fit(MODEL, data, next(outputs), component="tagger"), options.list
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
