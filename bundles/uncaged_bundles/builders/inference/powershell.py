"""Inference for PowerShell: the parameters of the ``param()`` block and the names of cmdlets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .guess import Guess, kind_of

_CMDLET = re.compile(r"(?<![\w$.-])([A-Z][A-Za-z]+-[A-Z][A-Za-z0-9]+)\b")
_TYPES = {
    "int": "number",
    "int32": "number",
    "int64": "number",
    "long": "number",
    "double": "number",
    "float": "number",
}
_TYPES |= {"bool": "boolean", "switch": "boolean", "string": "string"}


def parameters(text: str) -> list[Guess]:
    """Return the parameters that the script's ``param()`` declares."""
    code = _without_comments(text)
    found = re.search(
        r"(?:^|\n)\s*(?:\[CmdletBinding\([^)]*\)\]\s*)?param\s*\(", code, re.IGNORECASE
    )
    if found is None:
        return []
    return [guess for part in _parts(code[found.end() :]) if (guess := _declared(part)) is not None]


def commands(text: str) -> set[str]:
    """Return the cmdlets that the script names; its own functions are none."""
    code = _without_comments(text)
    own = {name.lower() for name in re.findall(r"\bfunction\s+([\w-]+)", code, re.IGNORECASE)}
    return {name for name in _CMDLET.findall(_blanked(code)) if name.lower() not in own}


def _without_comments(text: str) -> str:
    return re.sub(
        r"(^|\s)#.*$", r"\1", re.sub(r"<#.*?#>", "", text, flags=re.DOTALL), flags=re.MULTILINE
    )


def _blanked(code: str) -> str:
    return re.sub(r"'[^']*'", "''", code)


def _parts(code: str) -> Iterator[str]:
    """Yield the declarations up to the closing bracket, split at commas outside brackets."""
    depth, part, quote = 0, "", ""
    for character in code:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif character == "," and depth == 0:
            yield part
            part = ""
            continue
        part += character
    yield part


def _declared(part: str) -> Guess | None:
    found = re.search(r"\$(\w+)\s*(?:=\s*(.+))?$", part.strip(), re.DOTALL)
    if found is None:
        return None
    name, head = found[1], part[: part.index(f"${found[1]}")]
    types = [word for word in re.findall(r"\[(\w+)\]", head) if word.lower() in _TYPES]
    default = _value(found[2])
    switch = any(word.lower() == "switch" for word in types)
    allowed = re.search(r"ValidateSet\(([^)]*)\)", head, re.IGNORECASE)
    kind = _TYPES[types[-1].lower()] if types else kind_of(name, default)
    return Guess(
        name=name,
        kind=kind_of(name, default) if kind == "string" else kind,
        required=bool(re.search(r"Mandatory(\s*=\s*\$true)?\s*[,)]", head, re.IGNORECASE)),
        default=None if switch else default,
        allowed=tuple(re.findall(r"['\"]([^'\"]*)['\"]", allowed[1])) if allowed else (),
        flag=f"-{name}",
        switch=switch,
    )


def _value(text: str | None) -> object:
    word = (text or "").strip()
    if re.fullmatch(r"-?\d+(\.\d+)?", word):
        return float(word) if "." in word else int(word)
    if word.lower() in ("$true", "$false"):
        return word.lower() == "$true"
    found = re.fullmatch(r"(['\"])([^'\"$]*)\1", word)
    return found[2] if found and found[2] else None
