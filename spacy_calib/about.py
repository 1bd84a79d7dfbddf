"""Version and address of the package; setup.cfg and setup.py read them from here."""

__version__ = "0.9.0"
__url__ = "https://github.com/spacy-calib/spacy-calib"
# Nothing is at this address yet: setup.py leaves links to it out of the text for an index.
URL_IS_PLACEHOLDER = True
