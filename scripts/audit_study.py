"""How well planted errors in gold are found: `calib audit` beside cleanlab (`pip install --no-deps cleanlab termcolor`, where it is to be compared).

    python scripts/audit_study.py [tags] [entities] [--model MODEL] [--tags FILE] [--entities FILE]

Average precision counts planted errors alone: those that the gold had before count as false. Where `calib audit` does not list an error, it is
not found; cleanlab orders all labels. An error in an entity is found by the first finding that touches it, and findings beside one another are one.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from frame import MODEL, default_cache, docs_in, ewt_file, head, make_parser, one_sentence, row, save_tables
from shift_sets import OF_SPACY, WHOLE

RATE = 0.02
KINDS = ("wrong label", "wrong border", "missing", "superfluous")
Region = tuple[int, int]


def save(docs: Sequence[Any], folder: Path) -> Path:
    from spacy.tokens import DocBin

    DocBin(docs=docs, store_user_data=True).to_disk(folder / "planted.spacy")
    return folder / "planted.spacy"


def run_audit(model: str, data: Path, **options: Any) -> Any:
    from spacy_calib.cli.shared.run import GoldRun
    from spacy_calib.plugins.review.audit_command import audit_pipeline

    return audit_pipeline(GoldRun(model, data, gold_preproc=True), **options)


def average_precision(order: Iterable[Region], wanted: Sequence[Region], others: Sequence[Region] = ()) -> float:
    """order: Findings, first to last. wanted: Planted ones. others: Findings that touch these are passed over, as what touches an earlier finding is."""
    owner = {token: i for i, one in enumerate(wanted) for token in range(*one)}
    passed = {token for one in others for token in range(*one)} - owner.keys()
    found: set[int] = set()
    false, total = 0, 0.0
    for first, last in order:
        tokens = range(first, last)
        hit = next((owner[token] for token in tokens if token in owner), None)
        if hit is not None:
            if hit not in found:
                found.add(hit)
                total += len(found) / (len(found) + false)
        elif passed.isdisjoint(tokens):
            false += 1
            passed.update(range(first - 1, last + 1))
    return total / max(1, len(wanted))


# cleanlab


def token_probabilities(audited: Any) -> tuple[list[list[int]], list[Any], list[int]]:
    """(gold label of each token, all probabilities of the component, row of the corpus), sentence by sentence; tokens without a known gold label are left out."""
    calib, corpus = audited.calib, audited.corpus
    component = calib.lookup.component()
    names = calib.source.labels(component)
    column = {name: i for i, name in enumerate(names)}
    marginals = calib.source.read(component, [one.predicted for one in audited.examples]).marginals_above(0.0)
    dense = np.zeros((len(corpus), len(names)))
    dense[marginals.rows, marginals.tags] = marginals.scores
    gold = np.array([column.get(corpus.names[one], -1) if one >= 0 else -1 for one in corpus.gold])
    labels, probabilities, rows = [], [], []
    for first, last in zip(corpus.doc_starts[:-1], corpus.doc_starts[1:], strict=True):
        own = first + np.flatnonzero((gold[first:last] >= 0) & (dense[first:last].sum(axis=1) > 0))
        if len(own):
            labels.append(gold[own].tolist())
            probabilities.append(dense[own] / dense[own].sum(axis=1, keepdims=True))
            rows += own.tolist()
    return labels, probabilities, rows


def cleanlab_orders(audited: Any) -> Iterator[tuple[str, list[Region]]]:
    """Name -> tokens, first to last; none where cleanlab is not installed."""
    try:
        from cleanlab.token_classification.filter import find_label_issues
        from cleanlab.token_classification.rank import get_label_quality_scores
    except ImportError:
        return
    labels, probabilities, rows = token_probabilities(audited)
    used = sorted({label for one in labels for label in one})  # cleanlab wants every class in the labels
    place = {label: i for i, label in enumerate(used)}
    labels = [[place[label] for label in one] for one in labels]
    probabilities = [one[:, used] / np.maximum(one[:, used].sum(axis=1, keepdims=True), 1e-12) for one in probabilities]
    for method in ("self_confidence", "normalized_margin"):
        _, scores = get_label_quality_scores(labels, probabilities, token_score_method=method)
        flat = np.concatenate([np.asarray(one) for one in scores])
        yield f"cleanlab, {method}", [(rows[i], rows[i] + 1) for i in np.argsort(flat, kind="stable")]
    starts = np.cumsum([0, *map(len, labels)])
    issues = find_label_issues(labels, probabilities, n_jobs=1)
    yield "cleanlab, find_label_issues", [(rows[starts[i] + j], rows[starts[i] + j] + 1) for i, j in issues]


# Tags


def plant_tags(docs: Sequence[Any], uniform: bool, rate: float = RATE, seed: int = 0) -> list[int]:
    """Rows of the tokens that got another tag, drawn by the frequency of tags, or uniformly among those seen."""
    rng = np.random.default_rng(seed)
    counts = Counter(token.tag_ for doc in docs for token in doc)
    names = sorted(counts)
    weights = np.array([1.0 if uniform else counts[name] for name in names])
    planted = []
    for at, token in enumerate(token for doc in docs for token in doc):
        if rng.random() < rate:
            chances = weights * (np.array(names) != token.tag_)
            token.tag_ = names[rng.choice(len(names), p=chances / chances.sum())]
            planted.append(at)
    return planted


def tags(options: Any, folder: Path) -> None:
    import spacy

    vocab = spacy.blank("en").vocab
    file = options.tags or ewt_file("test", default_cache())
    head("| EWT test, 2 % wrong tags | planted | average precision | of the first 100 |", left=1)
    estimates = []
    for how, rate in (("uniform", RATE), ("by frequency", RATE), ("none", 0.0)):
        docs = docs_in(file, vocab)
        planted = plant_tags(docs, how == "uniform", rate, options.seed)
        audited = run_audit(options.model, save(docs, folder), component="tagger")
        estimates.append((how, len(planted), audited.findings))
        if not planted:
            continue
        orders = [("calib audit", [(one.first, one.last) for one in audited.findings.doubts]), *cleanlab_orders(audited)]
        for name, order in orders:
            held = {token for token in planted}
            hits = np.array([first in held for first, _ in order], dtype=bool)
            precision = float((np.cumsum(hits)[hits] / (1 + np.flatnonzero(hits))).sum() / len(planted))
            row(f"{name}, {how}", len(planted), f"{precision:.3f}", int(hits[:100].sum()))
    head("| planted | labels | doubted | expected wrong, at most | sum of P(rival) of the doubted |")
    for how, n, found in estimates:
        row(
            f"{n} ({how})",
            found.n_labels,
            len(found.doubts),
            f"{found.n_wrong:.0f}",
            f"{sum(one.p_rival for one in found.doubts):.0f}",
        )


# Entities


def plant_entities(docs: Sequence[Any], rate: float = RATE, seed: int = 0) -> dict[str, list[Region]]:
    """Kind -> tokens of each planted error, counted over all Docs; at most one error a Doc, so that none hides another."""
    from spacy.tokens import Span

    rng = np.random.default_rng(seed)
    names = sorted({one.label_ for doc in docs for one in doc.ents})
    planted: dict[str, list[Region]] = {kind: [] for kind in KINDS}
    starts = np.cumsum([0, *map(len, docs)]).tolist()
    n = round(rate * sum(len(doc.ents) for doc in docs))
    for number in rng.permutation(len(docs)).tolist():
        doc, wanted = docs[number], [kind for kind in KINDS if len(planted[kind]) < n]
        if not wanted:
            break
        kind = wanted[rng.integers(len(wanted))]
        ents = list(doc.ents)
        taken = {token for one in ents for token in range(one.start, one.end)}
        free = [i for i in range(len(doc)) if not {i - 1, i, i + 1} & taken and doc[i].text.isalpha()]
        if not (free if kind == "superfluous" else ents):
            continue
        if kind == "superfluous":
            at = int(rng.choice(free))
            region, made = (at, at + 1), [*ents, Span(doc, at, at + 1, names[rng.integers(len(names))])]
        else:
            old = ents.pop(rng.integers(len(ents)))
            region, made = (old.start, old.end), ents
            if kind == "wrong label":
                others = [name for name in names if name != old.label_]
                made = [*ents, Span(doc, old.start, old.end, others[rng.integers(len(others))])]
            elif kind == "wrong border":
                ends = [(old.start, old.end + 1), (old.start - 1, old.end), (old.start + 1, old.end), (old.start, old.end - 1)]
                rest = taken - set(range(*region))
                ends = [one for one in ends if 0 <= one[0] < one[1] <= len(doc) and rest.isdisjoint(range(*one))]
                if not ends:
                    continue
                new = ends[rng.integers(len(ends))]
                region, made = (min(old.start, new[0]), max(old.end, new[1])), [*ents, Span(doc, *new, old.label_)]
        doc.set_ents(made)
        planted[kind].append((starts[number] + region[0], starts[number] + region[1]))
    return planted


def entities(options: Any, folder: Path) -> None:
    import spacy
    from quality import readers
    from quality.models import write_docs

    if options.entities is None:
        write_docs(readers.entities("wikineural_en", "test", options.every), folder / "entities.spacy", WHOLE)
    docs = docs_in(options.entities or folder / "entities.spacy", spacy.blank("en").vocab)
    docs = docs if options.entities else [sentence.as_doc() for doc in docs for sentence in doc.sents]
    planted = plant_entities(docs, seed=options.seed)
    label_map = None if options.entities else ",".join(f"{own}={other}" for own, other in OF_SPACY.items())
    audited = run_audit(options.model, save(docs, folder), component="ner", label_map=label_map)
    every = [region for own in planted.values() for region in own]
    head("| 2 % of the entities of each kind | " + " | ".join((*KINDS, "all")) + " |")
    row("planted", *(len(planted[kind]) for kind in KINDS), len(every))
    orders = [("calib audit", [(one.first, one.last) for one in audited.findings.doubts]), *cleanlab_orders(audited)]
    for name, order in orders:
        each = [average_precision(order, planted[kind], every) for kind in KINDS]
        row(name, *(f"{one:.3f}" for one in (*each, average_precision(order, every))))
    right = 0
    for one in audited.findings.doubts:
        right += any(first < one.last and one.first < last for first, last in planted.get(one.kind, ()))
    row("listed under its kind", *["-"] * len(KINDS), f"{right} of {len(every)}")


PARTS = {"tags": tags, "entities": entities}


def main() -> None:
    parser = make_parser(__doc__, PARTS, output=True)
    parser.add_argument("--model", default=MODEL, help="pipeline with a tagger and a recognizer")
    parser.add_argument("--tags", type=Path, help="gold tags, in the place of EWT test")
    parser.add_argument("--entities", type=Path, help="gold entities, in the place of WikiNEuRal")
    parser.add_argument("--every", type=int, default=3, help="of WikiNEuRal's test sentences, the first of so many")
    parser.add_argument("--seed", type=int, default=0, help="of the errors that are planted")
    options = parser.parse_args()
    with one_sentence(), tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            PARTS[name](options, Path(folder))
    save_tables(options.output)


if __name__ == "__main__":
    main()
