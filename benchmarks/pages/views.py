"""Pages as sites write them, for page views: shops, goods, mail, calendars, tables, articles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from .tree import Element, Node, el, render
from .words import CITIES, COLOURS, GOODS, PEOPLE, REMARKS, SUBJECTS, TAGS

__all__ = ["VIEW_PAGES", "view_page"]

VIEW_PAGES = 30
SIZES = (1, 2, 3, 5, 8)
"""How much is on the pages of each kind."""
STYLE = """*,::before,::after{box-sizing:border-box}:root{--accent:#3454d1;--line:#dfe3ea}
body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#1c2430}
.layout{max-width:1180px;margin:0 auto;padding:0 20px;display:grid;gap:20px}
.cluster{display:flex;flex-wrap:wrap;gap:8px;align-items:center}
.surface{border:1px solid var(--line);border-radius:10px;padding:14px;background:#fff}
.button{border:1px solid var(--line);border-radius:8px;padding:6px 12px;background:#fff}
.sr-only{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0,0,0,0)}
table{border-collapse:collapse}td,th{border-bottom:1px solid var(--line);padding:6px 10px;text-align:left}
@media (max-width:700px){.layout{padding:0 10px}.wide{display:none}}"""
SCRIPT = """window.state={user:null,locale:'en',flags:{beta:false,track:false}};
document.addEventListener('click',function(event){var one=event.target.closest('[data-action]');
if(!one)return;window.state.last=one.getAttribute('data-action')+':'+one.getAttribute('data-id');});"""


def view_page(number: int) -> str:
    """Return the HTML of a page by its number, from 0."""
    kind, size = KINDS[number % len(KINDS)], SIZES[number // len(KINDS)]
    draw = Random(f"view {number}")  # noqa: S311 - no secrets
    title, *content = kind(draw, size)
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("title", str(title)),
        el("style", STYLE),
        el("script", SCRIPT, type="text/javascript"),
    )
    body = el("body", _header(draw), el("main", *content, class_="layout"), _footer())
    return f"<!doctype html>{render(el('html', head, body, lang='en'))}"


def _header(draw: Random) -> Element:
    links = [
        el("li", el("a", word, href=f"/{word.lower()}", class_=_css("nav-link", draw)))
        for word in ("Home", "Departments", "Offers", "Account", "Help")
    ]
    search = el(
        "form",
        el("label", "Search the site", for_="site-search", class_="sr-only"),
        el("input", type="search", id="site-search", name="q", placeholder="Search"),
        _button("Search", "search", 0, draw),
        role="search",
        class_="cluster",
    )
    return el(
        "header",
        el("div", _icon("M3 9l9-6 9 6v12H3z"), el("a", "Harbour & Sons", href="/"), class_="cluster"),
        el("nav", el("ul", *links, class_="cluster"), aria_label="Main"),
        search,
        class_="layout surface",
    )  # fmt: skip


def _footer() -> Element:
    words = ("Imprint", "Privacy", "Terms of use", "Contact", "Careers", "Press")
    return el(
        "footer",
        *(el("a", word, href=f"/{word.lower().replace(' ', '-')}") for word in words),
        el("p", "© 2031 Harbour & Sons. All prices with tax."),
        class_="layout cluster",
    )


def shop(draw: Random, size: int) -> Sequence[Node]:
    """A list of goods with filters."""
    filters = [
        el(
            "fieldset",
            el("legend", legend),
            *(
                el("label", el("input", type="checkbox", name=legend.lower(), value=one), " ", one, class_="cluster")
                for one in draw.sample(list(options), 5)
            ),
            class_="surface",
        )
        for legend, options in (("Colour", COLOURS), ("Category", TAGS))
    ]  # fmt: skip
    tiles = [_tile(draw, number) for number in range(12 * size)]
    pages = el(
        "nav",
        *(el("a", str(one), href=f"?page={one}", class_="button") for one in range(1, 6)),
        aria_label="Pages",
    )
    return (
        "Everything for the house",
        el("h1", "Everything for the house"),
        el("aside", el("h2", "Filter"), *filters),
        el("section", *tiles, class_="layout"),
        pages,
    )


def _tile(draw: Random, number: int) -> Element:
    name = f"{draw.choice(GOODS)} {draw.randint(100, 999)}"
    return el(
        "article",
        el("a", el("img", src=f"/img/{number}.webp", alt=name, width="240", height="180", loading="lazy"),
           href=f"/goods/{number}", class_=_css("tile-media", draw)),
        el("h3", el("a", name, href=f"/goods/{number}", class_=_css("tile-title", draw))),
        el("p", draw.choice(REMARKS), class_=_css("tile-text", draw)),
        el("p", el("span", f"{draw.randint(5, 900)}.{draw.randint(10, 99)} €"), " ",
           el("s", f"{draw.randint(900, 999)}.00 €"), class_=_css("tile-price", draw)),
        el("div", _button("Add to cart", "add", number, draw), _button("", "like", number, draw, label=f"Remember {name}"),
           class_="cluster"),
        class_=_css("tile surface", draw),
        data_id=str(number),
    )  # fmt: skip


def goods(draw: Random, size: int) -> Sequence[Node]:
    """One of the goods, with choices, data and reviews."""
    name = draw.choice(GOODS)
    sizes = [
        el("label", el("input", type="radio", name="size", value=one), one, class_="button")
        for one in ("Small", "Medium", "Large")
    ]
    facts = [
        el("tr", el("th", word, scope="row"), el("td", f"{draw.randint(2, 90)} cm"))
        for word in ("Width", "Height", "Depth", "Cable", "Package")
    ]
    reviews = [
        el(
            "article",
            el("h3", draw.choice(SUBJECTS)),
            el("p", el("b", draw.choice(PEOPLE)), f" · {draw.randint(1, 5)} of 5", class_=_css("by", draw)),
            el("p", _sentences(draw, 5)),
            el("div", _button("Helpful", "helpful", number, draw), _button("Report", "report", number, draw), class_="cluster"),
            class_=_css("review surface", draw),
        )
        for number in range(14 * size)
    ]  # fmt: skip
    amount = el("input", type="number", id="amount", name="amount", value="1", min="1")
    order = el(
        "form",
        el("fieldset", el("legend", "Size"), *sizes),
        el("label", "Quantity", for_="amount"),
        amount,
        _button("Add to cart", "add", 1, draw),
        class_="surface",
    )
    return (
        name,
        el("h1", name),
        el("p", _sentences(draw, 4)),
        order,
        el("h2", "Data"),
        el("table", el("tbody", *facts)),
        el("h2", "Reviews"),
        el("section", *reviews),
    )


def mail(draw: Random, size: int) -> Sequence[Node]:
    """A mailbox: folders, a toolbar, rows with boxes and stars."""
    folders = [
        el("li", el("a", f"{word} ", el("span", str(draw.randint(1, 99))), href=f"#{word}", class_=_css("folder", draw)))
        for word in ("Inbox", "Starred", "Drafts", "Sent", "Archive", "Spam")
    ]  # fmt: skip
    tools = [
        _button(word, word.lower(), 0, draw) for word in ("Archive", "Delete", "Move", "Reply")
    ]
    rows = []
    for number in range(25 * size):
        subject = f"{draw.choice(SUBJECTS)} {number + 1}"
        rows.append(
            el(
                "tr",
                el("td", el("input", type="checkbox", aria_label=f"Select {subject}"), class_=_css("cell-select", draw)),
                el("td", _button("☆", "star", number, draw, label=f"Star {subject}")),
                el("td", draw.choice(PEOPLE), class_=_css("cell-from", draw)),
                el("td", el("a", subject, href=f"#mail-{number}"), el("span", f" – {draw.choice(REMARKS)}"),
                   class_=_css("cell-subject", draw)),
                el("td", f"{draw.randint(1, 28)} May", class_=_css("cell-date", draw)),
                class_=_css("mail-row", draw),
                data_id=f"msg-{draw.randint(10**8, 10**9)}",
            )
        )  # fmt: skip
    return (
        "Inbox",
        el("h1", "Inbox"),
        el("nav", _button("Write", "write", 0, draw), el("ul", *folders), aria_label="Folders"),
        el("div", *tools, role="toolbar", aria_label="Messages", class_="cluster"),
        el("table", el("tbody", *rows), class_="surface"),
    )


def calendar(draw: Random, size: int) -> Sequence[Node]:
    """A month as a grid, with appointments to open, and a list of the next ones."""
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    weeks = []
    for week in range(5):
        cells = []
        for day in range(1 + 7 * week, 8 + 7 * week):
            dates = [
                el("li", _button(f"{draw.randint(8, 19)}:{draw.choice(('00', '30'))} {draw.choice(SUBJECTS)}",
                                 "open", day, draw))
                for _ in range(draw.randint(0, size))
            ]  # fmt: skip
            cells.append(
                el(
                    "td",
                    el("span", str(day), class_=_css("day", draw)),
                    el("ul", *dates),
                    _button("+", "new", day, draw, label=f"New appointment on {day} May"),
                    class_=_css("calendar-cell", draw),
                    data_date=f"2031-05-{day:02}",
                )
            )
        weeks.append(el("tr", *cells))
    views = [_button(word, word.lower(), 0, draw) for word in ("Day", "Week", "Month", "Year")]
    people = [
        el("label", el("input", type="checkbox", checked="", value=one), " ", one)
        for one in draw.sample(PEOPLE, 6)
    ]
    return (
        "May 2031",
        el("h1", "May 2031"),
        el("div", _button("‹", "back", 0, draw, label="Earlier month"),
           _button("›", "next", 0, draw, label="Later month"), *views, class_="cluster"),
        el("aside", el("h2", "Calendars"), *people),
        el("table", el("thead", el("tr", *(el("th", day, scope="col") for day in days))), el("tbody", *weeks)),
    )  # fmt: skip


def tables(draw: Random, size: int) -> Sequence[Node]:
    """Figures in tables whose heads sort, with actions in each row."""
    heads = ("Order", "Customer", "City", "Amount", "State", "Due")
    head = el(
        "tr", *(el("th", _button(word, "sort", 0, draw), scope="col") for word in heads), el("th")
    )
    parts: list[Node] = []
    for quarter in range(1, 3):
        rows = []
        for number in range(15 * size):
            order = f"{quarter}{number + 1000}"
            rows.append(
                el(
                    "tr",
                    el("td", el("a", f"No. {order}", href=f"/orders/{order}")),
                    *(el("td", text, class_=_css("cell", draw)) for text in (
                        draw.choice(PEOPLE), draw.choice(CITIES), f"{draw.randint(20, 9000):,} €",
                        draw.choice(("open", "paid", "sent")), f"2031-0{quarter}-{draw.randint(10, 28)}")),
                    el("td", _button("Edit", "edit", number, draw), _button("Delete", "delete", number, draw)),
                    class_=_css("row", draw),
                    data_key=order,
                )
            )  # fmt: skip
        parts += (
            el("h2", f"Quarter {quarter}"),
            el("table", el("caption", f"Orders of quarter {quarter}"), el("thead", head), el("tbody", *rows)),
        )  # fmt: skip
    choice = el("select", *(el("option", one, value=one) for one in CITIES), id="city", name="city")
    return (
        "Orders",
        el("h1", "Orders"),
        el("form", el("label", "City", for_="city"), choice, _button("Apply", "apply", 0, draw)),
        *parts,
    )


def article(draw: Random, size: int) -> Sequence[Node]:
    """A long text with chapters, links, notes, a table of contents and comments."""
    chapters = 5 * size
    contents = [
        el("li", el("a", f"Chapter {one}: {draw.choice(SUBJECTS)}", href=f"#chapter-{one}"))
        for one in range(1, chapters + 1)
    ]
    parts: list[Node] = []
    for one in range(1, chapters + 1):
        parts.append(el("h2", f"Chapter {one}", id=f"chapter-{one}"))
        parts += [
            el("p", _sentences(draw, 4), " ", el("a", draw.choice(SUBJECTS).lower(), href=f"/wiki/{one}"), " ",
               el("em", draw.choice(REMARKS).lower()), ". ", _sentences(draw, 3), class_=_css("prose", draw))
            for _ in range(4)
        ]  # fmt: skip
    comments = [
        el("li", el("b", draw.choice(PEOPLE)), el("p", _sentences(draw, 2)), _button("Reply", "reply", one, draw))
        for one in range(6)
    ]  # fmt: skip
    form = el(
        "form",
        el("label", "Your comment", for_="comment"),
        el("textarea", id="comment", name="comment"),
        _button("Send", "send", 0, draw),
    )
    return (
        "A history of the harbour",
        el("h1", "A history of the harbour"),
        el("nav", el("h2", "Contents"), el("ol", *contents), aria_label="Contents"),
        el("article", *parts),
        el("section", el("h2", "Comments"), el("ul", *comments), form),
    )


Kind = Callable[[Random, int], Sequence[Node]]
KINDS: tuple[Kind, ...] = (shop, goods, mail, calendar, tables, article)


def _button(text: str, action: str, number: int, draw: Random, *, label: str = "") -> Element:
    inside: tuple[Node, ...] = (text,) if text else (_icon("M8 14l-6-6a4 4 0 016-6 4 4 0 016 6z"),)
    named = {"aria_label": label} if label else {}
    return el(
        "button",
        *inside,
        type="button",
        class_=_css("button", draw),
        data_action=action,
        data_id=str(number),
        **named,
    )


def _icon(path: str) -> Element:
    drawn = el("path", d=path, fill="none", stroke="currentColor")
    return el("svg", drawn, width="20", height="20", viewBox="0 0 24 24", aria_hidden="true")


def _css(word: str, draw: Random) -> str:
    """Return classes as build tools of sites write them."""
    return (
        f"{word} c-{draw.randbytes(3).hex()} flex items-center gap-2 rounded-md px-3 py-2 text-sm"
    )


def _sentences(draw: Random, count: int) -> str:
    words = ("The", "old", "crane", "beside", "every", "warehouse", "was", "built", "before", "water", "reached",
             "stone", "quay", "while", "ships", "waited", "outside", "until", "evening", "came", "slowly")  # fmt: skip
    found = []
    for _ in range(count):
        chosen = draw.choices(words, k=draw.randint(9, 16))
        found.append(f"{' '.join(chosen).capitalize()} {draw.choice(CITIES)}.")
    return " ".join(found)
