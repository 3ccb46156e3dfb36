"""Pages with tables, lists, cards and trees, whose order follows from the data."""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import Data, Element, el
from .words import CITIES, GOODS, PEOPLE, REMARKS, SUBJECTS, TAGS

__all__ = ["TEMPLATES"]

IN_BOX = """name => { const a = h[name]?.getBoundingClientRect(), b = h.box.getBoundingClientRect();
  return Boolean(a?.height) && a.bottom < b.bottom; }"""
"""Whether an element is in the visible part of a box."""


def row_actions(draw: Draw) -> PageCase:
    """A table whose rows have the same buttons, with names or as pictures."""
    name, *others = draw.some(PEOPLE, 8)
    listed = draw.data.sample([name, *others], draw.number_of(6, 8))
    listed = listed if name in listed else [name, *listed[1:]]
    pictures = draw.variant % 3 == 2
    action = draw.pick("edit", "open")
    words = {"edit": "Edit", "open": "Open", "delete": "Delete"}

    def buttons(one: str) -> list[Element]:
        keys = [*words]
        return [
            draw.icon(f"{key} {one}") if pictures else draw.button(words[key], f"{key} {one}")
            for key in keys
        ]

    cells = [
        el("tr", el("td", str(draw.number_of(1000, 9999))), el("td", one), el("td", draw.any(CITIES)),
           el("td", *buttons(one)))
        for one in listed
    ]  # fmt: skip
    head = el("tr", *(el("th", word) for word in ("Number", "Name", "City", "")))
    script = f"""
    for (const one of {[str(one) for one in listed]!r}) for (const key of ['edit', 'open', 'delete'])
      on(key + ' ' + one, 'click', () => {{ h.what = key + ' ' + one; }});
    on('go', 'click', () => act('went to', h.what));"""

    async def perform(person: Person) -> None:
        await person.click(f"{action} {name}", "go")

    return PageCase(
        document=shell(
            draw,
            "People",
            el("table", el("thead", head), el("tbody", *cells)),
            draw.button("Start", "go"),
            script=script,
        ),
        values={"name": name},
        acts=(f"went to {action} {name}",),
        perform=perform,
    )


def bulk(draw: Draw) -> PageCase:
    """Rows with check boxes, and one action for all that are checked."""
    picked = draw.some(SUBJECTS, 8)
    first, second = picked[:2]
    listed = draw.data.sample(picked, 8)
    kind = draw.variant % 3

    def box(one: Data) -> Element:
        check = el(
            "input",
            type="checkbox",
            data_h=one,
            **({"aria-label": "Select row"} if kind == 1 else {}),
        )
        return el("label", check, " ", el("span", one)) if kind == 2 else check

    rows = [
        el(
            "tr",
            el("td", box(one)),
            el("td", "" if kind == 2 else one),
            el("td", f"{draw.number_of(1, 28)} May"),
        )
        for one in listed
    ]
    script = f"""
    on('archive', 'click', () => act('archived', {sorted(listed)!r}.filter(one => h[one].checked).join(', ')));
    on('delete', 'click', () => act('deleted'));"""

    async def perform(person: Person) -> None:
        await person.click(first, second, "archive")

    return PageCase(
        document=shell(
            draw,
            "Mail",
            draw.toolbar(draw.button("Archive", "archive"), draw.button("Delete", "delete")),
            el("table", el("tbody", *rows)),
            script=script,
        ),
        values={"first": first, "second": second},
        acts=(f"archived {', '.join(sorted([first, second]))}",),
        perform=perform,
    )


def cards(draw: Draw) -> PageCase:
    """A shop's shelf: each card has a number to choose and a button of the same name."""
    item, *others = draw.some(GOODS, 9)
    listed = draw.data.sample([item, *others], 9)
    number = str(draw.number_of(2, 9))
    tag = draw.pick("div", "article", "li")
    tiles = [
        el(tag, el("h3" if draw.variant % 2 else "b", one), el("p", f"{draw.number_of(5, 90)}.50 €"),
           el("input", type="number", value="1", aria_label="Quantity", data_h=f"number {one}"),
           draw.button("Add to cart", f"add {one}"), class_=draw.css("card"))
        for one in listed
    ]  # fmt: skip
    script = f"""
    for (const one of {[str(one) for one in listed]!r}) on('add ' + one, 'click', () => act('added', h['number ' + one].value, one));
    on('pay', 'click', () => act('checked out'));"""

    async def perform(person: Person) -> None:
        await person.fill(**{f"number {item}": number})
        await person.click(f"add {item}", "pay")

    return PageCase(
        document=shell(
            draw,
            "Shelf",
            el("ul" if tag == "li" else "section", *tiles),
            draw.button("Check out", "pay"),
            script=script,
        ),
        values={"item": item, "number": number},
        acts=(f"added {number} {item}", "checked out"),
        perform=perform,
    )


def filtered(draw: Draw) -> PageCase:
    """A table that is filtered by a field while typing; rows are drawn anew each time."""
    item, *others = draw.some(GOODS, 14)
    listed = draw.data.sample([item, *others], 14)
    link = draw.variant % 2 == 0
    inner = el("a", "{name}", href="#item") if link else el("button", "Details", type="button")
    row = el(
        "template",
        el("tr", el("td", "" if link else "{name}"), el("td", inner), el("td", "{price} €")),
        data_h="row",
    )
    script = f"""
    const all = {[str(one) for one in listed]!r};
    const draw = () => h.body.replaceChildren(...all.filter(one => one.toLowerCase().includes(h.filter.value.toLowerCase())).map(name => {{
      const row = make('row', {{name, price: name.length * 7}});
      h[name] = row.querySelector('a,button');
      h[name].onclick = event => {{ event.preventDefault(); act('opened', name); }};
      return row; }}));
    draw();
    on('filter', 'input', () => later(30, draw));"""

    typed = item.split()[1]

    async def perform(person: Person) -> None:
        await person.type("filter", typed)
        await person.page.wait_for_timeout(80)
        await person.click(item)

    return PageCase(
        document=shell(
            draw,
            "Stock",
            draw.field("Filter", el("input", data_h="filter")),
            el("table", el("tbody", data_h="body")),
            el("table", row),
            script=script,
        ),
        values={"item": item, "typed": typed},
        acts=(f"opened {item}",),
        perform=perform,
    )


def inline_edit(draw: Draw) -> PageCase:
    """Cells that become fields by a double click."""
    name, *others = draw.some(PEOPLE, 6)
    listed = draw.data.sample([name, *others], 6)
    text = draw.any(REMARKS)
    rows = [
        el(
            "tr",
            el("td", one),
            el("td", "—", data_h=one, tabindex="0"),
            el("td", str(draw.number_of(20, 60))),
        )
        for one in listed
    ]
    script = f"""
    for (const one of {[str(one) for one in listed]!r}) on(one, 'dblclick', () => {{
      const field = document.createElement('input');
      h[one].replaceChildren(field);
      field.focus();
      field.onkeydown = event => {{ if (event.key === 'Enter') {{ h[one].textContent = field.value;
        act('noted', one, field.value); }} }}; }});"""

    async def perform(person: Person) -> None:
        await person.click(name, times=2)
        await person.page.keyboard.type(text)
        await person.press("Enter")

    head = el("tr", el("th", "Name"), el("th", "Notes"), el("th", "Age"))
    return PageCase(
        document=shell(
            draw, "Staff", el("table", el("thead", head), el("tbody", *rows)), script=script
        ),
        values={"name": name, "text": text},
        acts=(f"noted {name} {text}",),
        perform=perform,
    )


def tree_view(draw: Draw) -> PageCase:
    """A tree whose branches open by a picture without a name."""
    folder, *others = draw.some(TAGS, 5)
    folders = draw.data.sample([folder, *others], 5)
    file = draw.pick("Plan", "Letter", "Invoice")
    roles = draw.variant % 2 == 0

    def branch(one: Data) -> Element:
        leaves = [
            el(
                "li",
                word,
                data_h=f"{one} {word}",
                **(
                    {"role": "treeitem", "tabindex": "-1"} if roles else {"style": "cursor:pointer"}
                ),
            )
            for word in ("Plan", "Letter", "Invoice")
        ]
        inside = el(
            "ul", *leaves, data_h=f"{one} list", hidden="", **({"role": "group"} if roles else {})
        )
        opener = (
            el("span", "▸", data_h=f"{one} open", style="cursor:pointer")
            if roles
            else draw.icon(f"{one} open")
        )
        return el(
            "li",
            opener,
            " ",
            el("span", one),
            inside,
            **({"role": "treeitem", "aria-label": one} if roles else {}),
        )

    script = f"""
    for (const one of {[str(one) for one in folders]!r}) {{
      on(one + ' open', 'click', () => show(one + ' list', h[one + ' list'].hidden));
      for (const word of ['Plan', 'Letter', 'Invoice']) on(one + ' ' + word, 'click', event => {{
        event.stopPropagation(); act('opened', one, word); }}); }}"""

    async def perform(person: Person) -> None:
        await person.click(f"{folder} open", f"{folder} {file}")

    return PageCase(
        document=shell(
            draw,
            "Folders",
            el("ul", *map(branch, folders), **({"role": "tree"} if roles else {})),
            script=script,
        ),
        values={"folder": folder},
        acts=(f"opened {folder} {file}",),
        perform=perform,
    )


def endless(draw: Draw) -> PageCase:
    """A list that grows whenever its end is reached; the wanted entry is far below."""
    subject, *others = draw.some(SUBJECTS, 12)
    where = draw.number_of(25, 60)
    row = el("template", el("article", el("h3", "{name}"), el("p", "{text}"), el("button", "Read", type="button"),
             style="height:90px"), data_h="row")  # fmt: skip
    names = [str(subject) if n == where else f"{others[n % 11]} no. {n}" for n in range(90)]
    by_button = draw.variant % 3 == 2
    more = [draw.button("Show more", "more")] if by_button else []
    size, event = (100, "never") if by_button else (12, "scroll")
    note = draw.any(REMARKS)
    script = f"""
    const all = {names!r};
    let loading = false;
    const grow = () => {{ const size = h.list.children.length;
      h.list.append(...all.slice(size, size + {size}).map(name => {{
        const row = make('row', {{name, text: name.length + ' lines'}});
        h[name] = row.querySelector('button');
        h[name].onclick = () => act('read', name);
        return row; }})); loading = false; }};
    grow();
    if (h.more) on('more', 'click', grow);
    addEventListener('{event}', () => {{
      if (loading || innerHeight + scrollY < document.body.scrollHeight - 300) return;
      loading = true; later(50, grow); }});
    on('note', 'change', () => act('noted', h.note.value));"""

    async def perform(person: Person) -> None:
        if by_button:
            await person.click("more")
        await person.fill(note=note)
        await person.press("Tab")
        await person.scroll_to(subject)
        await person.click(subject)

    return PageCase(
        document=shell(
            draw,
            "News",
            draw.field("Notes", el("input", data_h="note")),
            el("section", data_h="list"),
            *more,
            row,
            script=script,
        ),
        values={"subject": subject, "note": note},
        acts=(f"noted {note}", f"read {subject}"),
        perform=perform,
    )


def virtual(draw: Draw) -> PageCase:
    """A long list in a box of its own, of which only the part in sight is in the document."""
    name, *others = draw.some(PEOPLE, 10)
    where = draw.number_of(30, 70)
    names = [str(name) if n == where else f"{others[n % 9]} {n}" for n in range(100)]
    row = el(
        "template",
        el("div", "{name}", style="position:absolute;height:30px", role="option", tabindex="-1"),
        data_h="row",
    )
    box = el("div", el("div", data_h="inner", style="height:3000px;position:relative"), data_h="box",
             style="height:240px;overflow:auto;border:1px solid", role="listbox")  # fmt: skip
    script = f"""
    const all = {names!r};
    const draw = () => {{ const first = Math.floor(h.box.scrollTop / 30);
      h.inner.replaceChildren(...all.slice(first, first + 9).map((name, index) => {{
        const row = make('row', {{name}});
        row.style.top = (first + index) * 30 + 'px';
        h[name] = row;
        row.onclick = () => {{ h.picked = name; }};
        return row; }})); }};
    draw();
    on('box', 'scroll', draw);
    on('save', 'click', () => act('picked', h.picked));"""

    async def perform(person: Person) -> None:
        await person.hover("box")
        for _ in range(60):
            shown = IN_BOX
            if await person.page.evaluate(shown, name):
                break
            await person.page.mouse.wheel(0, 120)
            await person.page.wait_for_timeout(40)
        await person.click(name, "save")

    return PageCase(
        document=shell(draw, "Members", box, draw.button("Apply", "save"), row, script=script),
        values={"name": name},
        acts=(f"picked {name}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    row_actions, bulk, cards, filtered, inline_edit, tree_view, endless, virtual,
)  # fmt: skip
