"""Runs every script of this folder, small, on made-up data: do they still run on what the package is now?

    python scripts/bench_smoke.py [NAME ...]

All run in this process, one after the other, so that spaCy is loaded once. What they print must hold a certain text. A target that is missed (exit
code 1 of a benchmark) is no failure here: so little data says nothing about speed or quality. An exception is one, and so is any other exit code.
A new program needs a line in RUNS or SKIPPED; a test looks after that. All other modules are imported.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import runpy
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).resolve().parent


class Run(NamedTuple):
    """arguments (str): Of the command line; {name} is a file of `prepare`. shows (str): What must be in what it prints."""

    arguments: str
    shows: str


SIMULATION = "--train {ewt_dev} --dev {ewt_dev} --test {ewt_test} --strategies least-confident random --seeds 1 --max-words 150"
RUNS = {
    "bench_overhead.py": Run("--runs 1 --single", "| one Doc at a time, 12 tokens |"),
    "tools/count_functions.py": Run("", "| nlp(text) |"),
    "pretrained.py": Run("--tables", "| UNER-EWT |"),
    "bench_pipes.py": Run("arcs --runs 1", "arcs that differ: 0"),
    "long_runs.py": Run("--documents 300", "| rank |"),
    "answers_study.py": Run("--sentences 150 --folds 2 --data {ner_dev} --made-up --cache {output}", "| calib fit |"),
    "audit_study.py": Run("tags entities --model {model} --tags {ewt_test} --entities {ner_dev}", "| calib audit, uniform |"),
    "bench_spark.py": Run("{calibrated} {ewt_test} --documents 60 --rounds 1", "one worker"),
    "bench_quality.py": Run("--sets ewt-tagger --peers --samples 2000 --output {output}", '"better_than_paper"'),
    "sequence_confidence.py": Run(
        "run --corpora np --most 60 --rounds 1 --run 2 --samples 20 --folder {output} --pictures {output}/png", "| CW | KD-PC |"
    ),
    "hmm_crf_table.py": Run("ewt --bin-size 200 --most 40 --cache {output}", "| CRF, spelling | calibrated |"),
    "count_coverage.py": Run(
        "{model} {ewt_dev} {ewt_test} --component tagger --sources {ewt_dev} --parts 3 --gold 2 --draws 2",
        "| as calib count tells it |",
    ),
    "coref_table.py": Run("{model} {coref_dev} --train {coref_train}", "| calibrated |"),
    "event_table.py": Run("{model} {ewt_dev} {ewt_test} --component tagger --event Sentence", "| forecast |"),
    "ocr_events.py": Run("--words 60 60 60 --draws 1 --sets 1 --sizes 20 40 --steps 20", "| words: length and dictionary are"),
    "polarity_table.py": Run("--sizes 20 40 --epochs 2 --cache {output}", "| spaCy textcat | calibrated |"),
    "streusle_table.py": Run("--corpus {lextags} --training {lextags} --plot-groups {output}.png", "| tiny: the CRF is"),
    "expect_table.py": Run("ewt --draws 2", "| EWT test |"),
    "expect_splits.py": Run("ewt --draws 2", "| EWT test |"),
    "shift_table.py": Run("ewt --draws 2", "**EWT test** (in domain"),
    "against_study.py": Run("--train test --population dev --epochs 1 2 --draws 2 --documents 20", "| 20 | smce |"),
    "cutoff_study.py": Run(
        "recall --model {calibrated_ner} --test {ner_test} --wanted 0.5 --repeats 3", "| predicted only: recall |"
    ),
    "simulate_active_learning.py": Run(SIMULATION + " --start 20 --round-words 80 --steps 2 --width 8", "| random"),
    "tools/mutation.py": Run("--sample 1 --jobs 1 spacy_calib/pairs/documents.py", "| pairs | 1 |"),
    "study_adapt.py": Run("--made-up --documents 5 --draws 2", "| made up | 1 | 5 | 2 |"),
    "links_study.py": Run("--identities 48 --judged 100 --draws 1 --groupings 1 --size 20", "| conditional logit, 50 labels |"),
    "slices_study.py": Run("--planted 2 --empty 2 --documents 60", "| documents differ | 2 |"),
    "study_select_adapt.py": Run("{calibrated} {ewt_test} --documents 5 --draws 2", "| 5 | spread over doubt, no short ones |"),
    "tools/house.py": Run("", "arrows between rooms"),
    "docs_commands.py": Run("--check", ""),
    "tools/fuzz_state.py": Run("{calibrated} --cases 10", "\n0 bad"),
    "figures.py": Run("--check", "| shift |"),
    "demo.py": Run("{output} --max-steps 5", "Calibrated pipeline"),
}
SKIPPED = {
    "bench_smoke.py": "this script",
    "adapt_or_fit_study.py": "reads six data sets; tests/scripts/test_adapt_or_fit_study.py runs it on a made-up one",
    "docs_pictures.py": "needs a browser, and the quickstart followed on real data",
    "release_check.py": "installs what `make release-check` builds, on each Python",
    "docs_docstrings.py": "runs inside mkdocstrings: make docs",
    "docs_site.py": "runs inside MkDocs: make docs",
    "first_screen.py": "runs a stock pipeline over four data sets in three forms, for minutes",
    "thirty_documents.py": "adapts and fits a stock pipeline on five data sets, for minutes; docs/start/thirty-documents.md has the same steps",
    "fuzz_cli.py": "makes and loads pipelines for each of many command lines; tests/cli/test_fuzz_lines.py runs some of them",
    "name_lists.py": "needs packages of names in named versions; tests/plugins/pretrained/test_names.py reads what it made",
    "stale_words.py": "needs a fitted pipeline; its numbers are of millions of words",
    "tools/same_scores.py": "trains and fits six pipelines on data sets, for minutes",
    "tools/without_plugins.py": "runs the tests of the core in an environment of their own, for minutes",
    "tools/move.py": "moves files of the checkout; tests/scripts/test_move.py runs it in another one",
    "quality/peer_worker.py": "runs inside the environment of a peer; tests/test_quality_scripts.py runs it with scikit-learn",
}


def parts() -> list[str]:
    """What is no program: its module is imported by those that are run."""
    files = (file.relative_to(SCRIPTS).as_posix() for file in sorted(SCRIPTS.rglob("*.py")))
    return [name for name in files if name not in (*RUNS, *SKIPPED)]


def prepare(folder: Path) -> dict[str, str]:
    """The files that RUNS names, by name."""
    import made_up
    from frame import MODEL, default_cache, ewt_file

    from spacy_calib import fit

    files = {f"ewt_{split}": ewt_file(split, default_cache()) for split in ("dev", "test")}
    files["lextags"] = made_up.write_heads(folder / "lextags")
    for seed, (split, n) in enumerate({"train": 100, "dev": 300, "test": 150}.items()):
        files[f"ner_{split}"] = folder / f"ner_{split}.spacy"
        made_up.write_entities(files[f"ner_{split}"], n, 20 + seed)
    for seed, (split, n) in enumerate({"train": 12, "dev": 6}.items()):
        files[f"coref_{split}"] = folder / f"coref_{split}.spacy"
        made_up.write_coref(files[f"coref_{split}"], n, 30 + seed)
    for name, data, component in (("calibrated", "ewt_dev", "tagger"), ("calibrated_ner", "ner_dev", "ner")):
        files[name] = folder / name
        fit(MODEL, files[data], files[name], component=component, method="isotonic")
    return {"model": MODEL, **{name: str(path) for name, path in files.items()}}


# Running


def run(script: Path, arguments: list[str], shows: str) -> str:
    """Run a script as a program in this process. RETURNS (str): Why it failed, with all that it printed; "" where it did not."""
    printed = io.StringIO()
    argv, sys.argv = sys.argv, [str(script), *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        printed.write(traceback.format_exc())
        code = "an exception"
    finally:
        sys.argv = argv
    if code not in (0, 1, None):
        return f"{printed.getvalue()}\nended with {code}"
    return "" if shows in printed.getvalue() else f"{printed.getvalue()}\nended with {code} and does not show {shows!r}"


def smoke(names: list[str], folder: Path) -> list[str]:
    """Run these scripts. RETURNS (list): Those that failed."""
    failed = []
    files = prepare(folder)
    for name in names:
        began = time.perf_counter()
        files["output"] = str(folder / "output" / name)
        why = run(SCRIPTS / name, RUNS[name].arguments.format(**files).split(), RUNS[name].shows)
        print(f"{time.perf_counter() - began:6.1f} s  {'FAILED' if why else 'ok    '}  {name}", flush=True)
        if why:
            print(why, flush=True)
            failed.append(name)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="Scripts; all where none is named")
    names = parser.parse_args().names or list(RUNS)
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        parser.error(f"{unknown[0]} is not run here; what is: {', '.join(RUNS)}")
    began = time.perf_counter()
    sys.path.insert(0, str(SCRIPTS))
    import made_up

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made_up.write_data(folder)
        os.environ.update({"SPACY_CALIB_DATA": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")})
        sys.path.insert(0, str(folder))
        failed = smoke(names, folder)
    for name in parts():
        importlib.import_module(name.removesuffix(".py").replace("/", "."))
        print(f"{'':8}  ok      {name} (imported)")
    for name, why in SKIPPED.items():
        print(f"{'':8}  skipped {name}: {why}")
    print(f"{time.perf_counter() - began:.0f} s, {len(names) - len(failed)} of {len(names)} ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
