"""Messages of scores on Spark, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C450": 'Spark is not installed; run `pip install "spacy-calib[spark]"`.',
    "C451": "Spark needs Java 17 or later, but {why}; install one (on Debian `apt-get install openjdk-17-jre-headless`), or set JAVA_HOME to its folder.",
    "C452": "The DataFrame has no column '{given}'; it has: {available}.",
    "C453": "The column '{name}' must be of the type {wanted}, but it is {given}; cast or select another.",
    "C454": "On a worker of Spark: {why} Workers need it as an installed package, or at a path that all of them see.",
    "C455": "The column '{given}' cannot be kept, since the scores have a column of this name; rename it first.",
    "C457": "A row of the column '{name}' is no DocBin ({why}); give the bytes of .spacy files.",
}
calib_error = error_builder(MESSAGES)
