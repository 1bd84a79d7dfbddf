"""Questions that units of a Doc answer with yes or no, such as "is it a PERSON?", and the chance that they do."""
