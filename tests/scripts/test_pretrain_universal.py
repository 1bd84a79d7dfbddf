"""scripts/pretrain/universal.py: the Spanish gold that universal scores are judged by."""

from __future__ import annotations

from pretrain.universal import spanish
from spacy.tokens import Doc
from spacy.vocab import Vocab


def test_sentences_and_entities_are_those_of_the_shared_task(shared_data):
    """The shared task counts 3,558 entities, by their B- tags; one begins with I-."""
    sentences = [sentence for (sentence,) in spanish("test")]
    vocab = Vocab()
    docs = [Doc(vocab, words=sentence.words, ents=sentence.gold["ents"]) for sentence in sentences]
    assert (len(docs), sum(map(len, docs)), sum(len(doc.ents) for doc in docs)) == (1_517, 51_533, 3_559)
