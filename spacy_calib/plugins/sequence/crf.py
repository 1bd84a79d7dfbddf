"""The component `calib_crf`: a linear-chain conditional random field over token vectors (Lafferty et al. 2001)."""

# No `from __future__ import annotations` here: spaCy and confection read the types of functions, and resolve no strings.

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain, set_dropout_rate, with_array, zero_init
from thinc.types import Floats2d

from ...schema import Form, InvalidState, blob, lengths, number, record, text
from ...sources.base import to_numpy
from .factory import CrfSettings
from .inference.chains import Potentials
from .labeller import SavedLabeller, accepted_by, chain_settings, check_settings
from .losses import LossInput, get_loss
from .messages import calib_error
from .targets import get_target

_PARAMS = ("transitions", "starts", "ends")


def make_chain_model(
    tok2vec: Model[list[Doc], list[Floats2d]], nO: int | None = None, transition_rate: float = 1.0
) -> Model[list[Doc], list[Floats2d]]:
    """Make a linear layer over token vectors, whose output is the scores of a chain. Registered as spacy-calib.Chain.v1.

    tok2vec (Model): A tok2vec, a transformer, or a listener. nO (int | None): Number of labels; None takes the data's.
    transition_rate (float): How many times as fast as other weights transitions are learned. Adam changes a weight by about one
    learning rate a step, so with a transformer's small rates transitions would hardly leave 0. RAISES C001: the rate is not
    above 0.
    """
    if not 0 < transition_rate < float("inf"):
        raise calib_error("C001", name="transition_rate", wanted="a number above 0", given=transition_rate)
    width = tok2vec.get_dim("nO") if tok2vec.has_dim("nO") else None
    linear = Linear(nO, width, init_W=zero_init)
    weights = _potentials_layer(nO, transition_rate)
    model: Model[Any, Any] = chain(tok2vec, with_array(linear), weights)
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", linear)
    model.set_ref("potentials", weights)
    return model


def _potentials_layer(nO: int | None, rate: float) -> Model[list[Floats2d], list[Floats2d]]:
    """Make a layer that has the potentials, divided by `rate`, as parameters, and returns its input unchanged."""
    dims = {"nO": nO, "nI": nO}
    return Model("chain_potentials", _forward, init=_init, dims=dims, params=dict.fromkeys(_PARAMS), attrs={"rate": rate})


def _forward(model: Any, scores: list[Floats2d], is_train: bool) -> tuple[list[Floats2d], Callable[[Any], Any]]:
    return scores, lambda gradient: gradient


def _init(model: Any, X: Any = None, Y: Any = None) -> None:
    if not model.has_dim("nO"):
        sample = Y if Y is not None else X
        model.set_dim("nO", sample[0].shape[1])
    n = model.get_dim("nO")
    if not model.has_dim("nI"):
        model.set_dim("nI", n)
    for name, shape in zip(_PARAMS, ((n, n), (n,), (n,)), strict=True):
        model.set_param(name, model.ops.alloc_f(shape))


def potentials_of(model: Model[Any, Any]) -> Potentials:
    """Return the potentials of a chain model."""
    layer = model.get_ref("potentials")
    return Potentials(*(layer.attrs["rate"] * layer.get_param(name) for name in _PARAMS))


def fault_of_weights(model: Model[Any, Any], n_labels: int, vocab: Vocab) -> str:
    """Return why a chain model from a file cannot score so many labels, or "". vocab (Vocab): Has the vectors that it may use."""
    if not model.get_ref("potentials").has_param(_PARAMS[0]):
        return ""
    head = model.get_ref("output_layer")
    arrays = {name: to_numpy(getattr(potentials_of(model), name)) for name in _PARAMS}
    arrays["scores"] = to_numpy(head.predict(head.ops.alloc2f(2, head.get_dim("nI"))))
    shapes = {"transitions": (n_labels, n_labels), "starts": (n_labels,), "ends": (n_labels,), "scores": (2, n_labels)}
    if _runs_alone(model):
        trial_vocab = Vocab()
        trial_vocab.vectors = vocab.vectors
        (arrays["scores of a text"],) = map(to_numpy, model.predict([Doc(trial_vocab, words=["a", "b"])]))
        shapes["scores of a text"] = (2, n_labels)
    # NaN in token vectors is reported when the component scores a Doc: it was trained with them.
    bad_names = [name for name in arrays if name != "scores of a text" and not np.isfinite(arrays[name]).all()]
    return lengths(shapes, arrays) or (f"'{bad_names[0]}' holds NaN" if bad_names else "")


def _runs_alone(model: Model[Any, Any]) -> bool:
    """Return whether the model can run on a Doc of words alone: no layer is a listener, or of another package."""
    ours = {"spacy", "thinc", __name__.partition(".")[0]}
    return all(type(node) is Model and node._func.__module__.partition(".")[0] in ours for node in model.walk())


def add_gradient(model: Model[Any, Any], gradient: Potentials) -> None:
    """Add to the gradient of the potentials of a chain model."""
    layer = model.get_ref("potentials")
    for name in _PARAMS:
        values: Any = layer.ops.asarray(getattr(gradient, name), dtype="float32")
        layer.inc_grad(name, layer.attrs["rate"] * values)


def _smoothing(value: Any, where: str) -> float:
    share: float = number(0.0, 1.0)(value, where)
    if share == 1:
        raise InvalidState(where, "at least 0 and less than 1")
    return share


_CFG = chain_settings({"loss": accepted_by(get_loss), "label_smoothing": _smoothing, "neg_prefix": text})
_STATE = record({"cfg": _CFG, "model": blob})


class ConditionalRandomField(SavedLabeller, TrainablePipe):
    """Labels tokens by a CRF, with the exact probability of each label and of each sequence of labels.

    target (str), by_sentence (bool), constraints (list | None), overwrite (bool): See `ChainLabeller`.
    loss (str): likelihood (for calibrated probabilities), perceptron, passive_aggressive or hinge. label_smoothing (float),
    neg_prefix (str): As in spaCy's tagger.
    RAISES C001: no such target or loss, or a share out of range. C324: no such extension.
    """

    kind = "calib_crf"

    def __init__(self, nlp: Language, name: str = "calib_crf", **settings: Any):
        config = CrfSettings(**settings)
        self.cfg = check_settings(_CFG, config)
        self.model = config.model
        self.attach(nlp, name)

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
        """Create weights. labels: From `spacy init labels`; None takes the examples'. RAISES C326: fewer than two."""
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
        loss, (d_scores, d_potentials) = self.get_loss(examples, scores)
        add_gradient(self.model, d_potentials)
        backprop(d_scores)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, Any]:
        """Return (loss, its gradients by each Doc's scores and by the potentials). RAISES C323: the gold is forbidden."""
        examples = list(examples)
        masks = [self.gold_mask(eg) for eg in examples]
        bounds = [(i, start, end) for i, eg in enumerate(examples) for start, end in self.bounds(eg.predicted)]
        inputs = LossInput.from_scores(
            [scores[i][start:end] for i, start, end in bounds],
            self.potentials(),
            [masks[i][start:end] for i, start, end in bounds],
            self.cfg["label_smoothing"],
        )
        loss = get_loss(self.cfg["loss"])(inputs)
        gradients = [self.model.ops.alloc2f(*array.shape) for array in scores]
        for (i, start, end), gradient in zip(bounds, loss.d_scores, strict=True):
            gradients[i][start:end] = gradient
        return loss.loss, (gradients, loss.d_potentials)

    def gold_mask(self, example: Example) -> Any:
        """Return which labels may be right at each token, shape (len(doc), K): the gold one, all, or all but a negated one."""
        mask = np.ones((len(example.predicted), len(self.labels)), dtype=bool)
        gold = get_target(self.cfg["target"]).gold(example)
        negated_labels = [self._get_negated(label) for label in gold]
        right = self.known_columns(
            example, [None if negation else label for label, negation in zip(gold, negated_labels, strict=True)]
        )
        wrong = self.known_columns(example, negated_labels)
        self.check_constraints(example, right, self.bounds(example.predicted))
        mask[right >= 0] = np.arange(len(self.labels)) == right[right >= 0][:, None]
        mask[wrong >= 0, wrong[wrong >= 0]] = False
        return mask

    def _get_negated(self, label: str | None) -> str | None:
        """Return the label that negated gold names, or None."""
        prefix = self.cfg["neg_prefix"]
        is_negated = label and prefix and label not in self.labels and label.startswith(prefix)
        return label[len(prefix) :] if label and is_negated else None

    # Saving

    @property
    def form(self) -> Form:
        return _STATE

    def _fitted_fields(self) -> dict[str, Any]:
        return {"model": self.model.to_bytes()}

    def _read_state(self, state: Any) -> dict[str, Any]:
        """Read the weights into a twin first, so that a fault leaves the model unchanged."""
        fields, twin = super()._read_state(state), self.model.copy()
        twin.from_bytes(fields["model"])
        n_labels = len(fields["cfg"]["labels"])
        if [node.param_names for node in twin.walk()] != [node.param_names for node in self.model.walk()]:
            raise InvalidState("model", "the parameters of this architecture")
        if wrong := fault_of_weights(twin, n_labels, self.vocab):
            raise InvalidState("model", f"what these {n_labels} labels want: {wrong}")
        return fields

    def _restore(self, fields: dict[str, Any]) -> None:
        self.model.from_bytes(fields["model"])
