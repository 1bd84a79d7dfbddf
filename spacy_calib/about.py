"""Version and address of the package; setup.cfg reads the version from here."""

__version__ = "0.2.0"
__url__ = "https://github.com/spacy-calib/spacy-calib"
