"""A flow's name is safe as a file name, a branch name and a word on a command line, because no other spelling passes here."""

from __future__ import annotations

import re
from typing import NewType

from .errors import UsageError

FlowName = NewType("FlowName", str)

MAX_NAME_CHARACTERS = 60
_KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def parse_flow_name(text: str) -> FlowName:
    """*text*, if it is lower-case kebab, starts with a letter and has at most 60 characters; UsageError says what is wrong otherwise."""
    if not text:
        raise UsageError("a flow needs a name, and this one is empty; use lower-case words joined by '-', such as 'solve-issue'")
    if len(text) > MAX_NAME_CHARACTERS:
        raise UsageError(f"flow name {text[:MAX_NAME_CHARACTERS]!r}… has {len(text)} characters; at most {MAX_NAME_CHARACTERS} are allowed")
    if not _KEBAB.fullmatch(text):
        raise UsageError(f"{text!r} is not a flow name; use lower-case words of letters and digits joined by '-': 'solve-issue'")
    return FlowName(text)
