"""The one rule of the verdict, as a table; and the sentences that no good figure takes back."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from spacy_calib.plugins.report.verdict import VerdictFigures, _error_clause, _group_sentences, noun_of, status_of
from tests.plugins.report.made_up import FACTS, corpus_of, judged_of, random_corpus, view_of

CHANCE = VerdictFigures(0.010, 0.012, 0.0, 0.015, percent_right=90, leaning="sure")
TABLE = [
    # error, floor, interval, what else is known, status
    (0.010, 0.012, (0.0, 0.015), {}, "calibrated"),
    (0.010, 0.012, (None, None), {}, "calibrated"),
    (0.010, 0.012, (0.0, 0.015), {"is_uneven": True}, "uneven"),
    # Both say that it is more than chance: small, or not.
    (0.018, 0.012, (0.005, 0.020), {}, "close"),
    (0.018, 0.012, (None, None), {}, "close"),
    (0.018, 0.012, (0.005, 0.020), {"is_uneven": True}, "close-uneven"),
    (0.018, 0.012, (0.005, 0.020), {"percent_right": 80}, "sure"),
    (0.018, 0.012, (0.005, 0.020), {"percent_right": None}, "close"),
    (0.040, 0.012, (0.020, 0.050), {}, "sure"),
    (0.040, 0.012, (None, None), {"leaning": "modest"}, "modest"),
    (0.200, 0.080, (0.100, 0.250), {}, "sure"),
    # They disagree: neither too sure with an interval that holds 0, nor calibrated with one that does not.
    (0.0215, 0.0150, (0.0000, 0.0282), {}, "close"),
    (0.0215, 0.0150, (0.0000, 0.0282), {"percent_right": 80}, "unclear"),
    (0.010, 0.012, (0.002, 0.013), {}, "close"),
    # Chance reaches too far to tell.
    (0.060, 0.080, (0.0, 0.070), {}, "unclear"),
    (0.060, 0.080, (None, None), {}, "unclear"),
    (0.010, 0.012, (0.0, 0.060), {}, "unclear"),
    (0.060, 0.030, (0.0, 0.090), {}, "unclear"),
    (0.010, 0.012, (0.0, 0.015), {"has_few": True}, "unclear"),
    # Nothing counts on the fit data.
    (0.000, 0.012, (0.0, 0.0), {"was_fitted": True}, "seen"),
    (0.300, 0.012, (0.2, 0.4), {"was_fitted": True, "has_few": True}, "seen"),
]


def test_nouns_name_the_component():
    assert [noun_of(name) for name in ("cats", "spans:sc", "_.own")] == ["text categorizer", "span categorizer", "model"]


@pytest.mark.parametrize(("error", "floor95", "interval", "more", "status"), TABLE)
def test_status_by_error_noise_floor_and_interval(error, floor95, interval, more, status):
    low, high = interval
    assert status_of(replace(CHANCE, error=error, floor95=floor95, low=low, high=high, **more)) == status


@pytest.mark.parametrize("status", ["sure", "modest", "off"])
@pytest.mark.parametrize("high", [0.01, 0.04, 0.3])
def test_no_fault_is_found_where_the_interval_holds_0(status, high):
    assert status_of(VerdictFigures(0.3, 0.01, 0.0, high, leaning=status)) in ("close", "unclear")


EACH = "groups with pairs, each evaluated by itself,"
# Error, noise floor and lower bound of a group; OPEN exceeds one of both, WIDE has the largest error but also the largest floor.
FAR, OFF, WIDE, OPEN, GOOD, NONE = (
    (0.4, 0.02, 0.2), (0.3, 0.02, 0.2), (0.5, 0.3, 0.1), (0.3, 0.02, 0.0), (0.01, 0.02, 0.0), (None,) * 3,
)  # fmt: skip
GROUP_SENTENCES = [
    ([], ""),
    ([OFF, NONE], ""),
    ([GOOD, OPEN, NONE], "None of the 2 groups with pairs is surely off by itself."),
    ([OFF, GOOD, NONE], f"1 of the 2 {EACH} is off by more than chance; farthest off is group 0 with 0.300 (chance: 0.020)."),
    ([OFF, FAR], f"Both {EACH} are off by more than chance; farthest off is group 1"),
    ([OFF, OPEN, WIDE], f"2 of the 3 {EACH} are off by more than chance; farthest off is group 0"),
    ([OFF, OFF, FAR], f"All 3 {EACH} are off by more than chance; farthest off is group 2"),
]


@pytest.mark.parametrize(("groups", "beginning"), GROUP_SENTENCES)
def test_the_sentence_on_groups_counts_those_that_are_off(groups, beginning):
    rows = [
        {"group": str(i), "calibrated": error, "floor95": floor, "true_low": low}
        for i, (error, floor, low) in enumerate(groups)
    ]
    sentences = _group_sentences(rows)
    assert len(sentences) == bool(beginning)
    assert "".join(sentences).startswith(beginning)


def test_a_verdict_warns_of_a_label_that_is_never_right():
    """One label of five, predicted 60 times with a score of .9 and never right, among very many that are true."""
    corpus = random_corpus(4, 6000)
    assert view_of(corpus, judged_of(corpus), FACTS)["verdict"]["warnings"] == []
    wrong = [(f"x{i}", 0, 1, [(0, 0.9, 0.9)]) for i in range(60)]
    right = [(f"y{i}", 1, 1 if i % 10 else 2, [(1, 0.9, 0.9)]) for i in range(12000)]
    corpus = corpus_of([*wrong, *right], ("PERSON", "B", "C"), docs=[i // 20 for i in range(12060)])
    view = view_of(corpus, judged_of(corpus, 1), FACTS)
    assert [one["label"] for one in view["never_right"]] == ["PERSON"]
    assert view["verdict"]["warnings"][0].startswith("Predicted and never right: PERSON (60 times)")
    assert view["verdict"]["status"] in ("uneven", "close-uneven")


def test_an_error_beyond_the_floor_that_documents_leave_open_says_so():
    """The floor takes pairs for independent; the interval knows that documents differ. .074 is more than .061, and may be 0."""
    view = SimpleNamespace(pairs=range(400), documents=np.repeat(np.arange(20), 20))
    evidence = VerdictFigures(0.074, 0.061, 0.0, 0.12)
    assert status_of(evidence) == "unclear"
    assert _error_clause("unclear", view, evidence) == (
        ": 400 scores from 20 documents are off by 0.074 on average, where chance alone would show up to 0.061; that is more, but documents "
        "differ too much to tell (95 % interval 0.000 to 0.120)"
    )
