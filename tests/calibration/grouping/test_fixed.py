from spacy_calib.calibration.grouping.fixed import one_group_per_tag, shared_group


def test_one_group_holds_every_tag():
    groups = shared_group(["N", "V", "X"], {"N": 9, "V": 1, "unknown": 5})
    assert len(groups) == 1
    assert groups.of_tag.tolist() == [0, 0, 0]
    assert groups.sizes == [3]
    assert groups.counts.tolist() == [9, 1, 0]


def test_every_tag_has_a_group_of_its_name():
    groups = one_group_per_tag(["V", "N", "X"], {"N": 9, "V": 1})
    assert groups.names == ("V", "N", "X")
    assert groups.of_tag.tolist() == [0, 1, 2]
    assert groups.sizes == [1, 1, 1]
    assert groups.counts.tolist() == [1, 9, 0]
