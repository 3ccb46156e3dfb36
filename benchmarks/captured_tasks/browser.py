"""Tasks on web pages. Their world is the requests that the pages send."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from random import Random

from ..outside.scripted_model import Call, Play
from ..outside.service import Answer, Request, page
from .rule import WORDS, Outcome, Rule, Setting
from .shell import chosen

__all__ = ["RULES"]


def open_page(url: str) -> Call:
    return Call(tool="browser_open", arguments={"url": url})


def fill(view: str, label: str, text: str) -> Call:
    ref = reference(view, rf'(?:textbox|searchbox|spinbutton|date|\w+) "{label}"')
    return Call(tool="browser_fill", arguments={"ref": ref, "text": text})


def click(view: str, name: str, kind: str = "(?:button|link)") -> Call:
    ref = reference(view, f'{kind} "{re.escape(name)}"')
    return Call(tool="browser_click", arguments={"ref": ref})


def reference(view: str, pattern: str) -> str:
    """Return the reference of an element of a page view.

    Raises:
        RuntimeError: the view has none; the script of the model is wrong.
    """
    found = re.search(rf"{pattern}[^\n]*?\[ref=(\w+)\]", view)
    if found is None:
        raise RuntimeError(f"the view has no {pattern}: {view[:800]}")
    return found[1]


def document(title: str, body: str) -> Answer:
    return page(
        f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1>"
        f"<nav><a href=/about>About</a></nav>{body}</html>"
    )


def form(action: str, *fields: str, button: str, method: str = "post") -> str:
    inside = "".join(f"<p>{field}</p>" for field in fields)
    return f"<form method={method} action={action}>{inside}<button>{button}</button></form>"


def text_field(label: str, name: str, kind: str = "text") -> str:
    return f"<label>{label} <input name={name} type={kind}></label>"


class _Browser(Rule):
    """A rule whose outcome is the requests `expected`, sent once, in order, among those that are
    no looks.
    """

    family = "browser"
    needs = "browser"
    start = "/"

    def answer(self, setting: Setting, request: Request) -> Answer:
        if request.path == "/about":
            return document("About", "<p>Some words about it.</p>")
        return self.shown(setting, request)

    def shown(self, setting: Setting, request: Request) -> Answer:
        """Return the document of a request."""
        raise NotImplementedError

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the requests that the task asks for: path and fields."""
        raise NotImplementedError

    def detours(self, setting: Setting) -> Sequence[Call]:
        del setting
        look = Call(tool="browser_view", arguments={})
        return (look, look, Call(tool="browser_click", arguments={"ref": "e9999"}))

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        paths = {path for path, _ in self.expected(setting)}
        found = [
            (one.path, dict(one.form if one.method == "POST" else one.query))
            for one in outcome.requests
            if one.path in paths
        ]
        expected = [(path, dict(fields)) for path, fields in self.expected(setting)]
        return "" if found == expected else f"the pages sent {found}, not {expected}"


class Search(_Browser):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        first, second, _ = chosen(random, number)
        return {"words": f"{first} {second}"}

    def prompt(self, setting: Setting) -> str:
        return f"Search the shop at {setting.url} for: {setting['words']}"

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.path == "/find":
            words = html.escape(request.query.get("q", ""))
            return document("Results", f"<p>Found: {words}</p>")
        return document(
            "Shop", form("/find", text_field("Search", "q"), button="Find", method="get")
        )

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        [view] = yield [fill(view, "Search", setting["words"])]
        yield [click(view, "Find")]
        return "The results are shown."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/find", {"q": setting["words"]})]


class Order(_Browser):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        name, remark, _ = chosen(random, number)
        counts = random.sample(range(3, 50), 3)
        return {"name": name.title(), "count": str(counts[number]), "remark": f"left of {remark}"}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Order {setting['count']} tickets for {setting['name']} at {setting.url} with the "
            f"remark: {setting['remark']}"
        )

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.method == "POST":
            return document("Thank you", "<p>Your order is on its way.</p>")
        fields = text_field("Name", "name"), text_field("Tickets", "count", "number")
        remark = "<label>Remark <textarea name=remark></textarea></label>"
        return document("Tickets", form("/order", *fields, remark, button="Order"))

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        for label, key in (("Name", "name"), ("Tickets", "count"), ("Remark", "remark")):
            [view] = yield [fill(view, label, setting[key])]
        yield [click(view, "Order", "button")]
        return "It is ordered."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/order", setting.values)]


class Registration(_Browser):
    """A list, and a box to check."""

    COUNTRIES = ("Norway", "Portugal", "Kenya", "Chile", "Japan")

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        countries = random.sample(self.COUNTRIES, 3)
        return {"name": chosen(random, number)[0].title(), "country": countries[number]}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Register {setting['name']} from {setting['country']} at {setting.url}, with the "
            "newsletter."
        )

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.method == "POST":
            return document("Welcome", "<p>You are registered.</p>")
        options = "".join(f"<option>{one}</option>" for one in ("", *self.COUNTRIES))
        country = f"<label>Country <select name=country>{options}</select></label>"
        letter = "<label><input type=checkbox name=letter value=yes> Newsletter</label>"
        fields = (text_field("Name", "name"), country, letter)
        return document("Registration", form("/register", *fields, button="Register"))

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        [view] = yield [fill(view, "Name", setting["name"])]
        country = reference(view, 'combobox "Country"')
        wanted = {"ref": country, "options": [setting["country"]]}
        [view] = yield [Call(tool="browser_select", arguments=wanted)]
        letter = reference(view, 'checkbox "Newsletter"')
        [view] = yield [Call(tool="browser_check", arguments={"ref": letter})]
        yield [click(view, "Register", "button")]
        return "The person is registered."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/register", {**setting.values, "letter": "yes"})]


class Article(_Browser):
    """The link is named by a value of the prompt."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"title": chosen(random, number)[0].title()}

    def prompt(self, setting: Setting) -> str:
        return f"Open the guide {setting['title']} at {setting.url}/guides and print view it."

    def shown(self, setting: Setting, request: Request) -> Answer:
        if request.path == "/guides":
            titles = setting.random("titles").sample(WORDS, 5)
            listed = sorted({setting["title"], *(one.title() for one in titles)})
            links = "".join(f"<li><a href=/guide/{one.lower()}>{one}</a>" for one in listed)
            return document("Guides", f"<ul>{links}</ul>")
        word = request.path.rpartition("/")[2]
        if request.path.startswith("/guide/"):
            return document(word.title(), f"<a href=/print/{word}>Print view</a>")
        return document("Print view", f"<p>{html.escape(word)}</p>")

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(f"{setting.url}/guides")]
        [view] = yield [click(view, setting["title"], "link")]
        yield [click(view, "Print view", "link")]
        return "The print view is shown."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        word = setting["title"].lower()
        return [(f"/guide/{word}", {}), (f"/print/{word}", {})]

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        found = [one.path for one in outcome.requests if one.path.startswith(("/guide/", "/print"))]
        expected = [path for path, _ in self.expected(setting)]
        return "" if found == expected else f"the pages visited are {found}, not {expected}"


class TwoPages(_Browser):
    """What the first page asks for is in the address of the second."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        name, city, _ = chosen(random, number)
        return {"name": name.title(), "city": f"{city.title()}ville"}

    def prompt(self, setting: Setting) -> str:
        return f"Sign up {setting['name']} of {setting['city']} at {setting.url}."

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.path == "/done":
            return document("Done", "<p>You are signed up.</p>")
        if request.path == "/second":
            name = html.escape(request.query.get("name", ""), quote=True)
            hidden = f'<input type=hidden name=name value="{name}">'
            fields = (hidden, text_field("City", "city"))
            return document("Your city", form("/done", *fields, button="Sign up"))
        body = form("/second", text_field("Name", "name"), button="Next", method="get")
        return document("Your name", body)

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        [view] = yield [fill(view, "Name", setting["name"])]
        [view] = yield [click(view, "Next", "button")]
        [view] = yield [fill(view, "City", setting["city"])]
        yield [click(view, "Sign up", "button")]
        return "It is signed up."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/done", setting.values)]


class SearchAndOpen(_Browser):
    """The link of the result has the words of the search."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"book": f"The {chosen(random, number)[0].title()}"}

    def prompt(self, setting: Setting) -> str:
        return f"Reserve the book {setting['book']} in the library at {setting.url}."

    def shown(self, setting: Setting, request: Request) -> Answer:
        word = request.query.get("title", request.form.get("title", ""))
        shown = html.escape(word, quote=True)
        if request.path == "/reserve":
            return document("Reserved", "<p>It waits for you.</p>")
        if request.path == "/book":
            hidden = f'<input type=hidden name=title value="{shown}">'
            return document(shown, form("/reserve", hidden, button="Reserve"))
        if request.path == "/search":
            others = setting.random("others").sample(WORDS, 3)
            titles = [word, *(f"{word} and {one}" for one in others)]
            links = "".join(f'<li><a href="/book?title={one}">{one}</a>' for one in titles)
            return document("Results", f"<ul>{links}</ul>")
        body = form("/search", text_field("Title", "title"), button="Search", method="get")
        return document("Library", body)

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        [view] = yield [fill(view, "Title", setting["book"])]
        [view] = yield [click(view, "Search", "button")]
        [view] = yield [click(view, setting["book"], "link")]
        yield [click(view, "Reserve", "button")]
        return "The book is reserved."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/reserve", {"title": setting["book"]})]


class Size(_Browser):
    """One of a group of choices."""

    SIZES = ("Tiny", "Small", "Medium", "Large", "Huge")

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        sizes = random.sample(self.SIZES, 3)
        return {"size": sizes[number], "name": chosen(random, number)[0]}

    def prompt(self, setting: Setting) -> str:
        return f"Book a {setting['size']} box with the label {setting['name']} at {setting.url}."

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.method == "POST":
            return document("Booked", "<p>The box is booked.</p>")
        sizes = "".join(
            f"<label><input type=radio name=size value={one}> {one}</label>" for one in self.SIZES
        )
        group = f"<fieldset><legend>Size</legend>{sizes}</fieldset>"
        return document("Boxes", form("/book", group, text_field("Label", "name"), button="Book"))

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        size = reference(view, f'radio "{setting["size"]}"')
        [view] = yield [Call(tool="browser_check", arguments={"ref": size})]
        [view] = yield [fill(view, "Label", setting["name"])]
        yield [click(view, "Book", "button")]
        return "The box is booked."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/book", setting.values)]


class RowOfTable(_Browser):
    """The button is in the row that a value of the prompt names."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"plant": chosen(random, number)[0].title()}

    def prompt(self, setting: Setting) -> str:
        return f"Put the plant {setting['plant']} into the cart at {setting.url}."

    def shown(self, setting: Setting, request: Request) -> Answer:
        if request.path == "/cart":
            return document("Cart", "<p>One plant is in the cart.</p>")
        random = setting.random("plants")
        plants = {setting["plant"], *(one.title() for one in random.sample(WORDS, 5))}
        rows = "".join(
            f"<tr><td>{plant}<td>{random.randint(2, 30)} EUR<td>{self._button(plant)}"
            for plant in random.sample(sorted(plants), len(plants))
        )
        return document("Plants", f"<table>{rows}</table>")

    def _button(self, plant: str) -> str:
        hidden = f"<input type=hidden name=plant value={plant}>"
        button = f'<button aria-label="Add {plant} to the cart">Add</button>'
        return f"<form method=post action=/cart>{hidden}{button}</form>"

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        yield [click(view, f"Add {setting['plant']} to the cart", "button")]
        return "It is in the cart."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/cart", setting.values)]


class DayOfVisit(_Browser):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        days = random.sample(range(10, 28), 3)
        name = chosen(random, number)[0].title()
        return {"day": f"2027-0{number + 4}-{days[number]}", "name": name}

    def prompt(self, setting: Setting) -> str:
        return f"Book a visit of {setting['name']} on {setting['day']} at {setting.url}."

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.method == "POST":
            return document("See you", "<p>The visit is booked.</p>")
        fields = text_field("Visitor", "name"), text_field("Day", "day", "date")
        return document("Visits", form("/visit", *fields, button="Book"))

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        [view] = yield [fill(view, "Visitor", setting["name"])]
        [view] = yield [fill(view, "Day", setting["day"])]
        yield [click(view, "Book", "button")]
        return "The visit is booked."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/visit", {"name": setting["name"], "day": setting["day"]})]


class WrongTurn(_Browser):
    """The model follows a link that leads nowhere and goes back, then sends a message."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        first, second, third = chosen(random, number)
        return {"subject": f"About {first}", "text": f"The {second} is {third}"}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Write to the office at {setting.url} with the subject {setting['subject']} and the "
            f"text: {setting['text']}"
        )

    def shown(self, setting: Setting, request: Request) -> Answer:
        del setting  # the same in each world
        if request.method == "POST":
            return document("Sent", "<p>Your message was sent.</p>")
        if request.path == "/contact":
            text = "<label>Text <textarea name=text></textarea></label>"
            fields = (text_field("Subject", "subject"), text)
            return document("Contact", form("/message", *fields, button="Send"))
        return document("Office", "<a href=/contact>Contact</a>")

    def play(self, setting: Setting) -> Play:
        [view] = yield [open_page(setting.url)]
        yield [click(view, "About", "link")]
        [view] = yield [Call(tool="browser_back", arguments={})]
        [view] = yield [click(view, "Contact", "link")]
        [view] = yield [fill(view, "Subject", setting["subject"])]
        [view] = yield [fill(view, "Text", setting["text"])]
        yield [click(view, "Send", "button")]
        return "The message is sent."

    def expected(self, setting: Setting) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("/message", setting.values)]


RULES: tuple[Rule, ...] = (
    Search(),
    Order(),
    Registration(),
    Article(),
    TwoPages(),
    SearchAndOpen(),
    Size(),
    RowOfTable(),
    DayOfVisit(),
    WrongTurn(),
)
