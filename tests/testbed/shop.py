"""A small shop on loopback: its goods, prices and order numbers follow from a seed, and it keeps
the orders that it gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from testbed.webserver import Reply, Seen, WebServer, serving, text

GOODS = ("Blue Lamp", "Red Chair", "Green Desk", "White Shelf", "Black Sofa", "Grey Carpet")
STYLE = "<style>.hidden{display:none} li{margin:4px} #tile{cursor:pointer;width:60px;height:30px}</style>"
FRAME = """<!doctype html><title>Address</title><label>City <input name=city
  oninput="parent.document.forms.order.city.value = this.value"></label>
<label>Speed <select name=speed onchange="parent.document.forms.order.speed.value = this.value">
<option>Slow<option>Fast</select></label>"""
ORDER = """<h1>Order</h1><form name=order method=post action=/order>
<input type=hidden name=item value="%s"><input type=hidden name=city><input type=hidden name=speed>
<label>Mail <input name=mail type=email></label>
<label>Password <input name=password type=password></label>
<label><input type=checkbox name=gift value=yes> Gift wrap</label>
<iframe title="Address" src=/frame width=400 height=80></iframe><x-confirm></x-confirm></form>
<script>customElements.define('x-confirm', class extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({mode: 'open'});
    root.innerHTML = '<button type=button>Confirm order</button><button type=button>Cancel</button>';
    root.firstChild.onclick = () => document.forms.order.submit();
    root.lastChild.onclick = () => { location.href = '/cancelled'; };
  }
});</script>"""
ROUTES = """<nav><button onclick="go('goods')">Goods</button><button onclick="go('help')">Help</button></nav>
<main></main><script>
function go(route) {
  history.pushState({}, '', '/app/' + route);
  setTimeout(() => { document.querySelector('main').innerHTML = route === 'goods'
    ? '<h1>Goods</h1><a href="/">To the shop</a>' : '<h1>Help</h1>'; document.title = route; }, 50);
}</script>"""


@dataclass(kw_only=True)
class Shop:
    """orders: the forms that were sent. redesigned: the button for an order has another name.
    extra: the page at ``/extra``.
    """

    seed: int
    orders: list[Mapping[str, str]] = field(default_factory=list)
    redesigned: bool = False
    extra: str = ""
    web: WebServer = field(init=False)

    def goods(self) -> list[str]:
        """Return all goods in this seed's order."""
        return sorted(GOODS, key=lambda one: (len(one) * self.seed * 7 + ord(one[0])) % 11)

    def answer(self, request: Seen) -> Reply:
        """Return a page."""
        parts = urlsplit(request.path)
        if request.method == "POST":
            sent = parse_qs(request.body.decode())
            self.orders.append({key: values[0] for key, values in sent.items()})
            return Reply(status=303, headers=[("Location", f"/thanks/{self.seed * 7919}")])
        body = self._body(parts.path, parse_qs(parts.query))
        title = parts.path.strip("/").split("/")[0].title() or "Shop"
        page = (
            FRAME
            if parts.path == "/frame"
            else f"<!doctype html><title>{title}</title>{STYLE}{body}"
        )
        return text(page, "text/html; charset=utf-8")

    def _body(self, path: str, query: Mapping[str, list[str]]) -> str:
        match path.strip("/").split("/"):
            case [""]:
                return "<h1>Shop</h1><form action=/find><label>Search <input name=q></label></form>"
            case ["find"]:
                words = query["q"][0]
                found = [one for one in self.goods() if words.casefold() in one.casefold()]
                others = [one for one in self.goods() if one not in found]
                order = "Purchase" if self.redesigned else "Order"
                items = "".join(
                    f'<li><b>{one}</b> <a href="/order/{number}">{order} {one}</a> <button>Watch</button></li>'
                    for one in found + others
                    for number in (sorted(GOODS).index(one),)
                )
                return f"<h1>Found: {words}</h1><ul>{items}</ul>"
            case ["order", number]:
                return ORDER % sorted(GOODS)[int(number)]
            case ["thanks", number]:
                return f"<h1>Thanks for order {number}</h1><a href=/>Home</a>"
            case ["extra"]:
                return self.extra
            case ["app", *_]:
                return ROUTES
            case _:
                return "<h1>Nothing here</h1>"


@contextmanager
def open_shop(seed: int) -> Iterator[Shop]:
    """Serve a shop for the block."""
    shop = Shop(seed=seed)
    with serving(shop.answer) as web:
        shop.web = web
        yield shop
