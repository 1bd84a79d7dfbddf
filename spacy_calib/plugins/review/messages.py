"""Messages of queues, ranks and audits, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C076": "No {unit} in the data has gold; give annotated data, or leave the comparison out.",
    "C531": "The pipe '{name}' has no cut-offs for accepting entities; find them with `spacy calib threshold --precision` and save them with --apply.",
    "C090": "The pipe '{name}' has no tag '{tag}'; name one that it has: {available}.",
    "C091": "None of the {n} {unit}s in the pool can be chosen: {excluded} are labelled already, and none of the others has a {what}; give more texts.",
    "C092": "Cannot read the texts in {path}: {why}; give a .csv file with a column text, as written by `spacy calib select`.",
    "C093": "No tags of the pipe '{name}' are rare (together at most {share} of the gold tokens of the fit); name tags with --tag.",
    "C094": "Every {unit} that could be chosen has more words than the {max_words} of --max-words; give a larger budget.",
    "C399": "Ranking so many texts needs a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room, or give --repeats.",
    "C468": "Scoring so many texts needs a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room.",
    "C625": "An audit needs at least two documents, since it checks each by maps fitted on the others, but the data are one document; give more, or name the key that separates its documents (--doc-key).",
}
calib_error = error_builder(MESSAGES)
