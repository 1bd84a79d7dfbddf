import pytest

from spacy_calib.plugins.review.queues import unit_in_text

NAME = "Kevin Keegan's"


def record(text, focus, *starts):
    return {"text": text, "focus": focus, "marks": [{"start": start, "end": start + len(focus)} for start in starts]}


@pytest.mark.parametrize(("text", "marks", "printed"), [
    (f"{NAME} side lost.", (0,), f"[{NAME}] side lost."),
    (f"A win\nfor {NAME} side", (10,), f"A win for [{NAME}] side"),
    (f"{NAME} or {NAME}", (18,), f"{NAME} or [{NAME}]"),  # the second of two
    (f"No mark: {NAME}", (), f"No mark: [{NAME}]"),
    (f"{NAME} or {NAME}", (), f"{NAME} or {NAME}"),  # which of the two is not known
])  # fmt: skip
def test_the_unit_is_in_brackets_in_its_text(text, marks, printed):
    assert unit_in_text(record(text, NAME, *marks)) == printed


@pytest.mark.parametrize("n_before", [0, 30, 200])
@pytest.mark.parametrize("n_after", [0, 30, 200])
def test_a_long_text_is_cut_on_both_sides_of_the_unit(n_before, n_after):
    text = "b" * n_before + NAME + "a" * n_after
    printed = unit_in_text(record(text, NAME, n_before))
    assert f"[{NAME}]" in printed
    assert len(printed) == min(60, len(text) + 2)
    assert printed.startswith("…") == (n_before == 200 or (n_before == 30 and n_after > 22))
