"""Sizes in bytes as text."""

from __future__ import annotations

UNITS = ("bytes", "KB", "MB", "GB", "TB")


def spell_bytes(size_bytes: int) -> str:
    """Return ``812 bytes``, ``4.2 KB`` or ``310 MB``."""
    size = float(max(0, size_bytes))
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:.1f} {unit}" if size < 10 and unit != "bytes" else f"{size:.0f} {unit}"
