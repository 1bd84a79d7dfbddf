"""Calibrate seven pipelines and keep every score on their test data, and every number of `evaluate`, to compare two versions of the code.

    SPACY_CALIB_DATA=../shared/data python scripts/tools/same_scores.py scores before.npz
    python scripts/tools/same_scores.py compare before.npz after.npz

Five are calibrated by `python -m spacy calib fit` with its defaults on one held-out set; `--fit-option` adds options to all of them.
- ewt: the stock tagger of en_core_web_sm, UD English EWT dev to test.
- wikineural: a recognizer of 400 steps, WikiNEuRal dev to a fifth of test.
- polarity: spaCy's textcat (a bag of words), film review snippets, dev to test.
- parser: a parser of 300 steps over EWT, dev to test.
- streusle: a tagger of 400 steps over STREUSLE's lextags, dev to test.
Two are the tagger and the recognizer of en_core_web_sm calibrated by `python -m spacy calib pretrained`:
- pretrained-tagger: UD English EWT test.
- pretrained-ner: the entities of Universal NER in the same texts.
The pipelines are trained once, in one thread with seed 0, into --cache: both versions have to read the same ones.

`compare` prints the number of scores and the largest difference of each set, raw and calibrated, and ends with exit code 1 where one is above
--tolerance or where two files hold other scores. Numbers of `evaluate` are compared by key; keys of one file alone are listed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.tokens import Doc, DocBin

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what scripts share

from frame import MODEL, bare, data_lines, default_cache, docs_in, ewt_file, head, row, say
from papers.polarity_table import SPLITS, docs_of, read, train_textcat
from pretrain.sources import uner
from quality import readers
from quality.models import run_training, trained, write_docs
from quality.readers import Documents

from spacy_calib.types import Floats


@dataclass(frozen=True)
class ScoredSet:
    """A pipeline with the data to fit and to test.

    component (str): What is calibrated. model (Callable): Cache -> its package or folder.
    fit, test (Callable): Folder -> a gold file in it; without fit, the component has a pretrained card.
    """

    component: str
    model: Callable[[Path], str | Path]
    fit: Callable[[Path], Path] | None
    test: Callable[[Path], Path]


def read_sentences(documents: Callable[[], Documents], name: str) -> Callable[[Path], Path]:
    """A function that writes these documents as NAME.spacy into a folder, and returns the file."""

    def write(folder: Path) -> Path:
        file = folder / f"{name}.spacy"
        write_docs(documents(), file)
        return file

    return write


def read_snippets(split: str) -> Callable[[Path], Path]:
    """A function that writes the film review snippets of a split as Docs with categories."""

    def write(folder: Path) -> Path:
        file = folder / f"{split}.spacy"
        DocBin(docs=docs_of(spacy.blank("en"), read(split), gold=True)).to_disk(file)
        return file

    return write


def read_conllu(split: str) -> Callable[[Path], Path]:
    """A function that unpacks the CoNLL-U file of a split of EWT."""

    def write(folder: Path) -> Path:
        file = folder / f"{split}.conllu"
        file.write_text("\n".join(data_lines("ud_english_ewt", f"{split}.conllu")) + "\n\n", encoding="utf8")
        return file

    return write


def trained_parser(cache: Path) -> Path:
    """A parser over EWT train, trained if it is not in the folder yet."""
    folder = cache / "same_scores" / "parser"
    if not (folder / "model-best").exists():
        say(f"Training into {folder} ...")
        folder.mkdir(parents=True, exist_ok=True)
        paths = {"paths.train": ewt_file("train", cache), "paths.dev": ewt_file("dev", cache)}
        run_training("train_parser", folder, {**paths, "training.max_steps": 300, "training.eval_frequency": 300})
    return folder / "model-best"


def trained_textcat(cache: Path) -> Path:
    """spaCy's textcat over the snippets of train, five epochs."""
    folder = cache / "same_scores" / "textcat"
    if not folder.exists():
        nlp, _ = train_textcat({split: read(split) for split in SPLITS}, epochs=5)
        nlp.to_disk(folder)
    return folder


SETS = {
    "ewt": ScoredSet("tagger", lambda cache: MODEL, read_conllu("dev"), read_conllu("test")),
    "wikineural": ScoredSet(
        "ner",
        lambda cache: trained("wikineural", cache, 400) / "model-best",
        read_sentences(lambda: readers.entities("wikineural_en", "dev"), "dev"),
        read_sentences(lambda: readers.entities("wikineural_en", "test", step=5), "test"),
    ),
    "polarity": ScoredSet("textcat", trained_textcat, read_snippets("dev"), read_snippets("test")),
    "parser": ScoredSet("parser", trained_parser, read_conllu("dev"), read_conllu("test")),
    "streusle": ScoredSet(
        "tagger",
        lambda cache: trained("streusle", cache, 400) / "model-best",
        read_sentences(lambda: readers.streusle("dev"), "dev"),
        read_sentences(lambda: readers.streusle("test"), "test"),
    ),
    "pretrained-tagger": ScoredSet("tagger", lambda cache: MODEL, None, read_conllu("test")),
    "pretrained-ner": ScoredSet(
        "ner", lambda cache: MODEL, None, read_sentences(lambda: uner("uner_english_ewt", "test"), "test")
    ),
}


def test_docs(nlp: Any, file: Path) -> Iterator[Doc]:
    """Docs with the words and spaces of the test data and nothing else."""
    if file.suffix == ".conllu":
        for document in readers.ewt(file.stem, "tags"):
            words = [word for sentence in document for word in sentence.words]
            yield Doc(nlp.vocab, words=words, spaces=[space for sentence in document for space in sentence.spaces or ()])
    else:
        yield from (bare(doc) for doc in docs_in(file, nlp.vocab))


def scores_of(folder: Path, file: Path) -> dict[str, Floats]:
    """Raw and calibrated scores of all entries and spans that the calibrated pipeline writes on the test data."""
    nlp = spacy.load(folder)
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "fit_info")]
    columns: dict[str, list[Any]] = {"raw": [], "calibrated": [], "span_raw": [], "span_calibrated": []}
    for doc in nlp.pipe(test_docs(nlp, file)):
        if (view := getattr(doc._, pipes[0].attr)) is None:  # nothing to score in it
            continue
        columns["raw"].extend(view.raw)
        columns["calibrated"].extend(view.calibrated)
        for span in view.ents:
            columns["span_raw"].append(span.raw)
            columns["span_calibrated"].append(span.score)
    return {name: np.array(values, dtype=float) for name, values in columns.items()}


def evaluated_numbers(folder: Path, file: Path) -> dict[str, float]:
    """Path in the JSON of `calib evaluate` -> number, for every number there."""
    command = [sys.executable, "-m", "spacy", "calib", "evaluate", str(folder), str(file), "--format", "json"]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    numbers: dict[str, float] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, (dict, list)):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                walk(item, f"{path}.{key}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[path] = float(value)

    walk(json.loads(process.stdout), "")
    return numbers


def save_scores(output: Path, names: Sequence[str], cache: Path, fit_options: Sequence[str]) -> None:
    """Fit every set and write all scores into one file; what the file has of other sets stays."""
    arrays: dict[str, Floats] = dict(np.load(output)) if output.exists() else {}
    for name in names:
        scored_set, folder = SETS[name], cache / "same_scores" / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        model, test = scored_set.model(cache), scored_set.test(folder)
        pipeline = output.with_suffix("") / name
        pipeline.parent.mkdir(parents=True, exist_ok=True)
        words = ["pretrained", model] if scored_set.fit is None else ["fit", model, scored_set.fit(folder)]
        options = ["--component", scored_set.component, "--force", "--silent", *(fit_options if scored_set.fit else ())]
        command = [sys.executable, "-m", "spacy", "calib", *map(str, words), str(pipeline), *options]
        subprocess.run(command, check=True, stdout=sys.stderr)
        arrays |= {f"{name}/{key}": values for key, values in scores_of(pipeline, test).items()}
        numbers = evaluated_numbers(pipeline, test)
        arrays[f"{name}/evaluate"] = np.array(list(numbers.values()))
        arrays[f"{name}/keys"] = np.array(list(numbers))
        say(
            f"{name}: {len(numbers)} numbers of evaluate, {len(arrays[f'{name}/raw']):,} scores of labels, {len(arrays[f'{name}/span_raw']):,} of spans"
        )
        np.savez_compressed(output, **arrays)  # type: ignore[arg-type]


def compare(before: Path, after: Path, tolerance: float) -> int:
    """Print the largest differences. RETURNS (int): 1 where one is above the tolerance or the files hold other scores, else 0."""
    with np.load(before) as old, np.load(after) as new:
        different, keys = sorted(set(old.files) ^ set(new.files)), []
        head("| scores | number | mean before | mean after | largest difference |")
        for name in sorted(name for name in set(old.files) & set(new.files) if not name.endswith("/keys")):
            a, b = old[name], new[name]
            if name.endswith("/evaluate"):
                paths = [file[name.replace("/evaluate", "/keys")].tolist() for file in (old, new)]
                keys += [f"{name}{path}" for path in sorted(set(paths[0]) ^ set(paths[1]))]
                common = sorted(set(paths[0]) & set(paths[1]))
                a, b = (
                    values[[file_paths.index(path) for path in common]]
                    for values, file_paths in zip((a, b), paths, strict=True)
                )
            if a.shape != b.shape:
                different.append(name)
                row(name, f"{len(a):,} and {len(b):,}", "-", "-", "-")
            elif len(a):
                gap = float(np.abs(a - b).max())
                different += [name] * (gap > tolerance)
                row(name, f"{len(a):,}", f"{a.mean():.6f}", f"{b.mean():.6f}", f"{gap:.1e}")
    if keys:
        print(f"\nKeys of one of them alone: {', '.join(keys)}")
    if different:
        print(f"\nDifferent: {', '.join(different)}")
    return int(bool(different))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("scores", help="fit, and write the scores")
    write.add_argument("output", type=Path, help=".npz file; the fitted pipelines go into a folder of the same name")
    write.add_argument("names", nargs="*", default=list(SETS), help=f"of {', '.join(SETS)}; all where none is named")
    write.add_argument("--cache", type=Path, default=default_cache(), help="folder for trained pipelines and data")
    write.add_argument("--fit-option", action="append", default=[], help="one more word for each `calib fit`; several")
    check = commands.add_parser("compare", help="compare two files")
    check.add_argument("before", type=Path)
    check.add_argument("after", type=Path)
    check.add_argument("--tolerance", type=float, default=1e-12)
    options = parser.parse_args(arguments)
    if options.command == "compare":
        return compare(options.before, options.after, options.tolerance)
    save_scores(options.output, options.names, options.cache, options.fit_option)
    return 0


if __name__ == "__main__":
    sys.exit(main())
