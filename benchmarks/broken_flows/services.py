"""Flows that ask a service whose answers or demands change: renamed fields, new required fields,
hosts that move or go, answers that take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, assert_never

from ..outside.service import NOT_FOUND, Answer, Request, answer
from .case import BrokenFlow, Fix, Parameters, Recipe, World, replaced
from .making import NAMES, drawn, parameter, task

__all__ = ["cases"]

RENAMES: Sequence[tuple[str, tuple[str, ...], Fix]] = (
    ("unit_price", ("unitPrice",), "one"),
    ("total", ("total_amount",), "one"),
    ("stockCount", ("stock_count",), "one"),
    ("weight", ("weight_grams",), "one"),
    ("deliveryDays", ("delivery_days",), "one"),
    ("price", ("price_net", "price_gross"), "two"),
    ("rating", ("score",), "one"),
)
"""Field of the answer, its successors, and whether one of them is the right one."""
ANNOUNCED = {"rating": "since version 2 the field rating is called score"}
"""What the new answers say themselves of a field."""
READ_FIELD = """\
found = await api.http("GET", "{url}/articles", query={{"name": params.name}})
if found.error:
    return {{"success": False, "error": found.error}}
return f"{{params.name}}: {{found.data.json['{field}']}}"
"""
REQUIRED: Sequence[tuple[str, str, str]] = (
    ("region", "GET", ""),
    ("currency", "GET", ""),
    ("warehouse", "POST", ""),
    ("contract", "GET", "standard"),
    ("channel", "POST", "web"),
)
"""Field that becomes required, method of the request, and the value that the service's error names
for it; "" if the flow has a parameter for it.
"""
SEND_FIELDS = {
    "GET": """\
found = await api.http("GET", "{url}/offers", query={{"name": params.name}})
if found.error:
    return {{"success": False, "error": found.error + " " + str(found.text)}}
return f"{{params.name}}{suffix}: {{found.data.json['offer']}}"
""",
    "POST": """\
found = await api.http("POST", "{url}/offers", json={{"name": params.name}})
if found.error:
    return {{"success": False, "error": found.error + " " + str(found.text)}}
return f"{{params.name}}{suffix}: {{found.data.json['offer']}}"
""",
}


def cases(seed: int, url: str, other: str) -> Iterator[BrokenFlow]:
    """Yield the cases. url: of the service. other: of one that the flow does not know before."""
    for number, (old, new, fix) in enumerate(RENAMES, 1):
        yield renamed_field(seed, url, f"field-{number}", old, new=new, fix=fix)
    for number, (name, method, stated) in enumerate(REQUIRED, 1):
        yield required_field(seed, url, f"required-{number}", name, method, stated=stated)
    yield moved_host(seed, url, other, "host-1", named="answer")
    yield moved_host(seed, url, other, "host-2", named="page")
    yield moved_host(seed, url, other, "host-3", named="nowhere")


def sets_of(names: Sequence[str], key: str = "name") -> tuple[list[Parameters], ...]:
    """Return parameters of three good threads, the failing one, and two others."""
    found: list[Parameters] = [{key: name} for name in names]
    return found[:3], found[3:4], found[4:6]


def renamed_field(
    seed: int, url: str, name: str, old: str, *, new: Sequence[str], fix: Fix
) -> BrokenFlow:
    """A field of a JSON answer has another name."""
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    values = {one: random.randint(100, 999) for one in names}
    true = random.choice(list(new)) if new else ""

    def answers(keys: Sequence[str]) -> Callable[[Request], Answer]:
        def reply(request: Request) -> Answer:
            article = request.query.get("name", "")
            if request.path != "/articles" or article not in values:
                return NOT_FOUND
            fields = {"id": len(article), "name": article, "colour": "green", "open": True}
            for key in keys:
                fields[key] = values[article] + (0 if key in (old, true) else 7)
            if old not in keys and old in ANNOUNCED:
                fields["changes"] = ANNOUNCED[old]
            return answer(fields)

        return reply

    past, failing, others = sets_of(names)
    body = READ_FIELD.format(url=url, field=old)
    recipe = task(f"article-{name}", body, [parameter("name")], [url.removeprefix("http://")])
    return BrokenFlow(
        name=f"api-{name}",
        family="field renamed",
        fix=fix,
        recipe=recipe,
        past=past,
        failing=failing[0],
        others=others,
        before=World(answer=answers([old])),
        after=World(answer=answers(new)),
        truth=lambda one: f"{one['name']}: {values[one['name']]}",
        right=replaced(recipe, f"['{old}']", f"['{true}']") if true else None,
        mistaken=replaced(recipe, f"['{old}']", "['id']"),
    )


def required_field(
    seed: int, url: str, name: str, key: str, method: str, *, stated: str
) -> BrokenFlow:
    """A request needs a field that it did not need. The error states the value of programs, or the
    flow has a parameter of that name, which it used in its result alone.
    """
    random = drawn(seed, name)
    known = not stated
    names = random.sample(NAMES, 12)
    places = dict(zip(names[:6], names[6:], strict=True))

    def offer(fields: Mapping[str, Any]) -> int:
        return drawn(seed, f"{name} {sorted(fields.items())}").randint(1000, 9999)

    def answers(*, required: bool) -> Callable[[Request], Answer]:
        def reply(request: Request) -> Answer:
            fields = dict(request.query if method == "GET" else request.json or {})
            if request.path != "/offers" or request.method != method:
                return NOT_FOUND
            if required and not fields.get(key):
                hint = f"; programs send '{stated}'" if stated else ""
                return answer({"error": f"missing required field '{key}'{hint}"}, 422)
            return answer({"offer": offer(fields)})

        return reply

    suffix = f" ({{params.{key}}})" if known else ""
    body = SEND_FIELDS[method].format(url=url, suffix=suffix)
    parameters = [parameter("name"), *([parameter(key)] if known else [])]
    recipe = task(f"offer-{name}", body, parameters, [url.removeprefix("http://")])

    def values_of(article: str) -> Parameters:
        return {"name": article, **({key: places[article]} if known else {})}

    def truth(one: Parameters) -> str:
        shown = f" ({one[key]})" if known else ""
        return f"{one['name']}{shown}: {offer(needed(one))}"

    def needed(one: Parameters) -> Mapping[str, str]:
        return {"name": one["name"], key: stated or one[key]}

    sets = [values_of(one) for one in names[:6]]
    fields = '{"name": params.name'
    value = f'"{stated}"' if stated else f"params.{key}"
    return BrokenFlow(
        name=f"api-{name}",
        family="new required field",
        fix="one",
        recipe=recipe,
        past=sets[:3],
        failing=sets[3],
        others=sets[4:6],
        before=World(answer=answers(required=False)),
        after=World(answer=answers(required=True)),
        truth=truth,
        right=replaced(recipe, fields, f'{fields}, "{key}": {value}'),
        mistaken=replaced(recipe, fields, f'{fields}, "{key}": params.name'),
        sends=(lambda one: [needed(one)]) if method == "POST" else None,
    )


def moved_host(
    seed: int, url: str, other: str, name: str, *, named: Literal["answer", "page", "nowhere"]
) -> BrokenFlow:
    """A host is gone. Its last answers name the new one, or a page of it that does; or it is only
    out of order, and no change of the flow helps.
    """
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    values = {one: random.randint(100, 999) for one in names}

    def articles(request: Request) -> Answer:
        article = request.query.get("name", "")
        return answer({"value": values[article]}) if article in values else NOT_FOUND

    def gone(request: Request) -> Answer:
        match named:
            case "answer":
                text = f"this service moved to {other}; this host is switched off"
                return answer({"error": text}, 410)
            case "page" if request.path == "/moved":
                return answer({"successor": other, "since": "2026-05-01"})
            case "page":
                return answer({"error": f"switched off; its successor: {url}/moved"}, 410)
            case "nowhere":
                return answer({"error": "out of order"}, 503)
            case _:
                assert_never(named)

    body = READ_FIELD.format(url=url, field="value").replace(
        "found.error}", 'found.error + " " + str(found.text)}'
    )
    recipe: Recipe = task(f"value-{name}", body, [parameter("name")], [url.removeprefix("http://")])
    past, failing, others = sets_of(names)
    fix: Fix = "none" if named == "nowhere" else "one"
    return BrokenFlow(
        name=f"api-{name}",
        family="expired host",
        fix=fix,
        recipe=recipe,
        past=past,
        failing=failing[0],
        others=others,
        before=World(answer=articles),
        after=World(answer=gone, elsewhere=articles),
        truth=lambda one: f"{one['name']}: {values[one['name']]}",
        right=moved(recipe, url, other) if fix == "one" else None,
        mistaken=replaced(recipe, "/articles", "/article"),
    )


def moved(recipe: Recipe, url: str, other: str) -> Recipe:
    """Return a recipe that asks another host."""
    found = replaced(recipe, url, other)
    return replaced(found, url.removeprefix("http://"), other.removeprefix("http://"))
