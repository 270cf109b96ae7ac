"""`make bench`: measure the host beside the official SDK's server. See README.md here."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.main import main

    sys.exit(main())
