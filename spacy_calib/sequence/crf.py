"""The component `calib_crf`: a linear-chain conditional random field over token vectors (Lafferty et al. 2001)."""

# No `from __future__ import annotations` here: spaCy reads the types that `initialize` takes, and resolves no strings.
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import set_dropout_rate

from ..pipe.saved import refused_whole
from ..schema import Misfit, number, text
from .factory import CrfSettings
from .inference.chains import Potentials
from .labeller import ChainLabeller
from .layers import add_gradient, fault_of_weights, potentials_of
from .losses import Question, get_loss
from .saved import LABELLER, chain_settings, check_settings, taken
from .targets import get_target


def _smoothing(value: Any, where: str) -> float:
    held: float = number(0.0, 1.0)(value, where)
    if held == 1:
        raise Misfit(where, "at least 0 and less than 1")
    return held


_CFG = chain_settings({"loss": taken(get_loss), "label_smoothing": _smoothing, "neg_prefix": text})


class ConditionalRandomField(ChainLabeller, TrainablePipe):
    """Knows the exact probability of each label, and of each sequence of labels.

    target (str), by_sentence (bool), constraints (list | None), overwrite (bool): As of ChainLabeller.
    loss (str): What training lowers: likelihood (for true probabilities), perceptron, passive_aggressive or hinge.
    label_smoothing (float), neg_prefix (str): As in spaCy's tagger.
    RAISES C001: no such target or loss, or a share out of range. C324: no such extension.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "calib_crf",
        **settings: Any,
    ):
        given = CrfSettings(**settings)
        self.cfg = check_settings(_CFG, given)
        self.model = given.model
        self.take(nlp, name)

    def weights(self) -> Potentials:
        return potentials_of(self.model)

    def label_scores(self, docs: Sequence[Doc]) -> Sequence[Any]:
        return self.model.predict(list(docs))

    def add_label(self, label: str) -> int:
        """Add a label, before the weights are made. RETURNS (int): 0 if it is there already, else 1."""
        if label in self.labels:
            return 0
        self._allow_extra_label()
        self.cfg["labels"].append(label)
        return 1

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None, labels: Sequence[str] | None = None
    ) -> None:
        """Make weights. labels: Of `init labels`; None takes those of the examples. RAISES C326: fewer than two."""
        validate_get_examples(get_examples, "ConditionalRandomField.initialize")
        self.learn_labels(get_examples(), labels, self.cfg["neg_prefix"])
        sample = list(islice(get_examples(), 10))
        outputs = [self.model.ops.alloc2f(len(eg.x), len(self.labels)) for eg in sample]
        self.model.initialize(X=[eg.x for eg in sample], Y=outputs)

    def update(
        self, examples: Iterable[Example], *, drop: float = 0.0, sgd: Any = None, losses: dict[str, float] | None = None
    ) -> dict[str, float]:
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "ConditionalRandomField.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        lost, (d_scores, d_potentials) = self.get_loss(examples, scores)
        add_gradient(self.model, d_potentials)
        backprop(d_scores)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += lost
        return losses

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, Any]:
        """(loss, its gradients by each Doc's scores and by the potentials). RAISES C323: gold that is forbidden."""
        examples = list(examples)
        masks = [self.gold_mask(eg) for eg in examples]
        bounds = [(i, start, end) for i, eg in enumerate(examples) for start, end in self.bounds(eg.predicted)]
        asked = Question.of(
            [scores[i][start:end] for i, start, end in bounds],
            self.potentials(),
            [masks[i][start:end] for i, start, end in bounds],
            self.cfg["label_smoothing"],
        )
        found = get_loss(self.cfg["loss"])(asked)
        gradients = [self.model.ops.alloc2f(*one.shape) for one in scores]
        for (i, start, end), own in zip(bounds, found.scores, strict=True):
            gradients[i][start:end] = own
        return found.loss, (gradients, found.potentials)

    def gold_mask(self, example: Example) -> Any:
        """Which labels may be right at each token, shape (len(doc), K): the gold one, all, or all but a negated one."""
        mask = np.ones((len(example.predicted), len(self.labels)), dtype=bool)
        gold = get_target(self.cfg["target"]).gold(example)
        negated = [self._negated(label) for label in gold]
        right = self.known_columns(example, [None if other else label for label, other in zip(gold, negated, strict=True)])
        wrong = self.known_columns(example, negated)
        self.check_allowed(example, right, self.bounds(example.predicted))
        mask[right >= 0] = np.arange(len(self.labels)) == right[right >= 0][:, None]
        mask[wrong >= 0, wrong[wrong >= 0]] = False
        return mask

    def _negated(self, label: str | None) -> str | None:
        """The label that gold says it is not; None for any other gold."""
        prefix = self.cfg["neg_prefix"]
        is_negated = label and prefix and label not in self.labels and label.startswith(prefix)
        return label[len(prefix) :] if label and is_negated else None

    # Saving

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "ConditionalRandomField":
        """RAISES C335: the bytes are not those of such a component."""
        return self._load(TrainablePipe.from_bytes, bytes_data, "the bytes given", set(exclude))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ConditionalRandomField":
        """RAISES C335: the folder is not that of such a component."""
        return self._load(TrainablePipe.from_disk, path, str(path), set(exclude))

    def _load(self, read: Callable[..., Any], source: Any, path: str, exclude: set[str]) -> "ConditionalRandomField":
        """Read into a twin first, so that what cannot be read leaves this one as it is. read (Callable): Of spaCy."""
        with refused_whole(self.name, path, LABELLER):
            twin = type(self).__new__(type(self))
            twin.vocab, twin.model, twin.cfg = Vocab(), self.model.copy(), deepcopy(self.cfg)
            read(twin, source, exclude=exclude)
            held = _CFG(twin.cfg, "cfg")
            wrong = "" if {"cfg", "model"} & exclude else fault_of_weights(twin.model, len(held["labels"]), self.vocab)
            if wrong:
                raise Misfit("model", f"what these {len(held['labels'])} labels want: {wrong}")
            read(self, source, exclude={*exclude, "cfg"})
            self.cfg.update(held)
        return self
