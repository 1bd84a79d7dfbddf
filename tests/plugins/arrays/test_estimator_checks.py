"""scikit-learn's own checks of an estimator, and why some of them cannot hold for this one."""

import pytest
import sklearn
from scipy.sparse import issparse
from scipy.special import expit

from spacy_calib.plugins.arrays import TagCalibrator, inputs

OTHER_COLUMNS = "the check has more labels than columns, or fewer; a column is the score of a label"
OWN_WORDS = "the check wants other words in the message"
ALL_LABELS = "the score of a label that the gold never has is not taken for 0 by every map"

# The checks that fail in any case -> why.
EXCEPTIONS = {
    "check_estimators_overwrite_params": OTHER_COLUMNS, "check_estimators_fit_returns_self": OTHER_COLUMNS,
    "check_readonly_memmap_input": OTHER_COLUMNS, "check_estimator_sparse_array": OTHER_COLUMNS,
    "check_estimator_sparse_matrix": OTHER_COLUMNS, "check_classifiers_classes": OTHER_COLUMNS,
    "check_classifiers_one_label": ALL_LABELS,
    "check_classifiers_train": "the columns of the check are features: which is the greatest does not tell the label",
    "check_fit2d_1feature": OTHER_COLUMNS, "check_positive_only_tag_during_fit": OWN_WORDS,
}  # fmt: skip
# Those that fail on what is no probability, and pass where the same numbers are moved into (0, 1).
ON_OTHER_NUMBERS = (
    "check_dont_overwrite_parameters", "check_n_features_in_after_fitting", "check_estimators_dtypes", "check_pipeline_consistency",
    "check_estimators_pickle", "check_f_contiguous_array_estimator", "check_classifier_data_not_an_array",
    "check_transformer_data_not_an_array", "check_transformer_general", "check_transformer_preserve_dtypes",
    "check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_fit2d_1sample", "check_dict_unchanged",
    "check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in", "check_fit2d_predict1d",
)  # fmt: skip
# Those that want numbers outside [0, 1] to be refused, which moving them prevents.
OF_REFUSALS = ("check_estimators_nan_inf", "check_fit_non_negative")

RECENT = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
pytestmark = [
    pytest.mark.skipif(not RECENT, reason="the checks of scikit-learn before 1.9 are others"),
    pytest.mark.filterwarnings("ignore"),
]


def failed(estimator) -> set[str]:
    from sklearn.utils.estimator_checks import check_estimator

    done = check_estimator(estimator, on_fail=None)
    assert len(done) > 50
    return {one["check_name"] for one in done if one["status"] == "failed"}


def test_the_checks_hold_for_probabilities(monkeypatch):
    read = inputs.read_matrix

    def moved(array):
        if not issparse(array):
            return read(expit(array))
        array = array.copy()
        array.data = expit(array.data)
        return read(array)

    monkeypatch.setattr(inputs, "read_matrix", moved)
    assert failed(TagCalibrator("platt")) == {*EXCEPTIONS, *OF_REFUSALS}


def test_what_is_no_probability_is_all_that_else_is_refused():
    assert failed(TagCalibrator("platt")) == {*EXCEPTIONS, *ON_OTHER_NUMBERS}
