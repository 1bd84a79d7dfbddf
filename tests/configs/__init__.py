"""What the tests of the spaCy projects share."""

from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import fix_random_seed, load_config, load_model_from_config, registry

CONFIGS = Path(__file__).parents[2] / "configs"


def check_config_learns(file: Path, overrides: dict[str, Any], component: str, n_updates: int = 4, **settings: Any) -> Language:
    """Build the pipeline of a training config, not filled in by `spacy init fill-config`, and check that its loss falls.

    settings: Of the component.
    """
    config = load_config(file, overrides=overrides, interpolate=True)
    config["components"][component].update(settings)
    fix_random_seed(0)
    nlp = load_model_from_config(config, auto_fill=False, validate=True)
    training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    examples = list(registry.resolve(config["corpora"])["train"](nlp))[:20]
    optimizer = nlp.initialize(lambda: examples, sgd=training["optimizer"])
    losses = []
    for _ in range(n_updates):
        losses.append(nlp.update(examples, sgd=optimizer)[component])
        optimizer.step_schedules()  # the transformer's learning rate begins at 0
    assert losses[-1] < losses[0]
    assert nlp.pipe_names == config["nlp"]["pipeline"]
    assert component in nlp.get_pipe(nlp.pipe_names[0]).listening_components
    return nlp
