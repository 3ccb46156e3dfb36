"""Python source of plain data: the same text on every machine, laid out for review.

The data's own order is kept. Only text, numbers, True, False, None, lists and mappings can be
written. Characters that hide text or reverse its direction are escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from uncaged_bundles.errors import BundleError

WIDTH = 120
INDENT = "    "

_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_BREAK_INSIDE = re.compile(r"\\n(?![\"'])")


def write_literal(value: object, *, indent: str = "", used: int = 0, path: str = "") -> str:
    """Return Python source of *value*; lines after the first start with *indent*.

    Args:
        used: number of characters before the text on its first line, indent included.
        path: dotted path of *value*, for the error.
    Raises:
        BundleError: a part of *value* is no plain data; the message has its dotted path.
    """
    inline = _inline(value, path)
    # 1: the comma that follows
    if used + len(inline) + 1 <= WIDTH and not _BREAK_INSIDE.search(inline):
        return inline
    inner = indent + INDENT
    match value:
        case str():
            return _block(
                "(",
                (quote(piece) for piece in _pieces(value, WIDTH - len(inner))),
                ")",
                indent,
                comma="",
            )
        case Mapping() if value:
            heads = ((f"{quote(key)}: ", key) for key in value)
            entries = (
                head
                + write_literal(
                    value[key], indent=inner, used=len(inner + head), path=_joined(path, key)
                )
                for head, key in heads
            )
            return _block("{", entries, "}", indent)
        case list() | tuple() if value:
            parts = (
                write_literal(item, indent=inner, used=len(inner), path=f"{path}[{index}]")
                for index, item in enumerate(value)
            )
            return _block("[", parts, "]", indent)
        case _:
            return inline


def write_constant(name: str, value: object) -> str:
    """Return the assignment of *value* to *name*, in one or several lines."""
    return f"{name} = {write_literal(value, used=len(name) + 3)}"


def quote(text: str) -> str:
    """Return *text* as one string literal, in the quotes that need fewer escapes."""
    mark = "'" if '"' in text and "'" not in text else '"'
    escaped = text.replace("\\", "\\\\").replace(mark, "\\" + mark)
    return mark + _INVISIBLE.sub(_escape, escaped) + mark


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _inline(value: object, path: str) -> str:
    match value:
        case None | True | False:
            return str(value)
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(float(value))
        case str():
            return quote(value)
        case Mapping():
            return (
                "{"
                + ", ".join(
                    f"{quote(_key(key, path))}: {_inline(value[key], _joined(path, key))}"
                    for key in value
                )
                + "}"
            )
        case list() | tuple():
            return (
                "["
                + ", ".join(_inline(item, f"{path}[{index}]") for index, item in enumerate(value))
                + "]"
            )
        case _:
            pass
    raise BundleError(
        f"{path or 'the value'} is {value!r}; only text, finite numbers, True, False, None, lists and mappings can be frozen"
    )


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return key
    raise BundleError(f"{path or 'the value'} has the key {key!r}; only text can be a key")


def _joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _block(opening: str, parts: Iterable[str], closing: str, indent: str, comma: str = ",") -> str:
    body = "".join(f"{indent}{INDENT}{part}{comma}\n" for part in parts)
    return f"{opening}\n{body}{indent}{closing}"


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield *text* in pieces, cut after line feeds, and longer lines between words."""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        rest: str = line
        while len(quote(rest)) > width and (cut := rest.rfind(" ", 1, width - 4) + 1):
            yield rest[:cut]
            rest = rest[cut:]
        yield rest
