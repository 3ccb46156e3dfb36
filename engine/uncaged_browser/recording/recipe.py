"""Conversion of a recording into a web recipe: its parameters, its scope, and its steps with
``${name}`` where a parameter's value was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from ..addresses import is_private
from ..elements.targets import ElementName
from ..operations import (
    Fill,
    Operation,
    Select,
    Type,
    Upload,
    write_operation,
)
from .recording import Recording, RecordingError, check_hosts, hosts_of

__all__ = ["ORIGIN", "StepWriter", "proposed_parameters", "recipe_of"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
NAMED_SECRET = "secret:"  # noqa: S105 - the form of a name
ORIGIN = "origin"
NOT_DATA = frozenset({"do", "tab", "key", "direction", "button", "for", "as", "role"})
"""Keys of a step whose value is no data of the task."""
SELECTORS = frozenset({"css", "xpath"})
TEXTS = frozenset({"name", "near", "label", "placeholder", "text", "testId"})
"""Keys of an alternative whose value a page shows, or may take from its data."""
TARGETS = frozenset({"target", "onto", "area", "frame"})
FACTS = frozenset({"facts", "ontoFacts"})


def proposed_parameters(recording: Recording) -> dict[str, str]:
    """Return the named values, and the typed and selected ones by a name from the field's label;
    equal values get one name.
    """
    found: dict[str, str] = dict(recording.parameters)
    for step in recording.steps:
        value = _typed(step)
        if not value.strip() or value in found.values():
            continue
        target = getattr(step, "target", None) or ()
        name = base = _name_from(target, "value")
        number = 2
        while name.casefold() in {ORIGIN, *(other.casefold() for other in found)}:
            name, number = f"{base}_{number}", number + 1
        found[name] = value
    return found


def recipe_of(
    recording: Recording, name: str, parameters: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the web recipe of a recording of any length; see `Recording.to_recipe`."""
    check_hosts(recording)
    if parameters is None:
        values: Mapping[str, object] = proposed_parameters(recording)
    else:
        values = parameters
    texts = {key: _checked_value(key, value) for key, value in values.items()}
    origin = _origin(recording.url) if recording.origin_parameter else None
    writer = StepWriter(texts, origin)
    steps = [writer.write(step) for step in recording.with_start().steps]
    _check_used(texts, writer.used)
    hosts = [*dict.fromkeys((*hosts_of(recording.url, recording.steps), *recording.hosts))]
    secrets = dict.fromkeys(_secrets(texts.values(), recording), hosts[:1])
    declared: dict[str, object] = {
        key: {"type": "string", "required": False, "description": "", "default": value}
        for key, value in texts.items()
    }
    if origin is not None:
        declared[ORIGIN] = {
            "type": "string",
            "required": False,
            "description": "scheme, host and port of the site",
            "default": origin,
        }
    private = any(map(is_private, hosts))
    return {
        "kind": "web",
        "version": 1,
        "name": name,
        "description": f"Recorded at {origin or recording.url}.",
        "parameters": declared,
        "steps": steps,
        "scope": {"type": "site", "domains": hosts, **({"private": True} if private else {})},
        **({"secrets": secrets} if secrets else {}),
        "grammarPatterns": [],
        "source": {"type": "recording", "originUrl": recording.url},
    }


class StepWriter:
    """Writes steps with placeholders. used: the parameters that occurred."""

    def __init__(self, values: Mapping[str, str], origin: str | None) -> None:
        # the longest first: a value may contain another
        self._values = sorted(values.items(), key=lambda item: -len(item[1]))
        self._origin = origin
        self.used: set[str] = set()

    def write(self, step: Operation) -> dict[str, object]:
        """Return a step of a recipe."""
        body = write_operation(step)
        return {key: self._filled(key, value) for key, value in body.items()}

    def _filled(self, key: str, value: object) -> Any:
        if key == "expect" and isinstance(value, dict):
            return self.expectation(value)
        if key in TARGETS and isinstance(value, list):
            return self.target(value)
        if key in FACTS and isinstance(value, dict):
            return self.facts(value)
        if isinstance(value, list):
            return [self._filled(key, item) for item in value]
        if not isinstance(value, str) or key in NOT_DATA | SELECTORS:
            return escaped(value) if isinstance(value, str) else value
        if key == "url":
            return self._address(value)
        return self._placed(value, whole=True)

    def expectation(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return an expectation."""
        return {part: self._pattern(part, text) for part, text in fields.items()}

    def target(self, value: list[object]) -> list[object]:
        """Return the alternatives; one of frames is a list of such lists. If some have a
        parameter's value, the others are left out: they would find the recorded element for any
        value.
        """
        if value and isinstance(value[0], list):
            return [self.target(frame) for frame in value if isinstance(frame, list)]
        known = [one for one in value if isinstance(one, dict)]
        usable = [one for one in known if not self._unusable(one)] or known
        whole = {text for one in usable for text in _texts_of(one)} & {v for _, v in self._values}
        kept = [self._alternative(one, whole) for one in usable]
        changed = [
            new for new, old in zip(kept, usable, strict=True) if new != _escaped_alternative(old)
        ]
        return [*(changed or kept)]

    def facts(self, fields: dict[str, object]) -> dict[str, object]:
        """Return the facts about an element; a parameter that is in them alone is not used."""
        used = set(self.used)
        found: dict[str, object] = {
            key: [self._placed(one) if isinstance(one, str) else one for one in value]
            if isinstance(value, list)
            else self._placed(str(value))
            for key, value in fields.items()
        }
        self.used = used
        return found

    def _alternative(self, fields: dict[str, object], whole: set[str]) -> dict[str, object]:
        """Return one alternative; a name with a value in other case need only contain it. whole:
        values that are the whole text of an alternative, which are searched however short.
        """
        plain = _escaped_alternative(fields)
        for flags in (re.RegexFlag(0), re.IGNORECASE):
            changed = {
                key: [self._placed(str(text), flags=flags, short=whole) for text in value]
                if isinstance(value, list)
                else self._placed(value, flags=flags, short=whole)
                if isinstance(value, str) and key in TEXTS
                else plain[key]
                for key, value in fields.items()
            }
            if changed != plain:
                return {**changed, "exact": False} if flags else changed
        return plain

    def _placed(
        self, text: str, *, whole: bool = False, flags: int = 0, short: Collection[str] = ()
    ) -> str:
        """Return a text with the placeholder of each value in it as a word of its own. short:
        values that are searched although they have less than three characters.
        """
        for name, value in self._values:
            if text == value:
                self.used.add(name)
                return f"${{{name}}}"
        if whole:
            return escaped(text)
        parts = [text]
        for name, value in self._values:
            if len(value) < 3 and value not in short:
                continue
            pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", flags)
            parts = [
                piece
                for part in parts
                for piece in ([part] if part.startswith("\0") else _split(pattern, part, name))
            ]
        self.used |= {part[1:] for part in parts if part.startswith("\0")}
        return "".join(
            f"${{{part[1:]}}}" if part.startswith("\0") else escaped(part) for part in parts
        )

    def _address(self, url: str) -> str:
        if self._origin is not None and _origin(url) == self._origin:
            self.used.add(ORIGIN)
            return f"${{{ORIGIN}}}{escaped(url[len(self._origin) :])}"
        return escaped(url)

    def _pattern(self, key: str, text: object) -> str:
        """Return an expectation; in an address a value has an encoded form, so any value fits."""
        pattern = str(text)
        if key != "url":
            return self._placed(pattern)
        if self._origin is not None and pattern.startswith(f"{self._origin}/"):
            pattern = pattern[len(self._origin) :]  # before a value that is a word of the host
        for _, value in self._values:
            for form in {value, quote(value), quote_plus(value), slug(value)}:
                if len(form) >= 2:
                    pattern = re.sub(rf"(?<![\w%]){re.escape(form)}(?![\w%])", "*", pattern)
        return escaped(pattern)

    def _unusable(self, fields: dict[str, object]) -> bool:
        texts = [str(fields[way]).casefold() for way in (*SELECTORS, "testId") if way in fields]
        return any(
            len(form) >= 2 and form in text
            for text in texts
            for _, value in self._values
            for form in (value.casefold(), slug(value))
        )


def _texts_of(fields: dict[str, object]) -> list[str]:
    """Return the texts of an alternative that a page shows."""
    found: list[str] = []
    for key in TEXTS & fields.keys():
        value = fields[key]
        found += map(str, value) if isinstance(value, list) else [str(value)]
    return found


def _escaped_alternative(fields: dict[str, object]) -> dict[str, object]:
    return {
        key: escaped(value)
        if isinstance(value, str)
        else [escaped(str(text)) for text in value]
        if isinstance(value, list)
        else value
        for key, value in fields.items()
    }


def escaped(text: str) -> str:
    """Return a text in which nothing is read as a placeholder."""
    return text.replace("${", "$${")


def slug(value: str) -> str:
    """Return a value as it often is in addresses and ids: ``Blue Lamp`` is ``blue-lamp``."""
    return "-".join(re.findall(r"[a-z0-9]+", value.casefold()))


def _split(pattern: re.Pattern[str], text: str, name: str) -> list[str]:
    pieces: list[str] = []
    for index, piece in enumerate(pattern.split(text)):
        if index:
            pieces.append(f"\0{name}")
        if piece:
            pieces.append(piece)
    return pieces


def _typed(step: Operation) -> str:
    if isinstance(step, Fill | Type):
        return step.text
    if isinstance(step, Select) and len(step.options) == 1:
        return step.options[0]
    if isinstance(step, Upload) and len(step.files) == 1:
        return step.files[0]
    return ""


def _name_from(target: tuple[ElementName, ...], default: str) -> str:
    texts = [one.name for one in target if one.way == "role" and one.name]
    texts += [one.value for one in target if one.way in ("label", "placeholder", "testId")]
    for text in texts:
        words = re.findall(r"[a-z0-9]+", (text or "").casefold())
        name = "_".join(words)[:40].strip("_")
        if NAME.fullmatch(name):
            return name
    return default


def _checked_value(name: str, value: object) -> str:
    if not NAME.fullmatch(name) or name.casefold() == ORIGIN:
        raise RecordingError("malformed", f"{name!r} cannot be the name of a parameter")
    if not isinstance(value, str) or not value:
        raise RecordingError("malformed", f"the recorded value of {name!r} is no text: {value!r}")
    return value


def _check_used(values: Mapping[str, str], used: set[str]) -> None:
    unused = [name for name in values if name not in used]
    if unused:
        raise RecordingError(
            "malformed", f"the recording has no step with the value of {', '.join(unused)}"
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _secrets(values: Any, recording: Recording) -> list[str]:
    texts = [*values, *(_typed(step) for step in recording.steps)]
    names = (text.removeprefix(NAMED_SECRET) for text in texts if text.startswith(NAMED_SECRET))
    return list(dict.fromkeys(names))
