"""Pages whose content changes without a load: routes, wizards, tabs, accordions, keys."""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import el, free
from .words import CITIES, GOODS, PEOPLE, REMARKS, SUBJECTS, TAGS

__all__ = ["TEMPLATES"]


def routed(draw: Draw) -> PageCase:
    """Views with addresses of their own, by the history or after a hash."""
    item, *others = draw.some(GOODS, 7)
    listed = draw.data.sample([item, *others], 7)
    note = draw.any(REMARKS)
    hash = draw.variant % 2 == 1
    go = "location.hash = '/' + route" if hash else "history.pushState({}, '', '/app/' + route)"
    links = [el("li", el("a", one, href="#", data_h=one)) for one in listed]
    views = [
        el("section", el("h2", "Goods"), el("ul", *links), data_h="goods", hidden=""),
        el("section", el("h2", data_h="title"), draw.field("Comment", el("input", data_h="note")),
           draw.toolbar(draw.button("Back", "back"), draw.button("Save", "save")), data_h="item", hidden=""),
        el("section", el("h2", "News"), el("p", "No news."), data_h="news"),
    ]  # fmt: skip
    script = f"""
    const go = (route, title) => later({draw.pick(10, 90)}, () => {{ {go}; document.title = title;
      for (const view of ['goods', 'item', 'news']) show(view, route.startsWith(view)); }});
    on('to goods', 'click', () => go('goods', 'Goods'));
    on('to news', 'click', () => go('news', 'News'));
    on('back', 'click', () => go('goods', 'Goods'));
    {[str(one) for one in listed]!r}.forEach((one, index) => on(one, 'click', event => {{ event.preventDefault();
      h.chosen = one; h.title.textContent = one; go('item/' + index, one); }}));
    on('save', 'click', () => act('saved', h.chosen, h.note.value));"""

    async def perform(person: Person) -> None:
        await person.click("to goods", item)
        await person.fill(note=note)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Depot",
            draw.toolbar(draw.button("News", "to news"), draw.button("Goods", "to goods")),
            *views,
            script=script,
        ),
        values={"item": item, "note": note},
        acts=(f"saved {item} {note}",),
        perform=perform,
    )


def wizard(draw: Draw) -> PageCase:
    """Three steps with the same buttons below each; the next one comes after a while."""
    name, city, note = draw.any(PEOPLE), draw.any(CITIES), draw.any(REMARKS)
    labels = (("Name", "name"), ("City", "city"), ("Notes", "note"))
    kept = draw.variant % 2 == 0
    parts = [
        el("section", el("h2", f"Step {number}"), draw.field(label, el("input", data_h=hook)),
           *([] if kept else [draw.button("Back", f"back{number}"), draw.button("Next", f"next{number}")]),
           data_h=f"part{number}", **({} if number == 1 else {"hidden": ""}))
        for number, (label, hook) in enumerate(labels, 1)
    ]  # fmt: skip
    below = [draw.toolbar(draw.button("Back", "back"), draw.button("Next", "next"))] if kept else []
    numbers = "['']" if kept else "[1, 2, 3]"
    script = f"""
    let part = 1;
    const turn = by => later({draw.pick(20, 120)}, () => {{ part += by;
      if (part > 3) {{ act('done', h.name.value, h.city.value, h.note.value); part = 3; }}
      for (const number of [1, 2, 3]) show('part' + number, number === part); }});
    for (const number of {numbers}) {{ on('back' + number, 'click', () => turn(-1));
      on('next' + number, 'click', () => turn(1)); }}"""

    async def perform(person: Person) -> None:
        texts = {"name": name, "city": city, "note": note}
        for number, (_, hook) in enumerate(labels, 1):
            await person.fill(**{hook: texts[hook]})
            await person.click("next" if kept else f"next{number}")

    return PageCase(
        document=shell(draw, "Registration", *parts, *below, script=script),
        values={"name": name, "city": city, "note": note},
        acts=(f"done {name} {city} {note}",),
        perform=perform,
    )


def tabs(draw: Draw) -> PageCase:
    """Tabs, each with a form of the same fields."""
    names = draw.design.sample(["Profile", "Account", "Payment", "Reminders"], 3)
    chosen = draw.design.choice(names[1:])
    text = draw.any(REMARKS)
    roles = draw.variant % 2 == 0
    bar = [
        el(
            "button" if roles else "a",
            one,
            data_h=one,
            **({"role": "tab", "type": "button"} if roles else {"href": "#"}),
        )
        for one in names
    ]
    panels = [
        el("section", draw.field("Notes", el("input", data_h=f"note {one}")), draw.button("Save", f"save {one}"),
           data_h=f"panel {one}", **({"role": "tabpanel"} if roles else {}), **({} if one == names[0] else {"hidden": ""}))
        for one in names
    ]  # fmt: skip
    script = f"""
    for (const one of {names!r}) {{
      on(one, 'click', event => {{ event.preventDefault();
        for (const other of {names!r}) show('panel ' + other, other === one); }});
      on('save ' + one, 'click', () => act(one, h['note ' + one].value)); }}"""

    async def perform(person: Person) -> None:
        await person.click(chosen)
        await person.fill(**{f"note {chosen}": text})
        await person.click(f"save {chosen}")

    return PageCase(
        document=shell(
            draw,
            "Settings",
            free(el("div", *bar, **({"role": "tablist"} if roles else {}))),
            *panels,
            script=script,
        ),
        values={"text": text},
        acts=(f"{chosen} {text}",),
        perform=perform,
    )


def accordion(draw: Draw) -> PageCase:
    """Sections that open below their headings; each has the same button."""
    names = draw.design.sample(["Delivery", "Payment", "Returns", "Report"], 4)
    chosen = draw.design.choice(names)
    note = draw.any(REMARKS)
    native = draw.variant % 2 == 0
    parts = [
        el("details", el("summary", one, data_h=one), el("p", f"About {one.lower()}."), draw.button("Start", f"start {one}"))
        if native
        else el("div", el("h3", el("button", one, type="button", data_h=one, aria_expanded="false")),
                el("div", el("p", f"About {one.lower()}."), draw.button("Start", f"start {one}"), data_h=f"part {one}", hidden=""))
        for one in names
    ]  # fmt: skip
    script = f"""
    for (const one of {names!r}) {{
      if (h['part ' + one]) on(one, 'click', () => {{ show('part ' + one, h['part ' + one].hidden);
        h[one].ariaExpanded = String(!h['part ' + one].hidden); }});
      on('start ' + one, 'click', () => act('started', one, h.note.value)); }}"""

    async def perform(person: Person) -> None:
        await person.fill(note=note)
        await person.click(chosen, f"start {chosen}")

    return PageCase(
        document=shell(
            draw,
            "Questions",
            draw.field("Notes", el("input", data_h="note")),
            free(el("section", *parts)),
            script=script,
        ),
        values={"note": note},
        acts=(f"started {chosen} {note}",),
        perform=perform,
    )


def palette_of_keys(draw: Draw) -> PageCase:
    """A field that a combination of keys opens; the entry is chosen by arrows."""
    subject, note = draw.any(SUBJECTS), draw.any(TAGS)
    steps = draw.pick(1, 2)
    commands = ("New task", "New note", "New list")
    box = el("div", el("input", data_h="field", placeholder="Command"),
             el("ul", *(el("li", one, data_h=one) for one in commands)), data_h="box", hidden="", role="dialog")  # fmt: skip
    script = f"""
    let index = 0;
    addEventListener('keydown', event => {{ if (event.ctrlKey && event.key === 'k') {{ event.preventDefault();
      show('box'); h.field.focus(); }}
      if (event.key === 'Escape') show('box', false); }});
    on('field', 'keydown', event => {{
      if (event.key === 'ArrowDown') index++;
      if (event.key === 'Enter') {{ act({list(commands)!r}[index], h.field.value, h.note.value); show('box', false); }} }});"""

    async def perform(person: Person) -> None:
        await person.fill(note=note)
        await person.press("Control+k")
        await person.at("field")
        await person.page.keyboard.type(subject)
        await person.press(*["ArrowDown"] * steps, "Enter")

    return PageCase(
        document=shell(
            draw, "Desk", draw.field("Notes", el("input", data_h="note")), box, script=script
        ),
        values={"subject": subject, "note": note},
        acts=(f"{commands[steps]} {subject} {note}",),
        perform=perform,
    )


def sheet(draw: Draw) -> PageCase:
    """A sheet of cells without names; a click chooses one, keys write into it."""
    columns = ("A", "B", "C")
    row, column = draw.design.randint(1, 3), draw.design.choice(columns)
    text, note = draw.any(TAGS), draw.any(CITIES)
    head = el("tr", el("th"), *(el("th", one) for one in columns))
    rows = [
        el(
            "tr",
            el("th", str(number)),
            *(el("td", el("input", size="8", data_h=f"{one}{number}")) for one in columns),
        )
        for number in (1, 2, 3)
    ]
    cells = [f"{one}{number}" for number in (1, 2, 3) for one in columns]
    script = f"""on('save', 'click', () => act('saved', {cells!r}.filter(one => h[one].value)
      .map(one => one + '=' + h[one].value).join(', '), h.note.value));"""

    async def perform(person: Person) -> None:
        await person.type(f"{column}{row}", text)
        await person.fill(note=note)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Sums",
            el("table", el("thead", head), el("tbody", *rows)),
            draw.field("Notes", el("input", data_h="note")),
            draw.button("Save", "save"),
            script=script,
        ),
        values={"text": text, "note": note},
        acts=(f"saved {column}{row}={text} {note}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (routed, wizard, tabs, accordion, palette_of_keys, sheet)
