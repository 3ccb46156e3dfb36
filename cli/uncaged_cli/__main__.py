"""Entry point of `python -m uncaged_cli`, the same command as `uncaged-workflow`."""

from __future__ import annotations

from .entry import main

main()
