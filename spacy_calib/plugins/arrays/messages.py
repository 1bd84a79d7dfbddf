"""Messages of calibration of arrays, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C293": "The method 'auto' chooses the {setting} by itself; leave {setting} out, or name another method.",
    "C294": "There is no class {given}; the classes are: {known}.",
    "C295": "The columns have no names: y has {n_labels} labels for {n_tags} columns; name the label of each column (classes).",
    "C296": "None of the gold labels ({gold}) is one of the classes ({known}); check that scores and gold use the same labels.",
    "C298": "No calibrator can be read from {path} ({why}); give a file written by TagCalibrator.to_disk.",
    "C299": "The calibrator in {path} cannot be used here: {why}; install what is missing, or fit it again.",
}
WARNINGS = {
    "CW21": "[CW21] {n} units ({share} %) have a gold label that no column has ({unknown}); all their tags count as wrong."
}
calib_error = error_builder(MESSAGES)
