"""`python -m uncaged_cli` is the same command as `uncaged-workflow`."""

from __future__ import annotations

from .entry import main

main()
