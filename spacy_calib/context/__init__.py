"""Features of a token and its document, and the calibration step that uses them."""
