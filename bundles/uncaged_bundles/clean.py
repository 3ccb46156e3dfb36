"""Text of unknown origin, cleaned for a terminal: control sequences and invisible characters are
removed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

STRING_INTRODUCER = re.compile("\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f]")
STRING_END = re.compile("\x07|\x1b\\\\|\x9c")
AFTER_STRING = re.compile("[\x07\x1b\x9c\n]")
"""OSC, DCS, SOS, PM and APC: introducer, terminator, and the first character that is no payload. An
unterminated one loses its introducer only: text is never swallowed to the end.
"""

CONTROL_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]")
SHORT_ESCAPE = re.compile("\x1b[ -/]*[0-~]")
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    # marks that reorder or hide text
    "\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"  # tag characters
)
LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return *text* without terminal control sequences, C0, C1 and direction overrides; line feeds
    and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _without_strings(text)
    for pattern in (CONTROL_SEQUENCE, SHORT_ESCAPE):
        text = pattern.sub("", text)
    return SURROGATE.sub("\ufffd", INVISIBLE.sub("", LINE_ENDS.sub("\n", text)))


def _without_strings(text: str) -> str:
    """Return *text* without string sequences and their payload, in linear time: introducers without
    a terminator between them share one search for it.
    """
    pieces: list[str] = []
    kept_to = searched_to = 0
    for introducer in STRING_INTRODUCER.finditer(text):
        if introducer.start() < kept_to:
            continue  # inside a payload
        if searched_to < introducer.end():
            after = AFTER_STRING.search(text, introducer.end())
            if after is None:
                break
            searched_to = after.start()
        end = STRING_END.match(text, searched_to)
        if end is not None:
            pieces.append(text[kept_to : introducer.start()])
            kept_to = end.end()
    return "".join([*pieces, text[kept_to:]]) if pieces else text


def clean_line(text: str) -> str:
    """Return *text* cleaned and folded into one line."""
    return " ".join(clean(text).split())


def encodable(value: Any) -> Any:
    """Return JSON data whose texts have U+FFFD for halves of surrogate pairs, which a page may show
    and no file can hold.
    """
    if isinstance(value, str):
        return value if value.isascii() else SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {encodable(key): encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(one) for one in value]
    return value


def columns(text: str) -> int:
    """Return the number of terminal columns of *text*."""
    return sum(_columns_of(character) for character in text) if not text.isascii() else len(text)


def shorten(text: str, width: int) -> str:
    """Return *text* as one line of at most *width* columns, with an ellipsis where it was cut."""
    line = clean_line(text)
    if columns(line) <= width:
        return line
    width_so_far = 0
    for position, character in enumerate(line):
        width_so_far += _columns_of(character)
        if width_so_far > width - 1:
            return line[:position].rstrip() + "…" if width > 0 else ""
    return line


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
