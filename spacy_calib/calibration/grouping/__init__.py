"""Groupings: which tags share a recalibrator. One file per method.

A grouping is a function (labels, counts) -> Groups. `labels` are the tags of the model, `counts` the gold frequency of
every tag, also of tags that the model does not know.
"""
