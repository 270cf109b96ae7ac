"""A script."""

from __future__ import annotations

import sys

sys.exit()
