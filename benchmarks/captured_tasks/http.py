"""Tasks with an HTTP service that sends and takes JSON: by commands, and by flows as tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..outside.scripted_model import Call, Play
from ..outside.service import NOT_FOUND, Answer, Request, answer
from .rule import WORDS, Outcome, Rule, Setting, answer_is, files_are, output, run
from .shell import chosen

__all__ = ["RULES"]


class _Http(Rule):
    family = "http"


class RateOfCurrency(_Http):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        codes = random.sample(["EUR", "USD", "CHF", "SEK", "JPY", "NOK"], 6)
        return {"base": codes[number], "other": codes[number + 3]}

    def prompt(self, setting: Setting) -> str:
        base, other = setting["base"], setting["other"]
        return f"Ask {setting.url}/rates for the rate of {base} in {other}."

    def answer(self, setting: Setting, request: Request) -> Answer:
        if request.path != "/rates":
            return NOT_FOUND
        base, other = request.query.get("base", ""), request.query.get("in", "")
        return answer({"base": base, "in": other, "rate": self._rate(setting, base, other)})

    def play(self, setting: Setting) -> Play:
        url = f"{setting.url}/rates?base={setting['base']}&in={setting['other']}"
        yield [run(f"curl -sf {setting.url}/rate")]
        [found] = yield [run(f"curl -sf '{url}' | jq -r .rate")]
        return f"The rate is {output(found)}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        return answer_is(outcome, self._rate(setting, setting["base"], setting["other"]))

    def _rate(self, setting: Setting, base: str, other: str) -> str:
        return f"{setting.random(f'{base} {other}').randint(2000, 9000) / 1000:.3f}"


class StockToFile(_Http):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        place, target, _ = chosen(random, number)
        return {"place": place, "target": f"{target}.csv"}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Save name and count of each article in stock at {setting['place']} as CSV in "
            f"{setting['target']}. The list is at {setting.url}/stock."
        )

    def answer(self, setting: Setting, request: Request) -> Answer:
        return answer(self._stock(setting)) if request.path == "/stock" else NOT_FOUND

    def play(self, setting: Setting) -> Play:
        yield [run(f"curl -sf {setting.url}/stock | head -c 200")]
        rows = f'.[] | select(.place == "{setting["place"]}") | [.name, .count] | @csv'
        [done] = yield [run(f"curl -sf {setting.url}/stock | jq -r '{rows}' > {setting['target']}")]
        output(done)
        return f"The articles are in {setting['target']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        rows = [one for one in self._stock(setting) if one["place"] == setting["place"]]
        expected = "".join(f'"{one["name"]}",{one["count"]}\n' for one in rows)
        return files_are(outcome, {setting["target"]: expected})

    def _stock(self, setting: Setting) -> list[dict[str, Any]]:
        random = setting.random("stock")
        places = [setting["place"], *random.sample(WORDS, 2)]
        return [
            {"name": name, "place": places[at % 3], "count": random.randint(1, 500)}
            for at, name in enumerate(random.sample(WORDS, 12))
        ]


class SettingPut(_Http):
    """The request changes the service."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        key, value, _ = chosen(random, number)
        return {"key": key, "value": value}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Set {setting['key']} to {setting['value']} with a PUT request to "
            f"{setting.url}/settings; the body is JSON with key and value."
        )

    def answer(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.path != "/settings":
            return NOT_FOUND
        return answer({"saved": request.method == "PUT"})

    def play(self, setting: Setting) -> Play:
        body = json.dumps({"key": setting["key"], "value": setting["value"]})
        yield [run(f"curl -sf {setting.url}/settings")]
        [done] = yield [run(f"curl -sf -X PUT -d '{body}' {setting.url}/settings")]
        if json.loads(output(done)) != {"saved": True}:
            raise RuntimeError("the service did not save it")
        return "It is set."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        sent = [one.json for one in outcome.requests if one.method == "PUT"]
        expected = [{"key": setting["key"], "value": setting["value"]}]
        return "" if sent == expected else f"the service got {sent}"


class PagesOfTickets(_Http):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"owner": chosen(random, number)[0]}

    def prompt(self, setting: Setting) -> str:
        return (
            f"How many of the tickets of {setting['owner']} are open? {setting.url}/tickets has "
            "them on the pages 1, 2 and 3 (page=…)."
        )

    def answer(self, setting: Setting, request: Request) -> Answer:
        page = request.query.get("page", "1")
        if request.path != "/tickets" or page not in ("1", "2", "3"):
            return NOT_FOUND
        return answer(self._tickets(setting)[int(page) - 1 :: 3])

    def play(self, setting: Setting) -> Play:
        test = f'select(.owner == "{setting["owner"]}" and .open)'
        pages = f'for page in 1 2 3; do curl -sf "{setting.url}/tickets?page=$page"; done'
        yield [run(f"curl -sf {setting.url}/tickets?page=1")]
        [found] = yield [run(f"{pages} | jq -s '[.[][] | {test}] | length'")]
        return f"{output(found)} are open."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        mine = [one for one in self._tickets(setting) if one["owner"] == setting["owner"]]
        return answer_is(outcome, str(sum(one["open"] for one in mine)))

    def _tickets(self, setting: Setting) -> list[dict[str, Any]]:
        random = setting.random("tickets")
        owners = [setting["owner"], random.choice(WORDS)]
        return [
            {"id": at, "owner": random.choice(owners), "open": random.random() < 0.6}
            for at in range(50 + 7 * setting.number)
        ]


class OrdersOfCustomer(_Http):
    """The second command has a number from the first one's output."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"customer": chosen(random, number)[0]}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Add up the orders of {setting['customer']}. {setting.url}/customers has "
            f"the number for a name, {setting.url}/orders the orders of a customer's number."
        )

    def answer(self, setting: Setting, request: Request) -> Answer:
        number = self._number(setting)
        if request.path == "/customers":
            name = request.query.get("name", "")
            return answer({"number": number if name == setting["customer"] else 1})
        if request.path == "/orders" and request.query.get("customer") == str(number):
            return answer([{"total": one} for one in self._totals(setting)])
        return NOT_FOUND

    def play(self, setting: Setting) -> Play:
        url = f"{setting.url}/customers?name={setting['customer']}"
        [found] = yield [run(f"curl -sf '{url}' | jq .number")]
        orders = f"{setting.url}/orders?customer={output(found)}"
        [total] = yield [run(f"curl -sf '{orders}' | jq 'map(.total) | add'")]
        return f"The sum is {output(total)}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        return answer_is(outcome, str(sum(self._totals(setting))))

    def _number(self, setting: Setting) -> int:
        return setting.random("number").randint(10_000, 99_999)

    def _totals(self, setting: Setting) -> list[int]:
        random = setting.random("totals")
        return [random.randint(100, 999) for _ in range(4)]


def recipe(
    flow: str, about: str, url: str, script: str, /, **parameters: str
) -> Mapping[str, object]:
    """Return a task flow that asks the service. parameters: type by name."""
    host = url.removeprefix("http://")
    return {
        "name": flow,
        "description": about,
        "parameters": [
            {"name": key, "type": kind, "required": True, "description": key}
            for key, kind in parameters.items()
        ],
        "script": f"async def execute(api, params):\n    base = {url!r}\n{script}",
        "policy": {"http": {"hosts": [host], "private": True}},
    }


FIND_ARTICLE = """\
    found = await api.http("GET", f"{base}/articles", query={"name": params.name})
    if found.error:
        return {"success": False, "error": found.error}
    return {"success": True, "message": "found", "data": found.data.json}
"""
CONVERT = """\
    found = await api.http("GET", f"{base}/convert", query={"cents": str(params.cents), "to": params.currency})
    if found.error:
        return {"success": False, "error": found.error}
    return {"success": True, "message": f"{found.data.json.cents}", "data": found.data.json}
"""
ORDER = """\
    done = await api.http("POST", f"{base}/orders", json={"article": params.article, "count": params.count})
    if done.error:
        return {"success": False, "error": done.error}
    return {"success": True, "message": f"order {done.data.json.order}", "data": done.data.json}
"""


class _Flows(_Http):
    """The model calls flows that ask a shop's service."""

    needs = "flows"

    def flows(self, url: str) -> Sequence[Mapping[str, object]]:
        find = "Find an article of the shop by its name: id, price in cents."
        convert = "Convert an amount in cents into another currency."
        order = "Order so many of an article by its id."
        return (
            recipe("find-article", find, url, FIND_ARTICLE, name="string"),
            recipe("convert-price", convert, url, CONVERT, cents="integer", currency="string"),
            recipe("place-order", order, url, ORDER, article="string", count="integer"),
        )

    def answer(self, setting: Setting, request: Request) -> Answer:
        match request.path:
            case "/articles":
                name = request.query.get("name", "")
                found = self.article(setting, name)
                return answer(found) if name in setting.values.values() else NOT_FOUND
            case "/convert":
                cents = int(request.query.get("cents", "0"))
                rate = self.rate(setting, request.query.get("to", ""))
                return answer({"cents": cents * rate})
            case "/orders" if request.method == "POST":
                return answer({"order": len(str(request.json)) + 1000})
            case _:
                return NOT_FOUND

    def article(self, setting: Setting, name: str) -> dict[str, Any]:
        random = setting.random(f"article {name}")
        return {"id": f"a{random.randint(10_000, 99_999)}", "cents": random.randint(1000, 9000)}

    def rate(self, setting: Setting, currency: str) -> int:
        return setting.random(f"rate {currency}").randint(2, 30)

    def detours(self, setting: Setting) -> Sequence[Call]:
        name = next(iter(setting.values.values()))
        return (
            Call(tool="find-article", arguments={"name": f"no-{name}"}),
            Call(tool="find-article", arguments={"title": name}),
            Call(tool="find-article", arguments={"name": name}),
        )


def find(name: str) -> Call:
    return Call(tool="find-article", arguments={"name": name})


def data_of(result: str) -> dict[str, Any]:
    """Return the data of a flow's result.

    Raises:
        RuntimeError: the flow failed; the script of the model is wrong.
    """
    found = json.loads(result)
    if not found["success"]:
        raise RuntimeError(f"a flow of the scripted model failed: {result[:300]}")
    return dict(found["data"])


class PriceOfArticle(_Flows):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"article": chosen(random, number)[0]}

    def prompt(self, setting: Setting) -> str:
        return f"What does the article {setting['article']} cost in cents?"

    def play(self, setting: Setting) -> Play:
        [found] = yield [find(setting["article"])]
        return f"It costs {data_of(found)['cents']} cents."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        return answer_is(outcome, str(self.article(setting, setting["article"])["cents"]))


class PriceInCurrency(_Flows):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        codes = random.sample(["USD", "CHF", "SEK", "JPY"], 3)
        return {"article": chosen(random, number)[0], "currency": codes[number]}

    def prompt(self, setting: Setting) -> str:
        return f"What does the article {setting['article']} cost in {setting['currency']}?"

    def play(self, setting: Setting) -> Play:
        [found] = yield [find(setting["article"])]
        price = {"cents": data_of(found)["cents"], "currency": setting["currency"]}
        [converted] = yield [Call(tool="convert-price", arguments=price)]
        return f"It costs {data_of(converted)['cents']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        cents = self.article(setting, setting["article"])["cents"]
        return answer_is(outcome, str(cents * self.rate(setting, setting["currency"])))


class OrderArticle(_Flows):
    """The second flow sends an order."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        counts = random.sample(range(2, 60), 3)
        return {"article": chosen(random, number)[0], "count": str(counts[number])}

    def prompt(self, setting: Setting) -> str:
        return f"Order {setting['count']} of the article {setting['article']}."

    def play(self, setting: Setting) -> Play:
        [found] = yield [find(setting["article"])]
        order = {"article": data_of(found)["id"], "count": int(setting["count"])}
        [done] = yield [Call(tool="place-order", arguments=order)]
        return f"The number of the order is {data_of(done)['order']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        sent = [one.json for one in outcome.requests if one.method == "POST"]
        article = self.article(setting, setting["article"])["id"]
        expected = [{"article": article, "count": int(setting["count"])}]
        return "" if sent == expected else f"the service got the orders {sent}"


class OrderTwoArticles(_Flows):
    """Two articles are found before both are ordered."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        first, second, _ = chosen(random, number)
        return {"first": first, "second": second}

    def prompt(self, setting: Setting) -> str:
        return f"Order one {setting['first']} and one {setting['second']}."

    def play(self, setting: Setting) -> Play:
        found = yield [find(setting["first"]), find(setting["second"])]
        yield [
            Call(tool="place-order", arguments={"article": data_of(one)["id"], "count": 1})
            for one in found
        ]
        return "Both are ordered."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        sent = [one.json for one in outcome.requests if one.method == "POST"]
        expected = [
            {"article": self.article(setting, setting[one])["id"], "count": 1}
            for one in ("first", "second")
        ]
        return "" if sent == expected else f"the service got the orders {sent}"


class IdInCurrency(_Flows):
    """Three flows: an article, its price in a currency, and an order of it."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        codes, counts = random.sample(["USD", "CHF", "SEK"], 3), random.sample(range(70, 99), 3)
        article = chosen(random, number)[0]
        return {"article": article, "currency": codes[number], "count": str(counts[number])}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Order {setting['count']} of the article {setting['article']} and tell me what one "
            f"costs in {setting['currency']}."
        )

    def play(self, setting: Setting) -> Play:
        [found] = yield [find(setting["article"])]
        article = data_of(found)
        order = {"article": article["id"], "count": int(setting["count"])}
        yield [Call(tool="place-order", arguments=order)]
        price = {"cents": article["cents"], "currency": setting["currency"]}
        [converted] = yield [Call(tool="convert-price", arguments=price)]
        return f"It is ordered; one costs {data_of(converted)['cents']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        article = self.article(setting, setting["article"])
        sent = [one.json for one in outcome.requests if one.method == "POST"]
        if sent != [{"article": article["id"], "count": int(setting["count"])}]:
            return f"the service got the orders {sent}"
        return answer_is(outcome, str(article["cents"] * self.rate(setting, setting["currency"])))


RULES: tuple[Rule, ...] = (
    RateOfCurrency(),
    StockToFile(),
    SettingPut(),
    PagesOfTickets(),
    OrdersOfCustomer(),
    PriceOfArticle(),
    PriceInCurrency(),
    OrderArticle(),
    OrderTwoArticles(),
    IdInCurrency(),
)
