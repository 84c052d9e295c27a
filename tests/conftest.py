"""What every test gets: a cache directory of its own session, never the user's."""

from __future__ import annotations

import os
import tempfile

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="unseen-tests-")
