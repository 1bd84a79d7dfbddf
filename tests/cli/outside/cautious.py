"""A source: the scores of a tagger as this package reads them, claimed before it does."""

from spacy.pipeline import EditTreeLemmatizer, Morphologizer, SentenceRecognizer, Tagger

from spacy_calib.sources.heads import SoftmaxSource


class CautiousSource(SoftmaxSource):
    """Reads taggers alone."""

    def __init__(self, component: str = "tagger"):
        super().__init__(component)

    def claims(self, pipe):
        return isinstance(pipe, Tagger) and not isinstance(pipe, (Morphologizer, SentenceRecognizer, EditTreeLemmatizer))
