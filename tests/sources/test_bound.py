"""A source bound to its component: looked up once, and again only where the component has learned labels."""

import spacy
from spacy.tokens import Doc

from spacy_calib.sources.find import BoundSource
from spacy_calib.sources.left_scores import DocTensorSource
from spacy_calib.sources.mapped import MappedSource


class CountingSource(DocTensorSource):
    """Counts how often its labels are looked up."""

    n_lookups = 0

    def labels(self, pipe: object) -> tuple[str, ...]:
        self.n_lookups += 1
        return super().labels(pipe)


def test_labels_are_looked_up_once():
    source = CountingSource(["A", "B"])
    bound = BoundSource.from_component(source, None)
    doc = Doc(spacy.blank("xx").vocab, words=["x", "y"], tags=["A", "C"])
    assert (bound.labels, bound.span_labels, bound.annotation.name, bound.name) == (("A", "B"), (), "tag", "the source")
    assert bound.count_gold([doc]) == {"A": 1, "C": 1}
    assert bound.missing([doc]) == source.missing(None, [doc]) != [""]
    assert source.n_lookups == 1


def test_labels_that_the_component_has_learned_are_taken_over():
    source = CountingSource(["A", "B"])
    bound = BoundSource.from_component(source, None)
    assert bound.with_current_labels() is bound
    source._labels = ("A", "B", "C")
    assert bound.with_current_labels().labels == ("A", "B", "C")
    assert bound.labels == ("A", "B")


def test_own_labels_are_those_before_a_map():
    bound = BoundSource.from_component(MappedSource(DocTensorSource(["A", "B"]), {"A": "N", "B": "N"}), None)
    assert (bound.labels, bound.own_labels) == (("N",), ("A", "B"))
