"""Half precision is reported by a fit: weights of 16 bits, and torch's mixed precision."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from spacy_calib.sources.heads import half_precision_components, has_half_precision
from tests.conftest import examples_for, run_other_pipes

MIXED = SimpleNamespace(_mixed_precision=True, _model=None)


def test_float16_weights_of_a_head(nlp):
    assert half_precision_components(nlp, "tagger") == []
    head = nlp.get_pipe("tagger").model.get_ref("output_layer")
    head.set_param("W", head.get_param("W").astype(np.float16))
    assert half_precision_components(nlp, "tagger") == ["tagger"]
    assert half_precision_components(nlp, "morphologizer") == []
    assert half_precision_components(nlp, "") == []


def test_a_component_that_is_listened_to(nlp):
    nlp.get_pipe("tok2vec").model.shims.append(MIXED)
    assert half_precision_components(nlp, "tagger") == ["tok2vec"]
    nlp.get_pipe("tok2vec").listener_map["tagger"] = []
    nlp.get_pipe("tok2vec").listener_map.pop("tagger")
    assert half_precision_components(nlp, "tagger") == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_weights_of_torch(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from thinc.api import PyTorchWrapper

    module = torch.nn.Linear(2, 2).to(getattr(torch, dtype))
    assert has_half_precision(PyTorchWrapper(module)) == (dtype != "float32")


def test_a_fit_warns_once(nlp):
    nlp.get_pipe("tok2vec").model.shims.append(MIXED)
    calib = nlp.add_pipe("calib", after="tagger")
    examples = run_other_pipes(nlp, examples_for(nlp, 60, seed=2))
    with pytest.warns(UserWarning, match=r"CW24.* 'calib' was fitted to scores of 'tok2vec', computed at half precision"):
        calib.fit(examples)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")  # old catalogue warns of its own
        calib.fit(examples)
    assert not [warning for warning in warned if "CW24" in str(warning.message)]
