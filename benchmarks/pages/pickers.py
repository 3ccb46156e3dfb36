"""Pages with controls of their own making: lists, suggestions, chips, steppers, stars, sliders,
editors, calendars.
"""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import Data, Element, el, free
from .words import CITIES, COLOURS, MONTHS, PEOPLE, PLACES, REMARKS, TAGS

__all__ = ["TEMPLATES"]


def listbox(draw: Draw) -> PageCase:
    """A list that opens below a button, built of plain elements with roles, or without."""
    city, *cities = draw.some(CITIES, 8)
    listed = sorted([city, *cities])
    roles = draw.variant % 2 == 0
    items = [
        el("li", one, data_h=one, **({"role": "option", "tabindex": "-1"} if roles else {}))
        for one in listed
    ]
    kind = (
        {
            "role": "combobox",
            "aria-haspopup": "listbox",
            "aria-expanded": "false",
            "aria-label": "City",
        }
        if roles
        else {}
    )
    front = el("button", "Choose a city", type="button", data_h="front", **kind)
    menu = el("ul", *items, data_h="menu", hidden="", **({"role": "listbox"} if roles else {}))
    script = f"""
    on('front', 'click', () => show('menu', h.menu.hidden));
    for (const city of {[str(one) for one in listed]!r}) on(city, 'click', () => {{
      h.front.textContent = city; h.city = city; show('menu', false); }});
    on('save', 'click', () => act('saved', h.city));"""

    async def perform(person: Person) -> None:
        await person.click("front", city, "save")

    return PageCase(
        document=shell(
            draw, "Branch", el("div", front, menu), draw.button("Apply", "save"), script=script
        ),
        values={"city": city},
        acts=(f"saved {city}",),
        perform=perform,
    )


def autocomplete(draw: Draw) -> PageCase:
    """A field that offers suggestions a while after typing."""
    name, *others = draw.some(PEOPLE, 9)
    typed = name[: draw.pick(3, 4)].lower()
    ask_again = draw.variant % 2
    template = el("template", el("li", "{name}", role="option"), data_h="suggestion")
    menu = el("ul", data_h="menu", role="listbox")
    script = f"""
    const people = {[str(one) for one in [name, *others]]!r};
    let timer = 0;
    on('who', 'input', () => {{ clearTimeout(timer); timer = later({draw.pick(30, 120)}, () => {{
      h.menu.replaceChildren(...people.filter(one => one.toLowerCase().includes(h.who.value.toLowerCase()) && h.who.value)
        .map(one => {{ const item = make('suggestion', {{name: one}}); h[one] = item;
          item.addEventListener('mousedown', () => {{ h.who.value = one; h.picked = one; h.menu.replaceChildren();
            }}); return item; }})); }}); }});
    on('save', 'click', () => act('assigned', h.picked, h.note.value));"""
    note = draw.any(REMARKS)

    async def perform(person: Person) -> None:
        await person.type("who", typed)
        await person.click(name)
        if ask_again:
            await person.fill(note=note)
        await person.click("save")

    who = draw.field("Department", el("input", data_h="who", autocomplete="off", role="combobox"))
    values = {"typed": typed, "person": name} | ({"note": note} if ask_again else {})
    return PageCase(
        document=shell(
            draw,
            "Assignment",
            el("div", who, menu),
            template,
            draw.field("Notes", el("input", data_h="note")),
            draw.toolbar(draw.button("Assign", "save"), draw.button("Cancel", "cancel")),
            script=script + "on('cancel', 'click', () => act('cancelled'));",
        ),
        values=values,
        acts=(f"assigned {name} {note}" if ask_again else f"assigned {name} ",),
        perform=perform,
    )


def chips(draw: Draw) -> PageCase:
    """Tags as chips, each with a small button that takes it away, and a field that adds some."""
    tags = draw.some(TAGS, 6)
    start, (gone, new) = tags[:4], (draw.any(tags[:4]), tags[5])
    named = draw.variant % 2 == 0
    label = {"aria-label": "Remove tag"} if named else {}
    template = el(
        "template",
        el("span", "{tag} ", el("button", "×", type="button", **label), class_=draw.css("chip")),
        data_h="chip",
    )
    script = f"""
    const add = tag => {{ const chip = make('chip', {{tag}}); h[tag] = chip.querySelector('button');
      h[tag].onclick = () => chip.remove();
      chip.tag = tag; h.chips.append(chip, ' '); }};
    {[str(one) for one in start]!r}.forEach(add);
    on('tag', 'keydown', event => {{ if (event.key === 'Enter') {{ event.preventDefault(); add(h.tag.value);
      h.tag.value = ''; }} }});
    on('save', 'click', () => act('saved', [...h.chips.children].map(one => one.tag).join(',')));"""

    async def perform(person: Person) -> None:
        await person.click(gone)
        await person.fill(tag=new)
        await person.press("Enter")
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Tags",
            el("div", data_h="chips"),
            template,
            draw.field("Add", el("input", data_h="tag")),
            draw.button("Save", "save"),
            script=script,
        ),
        values={"gone": gone, "added": new},
        acts=(f"saved {','.join([one for one in start if one != gone] + [new])}",),
        perform=perform,
    )


def steppers(draw: Draw) -> PageCase:
    """Numbers that are changed by buttons without a name, one pair for each line."""
    lines = draw.design.sample(["Adults", "Children", "Rooms", "Nights"], 3)
    count = draw.pick(1, 2, 3)
    line, kind = draw.design.choice(lines), draw.variant % 3
    name = draw.any(PEOPLE)

    def buttons(key: str) -> tuple[Element, Element]:
        if kind == 0:
            return draw.icon(f"{key}-"), draw.icon(f"{key}+")
        if kind == 1:
            return draw.button("−", f"{key}-"), draw.button("+", f"{key}+")
        return draw.button("−", f"{key}-", aria_label=f"Fewer {key}"), draw.button(
            "+", f"{key}+", aria_label=f"More {key}"
        )

    rows = []
    for key in lines:
        less, more = buttons(key)
        rows.append(
            el(
                "div",
                el("span", key),
                less,
                el("output", "1", data_h=key),
                more,
                class_=draw.css("row"),
            )
        )
    script = f"""
    for (const key of {lines!r}) {{
      on(key + '-', 'click', () => {{ h[key].textContent = Number(h[key].textContent) - 1; }});
      on(key + '+', 'click', () => {{ h[key].textContent = Number(h[key].textContent) + 1; }}); }}
    on('book', 'click', () => act('booked', {lines!r}.map(key => key + ' ' + h[key].textContent).join(', '), h.name.value));"""

    async def perform(person: Person) -> None:
        for _ in range(count):
            await person.click(f"{line}+")
        await person.fill(name=name)
        await person.click("book")

    wanted = ", ".join(f"{key} {1 + count if key == line else 1}" for key in lines)
    return PageCase(
        document=shell(
            draw,
            "Guests",
            free(el("section", *rows)),
            draw.field("Name", el("input", data_h="name")),
            draw.button("Book", "book"),
            script=script,
        ),
        values={"name": name},
        acts=(f"booked {wanted} {name}",),
        perform=perform,
    )


def stars(draw: Draw) -> PageCase:
    """Stars without names, one row for each question."""
    rows = draw.design.sample(["Room", "Breakfast", "Service", "Price"], 3)
    wanted = {row: draw.design.randint(2, 5) for row in rows}
    note = draw.any(REMARKS)
    kind = draw.variant % 3

    def star(row: str, number: int) -> Element:
        hook = f"{row}{number}"
        if kind == 0:
            return el("span", "☆", data_h=hook, style="cursor:pointer")
        if kind == 1:
            return el("button", "☆", type="button", data_h=hook, class_=draw.css("star"))
        return el("button", "☆", type="button", data_h=hook, aria_label=f"{number} stars")

    lines = [el("div", el("b", row), " ", *(star(row, n) for n in range(1, 6))) for row in rows]
    script = f"""
    for (const row of {rows!r}) for (let number = 1; number < 6; number++) on(row + number, 'click', () => {{
      h['set' + row] = number; }});
    on('send', 'click', () => act('rated', {rows!r}.map(row => row + ' ' + (h['set' + row] || 0)).join(', '), h.note.value));"""

    async def perform(person: Person) -> None:
        for row, number in wanted.items():
            await person.click(f"{row}{number}")
        await person.fill(note=note)
        await person.click("send")

    return PageCase(
        document=shell(
            draw,
            "Your stay",
            el("section", *lines),
            draw.field("Comment", el("input", data_h="note")),
            draw.button("Send", "send"),
            script=script,
        ),
        values={"note": note},
        acts=(f"rated {', '.join(f'{row} {number}' for row, number in wanted.items())} {note}",),
        perform=perform,
    )


def sliders(draw: Draw) -> PageCase:
    """Several sliders; one is set by keys or as a value."""
    names = draw.design.sample(["Volume", "Budget", "Colour", "Size"], 3)
    name = draw.design.choice(names)
    by_keys = draw.variant % 2 == 0
    number = str(50 + draw.pick(3, 5)) if by_keys else str(draw.number_of(11, 99))
    note = draw.any(REMARKS)
    fields = [
        draw.field(
            one,
            el("input", type="range", min="0", max="100", value="50", data_h=one),
            style=draw.variant % 3,
        )
        for one in names
    ]

    async def perform(person: Person) -> None:
        if by_keys:
            await (await person.at(name)).focus()
            await person.press(*["ArrowRight"] * (int(number) - 50))
        else:
            await person.fill(**{name: number})
        await person.fill(note=note)
        await person.click("save")

    wanted = ", ".join(f"{one} {number if one == name else 50}" for one in names)
    return PageCase(
        document=shell(
            draw,
            "Mixer",
            free(el("section", *fields)),
            draw.field("Notes", el("input", data_h="note")),
            draw.button("Apply", "save"),
            script=f"on('save', 'click', () => act('applied', {names!r}.map(one => one + ' ' + h[one].value).join(', '), h.note.value));",
        ),
        values={"note": note, **({} if by_keys else {"number": number})},
        acts=(f"applied {wanted} {note}",),
        perform=perform,
    )


def editor(draw: Draw) -> PageCase:
    """An area for writing that is no form field, with a toolbar of pictures."""
    text = draw.any(REMARKS)
    title = draw.any(TAGS)
    named = draw.variant % 2 == 0
    tools = [
        draw.icon(tool, **({"title": tool.title()} if named else {}))
        for tool in ("bold", "italic", "list")
    ]
    area = el("div", contenteditable="true", data_h="area", style="border:1px solid;min-height:60px",
              **({"role": "textbox", "aria-label": "Message"} if draw.variant % 3 == 0 else {}))  # fmt: skip
    script = """
    for (const tool of ['bold', 'italic', 'list']) on(tool, 'click', () => { h.tool = tool; });
    on('save', 'click', () => act('saved', h.tool, h.title.value, h.area.innerText.trim()));"""

    async def perform(person: Person) -> None:
        await person.fill(title=title)
        await person.type("area", text)
        await person.click("italic", "save")

    return PageCase(
        document=shell(
            draw,
            "Draft",
            draw.field("Title", el("input", data_h="title")),
            el("div", *tools),
            area,
            draw.toolbar(draw.button("Save draft", "save"), draw.button("Delete", "delete")),
            script=script + "on('delete', 'click', () => act('deleted'));",
        ),
        values={"text": text, "title": title},
        acts=(f"saved italic {title} {text}",),
        perform=perform,
    )


def palette(draw: Draw) -> PageCase:
    """Colours to choose from, by a title or by their picture alone."""
    colours = draw.design.sample(COLOURS, 6)
    colour = draw.any(colours)
    name = draw.any(TAGS)
    tag = draw.pick("button", "div")
    extra = (
        {"type": "button"}
        if tag == "button"
        else {"role": "radio", "tabindex": "0", "aria-checked": "false"}
    )
    swatches = [
        el(
            tag,
            data_h=one,
            title=Data(one),
            style="width:24px;height:24px;display:inline-block",
            **extra,
        )
        for one in colours
    ]
    group = el("div", *swatches, **({"role": "radiogroup"} if tag == "div" else {}))

    async def perform(person: Person) -> None:
        await person.click(colour)
        await person.fill(name=name)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Label",
            group,
            draw.field("Name", el("input", data_h="name")),
            draw.button("Save", "save"),
            script=f"for (const one of {colours!r}) on(one, 'click', () => {{ h.colour = one; }});"
            "on('save', 'click', () => act('saved', h.colour, h.name.value));",
        ),
        values={"colour": colour, "name": name},
        acts=(f"saved {colour} {name}",),
        perform=perform,
    )


CALENDAR = """
const months = %s;
let month = %d;
const draw = () => {
  h.month.textContent = months[month] + ' 2031';
  h.days.replaceChildren(...Array.from({length: 28}, (_, index) => {
    const day = make('day', {day: index + 1, month: months[month]});
    h['day' + (index + 1)] = day;
    day.onclick = () => { h.date.value = `${index + 1} ${months[month]} 2031`; show('calendar', false); };
    return day;
  }));
};
on('open', 'click', () => { show('calendar'); draw(); });
on('later', 'click', () => { month++; draw(); });
on('earlier', 'click', () => { month--; draw(); });
on('book', 'click', () => act('booked', h.place ? h.place.value : '', h.date.value));
"""


def calendar(draw: Draw) -> PageCase:
    """A calendar that opens beside a field; months are turned by arrows."""
    month, turns = draw.pick(2, 4, 5), draw.pick(1, 2)
    day, place = str(draw.number_of(10, 28)), draw.any(PLACES)
    named = draw.variant % 2 == 0
    label = {"aria-label": "{day} {month}"} if draw.variant % 3 == 0 else {}
    template = el("template", el("button", "{day}", type="button", **label), data_h="day")
    head = el(
        "div",
        draw.button("‹", "earlier", **({"aria_label": "Earlier month"} if named else {})),
        el("b", data_h="month"),
        draw.button("›", "later", **({"aria_label": "Later month"} if named else {})),
    )
    box = el(
        "div",
        head,
        el("div", data_h="days"),
        data_h="calendar",
        hidden="",
        class_=draw.css("calendar"),
    )
    date = draw.field("Date", el("input", data_h="date", readonly=""))

    async def perform(person: Person) -> None:
        await person.fill(place=place)
        await person.click("open", *["later"] * turns, f"day{day}", "book")

    return PageCase(
        document=shell(
            draw,
            "Reservation",
            draw.field("Title", el("input", data_h="place")),
            el("div", date, draw.button("Choose date", "open"), box),
            template,
            draw.button("Book", "book"),
            script=CALENDAR % (list(MONTHS), month),
        ),
        values={"day": day, "place": place},
        acts=(f"booked {place} {day} {MONTHS[month + turns]} 2031",),
        perform=perform,
    )


def slots(draw: Draw) -> PageCase:
    """A week as a table; each cell is a time that can be taken."""
    days, hours = (
        ("Monday", "Tuesday", "Wednesday", "Thursday"),
        ("9:00", "11:00", "14:00", "16:00"),
    )
    day, hour = draw.design.choice(days), draw.design.choice(hours)
    name = draw.any(PEOPLE)
    rows = [
        el("tr", el("th", one_hour, scope="row"),
           *(el("td", draw.button("free", f"{one_day} {one_hour}")) for one_day in days))
        for one_hour in hours
    ]  # fmt: skip
    head = el("tr", el("th"), *(el("th", one) for one in days))
    script = f"""
    for (const day of {list(days)!r}) for (const hour of {list(hours)!r}) on(`${{day}} ${{hour}}`, 'click', () => {{
      h.slot = `${{day}} ${{hour}}`; }});
    on('book', 'click', () => act('booked', h.slot, h.name.value));"""

    async def perform(person: Person) -> None:
        await person.click(f"{day} {hour}")
        await person.fill(name=name)
        await person.click("book")

    return PageCase(
        document=shell(
            draw,
            "Week",
            el("table", el("thead", head), el("tbody", *rows)),
            draw.field("Name", el("input", data_h="name")),
            draw.button("Book", "book"),
            script=script,
        ),
        values={"name": name},
        acts=(f"booked {day} {hour} {name}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    listbox, autocomplete, chips, steppers, stars, sliders, editor, palette, calendar, slots,
)  # fmt: skip
