"""What every test gets: a cache directory of its own session, never the user's; and one thread, as workers have."""

from __future__ import annotations

import os
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_CBWR"] = "AUTO,STRICT"  # as `import unseen` does, but before any test module has used torch
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="unseen-tests-")
