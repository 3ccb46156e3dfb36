"""Conversions of git between repository and disk, found out before any file is read."""

from __future__ import annotations

import re
from pathlib import Path

from uncaged_engine.services.git import Git

CONVERTING = re.compile(rb"(?m)^[^#\n]*\b(text|eol|crlf|filter|ident|working-tree-encoding)\b")
SETTINGS = r"^core\.(autocrlf|eol|attributesfile)$"


def changes_bytes(git: Git) -> bool:
    """Return whether a setting or an attribute of the checkout at *git* may convert files; a needless yes costs time, nothing else."""
    if git.run("config", "--get-regexp", SETTINGS, accept=(0, 1)).strip():
        return True
    listing = git.run("ls-files", "-z", "--", ":(glob)**/.gitattributes").decode("utf-8", "surrogateescape")
    own = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "info/attributes"))
    paths = [own, *(git.directory / name for name in listing.split("\0") if name)]
    return any(CONVERTING.search(path.read_bytes()) for path in paths if path.is_file())
