import warnings

from spacy_calib.cli.shared.examples import run_pipes
from tests.conftest import examples_for


def test_a_run_that_is_given_up_leaves_the_filters_of_warnings_alone(nlp):
    before = list(warnings.filters)
    done = run_pipes(nlp, examples_for(nlp, 3, seed=0), nlp.pipe_names, silent=True, title="")
    next(done)
    assert list(warnings.filters) == before
    warnings.filterwarnings("ignore", message="of another test")
    done.close()
    assert list(warnings.filters) != before
