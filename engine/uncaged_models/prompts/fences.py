"""Fenced code blocks of Markdown: parsing, and fencing of a text so that nothing inside ends the
fence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OPENING = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n]*?)[ \t]*$")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Fenced block. tag: the first word after the fence, lower case. start, end: its range in the
    text, fences included.
    """

    tag: str
    content: str
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of *text* in order; a fence inside a block is its content, and the
    last one may lack its end.
    """
    found: list[Block] = []
    position = 0
    opened: tuple[str, str, int, int] | None = (
        None  # fence, tag, where the block starts, where its content starts
    )
    for line in LINE.findall(text):
        bare = line.rstrip("\r\n")
        after = position + len(line)
        if opened is None:
            opening = OPENING.match(bare)
            if opening is not None and not (opening[1].startswith("`") and "`" in opening[2]):
                words = opening[2].split()
                opened = (opening[1], words[0].lower() if words else "", position, after)
        elif closes(bare, opened[0]):
            _, tag, start, inner = opened
            found.append(Block(tag=tag, content=text[inner:position], start=start, end=after))
            opened = None
        position = after
    if opened is not None:
        _, tag, start, inner = opened
        found.append(Block(tag=tag, content=text[inner:], start=start, end=len(text)))
    return found


def closes(line: str, fence: str) -> bool:
    """Return whether *line* ends a block that *fence* began: the same character, at least as often,
    and nothing else.
    """
    bare = line.strip(" \t")
    indent = len(line) - len(line.lstrip(" "))
    return indent <= 3 and len(bare) >= len(fence) and set(bare) == {fence[0]}


def fenced(text: str, tag: str = "text") -> str:
    """Return *text* in a fence that is longer than any inside it."""
    longest = max((len(run) for run in BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{tag}\n{text.rstrip()}\n{fence}"
