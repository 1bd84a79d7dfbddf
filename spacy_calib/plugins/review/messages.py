"""Messages of queues, ranks and audits, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C076": "No {unit} in the data has gold; give annotated data.",
    "C531": "The pipe '{name}' has no cut-offs for accepting entities; find and save them with `spacy calib threshold --precision .9 --apply OUTPUT`.",
    "C093": "{path} has more than {most} tokens, the most that fit into half of this machine's memory; give fewer texts or a machine with more memory, or score them with Spark (docs, In production).",
    "C625": "An audit needs at least two documents, since it checks each by maps fitted on the others, but the data are one document; give more, or separate its documents (# newdoc lines, calib_document in Doc.user_data).",
}
calib_error = error_builder(MESSAGES)
