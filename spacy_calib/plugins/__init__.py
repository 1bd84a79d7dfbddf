"""What the core does not import: each folder or module here plugs in through entry points."""

# Plug-in -> the outputs of `evaluate` that it writes, for the sentence of a core that stands alone.
OUTPUTS = {"report": (".htm", ".html", ".pdf", ".png", ".svg", "folder")}
