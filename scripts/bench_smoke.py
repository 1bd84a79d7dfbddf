"""Runs every script of this folder, small, on made-up data: do they still run on what the package is now?

    python scripts/bench_smoke.py [NAME ...]

All run in this process, one after the other, so that spaCy is loaded once. What they print must hold a certain text. A target that is missed (exit
code 1 of a benchmark) is no failure here: so little data says nothing about speed or quality. An exception is one, and so is any other exit code.
A new script needs a line in RUNS, PARTS or SKIPPED; a test looks after that.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib
import io
import json
import os
import random
import runpy
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).resolve().parent


class Run(NamedTuple):
    """arguments (str): Of the command line; {name} is a file of `prepare`. shows (str): What must be in what it prints."""

    arguments: str
    shows: str


NER_FILES = "--train {ner_train} --dev {ner_dev} --test {ner_test}"
SIMULATION = "--train {ewt_dev} --dev {ewt_dev} --test {ewt_test} --strategies least-confident random --seeds 1 --max-words 150"
RUNS = {
    "bench_fit.py": Run("--pairs 20000 --repeats 1 --kinds float64", "| float64 |"),
    "bench_cli.py": Run("--repeats 1", "calib fit s"),
    "bench_overhead.py": Run("--runs 1", "| tok2vec+tagger |"),
    "bench_entities.py": Run("--runs 1 --beam-runs 1 --beam-width 2", "beam of 2"),
    "bench_parser.py": Run("--runs 1", "heads or labels that differ: 0"),
    "bench_memory.py": Run("{calibrated_ner} --data {ner_test} --documents 300 --every 100", "bytes a document"),
    "bench_statistics.py": Run("--pairs 20000 --kinds moved", "shards in random trees: all equal"),
    "long_runs.py": Run("--documents 300", "| rank |"),
    "bench_scores.py": Run("--rows 3000 --formats csv --method platt", "| .csv |"),
    "bench_spark.py": Run("{calibrated} {ewt_test} --documents 60 --rounds 1", "one worker"),
    "bench_rank.py": Run("{calibrated} --data {ewt_test} --repeat 1 --sentences 20", "A queue of"),
    "quality/data.py": Run("ewt-tagger", "| ewt-tagger |"),
    "bench_quality.py": Run("--sets ewt-tagger --peers --samples 2000 --output {output}", '"better_than_paper"'),
    "sequence_confidence.py": Run(
        "run --corpora np --most 60 --rounds 1 --run 2 --samples 20 --folder {output} --pictures {output}/png", "| CW | KD-PC |"
    ),
    "bench_sequence.py": Run("--runs 1 --labels 5 70 --texts 10", "| prediction, batches of 64 Docs |"),
    "hmm_crf_table.py": Run("ewt --bin-size 200 --most 40 --cache {output}", "| CRF, spelling | calibrated |"),
    "count_coverage.py": Run(
        "{model} {ewt_dev} {ewt_test} --component tagger --sources {ewt_dev} --parts 3 --gold 2 --draws 2",
        "| as calib count tells it |",
    ),
    "state_union.py": Run("{calibrated_ner} --place PERSON --speeches 2", "2 speeches"),
    "apply_kills.py": Run("{calibrated} {ewt_test} --kills 2", "none is lost and none there twice"),
    "coref_table.py": Run("{model} {coref_dev} --train {coref_train}", "| calibrated |"),
    "event_table.py": Run("{model} {ewt_dev} {ewt_test} --component tagger --event Sentence", "| forecast |"),
    "ocr_events.py": Run("--words 60 60 60 --draws 1 --sets 1 --sizes 20 40 --steps 20", "| words: length and dictionary are"),
    "polarity_table.py": Run("--sizes 20 40 --epochs 2 --cache {output}", "| spaCy textcat | calibrated |"),
    "streusle_table.py": Run("--corpus {lextags} --training {lextags} --plot-groups {output}.png", "| tiny: the CRF is"),
    "expect_table.py": Run("ewt --draws 2", "| EWT test |"),
    "expect_splits.py": Run("ewt --draws 2", "| EWT test |"),
    "shift_table.py": Run("ewt --draws 2", "**EWT test** (home"),
    "watch_table.py": Run("ewt --windows 8 --streams 1 --draws 1", "| EWT test, sentences | ARK tweets | 100 % |"),
    "bench_watch.py": Run("--runs 1", "| sentence |"),
    "entity_table.py": Run("--model {model} --name small " + NER_FILES + " --beam-width 2", "small"),
    "threshold_study.py": Run("--simulate --repeats 3 --entities 200", "| 0.95 |"),
    "recall_study.py": Run("--simulate --repeats 3 --documents 50", "| 50 | 0, 0 | 0.99 |"),
    "simulate_active_learning.py": Run(SIMULATION + " --start 20 --round-words 80 --steps 2 --width 8", "| random"),
    "mutation.py": Run("--sample 1 --jobs 1 spacy_calib/pairs/folds.py", "| pairs | 1 |"),
    "study_auto_small.py": Run("--made-up --draws 2 --sizes 200 600", "| 600 |"),
    "study_adapt.py": Run("--made-up --documents 5 --draws 2", "| mixture, documents, offsets |"),
    "study_bins.py": Run("--n 200 --counts 5 --sizes 50 --repeats 2 --draws 10", "| true error |"),
    "study_sample_size.py": Run("--n 100 200 --repeats 2 --draws 10", "| true error |"),
    "study_select_adapt.py": Run("{calibrated} {ewt_test} --documents 5 --draws 2", "| 5 | spread over doubt |"),
    "study_tag_pairs.py": Run("{calibrated} {ewt_test}", "| event |"),
    "house.py": Run("", "arrows between rooms"),
    "docs_commands.py": Run("--output {output}.md", ""),
    "fuzz_state.py": Run("--cases 10", "\n0 bad"),
    "demo.py": Run("{output} --max-steps 5", "Calibrated pipeline"),
}
# What is no program: its module is imported by those above.
PARTS = {
    "frame.py": "frame",
    "analysis/studies.py": "analysis.studies",
    "analysis/synthetic.py": "analysis.synthetic",
    "analysis/tag_pairs.py": "analysis.tag_pairs",
    "beam_pairs.py": "beam_pairs",
    "chain_pairs.py": "chain_pairs",
    "conllu.py": "conllu",
    "hmm_crf_models.py": "hmm_crf_models",
    "corpus_pairs.py": "corpus_pairs",
    "study_common.py": "study_common",
    "quality/holm.py": "quality.holm",
    "quality/judge.py": "quality.judge",
    "quality/models.py": "quality.models",
    "quality/ours.py": "quality.ours",
    "quality/peers.py": "quality.peers",
    "quality/readers.py": "quality.readers",
    "sequences/active.py": "sequences.active",
    "sequences/answers.py": "sequences.answers",
    "sequences/claims.py": "sequences.claims",
    "sequences/curve.py": "sequences.curve",
    "sequences/data.py": "sequences.data",
    "sequences/judge.py": "sequences.judge",
    "sequences/learning.py": "sequences.learning",
    "sequences/pictures.py": "sequences.pictures",
    "sequences/readings.py": "sequences.readings",
    "sequences/runs.py": "sequences.runs",
    "sequences/tables.py": "sequences.tables",
}
SKIPPED = {
    "bench_smoke.py": "this script",
    "docs_pictures.py": "needs a browser, and the quickstart followed on real data",
    "docs_docstrings.py": "runs inside mkdocstrings: make docs",
    "docs_site.py": "runs inside MkDocs: make docs",
    "quality/peer_worker.py": "runs inside the environment of a peer; tests/test_quality_scripts.py runs it with scikit-learn",
}

# Made-up data

WORDS = {
    "DT": ("DET", "Definite=Def", "the a this every"),
    "NN": ("NOUN", "Number=Sing", "dog bank market price book light report run study duck"),
    "NNS": ("NOUN", "Number=Plur", "dogs banks prices books reports runs"),
    "VBD": ("VERB", "Tense=Past", "saw bought closed found read opened"),
    "VBZ": ("VERB", "Tense=Pres", "sees buys reports runs books studies"),
    "JJ": ("ADJ", "Degree=Pos", "old light open new green"),
    "RB": ("ADV", "_", "early often back well"),
    "IN": ("ADP", "_", "in on of under like"),
    "NNP": ("PROPN", "Number=Sing", "Anna Paris Google Smith May"),
    ".": ("PUNCT", "_", ". ! ?"),
}
TEMPLATES = ("DT JJ NN VBD DT NN IN NNP .", "NNP VBZ NNS IN DT NN RB .", "DT NNS IN NNP VBD RB .", "NNP VBD DT JJ NNS .")
ENTITIES = {"NNP": {"Anna": "PERSON", "Smith": "PERSON", "Paris": "GPE", "Google": "ORG", "May": "DATE"}}
NOISE = 0.08


class Word(NamedTuple):
    form: str
    upos: str
    tag: str
    feats: str


def sentences(n: int, seed: int) -> Iterator[list[Word]]:
    """Sentences of words that a tagger may well take for something else; some gold tags are wrong."""
    rng = random.Random(seed)
    for _ in range(n):
        made = []
        for slot in rng.choice(TEMPLATES).split():
            tag = rng.choice(list(WORDS)) if rng.random() < NOISE else slot
            upos, feats, _ = WORDS[tag]
            made.append(Word(rng.choice(WORDS[slot][2].split()), upos, tag, feats))
        yield made


def conllu(n: int, seed: int, sent_id: str, per_document: int = 2) -> str:
    """Sentences as CoNLL-U. sent_id (str): With {document} and {sentence} in it."""
    blocks = []
    for number, sentence in enumerate(sentences(n, seed)):
        document, place = divmod(number, per_document)
        lines = [f"# newdoc id = {seed}-{document}"] if not place else []
        lines += [
            f"# sent_id = {sent_id.format(document=document, sentence=place)}",
            f"# text = {' '.join(word.form for word in sentence)}",
        ]
        lines += [
            f"{i}\t{w.form}\t{w.form}\t{w.upos}\t{w.tag}\t{w.feats}\t{i - 1}\tdep\t_\t_" for i, w in enumerate(sentence, 1)
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n\n"


def write_treebanks(folder: Path) -> None:
    """data/ud_english_ewt and some tweets as SPACY_CALIB_DATA has them, and a package `dante` with the files of dante-corpora."""
    for seed, (split, n) in enumerate({"dev": 480, "test": 240, "train": 120}.items()):
        path = folder / "data" / "ud_english_ewt" / f"{split}.conllu.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(conllu(n, seed, f"{split}-{{document}}-{{sentence}}").encode()))
    tweets = folder / "data" / "ark_twpos" / "test.tsv.gz"
    tweets.parent.mkdir()
    tweets.write_bytes(
        gzip.compress("\n".join(f"{w.form}\t{w.tag}" if w else "" for s in sentences(60, 7) for w in (*s, None)).encode())
    )
    banks = {
        "porttinari": "FOLHA_DOC{document}_SENT{sentence}",
        "petrogold": "{document}_0-{sentence}",
        "dantestocks": "t{document}x{sentence}",
    }
    for seed, (name, sent_id) in enumerate(banks.items()):
        path = folder / "dante" / "data" / name / "annotated.conllu"
        path.parent.mkdir(parents=True)
        path.write_text(conllu(800 if name == "porttinari" else 120, 10 + seed, sent_id), encoding="utf8")
    (folder / "dante" / "__init__.py").touch()


def write_polarity(folder: Path) -> None:
    """data/sentence_polarity: snippets of a label and a text, of nouns and of words that one label has more often."""
    rng = random.Random(8)
    words = {"pos": ["fine", "warm", "clever", "funny"], "neg": ["dull", "cold", "empty", "loud"]}
    (folder / "data" / "sentence_polarity").mkdir()
    for split, n in {"train": 400, "dev": 200, "test": 200}.items():
        lines = []
        for _ in range(n):
            label = rng.choice(("pos", "neg"))
            own, other = words[label], words["neg" if label == "pos" else "pos"]
            said = [rng.choice(own if rng.random() < 0.6 else other) for _ in range(3)]
            lines.append(f"{label}\ta {' '.join(said)} {rng.choice(WORDS['NN'][2].split())} .")
        path = folder / "data" / "sentence_polarity" / f"{split}.tsv.gz"
        path.write_bytes(gzip.compress("\n".join(lines).encode()))


def write_chunks(folder: Path) -> None:
    """data/conll2000: noun phrases, a word, its tag and its chunk on each line; the word before tells most of it."""
    rng = random.Random(9)
    (folder / "data" / "conll2000").mkdir()
    for split, n in {"train": 60, "test": 30}.items():
        lines = []
        for _ in range(n):
            for _ in range(rng.randint(1, 3)):
                noun = "I-NP" if rng.random() < 0.9 else "B-NP"
                lines += ["the DT B-NP", f"{rng.choice(('dog', 'duck', 'light'))} NN {noun}", "ran VBD B-VP"]
            lines.append("")
        path = folder / "data" / "conll2000" / f"{split}.txt.gz"
        path.write_bytes(gzip.compress("\n".join(lines).encode()))


def write_speeches(folder: Path) -> None:
    """data/state_union: a text for each of three years."""
    lines = [
        json.dumps({"text": " ".join(w.form for s in sentences(9, year) for w in s), "year": year})
        for year in range(1990, 1993)
    ]
    (folder / "data" / "state_union").mkdir()
    (folder / "data" / "state_union" / "speeches.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def write_letters(folder: Path) -> None:
    """data/ocr_letters: words of a few letters, each letter 16 x 8 pixels of which a fifth are turned over."""
    import numpy as np

    rng = np.random.default_rng(10)
    (folder / "data" / "ocr_letters").mkdir()
    shapes = rng.random((26, 128)) < 0.3
    known = [rng.integers(0, 26, rng.integers(2, 6)) for _ in range(8)]
    words = [known[i] for i in rng.integers(0, len(known), 220)]
    labels = np.concatenate(words)
    pixels = shapes[labels] ^ (rng.random((len(labels), 128)) < 0.2)
    offsets = np.cumsum([0, *map(len, words)])
    path = folder / "data" / "ocr_letters" / "letters.npz"
    np.savez(
        path, pixels_packed=np.packbits(pixels, axis=1), labels=labels.astype(np.int8), word_offsets=offsets.astype(np.int32)
    )


def write_entities(path: Path, n: int, seed: int) -> None:
    """Gold entities with the labels of the model."""
    from spacy.tokens import Doc, DocBin, Span
    from spacy.vocab import Vocab

    vocab = Vocab()
    docs = []
    for sentence in sentences(n, seed):
        doc = Doc(vocab, words=[word.form for word in sentence], sent_starts=[i == 0 for i in range(len(sentence))])
        named = [(i, ENTITIES["NNP"].get(word.form)) for i, word in enumerate(sentence)]
        doc.set_ents([Span(doc, i, i + 1, label) for i, label in named if label], default="outside")
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)


def write_heads(folder: Path) -> Path:
    """Gold tags, and a CRF and a tagger that learned from them for a moment, as configs/streusle_lsr has them."""
    import spacy
    from spacy.tokens import Doc, DocBin
    from spacy.training import Example

    nlps = {"tiny-crf": spacy.blank("en"), "tiny-softmax": spacy.blank("en")}
    golds = {}
    for name in nlps:
        (folder / name).mkdir(parents=True)
    for seed, split in enumerate(("train", "dev", "test")):
        made = sentences(150, 30 + seed)
        golds[split] = [Doc(nlps["tiny-crf"].vocab, words=[w.form for w in one], tags=[w.tag for w in one]) for one in made]
        DocBin(docs=golds[split]).to_disk(folder / f"{split}.spacy")
    for (name, nlp), component in zip(nlps.items(), ("calib_crf", "tagger"), strict=True):
        nlp.add_pipe(component)
        examples = [Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold) for gold in golds["train"]]
        optimizer = nlp.initialize(partial(iter, examples))
        for _ in range(8):
            nlp.update(examples, sgd=optimizer)
        nlp.to_disk(folder / name / "model-best")
    return folder


def write_coref(path: Path, n: int, seed: int) -> None:
    """Gold clusters: names, and the pronoun that follows."""
    from spacy.tokens import Doc, DocBin
    from spacy.vocab import Vocab

    rng, vocab = random.Random(seed), Vocab()
    docs = []
    for _ in range(n):
        names = [rng.choice(("Anna", "Smith", "May")) for _ in range(6)]
        words = [
            word for name in names for word in (name, "saw", "it", ".", "he" if rng.random() < 0.8 else "Paris", "slept", ".")
        ]
        doc = Doc(vocab, words=words, sent_starts=[i % 7 in (0, 4) for i in range(len(words))])
        for number, name in enumerate(dict.fromkeys(names), start=1):
            places = [7 * i for i, one in enumerate(names) if one == name]
            doc.spans[f"coref_clusters_{number}"] = [doc[i : i + 1] for place in places for i in (place, place + 4)]
        doc.spans["coref_mentions"] = [doc[i : i + 1] for i in range(len(words)) if i % 7 in (0, 4)]
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)


def prepare(folder: Path) -> dict[str, str]:
    """The files that RUNS names, by name."""
    from frame import MODEL, default_cache, ewt_file

    from spacy_calib.cli.fit import fit

    files = {f"ewt_{split}": ewt_file(split, default_cache()) for split in ("dev", "test")}
    files["lextags"] = write_heads(folder / "lextags")
    for seed, (split, n) in enumerate({"train": 100, "dev": 300, "test": 150}.items()):
        files[f"ner_{split}"] = folder / f"ner_{split}.spacy"
        write_entities(files[f"ner_{split}"], n, 20 + seed)
    for seed, (split, n) in enumerate({"train": 12, "dev": 6}.items()):
        files[f"coref_{split}"] = folder / f"coref_{split}.spacy"
        write_coref(files[f"coref_{split}"], n, 30 + seed)
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
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_treebanks(folder)
        write_polarity(folder)
        write_speeches(folder)
        write_chunks(folder)
        write_letters(folder)
        os.environ.update({"SPACY_CALIB_DATA": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")})
        sys.path[:0] = [str(SCRIPTS), str(folder)]
        failed = smoke(names, folder)
    for name, module in PARTS.items():
        importlib.import_module(module)
        print(f"{'':8}  ok      {name} (imported)")
    for name, why in SKIPPED.items():
        print(f"{'':8}  skipped {name}: {why}")
    print(f"{time.perf_counter() - began:.0f} s, {len(names) - len(failed)} of {len(names)} ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
