"""Whether all plug-ins of the package are installed: the core is also tested without them."""

from __future__ import annotations

import pytest

from spacy_calib.cli import ORDER, command_names

MISSING = [name for name in ORDER if name not in command_names()]
# For tests of the whole package.
needs_all_plugins = pytest.mark.skipif(bool(MISSING), reason=f"without the plug-ins with the commands {', '.join(MISSING)}")
