"""What `spacy calib count` does: ask a pipeline, gather what it answers, count."""
