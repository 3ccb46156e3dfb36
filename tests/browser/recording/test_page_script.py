"""Script of a recorder inside a page: how it tells an element from its equals, and which elements a
press, a pull and a scroll are about. Each recording is replayed where the elements have moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from testbed.browser_harness import BrowserHarness
from testbed.webserver import Seen, serving, text
from uncaged_browser.operations import write_operation
from uncaged_browser.recording.recorder import Recorder
from uncaged_browser.recording.recording import Recording
from uncaged_browser.recording.replaying import RecordingReplay, replay
from uncaged_bundles.records import replace

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

Actions = Callable[["Page"], Awaitable[object]]
END = """<button onclick="document.title += ' end'">End</button><script>
const log = text => { document.title += ' ' + text; };</script>"""


def steps_and_title(
    harness: BrowserHarness,
    pages: Sequence[str],
    actions: Actions,
    timeout_s: float = 60.0,
    **values: tuple[str, str],
) -> tuple[list[dict[str, Any]], RecordingReplay, str]:
    """Record actions on the first page and replay them on the second: the steps after the load, the
    replay, and the title of the second page. values: recorded and replayed one by name.
    """

    def answer(seen: Seen) -> Any:
        del seen
        return text(f"<!doctype html><title>T</title>{shown[0]}{END}", "text/html; charset=utf-8")

    async def record(url: str) -> Recording:
        async with harness.context() as context:
            page = await context.context.new_page()
            recorder = Recorder(context)
            await recorder.start()
            await page.goto(url)
            await actions(page)
            await page.get_by_role("button", name="End").click()
            return await recorder.stop()

    async def again(recording: Recording) -> tuple[RecordingReplay, str]:
        async with harness.context() as context:
            found = await replay(
                prepared(recording, timeout_s),
                context,
                {name: value for name, (_, value) in values.items()},
            )
            return found, await context.tabs.pages[0].title()

    shown = list(pages)
    with serving(answer) as web:
        recording = harness.run(record(f"{web.url}/"))
        recording = replace(
            recording, parameters={name: value for name, (value, _) in values.items()}
        )
        del shown[0]
        done, title = harness.run(again(recording))
    return [write_operation(step) for step in recording.steps[1:-1]], done, title


def prepared(recording: Recording, timeout_s: float) -> Recording:
    """The recording with a limit for each step, and no expectations: its pages write into their
    title.
    """
    steps = tuple(
        dataclasses.replace(step, expect=None, timeout_s=timeout_s) for step in recording.steps
    )
    return replace(recording, steps=steps)


def table(*names: str) -> str:
    rows = "".join(
        f"<tr><td>{len(name) * 311}<td>{name}<td><button onclick=\"log('edit {name}')\">Edit</button>"
        f"<button onclick=\"log('icon {name}')\"><svg width=9 height=9></svg></button>"
        for name in names
    )
    return f"<table>{rows}</table>"


@pytest.mark.parametrize(("position", "word"), [(0, "edit"), (1, "icon")])
def test_equal_buttons_are_told_apart_by_their_row(
    harness: BrowserHarness, position: int, word: str
) -> None:
    """A button that each row has, with a name or with a picture, is that of the parameter's row,
    wherever that is; no alternative is left that finds the recorded row.
    """

    async def click(page: Page) -> None:
        await page.get_by_role("row").nth(1).get_by_role("button").nth(position).click()

    pages = [
        table("Red Chair", "Blue Lamp", "Oak Desk"),
        table("Oak Desk", "Clay Pot", "Red Chair"),
    ]
    [step], done, title = steps_and_title(harness, pages, click, item=("Blue Lamp", "Red Chair"))
    assert step["target"][0]["near"] == "Blue Lamp"
    assert done.succeeded, done.steps[-1]
    assert title == f"T {word} Red Chair end"
    assert all("xpath" not in one for one in step["target"])


def test_a_row_that_is_gone_is_drift_and_no_other_row(harness: BrowserHarness) -> None:
    """Without the parameter's row nothing is clicked."""

    async def click(page: Page) -> None:
        await page.get_by_role("button", name="Edit").nth(1).click()

    pages = [table("Red Chair", "Blue Lamp"), table("Red Chair", "Clay Pot")]
    _, done, title = steps_and_title(
        harness, pages, click, timeout_s=2.0, item=("Blue Lamp", "Oak Desk")
    )
    assert not done.succeeded
    assert (len(done.steps), title) == (2, "T")


SOLD_OUT = """<ul><li><b>Blue Lamp</b> sold out</li><li><b>Clay Pot</b> <button onclick="log('pot')">Order</button>
</ul><ul>%s</ul>"""


@pytest.mark.parametrize(
    "others", ["", "<li><b>Oak Desk</b> <button onclick=\"log('desk')\">Order</button>"]
)
def test_a_text_of_another_row_is_not_near(harness: BrowserHarness, others: str) -> None:
    """A button that was the only one belongs to its row, too; where this row has no button, that of
    the next row is not taken for it, be it the only one of its list or of the page.
    """

    async def click(page: Page) -> None:
        await page.get_by_role("button", name="Order").click()

    pages = ["<ul><li><b>Red Chair</b> <button>Order</button></ul>", SOLD_OUT % others]
    _, done, title = steps_and_title(
        harness, pages, click, timeout_s=2.0, item=("Red Chair", "Blue Lamp")
    )
    assert not done.succeeded
    assert (len(done.steps), title) == (2, "T")


def test_a_cell_is_found_by_its_row_and_its_column(harness: BrowserHarness) -> None:
    """One of many equal buttons in a table is that of its row's and its column's head."""

    def week(days: Sequence[str], hours: Sequence[str]) -> str:
        head = "".join(f"<th>{day}" for day in days)
        rows = "".join(
            f"<tr><th>{hour}"
            + "".join(f"<td><button onclick=\"log('{day} {hour}')\">free</button>" for day in days)
            for hour in hours
        )
        return f"<table><tr><th>{head}</tr>{rows}</table>"

    async def click(page: Page) -> None:
        await page.get_by_role("button", name="free").nth(5).click()

    pages = [
        week(("Mon", "Tue", "Wed"), ("9:00", "11:00", "13:00")),
        week(("Tue", "Mon", "Wed"), ("11:00", "8:00", "9:00")),
    ]
    [step], done, title = steps_and_title(harness, pages, click)
    assert step["target"][0]["near"] == ["11:00", "Wed"]
    assert done.succeeded, done.steps[-1]
    assert title == "T Wed 11:00 end"


def test_quick_clicks_are_as_many_when_replayed(harness: BrowserHarness) -> None:
    """Five clicks on one button, however quick, are five."""
    body = "<button onclick=\"log('+')\">+</button>"

    async def click(page: Page) -> None:
        for count in (1, 2, 3, 4, 5):
            await page.get_by_role("button", name="+").dispatch_event("pointerdown")
            box = await page.get_by_role("button", name="+").bounding_box()
            assert box is not None
            await page.mouse.move(box["x"] + 3, box["y"] + 3)
            await page.mouse.down(click_count=count)
            await page.mouse.up(click_count=count)

    _, done, title = steps_and_title(harness, [body, body], click)
    assert done.succeeded, done.steps[-1]
    assert title == "T + + + + + end"


def test_an_element_that_a_press_takes_away_is_clicked(harness: BrowserHarness) -> None:
    """A suggestion that is gone when the button is let go is a step all the same."""

    def suggestions(*names: str) -> str:
        return "".join(
            f"<div onmousedown=\"log('{name}'); this.parentNode.remove()\">{name}</div>"
            for name in names
        )

    def page(*names: str) -> str:
        return f"<p>Who?</p><section>{suggestions(*names)}</section>"

    async def click(page: Page) -> None:
        await page.mouse.move(*await centre(page, "Ada"))
        await page.mouse.down()
        await page.mouse.up()

    steps, done, title = steps_and_title(
        harness, [page("Bo", "Ada"), page("Ada", "Cy", "Bo")], click, who=("Ada", "Bo")
    )
    assert [step["do"] for step in steps] == ["click"]
    assert done.succeeded, done.steps[-1]
    assert title == "T Bo end"


async def turn_wheel(page: Page, pixels: int) -> None:
    """Turn the wheel, and wait for the page's event: it may come after that of a later click."""
    count = await page.evaluate(
        "() => window.wheels ??= (addEventListener('wheel', () => { wheels += 1; }, true), 0)"
    )
    await page.mouse.wheel(0, pixels)
    await page.wait_for_function("count => wheels > count", arg=count)


async def centre(page: Page, words: str) -> tuple[float, float]:
    box = await page.get_by_text(words, exact=True).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


SORTED = """<ol style="width:200px">{0}</ol><script>
let pulled = null;
const list = document.querySelector('ol');
list.onpointerdown = event => {{ pulled = event.target; list.setPointerCapture(event.pointerId); }};
list.onpointermove = event => {{ if (!pulled) return;
  const over = document.elementsFromPoint(event.clientX, event.clientY).find(one => one.tagName === 'LI' && one !== pulled);
  if (!over) return; const box = over.getBoundingClientRect();
  over[event.clientY < box.top + box.height / 2 ? 'before' : 'after'](pulled); }};
list.onpointerup = () => {{ pulled = null; log([...list.children].map(one => one.textContent)); }};</script>"""
PAD = """<canvas width=300 height=150 style="touch-action:none"></canvas><script>
const pad = document.querySelector('canvas'); let from = '';
pad.onpointerdown = event => { from = event.offsetX; };
pad.onpointerup = event => { log(from + '-' + event.offsetX); };</script>"""


def test_an_entry_is_pulled_to_where_another_was(harness: BrowserHarness) -> None:
    """In a list that sorts itself under the pointer, the end of a pull is the entry that was there
    before it.
    """

    def page(*names: str) -> str:
        style = "cursor:grab;touch-action:none;height:30px"
        return SORTED.format("".join(f"<li style='{style}'>{name}</li>" for name in names))

    async def pull(page: Page) -> None:
        x, y = await centre(page, "Bern")
        _, end = await centre(page, "Lyon")
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.mouse.move(x, end + 9, steps=6)
        await page.mouse.up()

    [step], done, title = steps_and_title(
        harness, [page("Bern", "Graz", "Lyon"), page("Graz", "Bern", "Linz", "Lyon")], pull
    )
    assert step["do"] == "drag"
    assert (
        step["onto"][0]["text"] == "Lyon"
        if "text" in step["onto"][0]
        else step["onto"][0]["name"] == "Lyon"
    )
    assert done.succeeded, done.steps[-1]
    assert title == "T Graz,Linz,Lyon,Bern end"


def test_a_line_on_a_canvas_is_one_pull(harness: BrowserHarness) -> None:
    """A pull within one element has both points, and no click besides."""

    async def draw(page: Page) -> None:
        box = await page.locator("canvas").bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + 30, box["y"] + 20)
        await page.mouse.down()
        await page.mouse.move(box["x"] + 200, box["y"] + 90, steps=4)
        await page.mouse.up()

    [step], done, title = steps_and_title(harness, [PAD, PAD], draw)
    assert (step["do"], step["offset"], step["onto_offset"]) == ("drag", [30, 20], [200, 90])
    assert done.succeeded, done.steps[-1]
    assert title == "T 30-200 end"


LIST = """<style>body > button { position: fixed; right: 0; top: 0 }</style><section></section><script>
const section = document.querySelector('section'), names = %s;
const grow = () => names.splice(0, 10).forEach(name => section.insertAdjacentHTML('beforeend',
  `<div style="height:120px"><b>${name}</b> <button onclick="log('${name}')">Read</button></div>`));
grow(); onscroll = () => { if (innerHeight + scrollY > document.body.scrollHeight - 100) setTimeout(grow, 30); };</script>"""


STILL = """() => new Promise(done => { const before = scrollY;
requestAnimationFrame(() => requestAnimationFrame(() => done(scrollY === before))); })"""
COVERED = """<button onclick="log('Order')">Order</button>
<div style="position:fixed; inset:0; display:none">Wait</div><script>
const cover = document.querySelector('div'), show = shown => { cover.style.display = shown ? 'block' : 'none'; };
const counted = []; ['pointerdown', 'click'].forEach(type => addEventListener(type, event => counted.push(
  `${type} ${event.target.tagName}`), {capture: true}));
addEventListener('mousemove', () => { show(true); setTimeout(show, 200, false); }, {once: true});</script>"""


def test_a_press_that_a_program_stopped_is_not_recorded(harness: BrowserHarness) -> None:
    """A page covers a button while the mouse moves onto it. The program that drives the page stops
    the press of the cover and presses the button once that is free.
    """

    async def click(page: Page) -> None:
        await page.get_by_role("button", name="Order").click()
        pressed.extend(await page.evaluate("counted"))

    pressed: list[str] = []
    [step], done, title = steps_and_title(harness, [COVERED] * 2, click)
    assert pressed[-2:] == ["pointerdown BUTTON", "click BUTTON"]
    assert step["target"][0]["name"] == "Order"
    assert done.succeeded, done.steps[-1]
    assert title == "T Order end"


def test_what_was_written_is_no_name_of_the_area(harness: BrowserHarness) -> None:
    """An area for writing that has no name is found again whatever its text is by then."""
    body = """<div contenteditable style="height:40px" oninput="document.title = 'T ' + this.innerText"></div>"""

    async def write(page: Page) -> None:
        await page.locator("[contenteditable]").click()
        await page.keyboard.type("Hello")

    [step], done, title = steps_and_title(harness, [body, body], write, words=("Hello", "Bye"))
    assert step["do"] == "fill"
    assert done.succeeded, done.steps[-1]
    assert title == "T Bye end"


def test_scrolling_ends_at_the_element_that_is_used_then(harness: BrowserHarness) -> None:
    """In a list that grows while it is scrolled, an entry is reached wherever it is."""

    def page(where: int) -> str:
        return LIST % [f"Entry {n}" if n != where else "Wanted" for n in range(50)]

    async def read(page: Page) -> None:
        await page.mouse.move(300, 300)
        for _ in range(20):
            if await page.get_by_text("Wanted").count():
                break
            await turn_wheel(page, 600)
            await page.wait_for_timeout(50)
        await page.wait_for_function(STILL)
        await page.locator("div", has_text="Wanted").get_by_role("button").click()

    [scroll, click], done, title = steps_and_title(harness, [page(14), page(38)], read)
    assert (scroll["do"], click["do"]) == ("scroll", "click")
    assert scroll["target"] == click["target"]
    assert done.succeeded, done.steps[-1]
    assert title == "T Wanted end"


NOTES = """<div class="notes" style="height:90px; width:300px; overflow:auto"><p style="height:900px">%s</p>
<button onclick="log('last')">Last</button></div>
<button onclick="log('at ' + (document.querySelector('.notes').scrollTop > 700))">Read</button>"""


@pytest.mark.parametrize("button", ["Read", "Last"])
def test_the_wheel_over_an_area_scrolls_the_area(harness: BrowserHarness, button: str) -> None:
    """An area with scroll bars of its own is scrolled to the end that was reached, though the
    element that is used then is in sight already; or to that element, if the area has it.
    """

    async def read(page: Page) -> None:
        await page.locator(".notes").hover()
        for _ in range(8):
            await turn_wheel(page, 200)
        await page.wait_for_function("document.querySelector('.notes').scrollTop > 700")
        await page.get_by_role("button", name=button).click()

    pages = [NOTES % "One", NOTES % "Two"]
    steps, done, title = steps_and_title(harness, pages, read)
    assert done.succeeded, done.steps[-1]
    assert title == f"T {'at true' if button == 'Read' else 'last'} end"
    if button == "Read":
        assert {"do": "scroll", "direction": "bottom", "area": steps[0]["area"]} in steps
    else:
        assert [step.get("target") for step in steps] == [steps[1]["target"]] * 2


def drawn(*names: str) -> str:
    return "".join(
        f"""<div><b>{name}</b> <i class="star" onclick="log('star {name}')"
        style="display:inline-block; width:9px; height:9px; background:gold"></i></div>"""
        for name in names
    )


def test_a_control_that_is_only_drawn_is_found_by_its_class(harness: BrowserHarness) -> None:
    """A sign without role, name and text is that of the parameter's row, not that at its place."""

    async def click(page: Page) -> None:
        await page.locator("div", has_text="Blue Lamp").locator("i").click()

    pages = [
        drawn("Red Chair", "Blue Lamp", "Oak Desk"),
        drawn("Oak Desk", "Clay Pot", "Red Chair"),
    ]
    [step], done, title = steps_and_title(harness, pages, click, item=("Blue Lamp", "Red Chair"))
    assert step["target"][0] == {"css": "i.star", "near": "Blue Lamp"}
    assert done.succeeded, done.steps[-1]
    assert title == "T star Red Chair end"


def colours(*names: str) -> str:
    return "".join(
        f"""<div class="box" title="{name}" onclick="log('{name}')"
        style="display:inline-block; width:20px; height:20px; background:{name}"></div>"""
        for name in names
    )


def test_a_box_without_a_role_is_found_by_its_title(harness: BrowserHarness) -> None:
    """Of equal boxes, that with the parameter's title is meant, wherever it is."""

    async def click(page: Page) -> None:
        await page.get_by_title("Teal").click()

    pages = [colours("Crimson", "Teal", "Olive"), colours("Olive", "Navy", "Crimson")]
    [step], done, title = steps_and_title(harness, pages, click, colour=("Teal", "Crimson"))
    assert step["target"] == [{"css": "div.box", "near": "Teal"}]
    assert done.succeeded, done.steps[-1]
    assert title == "T Crimson end"


CLOSED = """<x-player style="display:block"></x-player><script>
customElements.define('x-player', class extends HTMLElement { constructor() { super();
  const root = this.attachShadow({mode: 'closed'});
  root.innerHTML = '<button>Play</button><button>Stop</button>';
  root.querySelectorAll('button').forEach(one => { one.onclick = () => {
    document.title += ' ' + one.textContent; }; }); } });
</script>"""


def test_a_click_into_a_closed_shadow_root_is_repeated_at_its_place(
    harness: BrowserHarness,
) -> None:
    """A control without names, in a root that no script can enter, is found by its place."""

    async def click(page: Page) -> None:
        await page.locator("x-player").click(position={"x": 15, "y": 10})

    _, done, title = steps_and_title(harness, [CLOSED] * 2, click)
    assert done.succeeded, done.steps[-1]
    assert title == "T Play end"


CHAT = """<div contenteditable role="textbox" aria-label="Message" style="height:40px"></div><script>
const box = document.querySelector('[role=textbox]');
box.onkeydown = event => { if (event.key === 'Enter' && !event.shiftKey) {
  event.preventDefault(); log('sent ' + box.innerText.trim()); box.textContent = ''; } };</script>"""


def test_enter_is_noted_where_the_page_takes_it(harness: BrowserHarness) -> None:
    """In an area for writing, Enter is a key of its own only if the page acts on it."""

    async def write(page: Page) -> None:
        await page.get_by_role("textbox").click()
        await page.keyboard.type("Hello")
        await page.keyboard.press("Enter")

    pages = [CHAT] * 2
    steps, done, title = steps_and_title(harness, pages, write, words=("Hello", "Bye"))
    assert [step["do"] for step in steps] == ["fill", "press"]
    assert done.succeeded, done.steps[-1]
    assert title == "T sent Bye end"
    plain = CHAT.replace("event.preventDefault(); log", "log")
    assert [step["do"] for step in steps_and_title(harness, [plain] * 2, write)[0]] == ["fill"]


DAYS = ("Mon", "Tue", "Wed")


def week(*hours: str) -> str:
    rows = "".join(
        f"<tr><th>{hour}"
        + "".join(f"<td><button onclick=\"log('{day} {hour}')\">Free</button>" for day in DAYS)
        for hour in hours
    )
    return f"<table><tr><th><th>{'<th>'.join(DAYS)}{rows}</table>"


def test_a_cell_is_told_by_its_row_and_its_column(harness: BrowserHarness) -> None:
    """Of equal buttons in a table, that of the parameters' row and column is meant."""

    async def click(page: Page) -> None:
        await page.get_by_role("row", name="11:00").get_by_role("button").nth(1).click()

    pages = [week("09:00", "11:00", "14:00"), week("11:00", "12:00", "14:00")]
    [step], done, title = steps_and_title(
        harness, pages, click, hour=("11:00", "14:00"), day=("Tue", "Wed")
    )
    assert step["target"][0]["near"] == ["11:00", "Tue"]
    assert done.succeeded, done.steps[-1]
    assert title == "T Wed 14:00 end"


SLOTTED = """<script>customElements.define('x-item', class extends HTMLElement { connectedCallback() {
  const root = this.attachShadow({mode: 'open'});
  root.innerHTML = '<slot name="name"></slot><button><slot>Add</slot></button>';
  root.querySelector('button').onclick = () => { document.title += ' add ' + this.textContent; }; } });
</script>"""


def test_a_slot_without_content_of_its_own_names_its_button(harness: BrowserHarness) -> None:
    """The name of a button has the text that its slot shows when nothing is put into it."""

    def items(*names: str) -> str:
        return "".join(f'<x-item><b slot="name">{one}</b></x-item>' for one in names) + SLOTTED

    async def click(page: Page) -> None:
        await page.locator("x-item", has_text="Blue Lamp").get_by_role("button").click()

    pages = [items("Red Chair", "Blue Lamp"), items("Oak Desk", "Clay Pot", "Red Chair")]
    [step], done, title = steps_and_title(harness, pages, click, item=("Blue Lamp", "Red Chair"))
    assert step["target"][0] == {"role": "button", "name": "Add", "near": "Blue Lamp"}
    assert done.succeeded, done.steps[-1]
    assert title == "T add Red Chair end"


HOVERED = """<style>ul ul { display: none } li:hover ul { display: block } li { width: 200px }</style><ul>
<li>Goods<ul><li><button onclick="log('goods prices')">Prices</button></ul>
<li>Help<ul><li><button onclick="log('help prices')">Prices</button></ul></ul>"""


def test_a_list_that_shows_under_the_mouse_is_shown(harness: BrowserHarness) -> None:
    """An element that only the mouse makes visible is found by moving the mouse around it."""

    async def choose(page: Page) -> None:
        await page.get_by_text("Help").hover()
        await page.get_by_role("button", name="Prices").click()

    only = HOVERED.replace("<button onclick=\"log('goods prices')\">Prices</button>", "<i>None</i>")
    [step], done, title = steps_and_title(harness, [only, only], choose)
    assert step["target"][0] == {"role": "button", "name": "Prices"}
    assert done.succeeded, done.steps[-1]
    assert title == "T help prices end"


def test_a_value_in_one_alternative_leaves_out_those_without_it(harness: BrowserHarness) -> None:
    """A day whose name has more than the parameter is found by the parameter's value."""

    def month(name: str) -> str:
        days = "".join(
            f"<button aria-label='{day} {name}' onclick=\"log('{day} {name}')\">{day}</button>"
            for day in range(1, 29)
        )
        return f"<h2>{name}</h2>{days}"

    async def choose(page: Page) -> None:
        await page.get_by_role("button", name="20 May").click()

    _, done, title = steps_and_title(harness, [month("May"), month("May")], choose, day=("20", "7"))
    assert done.succeeded, done.steps[-1]
    assert title == "T 7 May end"


def test_a_label_around_a_list_names_it(harness: BrowserHarness) -> None:
    """The texts of a list's options are no part of its label."""
    body = """<label>City <select onchange="log(this.value)"><option>-<option>Bern<option>Graz</select></label>"""

    async def by_label(page: Page) -> None:
        await page.get_by_role("combobox").select_option("Bern")

    [step], done, title = steps_and_title(harness, [body, body], by_label, city=("Bern", "Graz"))
    assert {"label": "City"} in step["target"]
    assert done.succeeded, done.steps[-1]
    assert title == "T Graz end"
