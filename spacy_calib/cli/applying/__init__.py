"""What `spacy calib apply` does: look at texts, stream them through a pipeline, write shards of rows."""
