"""Sub-tags of CCG categories, lextags, UPOS with features, BILUO and Brown tags, own ways to split, and the groups that they make."""

from __future__ import annotations

import gzip
import pickle
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.grouping.subtags import ccg_result, feature_value, find_split, make_subtag_grouping, subtag_groups
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.errors import CalibError


def tags_by_group(groups, labels):
    return {name: {labels[tag] for tag in groups.tags_in(g)} for g, name in enumerate(groups.names)}


def second_letter(tag: str) -> str:
    return tag[1:2]


@pytest.mark.parametrize(
    ("category", "atom", "arity"),
    [
        ("N", "N", 0),
        ("N/N", "N", 1),
        ("NP[nb]/N", "NP[nb]", 1),
        ("S[dcl]\\NP", "S[dcl]", 1),
        ("(S\\NP)/NP", "S", 2),
        ("((S\\NP)\\(S\\NP))/NP", "S", 3),
        ("(((S\\NP)\\(S\\NP))\\((S\\NP)\\(S\\NP)))/NP", "S", 4),
        ("(S[dcl]\\NP)/(S[to]\\NP)", "S[dcl]", 2),
        ("S/(S[dcl]\\NP)", "S", 1),
        ("NP/((S[to]\\NP)/NP)", "NP", 1),
        ("((N))", "N", 0),
        ("S\\NP/NP", "S", 2),
        ("conj", "conj", 0),
        (",", ",", 0),
        # No categories: each is what it is.
        ("<UNKNOWN>", "<UNKNOWN>", 0),
        ("/", "/", 0),
        ("(S\\NP", "(S\\NP", 0),
        ("()", "()", 0),
        ("", "", 0),
    ],
)
def test_result_and_arity_of_ccg_categories(category, atom, arity):
    assert ccg_result(category) == (atom, arity)


ccg_atoms = st.sampled_from(["N", "NP", "S[dcl]", "PP", "conj"])
ccg_categories = st.recursive(
    ccg_atoms.map(lambda atom: (atom, atom, 0)),
    lambda inner: st.tuples(inner, st.sampled_from("/\\"), inner).map(
        lambda three: (f"{_bracketed(three[0])}{three[1]}{_bracketed(three[2])}", three[0][1], three[0][2] + 1)
    ),
    max_leaves=12,
)


def _bracketed(made) -> str:
    return f"({made[0]})" if made[2] else made[0]


@given(ccg_categories)
def test_a_category_gives_what_it_was_built_from(made):
    category, atom, arity = made
    assert ccg_result(category) == (atom, arity)
    assert ccg_result(f"({category})") == (atom, arity)


@pytest.mark.parametrize(
    ("scheme", "part", "expected"),
    [
        ("ccg", None, {"(S[dcl]\\NP)/NP": "S", "NP[nb]/N": "NP", "N": "N", ".": ".", "[x]": "[x]"}),
        ("ccg", "result", {"S[dcl]\\NP": "S"}),
        ("ccg", "featured_result", {"S[dcl]\\NP": "S[dcl]", "(S\\NP)/NP": "S"}),
        ("ccg", "arity", {"N": "0", "(S\\NP)/NP": "2"}),
        (
            "lextag",
            None,
            {
                "O-PUNCT": "PUNCT",
                "B-V.VPC.full-v.motion": "V.VPC.full",
                "I~-P-p.Theme": "P",
                "o-PRON.POSS-p.Whole|p.Gestalt": "PRON.POSS",
                "O-P-p.Co-Agent": "P",
                "I_": "I_",
                "i_": "i_",
                "<PAD>": "<PAD>",
            },
        ),
        ("lextag", "class", {"B-V.VPC.full-v.motion": "V", "O-PRON": "PRON", "O-INF.P-p.Purpose": "INF", "I_": "I_"}),
        (
            "lextag",
            "supersense",
            {"B-V.VPC.full-v.motion": "v.motion", "O-P-p.Co-Agent": "p.Co-Agent", "O-PUNCT": "PUNCT", "I_": "I_"},
        ),
        ("lextag", "position", {"B-V.VID-v.motion": "B", "I_": "I_", "i~-DET": "i~", "O-PUNCT": "O", "Other": "Other"}),
        (
            "feats",
            None,
            {"Number=Sing|POS=NOUN": "NOUN", "POS=ADV": "ADV", "NOUN|Number=Sing": "NOUN", "Case=Nom": "_", "_": "_"},
        ),
        ("feats", "POS", {"POS=X|Typo=Yes": "X"}),
        ("feats", "Number", {"Number=Sing|POS=NOUN": "Sing", "POS=ADV": "_", "NOUN|Number=Plur": "Plur", "Number": "_"}),
        ("biluo", None, {"B-PER": "PER", "U-date-time": "date-time", "E-LOC": "LOC", "O": "O", "X-PER": "X-PER", "B-": "B-"}),
        ("biluo", "position", {"B-PER": "B", "L-PER": "L", "O": "O", "OTHER": "OTHER"}),
        (
            "brown",
            None,
            {
                "NN": "NN",
                "NN-TL-HL": "NN",
                "FW-NN$-TL": "NN",
                "PPSS+MD": "PPSS",
                "MD*": "MD",
                ".-HL": ".",
                "---HL": "--",
                "--": "--",
                "*-NC": "*",
                "FW-*-TL": "*",
                "``": "``",
            },
        ),
    ],
)
def test_parts_of_tags(scheme, part, expected):
    split = find_split(scheme, part)
    assert {tag: split(tag) for tag in expected} == expected


def test_a_nameless_field_is_the_part_of_speech_and_nothing_else():
    assert feature_value("NOUN|Number=Sing") == "NOUN"
    assert feature_value("NOUN|Number=Sing", "NOUN") == "_"
    assert feature_value("") == "_"


def test_tags_of_a_subtag_share_a_group_by_their_frequency_together():
    labels = ["N", "(S\\NP)/NP", "S\\NP", "N/N", "PP/NP"]
    # N 30 + 15, S 20 + 20, PP 15 of 100: by single tags N alone would be 30.
    counts = {"N": 30, "N/N": 15, "(S\\NP)/NP": 20, "S\\NP": 20, "PP/NP": 15}
    groups = make_subtag_grouping("ccg", n_groups=3)(labels, counts)
    assert tags_by_group(groups, labels) == {"1": {"N", "N/N"}, "2": {"(S\\NP)/NP", "S\\NP"}, "3": {"PP/NP"}}
    assert groups.counts.tolist() == [30, 20, 20, 15, 15]
    two = make_subtag_grouping("ccg", n_groups=2)(labels, counts)
    assert tags_by_group(two, labels) == {"1": {"N", "N/N", "(S\\NP)/NP", "S\\NP"}, "2": {"PP/NP"}}


def test_without_a_number_each_subtag_is_a_group_with_its_name():
    labels = ["B-LOC", "I-PER", "O", "B-PER", "I-LOC", "B-ART"]
    counts = {"O": 90, "B-PER": 6, "I-PER": 1, "B-LOC": 3, "I-LOC": 4}
    groups = make_subtag_grouping("biluo", n_groups=None)(labels, counts)
    # The most frequent first; PER and LOC are tied at 7 and stand by name; ART was never seen.
    assert groups.names == ("O", "LOC", "PER", "ART")
    assert groups.of_tag.tolist() == [1, 2, 0, 2, 1, 3]


def test_a_pattern_splits_tags():
    labels = ["VBD", "VBZ", "NN", "NNS", "."]
    counts = {"VBD": 9, "VBZ": 8, "NN": 7, "NNS": 6, ".": 5}

    def by(pattern):
        return tags_by_group(make_subtag_grouping(pattern=pattern, n_groups=None)(labels, counts), labels)

    # All of the match; a tag without one is its own.
    assert by("^[A-Z]{2}") == {"VB": {"VBD", "VBZ"}, "NN": {"NN", "NNS"}, ".": {"."}}
    # The first group that took part.
    assert by("^(?:V(B)|(N)N)") == {"B": {"VBD", "VBZ"}, "N": {"NN", "NNS"}, ".": {"."}}
    # What finds nothing but the empty string finds nothing.
    assert by("X*") == {label: {label} for label in labels}
    assert by("^V?()") == {label: {label} for label in labels}


def test_a_function_of_the_users_splits_tags():
    labels = ["ax", "bx", "cy", "d"]
    groups = make_subtag_grouping(split=second_letter, n_groups=None)(labels, {"ax": 3, "bx": 1, "cy": 2})
    assert tags_by_group(groups, labels) == {"x": {"ax", "bx"}, "y": {"cy"}, "": {"d"}}


def test_a_split_must_give_strings():
    with pytest.raises(CalibError, match=r"\[C001\] the sub-tag of 'ab' must be a string, but 2 was given"):
        make_subtag_grouping(split=len)(["ab"], {})


def test_exactly_one_way_to_split_is_wanted():
    with pytest.raises(CalibError, match="one of scheme, pattern and split, but none was given"):
        make_subtag_grouping()
    with pytest.raises(CalibError, match="one of scheme, pattern and split, but scheme and pattern was given"):
        make_subtag_grouping("ccg", pattern="x")
    with pytest.raises(CalibError, match="but pattern and split was given"):
        make_subtag_grouping(pattern="x", split=second_letter)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scheme": "penn"}, "scheme must be one of ccg, lextag, feats, biluo, brown, but 'penn'"),
        (
            {"scheme": "ccg", "part": "slash"},
            "part must be one of result, featured_result, arity for scheme 'ccg', but 'slash'",
        ),
        ({"scheme": "feats", "part": ""}, "part must be one of POS"),
        ({"pattern": "x", "part": "type"}, "part must be left out without a scheme, but 'type'"),
        ({"pattern": "(x"}, r"pattern must be a regular expression .* but '\(x'"),
        ({"split": "str.lower"}, r"split must be a function \(tag\) -> sub-tag, but 'str.lower'"),
        ({"scheme": "ccg", "n_groups": 0}, "n_groups must be a whole number of at least 1, but 0"),
        ({"scheme": "ccg", "n_groups": 2.5}, "n_groups must be a whole number"),
        ({"scheme": "ccg", "n_groups": True}, "n_groups must be a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(settings, sentence):
    with pytest.raises(CalibError, match=rf"\[C001\] {sentence}"):
        make_subtag_grouping(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "ccg"},
        {"scheme": "ccg", "part": "arity", "n_groups": None},
        {"scheme": "lextag"},
        {"scheme": "feats", "part": "Number"},
        {"pattern": "^."},
        {"split": second_letter},
    ],
)
def test_it_pickles(settings):
    labels = ["(S\\NP)/NP", "O-PUNCT", "Number=Sing|POS=NOUN", "N"]
    counts = {"N": 3, "O-PUNCT": 2}
    grouping = make_subtag_grouping(**settings)
    again = pickle.loads(pickle.dumps(grouping))
    assert again(labels, counts).state()["names"] == grouping(labels, counts).state()["names"]
    assert again(labels, counts).of_tag.tolist() == grouping(labels, counts).of_tag.tolist()


tag_counts = st.dictionaries(st.text("AB/\\()-", min_size=1, max_size=6), st.integers(0, 12), min_size=1, max_size=12)
numbers = st.one_of(st.none(), st.integers(1, 6))


@given(tag_counts, st.integers(1, 6))
def test_whole_tags_as_subtags_are_tag_frequency_groups(counts, n_groups):
    # The most frequent tag is one that the model does not know.
    labels, counts = list(counts), {**counts, "unknown": 50}
    groups, plain = subtag_groups(labels, counts, str, n_groups), tag_frequency_groups(labels, counts, n_groups)
    assert groups.names == plain.names
    assert groups.of_tag.tolist() == plain.of_tag.tolist()
    assert groups.counts.tolist() == plain.counts.tolist()


@given(tag_counts, numbers, st.sampled_from(["ccg", "biluo", "lextag"]), st.randoms(use_true_random=False))
def test_tags_permuted_groups_permuted_and_no_subtag_is_torn(counts, n_groups, scheme, random):
    labels = list(counts)
    grouping, split = make_subtag_grouping(scheme, n_groups=n_groups), find_split(scheme)
    groups = grouping(labels, counts)
    group_of = {}
    for label, group in zip(labels, groups.of_tag.tolist(), strict=True):
        assert group_of.setdefault(split(label), group) == group
    assert set(group_of.values()) == set(range(len(groups))), "no group is empty"
    shuffled = labels.copy()
    random.shuffle(shuffled)
    again = grouping(shuffled, counts)
    assert again.names == groups.names
    assert tags_by_group(again, shuffled) == tags_by_group(groups, labels)


def test_the_papers_ccg_categories(counts_of):
    counts = counts_of("ccg")
    labels = sorted(counts)
    groups = make_subtag_grouping("ccg", n_groups=None)(labels, counts)
    sizes = dict(zip(groups.names, groups.sizes, strict=True))
    # Slashes take their arguments on the right, so that the result is what stands first behind all brackets.
    first = Counter(re.match(r"\(*([^()\[\]/\\]+)", label).group(1) for label in labels)
    assert set(sizes) == {"N", "NP", "S", "PP", "conj", ",", ".", ":", ";", "LRB", "RRB"}
    assert sizes == dict(first)
    assert sum(sizes.values()) == len(labels) == 425
    assert groups.names[0] == "N", "the most frequent result"
    arity = make_subtag_grouping("ccg", "arity", n_groups=None)(labels, counts)
    assert sorted(arity.names) == ["0", "1", "2", "3", "4", "5"]
    without_slash = {label for label in labels if "/" not in label and "\\" not in label}
    assert tags_by_group(arity, labels)["0"] == without_slash
    assert sum(make_subtag_grouping("ccg")(labels, counts).sizes) == 425


def test_the_papers_lextags(counts_of):
    counts = counts_of("lsr")
    labels = sorted(counts)
    by_category = tags_by_group(make_subtag_grouping("lextag", n_groups=None)(labels, counts), labels)
    assert by_category["PUNCT"] == {label for label in labels if label.endswith("-PUNCT")}
    assert by_category["V.LVC.cause"] == {label for label in labels if "-V.LVC.cause-" in label}
    assert by_category["I_"] == {"I_"}
    assert all(label.split("-")[1] == "P" for label in by_category["P"])
    assert len(by_category["P"]) == sum(label.split("-")[1:2] == ["P"] for label in labels)
    assert len(by_category) == 30
    five = make_subtag_grouping("lextag")(labels, counts)
    assert len(five) == 5
    verbs = {int(five.of_tag[labels.index(label)]) for label in by_category["V.VPC.full"]}
    assert len(verbs) == 1


def test_every_lextag_of_streusle_has_a_position_and_a_category(shared_data):
    counts = Counter()
    for split in ("train", "dev", "test"):
        with gzip.open(shared_data / "streusle_lsr" / f"{split}.tsv.gz", "rt", encoding="utf8") as lines:
            words = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("# sent_id = ")]
        counts.update(word[3] for word in words)
    labels = sorted(counts)
    assert len(labels) == 600
    positions = make_subtag_grouping("lextag", "position", n_groups=None)(labels, counts)
    assert set(positions.names) == {"O", "B", "I_", "I~", "o", "b", "i_", "i~"}
    categories = make_subtag_grouping("lextag", n_groups=None)(labels, counts)
    assert {label for label in categories.names if "-" in label or "_" in label} == {"I_", "i_"}
    assert sum(categories.counts) == sum(counts.values())
