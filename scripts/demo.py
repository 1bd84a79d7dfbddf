"""`make demo`: train a Portuguese morphologizer, calibrate it, and see how true its probabilities are at home and on texts of other kinds.

python scripts/demo.py [OUTPUT]

Data: the package dante-corpora (`pip install --no-deps dante-corpora`), which carries three treebanks as dante/data/NAME/annotated.conllu:
- porttinari: Porttinari-base, news. Split by document: the part of sent_id before _SENT (FOLHA_DOC000001_SENT003 is of FOLHA_DOC000001), so
  that no text is in two parts. A seeded shuffle of the 1,073 documents gives 65 % to train, 5 % to choose the training step, 15 % to fit
  and 15 % to test.
- petrogold: PetroGold, theses on oil and gas. dantestocks: DANTEStocks, tweets on the stock market. Both only to test, out of domain.
A few features in FEATS are malformed (XXX, Foreign=YesNumber=Inv): they are skipped.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import typer
from frame import run_over
from quality import readers
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from tqdm import tqdm
from wasabi import msg

from spacy_calib import fit
from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.fixed import shared_group
from spacy_calib.calibration.registered import recalibrators
from spacy_calib.metrics import accuracy, smce
from spacy_calib.metrics.table import calibration_table
from spacy_calib.pages.plots import compare_reliability
from spacy_calib.pairs.build import JudgedPairs
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.registry import registry
from spacy_calib.types import Floats, Groups, Pairs

CONFIG = Path(__file__).parent.parent / "configs" / "train_morphologizer.cfg"
# Test set -> what the table and what the picture call it
TESTS = {
    "test": ("IN DOMAIN: Porttinari-base, news", "In domain: news"),
    "petrogold": ("OUT OF DOMAIN: PetroGold, theses", "Out of domain: theses"),
    "dantestocks": ("OUT OF DOMAIN: DANTEStocks, tweets", "Out of domain: tweets"),
}
EXAMPLE = "O banco fecha cedo hoje, mas a bolsa abre amanhã."
# What `calib fit` chose, and the picture shows.
DEFAULT = "calib fit"


class Map(NamedTuple):
    """A way to turn raw scores into calibrated ones; maps is None for the raw scores themselves, and for those of the pipeline."""

    name: str
    maps: GroupedRecalibrator | None = None

    def calibrate(self, judged: JudgedPairs) -> Floats:
        if self.name == DEFAULT:
            return judged.calibrated
        pairs = judged.pairs
        return pairs.scores if self.maps is None else self.maps.predict(pairs.scores, pairs.tags)


def prepare(corpus: Path) -> None:
    """Write the parts as .spacy files, and say what they hold."""
    skipped: Counter[str] = Counter()
    parts = readers.split(readers.read_dante(readers.dante_file("porttinari"), skipped), readers.PORTTINARI_SHARES)
    parts |= {name: readers.read_dante(readers.dante_file(name), skipped) for name in ("petrogold", "dantestocks")}
    rows = []
    for name, documents in parts.items():
        DocBin(docs=(doc for _, doc in readers.make_docs(documents, Vocab()))).to_disk(corpus / f"{name}.spacy")
        sizes = len(documents), sum(map(len, documents)), readers.count_tokens(documents)
        rows.append((name, *(f"{size:,}" for size in sizes)))
    msg.table(rows, header=("Part", "Documents", "Sentences", "Words"), divider=True, aligns=("l", "r", "r", "r"))
    msg.text(f"Skipped {skipped.total()} malformed features: {', '.join(repr(feature) for feature in sorted(skipped))}")


def train_pipeline(corpus: Path, output: Path, max_steps: int | None) -> Path:
    """Train with the project's config. RETURNS (Path): The best pipeline."""
    from spacy.cli.train import train

    overrides: dict[str, Any] = {"paths.train": str(corpus / "train.spacy"), "paths.dev": str(corpus / "dev.spacy")}
    if max_steps is not None:
        overrides |= {"training.max_steps": max_steps, "training.eval_frequency": max_steps}
    train(CONFIG, output, overrides=overrides)
    return output / "model-best"


def read_pairs(nlp: spacy.Language, path: Path) -> JudgedPairs:
    """Run the calibrated pipeline over gold; pairs of (token, label), with the raw and the calibrated score."""
    pipe: Any = nlp.get_pipe("calib")
    return corpus_of(run_over(nlp, nlp.pipe_names, path), pipe.attr, pipe.labels).pairs()


def fit_maps(pairs: Pairs, by_frequency: Groups, labels: tuple[str, ...]) -> list[Map]:
    """Raw, what the command chose, and SCW and TFG with each of the three methods, all fitted on the same pairs."""
    counts = dict(zip(labels, by_frequency.counts.tolist(), strict=True))
    groupings = {"SCW": shared_group(labels, counts), "TFG": by_frequency}
    maps = [Map("raw"), Map(DEFAULT)]
    for grouping, groups in groupings.items():
        for method in ("isotonic", "histogram", "scaling-binning"):
            prototype = registry.calib_recalibrators.get(recalibrators()[method].registered)()
            maps.append(Map(f"{grouping} {method}", GroupedRecalibrator(prototype, groups).fit(pairs)))
    return maps


def figures(one: Map, judged: JudgedPairs, by_frequency: Groups) -> tuple[str, ...]:
    """A line of the big table."""
    table = calibration_table(judged.pairs, one.calibrate(judged), by_frequency)
    whole, *groups, mean = table["errors"]
    cells = [value for error in (whole, mean, groups[-1]) for value in (error["calibrated"], error["floor"])]
    return (one.name, *("-" if cell is None else f"{cell:.4f}" for cell in (*cells, table["scores"]["nll"]["calibrated"])))


def show_comparison(judged: dict[str, JudgedPairs], maps: list[Map], by_frequency: Groups) -> None:
    """Print the table: every map on every test set."""
    last = by_frequency.names[-1]
    rows: list[tuple[str, ...]] = []
    with tqdm(total=len(TESTS) * len(maps), desc="Judging", unit="map") as progress:
        for name, (title, _) in TESTS.items():
            pairs = judged[name].pairs
            about = f"{pairs.n_units:,} words, accuracy {100 * (accuracy(pairs) or 0):.1f} %"
            rows += [("",), (f"{title} ({about})",)]
            for one in maps:
                rows.append(figures(one, judged[name], by_frequency))
                progress.update()
    header = ("SMCE", "floor", "GMCE", "floor", f"group {last}", "floor", "log loss")
    msg.divider("Calibration error: lower is better")
    print(as_table(rows, header) + "\n")
    msg.text(
        f"SMCE: over all labels. GMCE: mean over {len(by_frequency)} groups of labels by frequency; group {last} holds the rarest. "
        "Floor: what exactly true scores would show by chance; nothing can be much below it. "
        "Rank the methods by log loss: SMCE and GMCE favour maps with few values."
    )


def as_table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Lay out rows of figures, and rows of one cell as headings that run over the columns."""
    width = max(len(row[0]) for row in rows if len(row) > 1) + 2
    lines = [" " * width + "".join(f"{name:>8}" for name in header[:-1]) + f"{header[-1]:>10}"]
    for first, *cells in rows:
        figures_ = "".join(f"{cell:>8}" for cell in cells[:-1]) + f"{cells[-1]:>10}" if cells else ""
        lines.append(f"  {first:<{width - 2}}{figures_}" if cells else first)
    return "\n".join(lines)


def draw(judged: dict[str, JudgedPairs], path: Path) -> None:
    """Write the reliability diagrams of the three test sets; their errors stand in the file as well, for a test."""
    titles = {title: judged[name] for name, (_, title) in TESTS.items()}
    panels = [
        {"title": title, "hits": one.pairs.hits, "raw": one.pairs.scores, "calibrated": one.calibrated}
        for title, one in titles.items()
    ]
    figure = compare_reliability(panels, title="Portuguese parts of speech and features: calib fit, on news")
    errors = " ".join(f"{smce(judged[name].pairs, judged[name].calibrated):.4f}" for name in TESTS)
    figure.savefig(path, dpi=150, metadata={"Description": f"{DEFAULT} {errors}"})


def show_example(nlp: spacy.Language) -> None:
    """Print the scores of one sentence."""
    rows = [(token.text, token.pos_, f"{token._.calib_raw:.3f}", f"{token._.calib_score:.3f}") for token in nlp(EXAMPLE)]
    header = ("Word", "Part of speech", "_.calib_raw", "_.calib_score")
    msg.table(rows, header=header, divider=True, aligns=("l", "l", "r", "r"))


def main(
    output: Path = typer.Argument(Path("demo"), help="Folder to write to"),
    max_steps: int = typer.Option(None, help="Train for fewer steps, to try things out"),
) -> None:
    """Train, calibrate and judge a Portuguese morphologizer on the treebanks of dante-corpora; a few minutes on two cores."""
    began = time.perf_counter()

    def step(title: str) -> None:
        msg.divider(f"{title} ({time.perf_counter() - began:.0f} s)")

    corpus = output / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    step("1. Data")
    prepare(corpus)
    step("2. Training")
    trained = train_pipeline(corpus, output / "training", max_steps)
    step("3. Calibration: python -m spacy calib fit --component morphologizer")
    calibrated = output / "pipeline"
    given = {"component": "morphologizer", "train_data": corpus / "train.spacy", "force": True, "silent": False}
    fit(trained, corpus / "fit.spacy", calibrated, **given)
    step("4. Reading the scores on the fit part and the three test sets")
    nlp = spacy.load(calibrated)
    pipe: Any = nlp.get_pipe("calib")
    judged = {name: read_pairs(nlp, corpus / f"{name}.spacy") for name in ("fit", *TESTS)}
    step("5. Raw scores, those of the pipeline, and six maps fitted on the fit part")
    groups = pipe.tokens.maps.groups
    show_comparison(judged, fit_maps(judged["fit"].pairs, groups, pipe.labels), groups)
    draw(judged, output / "reliability.png")
    step("6. One sentence")
    show_example(nlp)
    msg.divider(f"Done in {time.perf_counter() - began:.0f} s")
    msg.good(f"Reliability diagrams: {output / 'reliability.png'}")
    msg.good(f"Calibrated pipeline: {calibrated}")
    msg.text("Next, in Python (.venv/bin/python):")
    print(
        f'\n    import spacy\n    nlp = spacy.load("{calibrated}")\n    doc = nlp("{EXAMPLE}")\n'
        "    for token in doc:\n        print(token, token.pos_, token._.calib_score)  # P(part of speech and features are right)\n"
    )


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"\[W095\]")
    typer.run(main)
