"""Limits of a grammar; beyond one it is refused with an error that names the limit."""

from __future__ import annotations

MAX_CHARACTERS = 1_000_000
"""Characters of a grammar together with the files that it imports."""
MAX_FILES = 1_000
"""Files of a grammar."""
MAX_RULES = 50_000
"""Rules of a grammar, over all its files."""
MAX_IMPORTED = 50_000
"""Names that the files of a grammar import, over all its files."""
MAX_NESTING = 40
"""Depth of groups in groups, and of lists, objects and brackets in a value."""
MAX_EXPRESSION_DEPTH = 100
"""Depth of a value expression as a tree: one for each operator in a chain."""
MAX_PROBLEMS = 100
"""Errors, and warnings, that are listed; more are only counted."""
MAX_TEXT = 1_000_000
"""Characters of a text that a value expression makes."""
MAX_VALUE_ITEMS = 10_000
"""Items of lists and objects in a value, those inside each other counted each time."""
MAX_VALUE_DEPTH = 100
"""Levels of lists and objects in a value."""
