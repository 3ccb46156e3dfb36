"""Match of a prompt's pairs with the one form of a page that has their labels, and the operations
that fill it in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from uncaged_bundles.records import dataclass

from ..elements.targets import ElementName
from ..secrets import name_of_secret
from .forms import FormButton, FormField, FormOption, PageForm
from .pairs import BeyondForms, PromptPair, hidden_pairs, normal

__all__ = [
    "FormEntry",
    "chosen_form",
    "entries_for",
    "entry_for",
    "expect_complete",
    "sending_button",
]

YES = frozenset({"yes", "on", "true", "checked", "x"})
NO = frozenset({"no", "off", "false", "unchecked"})
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d %B %Y", "%d. %B %Y", "%B %d %Y", "%B %d, %Y", "%d %b %Y")
MINUTES = ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M")
TIMES = ("%H:%M", "%H:%M:%S")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
LISTED = 20
QUOTE = 'put each pair on a line of its own, and a value that has such text in double quotes: key: "value"'


@dataclass(frozen=True, slots=True, kw_only=True)
class FormEntry:
    """Value for one field, and the operation that enters it."""

    field: FormField
    value: str
    body: Mapping[str, Any]


def chosen_form(forms: Sequence[PageForm], pairs: Sequence[PromptPair]) -> PageForm:
    """Return the one form that has a field for each pair.

    Raises:
        BeyondForms: there is none, or there are several.
    """
    offered = [form for form in forms if form.fields]
    if not offered:
        raise BeyondForms("the page has no form")
    fitting = [form for form in offered if all(fields_of(form, pair) for pair in pairs)]
    if len(fitting) > 1:
        listed = "; ".join(map(str, fitting[:LISTED]))
        raise BeyondForms(f"{len(fitting)} forms of the page have these fields: {listed}")
    if not fitting:
        raise BeyondForms(_nearest_misfit(offered, pairs))
    return fitting[0]


def fields_of(form: PageForm, pair: PromptPair) -> list[FormField]:
    """Return the fields of a form whose labels are a pair's key."""
    key = normal(pair.key)
    return [field for field in form.fields if key in map(normal, field.labels)]


def entries_for(form: PageForm, pairs: Sequence[PromptPair]) -> list[FormEntry]:
    """Return what is entered into a form.

    Raises:
        BeyondForms: a label or a value is not clear, or the form needs more.
    """
    labels = {normal(label) for field in form.fields for label in field.labels}
    for pair in pairs:
        for key in hidden_pairs(pair):
            if normal(key) in labels:
                raise BeyondForms(f"the value of {pair.key!r} has another pair, {key!r}; {QUOTE}")
    entries = []
    for pair in pairs:
        fields = fields_of(form, pair)
        if len(fields) != 1:
            raise BeyondForms(f"the form has {len(fields)} fields {pair.key!r}")
        entries.append(entry_for(fields[0], pair.value))
    filled = [entry.field for entry in entries]
    if len(set(map(id, filled))) < len(filled):
        raise BeyondForms("two pairs are for the same field")
    expect_complete(form, filled)
    return entries


def expect_complete(form: PageForm, filled: Sequence[FormField]) -> None:
    """Refuse to send a form that needs more.

    Raises:
        BeyondForms: a required field has no value.
    """
    lacking = [
        field.label
        for field in form.fields
        if field.required and not (field.filled or field.fixed or field in filled)
    ]
    if lacking:
        raise BeyondForms(f"the form needs a value for {', '.join(map(repr, lacking))}, too")


def sending_button(form: PageForm) -> FormButton:
    """Return the one button that sends a form.

    Raises:
        BeyondForms: it has none, or several.
    """
    if not form.buttons:
        raise BeyondForms("the form has no button that sends it")
    if len(form.buttons) > 1:
        listed = ", ".join(repr(button.label) for button in form.buttons[:LISTED])
        raise BeyondForms(f"the form has several buttons that send it: {listed}")
    return form.buttons[0]


def _nearest_misfit(forms: Sequence[PageForm], pairs: Sequence[PromptPair]) -> str:
    """Return what the form that has the most of the fields lacks."""
    form = max(forms, key=lambda one: sum(bool(fields_of(one, pair)) for pair in pairs))
    lacking = ", ".join(repr(pair.key) for pair in pairs if not fields_of(form, pair))
    labels = ", ".join(repr(field.label) for field in form.fields[:LISTED])
    return f"no form of the page has a field for {lacking}; the nearest one has {labels}"


def entry_for(field: FormField, value: str) -> FormEntry:
    """Return what is entered into one field.

    Raises:
        BeyondForms: the field does not take the value.
    """
    if field.fixed:
        raise BeyondForms(f"the field {field.label!r} cannot be changed")
    make = ENTERED.get(field.kind, _text)
    return FormEntry(field=field, value=value, body=make(field, value))


def _target(names: Sequence[ElementName]) -> list[dict[str, object]]:
    return [name.document() for name in names]


def _filled(field: FormField, text: str) -> dict[str, object]:
    return {"do": "fill", "target": _target(field.names), "text": text}


def _refused(field: FormField, value: str, wanted: str) -> BeyondForms:
    return BeyondForms(f"the field {field.label!r} takes {wanted}, not {value!r}")


def _text(field: FormField, value: str) -> dict[str, object]:
    if "\n" in value:
        raise _refused(field, value, "one line")
    return _long_text(field, value)


def _long_text(field: FormField, value: str) -> dict[str, object]:
    if name_of_secret(value) is None and field.max_length and len(value) > field.max_length:
        raise _refused(field, value, f"at most {field.max_length} characters")
    return _filled(field, value)


def _secret(field: FormField, value: str) -> dict[str, object]:
    if name_of_secret(value) is None:
        raise BeyondForms(
            f"the field {field.label!r} is for a secret, which is not taken from a prompt: keep it with"
            " `uncaged-workflow keys set NAME`, bind NAME to the host in the flow's policy"
            " (`uncaged-workflow edit web-goal --policy FILE`), and write secret:NAME as the value"
        )
    return _filled(field, value)


def _number(field: FormField, value: str) -> dict[str, object]:
    if NUMBER.fullmatch(value) is None:
        raise _refused(field, value, "a number such as 12 or 12.5")
    return _filled(field, value)


def _moment(
    patterns: Sequence[str], written: str, wanted: str
) -> Callable[[FormField, str], dict[str, object]]:
    """Return the function for a kind of date or time. written: the pattern that the field takes."""

    def entered(field: FormField, value: str) -> dict[str, object]:
        for pattern in patterns:
            try:
                return _filled(field, datetime.strptime(value, pattern).strftime(written))
            except ValueError:
                continue
        raise _refused(field, value, wanted)

    return entered


def _checked(field: FormField, value: str) -> dict[str, object]:
    word = normal(value)
    if word not in YES | NO:
        raise _refused(field, value, "yes or no")
    return {"do": "check", "target": _target(field.names), "checked": word in YES}


def _chosen(field: FormField, value: str) -> FormOption:
    wanted = normal(value)
    found = [one for one in field.options if wanted == normal(one.label)]
    exact = [one for one in found if one.label == value]
    found = exact or found
    if len(found) != 1 or found[0].fixed or not wanted:
        listed = ", ".join(one.label for one in field.options[:LISTED] if not one.fixed)
        raise _refused(field, value, f"one of: {listed}")
    return found[0]


def _selected(field: FormField, value: str) -> dict[str, object]:
    several = field.multiple and not any(
        normal(value) == normal(one.label) for one in field.options
    )
    values = [part.strip() for part in value.split(",")] if several else [value]
    labels = [_chosen(field, one).label for one in values]
    return {"do": "select", "target": _target(field.names), "options": labels}


def _radio(field: FormField, value: str) -> dict[str, object]:
    return {"do": "check", "target": _target(_chosen(field, value).names)}


def _file(field: FormField, value: str) -> dict[str, object]:
    del value
    raise BeyondForms(f"the field {field.label!r} is for a file")


ENTERED: Mapping[str, Callable[[FormField, str], dict[str, object]]] = {
    "textarea": _long_text,
    "password": _secret,
    "number": _number,
    "range": _number,
    "date": _moment(DATES, "%Y-%m-%d", "a date such as 2026-12-24"),
    "time": _moment(TIMES, "%H:%M", "a time such as 14:30"),
    "datetime-local": _moment(MINUTES, "%Y-%m-%dT%H:%M", "date and time such as 2026-12-24 14:30"),
    "checkbox": _checked,
    "select": _selected,
    "radio": _radio,
    "file": _file,
}
"""How a value is entered, by the kind of its field; other kinds take one line of text."""
