"""A conditional random field over the vectors of an encoder, trained by a loop in thinc (Kranzlein et al. 2021, section 4.2)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch, registry
from thinc.api import Linear, Model, chain, reduce_mean, set_dropout_rate, with_array, zero_init

from spacy_calib.sources.source import to_numpy
from spacy_calib.types import Floats, Ints

from .best import viterbi
from .chains import Chains, Potentials
from .losses import likelihood
from .sums import sum_chains

_PARAMS = ("transitions", "starts", "ends")


def encoder_of(config: Any) -> Model[list[Doc], list[Any]]:
    """Build the encoder of a training config, its first component: a tok2vec, or a transformer whose pieces are averaged."""
    name = config["nlp"]["pipeline"][0]
    model = registry.resolve({"model": config["components"][name]["model"]})["model"]
    if name != "transformer":
        return model
    from spacy_transformers.layers import split_trf_batch, trfs2arrays

    return chain(model, split_trf_batch(), trfs2arrays(reduce_mean(), 1.0))


@dataclass(eq=False)
class NeuralCrf:
    """P(labels) of a text is proportional to exp(sum of linear scores of its vectors, and of transitions).

    labels (Sequence[str]): Of the columns. rate (float): How many times as fast as other weights transitions are learned: Adam
    changes a weight by about one learning rate a step, so with a transformer's small rates they would hardly leave 0.
    """

    encoder: Model[list[Doc], list[Any]]
    labels: Sequence[str]
    rate: float = 1.0

    def __post_init__(self) -> None:
        n = len(self.labels)
        self.weights: Model[Any, Any] = Model("potentials", lambda model, scores, is_train: (scores, lambda gradient: gradient))
        for name, shape in zip(_PARAMS, ((n, n), (n,), (n,)), strict=True):
            self.weights.set_param(name, self.weights.ops.alloc_f(shape))
        self.model: Model[Any, Any] = chain(self.encoder, with_array(Linear(n, init_W=zero_init)), self.weights)

    def fit(self, train: Sequence[Example], dev: Sequence[Example], settings: Any) -> Iterator[tuple[int, float]]:
        """Train, and keep the weights of the step that is best on dev; yield (step, accuracy on dev).

        settings: The block `training` of spaCy's config, resolved: max_steps, eval_frequency, dropout, batcher, optimizer.
        """
        self.model.initialize(X=[example.predicted for example in train[:10]])
        batches, best, weights = self._batches(list(train), settings["batcher"]), -1.0, b""
        for step in range(1, settings["max_steps"] + 1):
            self._update(next(batches), settings["dropout"])
            self.model.finish_update(settings["optimizer"])
            settings["optimizer"].step_schedules()
            if step % settings["eval_frequency"] == 0 or step == settings["max_steps"]:
                accuracy = self.accuracy(dev)
                yield step, accuracy
                if accuracy > best:
                    best, weights = accuracy, self.model.to_bytes()
        self.model.from_bytes(weights)

    @staticmethod
    def _batches(examples: list[Example], batcher: Any) -> Iterator[list[Example]]:
        while True:
            random.shuffle(examples)
            yield from batcher(examples)

    def _update(self, examples: Sequence[Example], dropout: float) -> None:
        set_dropout_rate(self.model, dropout)
        scores, backprop = self.model.begin_update([example.predicted for example in examples])
        column = {label: i for i, label in enumerate(self.labels)}
        gold = [np.array([column[token.tag_] for token in example.reference]) for example in examples]
        found = likelihood(Chains.from_scores([to_numpy(one) for one in scores], self.potentials()), gold)
        ops = self.model.ops
        for name in _PARAMS:
            gradient: Any = ops.asarray(getattr(found.d_potentials, name), dtype="float32")
            self.weights.inc_grad(name, self.rate * gradient)
        d_scores: Any = found.d_scores
        backprop([ops.asarray(one, dtype="float32") for one in d_scores])

    def potentials(self) -> Potentials:
        """Return the weights that do not depend on words."""
        return Potentials(*(self.rate * to_numpy(self.weights.get_param(name)).astype(np.float64) for name in _PARAMS))

    def chains(self, docs: Sequence[Doc]) -> Chains:
        """Return a chain for each Doc."""
        return Chains.from_scores([to_numpy(scores) for scores in self.model.predict(list(docs))], self.potentials())

    def read(self, docs: Sequence[Doc]) -> tuple[Floats, Ints]:
        """Return (P(label | text), the column of each token's label in the best labelling), shapes (n, K) and (n,)."""
        chances, best = [np.zeros((0, len(self.labels)))], [np.zeros(0, dtype=np.intp)]
        for batch in minibatch(docs, 32):
            chains = self.chains(batch)
            chances += sum_chains(chains).by_sequence()
            best += viterbi(chains)
        return np.clip(np.concatenate(chances), 0.0, 1.0), np.concatenate(best)

    def accuracy(self, examples: Sequence[Example]) -> float:
        """Return the share of tokens whose label in the best labelling is right."""
        chains = (self.chains([example.predicted for example in batch]) for batch in minibatch(examples, 32))
        best = np.concatenate([own for part in chains for own in viterbi(part)])
        gold = [token.tag_ for example in examples for token in example.reference]
        return float(np.mean([self.labels[i] == tag for i, tag in zip(best.tolist(), gold, strict=True)]))
