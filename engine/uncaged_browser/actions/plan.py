"""Plan of one action: the operations that perform it with given values, and what a person is asked
before the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles import fields, shapes
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.records import dataclass
from uncaged_bundles.values import convert, is_a

from ..addresses import parts_of
from ..goal.forms import FormButton, FormField, PageForm, read_forms
from ..goal.matching import entry_for, expect_complete, sending_button
from ..goal.pairs import BeyondForms, normal
from ..healing.lexicon import SENDING, actions_of
from ..secrets import name_of_secret
from .page_action import PageAction, parameter_names

__all__ = ["ActionPlan", "PlannedValue", "plan_of"]

LOAD_S = 30.0
LISTED = 12
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedValue:
    """One value that is entered. text: as it was given. value: as the field takes it. schema: of
    the parameter. body: the operation. placed: the operation in a flow with this parameter.
    """

    name: str
    text: str
    value: object
    schema: Mapping[str, object]
    body: Body
    placed: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPlan:
    """url: of the page. last: the operation after the values; None if values are only filled in.
    question: what a person is asked to confirm; empty if nothing is. target: where a form sends.
    """

    action: PageAction
    url: str
    values: tuple[PlannedValue, ...]
    last: Body | None
    question: str
    target: str = ""

    @property
    def host(self) -> str:
        """Return the host of the page, with its port."""
        return _netloc(self.url)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Return the operations in their order."""
        filled = [one.body for one in self.values if self.action.kind != "page"]
        return (*filled, *(() if self.last is None else (self.last,)))


def plan_of(
    answer: Mapping[str, Any],
    values: Mapping[str, str],
    *,
    press: str | None = None,
    allowed: Sequence[str] = (),
) -> ActionPlan:
    """Return the plan of an action.

    Args:
        answer: of the operation `actions` with the action's name. values: by the name or label of a
            parameter. press: the label of a form's button. allowed: hosts besides the page's.
    Raises:
        UsageError: a value is unknown, wrong or missing. RefusedError: it leads to another host
            that is not allowed.
    """
    action = fields.read(PageAction, answer.get("action"), ("action",))
    if action.host.endswith(":"):
        raise RefusedError(f"{action.name} leads to {action.host}, which is no page of the web")
    if action.host and not _covered(action.host, allowed):
        verb = "sends to" if action.kind == "form" else "leads to"
        raise RefusedError(
            f"{action.name} {verb} {action.host}, which is another host than the page's;"
            f" if that is right, add --allow-host {action.host}"
        )
    try:
        match action.kind:
            case "form":
                return _form_plan(action, answer, values, press)
            case "page":
                return _page_plan(action, answer, values)
            case "button" | "link" | "landmark":
                return _element_plan(action, answer, values)
    except BeyondForms as exc:
        raise UsageError(f"{action.name}: {exc}") from exc


def _covered(host: str, allowed: Sequence[str]) -> bool:
    from ..scope import BrowserScope

    return bool(allowed) and BrowserScope.of(allowed).allows(f"https://{host}/")


def _element_plan(
    action: PageAction, answer: Mapping[str, Any], values: Mapping[str, str]
) -> ActionPlan:
    if values:
        raise UsageError(f"{action.name} takes no values")
    target = {"target": answer.get("names"), **_frame(answer)}
    if not answer.get("names"):
        raise UsageError(f"{action.name} has nothing by which it is found again")
    if action.kind == "landmark":
        last: Body = {"do": "view", **target}
    else:
        last = {"do": "click", **target}
    grave = action.kind == "button" or action.host or SENDING & actions_of(action.label)
    verb = "press" if action.kind == "button" else "follow"
    asks = grave and action.kind != "landmark"
    question = f"{verb} {action.label!r} on {_url(answer)}" if asks else ""
    return ActionPlan(action=action, url=_url(answer), values=(), last=last, question=question)


def _page_plan(
    action: PageAction, answer: Mapping[str, Any], values: Mapping[str, str]
) -> ActionPlan:
    schema = action.parameters or {}
    properties = shapes.mapping(schema.get("properties", {}), ("parameters",))
    planned = []
    for key, text in values.items():
        name = _key(key, list(properties), {})
        if name_of_secret(text) is not None:
            raise UsageError(
                f"{action.name}: {text} is not given to an action of the page's own scripts;"
                " a secret is only typed into a field"
            )
        part = shapes.mapping(properties[name], ("parameters", name))
        kind = str(part.get("type", "string"))
        value = convert(text, kind)
        choices = part.get("enum")
        if not is_a(value, kind):
            raise UsageError(f"{action.name}: {name} takes a value of type {kind}, not {text!r}")
        if isinstance(choices, list) and value not in choices:
            listed = ", ".join(map(str, choices[:LISTED]))
            raise UsageError(f"{action.name}: {name} takes one of {listed}, not {text!r}")
        planned.append(
            PlannedValue(name=name, text=text, value=value, schema=part, body={}, placed={})
        )
    present = {one.name for one in planned}
    missing = [name for name in schema.get("required", []) if name not in present]  # type: ignore[attr-defined]  # read as a list before
    if missing:
        raise UsageError(f"{action.name} needs a value for {', '.join(missing)}")
    tool = action.name.partition(":")[2]
    arguments = {one.name: one.value for one in planned}
    return ActionPlan(
        action=action,
        url=_url(answer),
        values=tuple(planned),
        last={"do": "call", "name": tool, "arguments": arguments, "timeout_s": LOAD_S},
        question=f"let {_url(answer)} perform its action {tool!r}{_shown(planned)}",
    )


def _form_plan(
    action: PageAction, answer: Mapping[str, Any], values: Mapping[str, str], press: str | None
) -> ActionPlan:
    [form] = read_forms(answer)
    names = parameter_names(form)
    by_name = dict(zip(names, form.fields, strict=True))
    labels = {name: one.labels for name, one in by_name.items()}
    properties = shapes.mapping((action.parameters or {}).get("properties", {}), ("parameters",))
    chosen: dict[str, str] = {}
    for key, text in values.items():
        name = _key(key, names, labels)
        if name in chosen:
            raise UsageError(f"{action.name}: {name} has two values")
        chosen[name] = text
    planned = [
        _entered(name, text, by_name[name], properties.get(name), answer)
        for name, text in chosen.items()
    ]
    button = _button(form, press)
    if button is None and not planned:
        raise UsageError(
            f"{action.name} needs values; its fields are {', '.join(names[:LISTED])}{_buttons(form)}"
        )
    if button is not None and not form.loose:
        expect_complete(form, [by_name[name] for name in chosen])
    last = None if button is None else {"do": "click", "target": _target(button), **_frame(answer)}
    target = form.action if button is None else button.action
    where = _netloc(target) or _url(answer)
    question = "" if button is None else f"press {button.label!r} of {action.name} on {where}"
    return ActionPlan(
        action=action,
        url=_url(answer),
        values=tuple(planned),
        last=last,
        question=question and question + _shown(planned),
        target=target,
    )


def _entered(
    name: str, text: str, field: FormField, schema: object, answer: Mapping[str, Any]
) -> PlannedValue:
    """Return what is entered into a field."""
    entry = entry_for(field, text)
    body = {**entry.body, **_frame(answer)}
    value: object = text
    placed: dict[str, object] = dict(body)
    holder = f"${{{name}}}"
    match body["do"]:
        case "fill" if name_of_secret(text) is not None:
            pass  # the name of a secret is no value of a parameter
        case "fill":
            value = body["text"]
            placed["text"] = holder
        case "select":
            options = shapes.texts(body["options"], (name,))
            value = options if field.multiple else options[0]
            placed["options"] = holder
        case "check" if field.kind == "radio":
            value = next(one.label for one in field.options if normal(one.label) == normal(text))
            placed["target"] = [{"role": "radio", "name": holder}, {"label": holder}]
        case _:
            value = body["checked"]
            placed["checked"] = holder
    part = schema if isinstance(schema, Mapping) else {}
    if part.get("type") == "number":
        value = convert(value, "number")
    return PlannedValue(name=name, text=text, value=value, schema=part, body=body, placed=placed)


def _button(form: PageForm, press: str | None) -> FormButton | None:
    """Return the button that is pressed; None for fields outside of a form whose button is not
    named.

    Raises:
        BeyondForms: it has no such button, or several.
    """
    if press is None and form.loose:
        return form.buttons[0] if len(form.buttons) == 1 and not form.buttons[0].fixed else None
    if press is None and len(form.buttons) > 1:
        raise BeyondForms(f"it has several buttons{_buttons(form)}")
    if press is None:
        return sending_button(form)
    found = [one for one in form.buttons if normal(one.label) == normal(press)]
    if len(found) != 1:
        raise BeyondForms(f"it has {len(found)} buttons {press!r}{_buttons(form)}")
    return found[0]


def _buttons(form: PageForm) -> str:
    listed = ", ".join(repr(one.label) for one in form.buttons[:LISTED])
    return f"; choose a button with --press: {listed}" if listed else ""


def _key(key: str, names: Sequence[str], labels: Mapping[str, Sequence[str]]) -> str:
    """Return the parameter that a key means: by its name, or by the label of its field."""
    if key in names:
        return key
    wanted = normal(key)
    found = [
        name
        for name in names
        if wanted and wanted in (normal(name), *map(normal, labels.get(name, ())))
    ]
    if len(found) != 1:
        listed = ", ".join(names[:LISTED]) or "none"
        raise UsageError(f"there are {len(found)} parameters {key!r}; there are: {listed}")
    return found[0]


def _target(button: FormButton) -> list[dict[str, object]]:
    return [name.document() for name in button.names]


def _frame(answer: Mapping[str, Any]) -> dict[str, object]:
    return {"frame": answer["frame"]} if answer.get("frame") else {}


def _url(answer: Mapping[str, Any]) -> str:
    return str(answer.get("url"))


def _netloc(url: str) -> str:
    parts = parts_of(url)
    return "" if parts is None else parts.netloc


def _shown(planned: Sequence[PlannedValue]) -> str:
    return f" with {', '.join(f'{one.name}={one.text}' for one in planned)}" if planned else ""
