"""Masking of credentials in exported block flows: a text that may be one is replaced by a mark to
fill in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from .nesting import INNER

MARK = "<fill in>"
_OPEN_HEADERS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-type",
        "user-agent",
    }
)
_SECRET_NAME = re.compile(
    r"key|token|secret|passw|pwd|auth|credential|signature|\bsig\b|session|cookie|bearer|private",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bxox[abprs]-[\w-]{8,}|\bAKIA[0-9A-Z]{12,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bAIza[\w-]{20,}|(?<=\bBearer )(?!secret:)[^\s\"'${}]{6,}|(?<=\bBasic )[A-Za-z0-9+/=]{8,}",
)
_FIELD = re.compile(r'("(?P<name>[^"\\]{1,80})"\s*:\s*")(?P<value>(?:[^"\\]|\\.)*)(")')
_REFERENCE = re.compile(r"\$\{[^{}]+\}|secret:\w+")

Report = Callable[[str], None]


def mask_steps(steps: list[Any]) -> tuple[list[Any], list[str]]:
    """Return the blocks with every credential masked, and the places of the masks."""
    places: list[str] = []
    return [
        _block(step, f"block {number}", places.append) for number, step in enumerate(steps, 1)
    ], places


def find_masks(steps: list[Any]) -> list[str]:
    """Return the places of the masks."""
    return [
        place
        for number, step in enumerate(steps, 1)
        for place in _marks(step.get("config"), f"block {number} ({step.get('type')})")
    ]


def _marks(value: object, place: str) -> Iterator[str]:
    match value:
        case str() if MARK in value or quote(MARK, safe="") in value:
            yield place
        case {"key": str(key), "value": str(text)} if MARK in text:
            yield f"{place}: {key!r}"
        case {"name": str(name), "value": str(text)} if MARK in text:
            yield f"{place}: the variable {name!r}"
        case dict():
            for key, item in value.items():
                yield from _marks(
                    item,
                    place if key in ("headers", "formData", "variables") else f"{place}, {key}",
                )
        case list():
            for item in value:
                yield from _marks(item, place)
        case _:
            return


def _block(step: dict[str, Any], place: str, report: Report) -> dict[str, Any]:
    kind = step["type"]
    config = dict(step["config"])
    where = f"{place} ({kind})"
    for key, value in config.items():
        if key in INNER.get(kind, ()):
            config[key] = [
                _block(inner, f"{place}.{number}", report) for number, inner in enumerate(value, 1)
            ]
        elif key == "headers" and isinstance(value, list):
            config[key] = [_masked_entry(item, "key", where, report, _is_header) for item in value]
        elif key == "formData" and isinstance(value, list):
            config[key] = [_masked_entry(item, "key", where, report, _is_secret) for item in value]
        elif key == "variables" and isinstance(value, list):
            config[key] = [_masked_entry(item, "name", where, report, _is_secret) for item in value]
        else:
            config[key] = _masked(value, f"{where}, {key}", report)
    return {**step, "config": config}


def _masked_entry(
    item: Any, name_key: str, place: str, report: Report, is_secret: Callable[[str], bool]
) -> Any:
    if not isinstance(item, dict):
        return item
    name, value = str(item.get(name_key, "")), item.get("value")
    if isinstance(value, str) and value and is_secret(name) and _is_literal(value):
        report(f"{place}: {name!r}")
        return {**item, "value": MARK}
    return {key: _masked(part, f"{place}: {name!r}", report) for key, part in item.items()}


def is_credential(name: str, text: str) -> bool:
    """Tell whether *text* has a credential, by its form or by the name of its field; ``${…}`` and
    ``secret:NAME`` are none.
    """
    return _SECRET_TEXT.search(text) is not None or (_is_secret(name) and _is_literal(text))


def _is_literal(value: str) -> bool:
    return _REFERENCE.sub("", value).strip() not in ("", "Bearer", "Basic", "token")


def _is_header(name: str) -> bool:
    return name.strip().lower() not in _OPEN_HEADERS


def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name))


def _masked(value: Any, place: str, report: Report, name: str = "") -> Any:
    if isinstance(value, str):
        if value and name and _is_secret(name) and _REFERENCE.sub("", value).strip():
            report(place)
            return MARK
        masked = _masked_text(value)
        if masked != value:
            report(place)
        return masked
    if isinstance(value, dict):
        return {key: _masked(part, f"{place}.{key}", report, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_masked(part, place, report, name) for part in value]
    return value


def _masked_text(text: str) -> str:
    """Mask credentials anywhere in a text: in an address, in a field of JSON, or by their form."""
    if "://" in text:
        text = _masked_address(text)
    text = _FIELD.sub(
        lambda found: (
            f"{found[1]}{MARK}{found[4]}"
            if _is_field_credential(found["name"], found["value"])
            else found[0]
        ),
        text,
    )
    return _SECRET_TEXT.sub(MARK, text)


def _is_field_credential(name: str, value: str) -> bool:
    return _is_secret(name) and bool(_REFERENCE.sub("", value).strip()) and value != MARK


def _masked_address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    place = parts.netloc
    if "@" in place and _REFERENCE.sub("", place.rpartition("@")[0]).strip(":"):
        place = f"{quote(MARK, safe='')}@{place.rpartition('@')[2]}"
    query = parts.query
    for name, value in parse_qsl(query, keep_blank_values=False):
        if _is_field_credential(name, value):
            query = re.sub(
                rf"(?<![^&;]){re.escape(name)}=[^&;]*",
                lambda _, name=name: f"{name}={quote(MARK, safe='')}",  # type: ignore[misc]
                query,
            )
    return (
        text
        if (place, query) == (parts.netloc, parts.query)
        else urlunsplit(parts._replace(netloc=place, query=query))
    )
