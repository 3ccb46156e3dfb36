"""Typed actions of a page, each under a name, from what was found in its frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from uncaged_bundles import fields, shapes
from uncaged_bundles.records import dataclass, replace

from ..addresses import parts_of
from ..goal.forms import FormField, PageForm, read_forms
from ..healing.lexicon import plain

__all__ = [
    "ActionKind",
    "FoundAction",
    "PageAction",
    "actions_of_frame",
    "named_actions",
    "parameter_names",
    "read_actions",
]

ActionKind = Literal["form", "link", "button", "landmark", "page"]
"""page: the page's own scripts register it."""
MAX_NAME, MAX_LABEL = 40, 200
MAX_OPTIONS = 60
"""Options of a field that its parameter lists."""
WORDS = re.compile(r"[^\W_]+")
ASCII_WORDS = re.compile(r"[a-z0-9]+")
RESERVED = frozenset({"origin"})
"""Names of parameters that a flow has for itself."""
TYPES: Mapping[str, Mapping[str, object]] = {
    "number": {"type": "number"},
    "range": {"type": "number"},
    "checkbox": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "datetime-local": {"type": "string", "format": "date-time"},
    "email": {"type": "string", "format": "email"},
    "url": {"type": "string", "format": "uri"},
    "password": {"type": "string", "format": "secret"},
    "file": {"type": "string", "format": "file"},
}
"""Schema of a parameter by the kind of its field; that of the others is text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """One action. name: unique on the page, such as ``form:order``. label, description: texts of
    the page, which are data. parameters: a JSON Schema. host: where it leads or sends, if that is
    another host than the page's. method: of a form.
    """

    name: str
    kind: Annotated[ActionKind, shapes.one_of(*get_args(ActionKind))]
    label: str
    description: str = ""
    parameters: Mapping[str, object] | None = None
    host: str = ""
    method: str = ""

    def document(self) -> dict[str, object]:
        """Return the action as JSON data."""
        texts = {"description": self.description, "host": self.host, "method": self.method}
        return {
            "name": self.name,
            "kind": self.kind,
            "label": self.label,
            **{key: text for key, text in texts.items() if text},
            **({} if self.parameters is None else {"parameters": dict(self.parameters)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAction:
    """An action and where it is. frame: number of the frame. part: the list of the page's script
    that has it. index: its place there; for a form its number.
    """

    action: PageAction
    frame: int
    part: str
    index: int


def read_actions(answer: Mapping[str, Any]) -> list[PageAction]:
    """Read the actions of an answer of the operation `actions`.

    Raises:
        ShapeError: it is malformed.
    """
    listed = shapes.items(answer.get("actions"), ("actions",))
    return [fields.read(PageAction, one, ("actions", at)) for at, one in enumerate(listed)]


def actions_of_frame(
    frame: int, url: str, forms: Mapping[str, Any], offers: Mapping[str, Any], frame_url: str = ""
) -> Iterator[FoundAction]:
    """Yield the actions of one frame, not yet named apart.

    Args:
        url: of the page. forms: answer of ``forms.js``. offers: answer of ``offers.js``. frame_url:
            of the frame, if that is not the page; what is in a frame of another host is done there.
    Raises:
        ShapeError: they are malformed.
    """
    home = _foreign(frame_url or url, url)
    for form in read_forms(forms):
        yield FoundAction(
            action=_form_action(form, url), frame=frame, part="forms", index=form.number
        )
    for part, kind in (("buttons", "button"), ("links", "link"), ("landmarks", "landmark")):
        for index, raw in enumerate(shapes.items(offers.get(part), (part,))):
            one = shapes.mapping(raw, (part, index))
            if one.get("fixed") is True:
                continue
            label = _text(one.get("label"))
            words = label or _text(one.get("role")) or _last_part(_text(one.get("address")))
            action = PageAction(
                name=_name(kind, words),
                kind=kind,  # type: ignore[arg-type]  # a literal of the loop
                label=label or words,
                host=_text(one.get("host")) or ("" if kind == "landmark" else home),
            )
            yield FoundAction(action=action, frame=frame, part=part, index=index)


def named_actions(found: Sequence[FoundAction]) -> list[FoundAction]:
    """Return actions with names apart from each other: of equal ones, the second gets ``-2``."""
    known: set[str] = set()
    numbers: dict[str, int] = {}
    named = []
    for one in found:
        base = name = one.action.name
        number = numbers.get(base, 1)
        while name in known:
            number += 1
            name = f"{base}-{number}"
        numbers[base] = number
        known.add(name)
        named.append(replace(one, action=replace(one.action, name=name)))
    return named


def parameter_names(form: PageForm) -> list[str]:
    """Return the name of the parameter of each field of a form, from its label."""
    names: list[str] = []
    for number, field in enumerate(form.fields, 1):
        texts = (*field.labels, field.key)
        base = next(filter(None, map(_parameter_name, texts)), f"field_{number}")
        name, count = base, 2
        while name in names or name in RESERVED:
            name, count = f"{base}_{count}", count + 1
        names.append(name)
    return names


def _form_action(form: PageForm, url: str) -> PageAction:
    # a button beside fields outside of a form may be about something else
    pressed = "" if form.loose else next((one.label for one in form.buttons if one.label), "")
    label = form.name or pressed or " ".join(field.label for field in form.fields[:3]) or "form"
    names = parameter_names(form)
    pairs = [(name, one) for name, one in zip(names, form.fields, strict=True) if not one.fixed]
    required = [name for name, field in pairs if field.required and not field.filled]
    parameters = {
        "type": "object",
        "properties": {name: _property(field) for name, field in pairs},
        **({"required": required} if required else {}),
    }
    targets = [one.action for one in form.buttons] or [form.action]
    foreign = [host for target in targets if (host := _foreign(target, url))]
    return PageAction(
        name=_name("form", label),
        kind="form",
        label=label,
        parameters=parameters,
        host=foreign[0] if foreign else "",
        method=form.method,
    )


def _property(field: FormField) -> dict[str, object]:
    """Return the JSON Schema of a field's value."""
    options = [one.label for one in field.options if not one.fixed and one.label]
    choice: dict[str, object] = {
        "type": "string",
        **({"enum": options} if len(options) <= MAX_OPTIONS else {}),
    }
    if field.kind in ("select", "radio"):
        schema: dict[str, object] = {"type": "array", "items": choice} if field.multiple else choice
    else:
        schema = dict(TYPES.get(field.kind, {"type": "string"}))
    longest = {"maxLength": field.max_length} if field.max_length else {}
    return {**schema, **longest, "title": field.label}


def _name(kind: str, text: str) -> str:
    words = "-".join(WORDS.findall(text.casefold()))[:MAX_NAME].strip("-")
    return f"{kind}:{words or 'unnamed'}"


def _parameter_name(text: str) -> str:
    words = "_".join(ASCII_WORDS.findall(plain(text)))[:MAX_NAME].strip("_")
    return f"field_{words}" if words[:1].isdigit() else words


def _foreign(target: str, url: str) -> str:
    """Return the host of an address if it is not the page's."""
    there, here = parts_of(target), parts_of(url)
    if there is None or here is None:
        return "unknown"
    if there.scheme == "about":  # a document without an address of its own
        return ""
    if there.scheme not in ("http", "https"):
        return f"{there.scheme}:"
    return "" if there.netloc == here.netloc else there.netloc


def _last_part(address: str) -> str:
    parts = parts_of(address)
    return "" if parts is None else parts.path.rstrip("/").rpartition("/")[2]


def _text(value: object) -> str:
    return " ".join(value.split())[:MAX_LABEL] if isinstance(value, str) else ""
