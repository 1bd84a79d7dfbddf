"""Messages of queues, ranks and audits, each with a code."""

from ...errors import error_builder

MESSAGES = {
    "C535": "{path} has answers to other questions than those of this sample (the same texts, pipeline, seed and number ask the same ones); choose another output, or replace it (--force).",
    "C093": "{path} has more than {most} tokens, the most that fit into half of this machine's memory; give fewer texts or a machine with more memory, or score them with Spark (docs, In production).",
    "C625": "An audit needs at least two documents, since it checks each by maps fitted on the others, but the data are one document; give more, or separate its documents (# newdoc lines, calib_document in Doc.user_data).",
}
calib_error = error_builder(MESSAGES)
