"""Messages of scores on Spark, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C452": "The DataFrame has no column '{given}'; it has: {available}.",
    "C453": "The column '{name}' must be of the type string, but it is {given}; cast it before mapInPandas.",
}
calib_error = error_builder(MESSAGES)
