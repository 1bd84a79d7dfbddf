"""Tag counts -> groups: which tags share a recalibrator. One file per way of grouping.

A grouping is a function (labels, counts) -> Groups. `labels` are the tags of the model, `counts` the gold frequency of
every tag, also of tags that the model does not know.
"""
