"""Pages with menus, dialogs, drawers, toasts, popovers and banners."""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import Data, Element, el, free
from .words import GOODS, PEOPLE, REMARKS, SUBJECTS, TAGS

__all__ = ["TEMPLATES"]

ENTRIES = ("Rename", "Duplicate", "Share", "Archive", "Export", "Delete")


def menu_bar(draw: Draw) -> PageCase:
    """A bar of menus that open by click; the same entry is in several of them."""
    menus = draw.design.sample(["File", "View", "Tools", "Window"], 3)
    chosen, entry = draw.design.choice(menus), draw.pick("Rename", "Duplicate", "Export")
    roles = draw.variant % 2 == 0
    title = draw.any(SUBJECTS)
    bars = []
    for menu in menus:
        items = [
            el(
                "li",
                one,
                data_h=f"{menu} {one}",
                **({"role": "menuitem", "tabindex": "-1"} if roles else {}),
            )
            for one in ("Rename", "Duplicate", "Export", "Close")
        ]
        kind = {"aria-haspopup": "menu"} if roles else {}
        bars.append(
            el("div", el("button", menu, type="button", data_h=menu, **kind),
               el("ul", *items, data_h=f"{menu} list", hidden="", **({"role": "menu"} if roles else {})))
        )  # fmt: skip
    script = f"""
    for (const menu of {menus!r}) {{
      on(menu, 'click', () => {{ for (const other of {menus!r}) show(other + ' list', other === menu && h[other + ' list'].hidden); }});
      for (const entry of ['Rename', 'Duplicate', 'Export', 'Close']) on(menu + ' ' + entry, 'click', () => {{
        show(menu + ' list', false); act(menu, entry, h.title.value); }}); }}"""

    async def perform(person: Person) -> None:
        await person.fill(title=title)
        await person.click(chosen, f"{chosen} {entry}")

    return PageCase(
        document=shell(
            draw,
            "Workbench",
            el("div", *bars, class_=draw.css("bar")),
            draw.field("Title", el("input", data_h="title")),
            script=script,
        ),
        values={"title": title},
        acts=(f"{chosen} {entry} {title}",),
        perform=perform,
    )


def hover_menu(draw: Draw) -> PageCase:
    """A site's navigation whose lists show only under the mouse."""
    tops = draw.design.sample(["Products", "Services", "Company", "Partners"], 3)
    top, sub = draw.design.choice(tops), draw.pick("Overview", "Prices", "Contact")
    by_script = draw.variant % 2 == 1
    search = draw.any(GOODS)
    menus = [
        el(
            "li",
            el("a", one, href=f"#{one.lower()}", data_h=one),
            el("ul", *(el("li", el("a", word, href=f"#{one.lower()}-{word.lower()}", data_h=f"{one} {word}"))
                       for word in ("Overview", "Prices", "Contact")),
               data_h=f"{one} list", **({"hidden": ""} if by_script else {"class": "menu"})),
            data_h=f"{one} item",
            class_="top",
        )
        for one in tops
    ]  # fmt: skip
    style = el(
        "style", ".menu { display: none } .top:hover .menu { display: block } .top { width: 12em }"
    )
    kinds = ["mouseenter", "mouseleave"] if by_script else []
    script = f"""
    for (const top of {tops!r}) {{
      for (const kind of {kinds!r}) on(top + ' item', kind, () => show(top + ' list', kind === 'mouseenter'));
      for (const word of ['Overview', 'Prices', 'Contact']) on(top + ' ' + word, 'click', event => {{
        event.preventDefault(); act('opened', top, word, h.search.value); }}); }}"""

    async def perform(person: Person) -> None:
        await person.fill(search=search)
        await person.hover(top)
        await person.click(f"{top} {sub}")

    return PageCase(
        document=shell(
            draw,
            "Portal",
            style,
            el("ul", *menus, class_=draw.css("menus")),
            draw.field("Search", el("input", data_h="search")),
            script=script,
        ),
        values={"search": search},
        acts=(f"opened {top} {sub} {search}",),
        perform=perform,
    )


def context_menu(draw: Draw) -> PageCase:
    """A list whose entries have a menu under the right button."""
    subject, *others = draw.some(SUBJECTS, 7)
    listed = draw.data.sample([subject, *others], 7)
    entry = draw.pick("Archive", "Share", "Duplicate")
    rows = [el("li", one, data_h=one) for one in listed]
    menu = el(
        "div",
        *(el("div", one, data_h=f"menu {one}", role="menuitem", tabindex="-1") for one in ENTRIES),
        data_h="menu", role="menu", hidden="", style="position:absolute;background:#eee",
    )  # fmt: skip
    script = f"""
    for (const one of {[str(one) for one in listed]!r}) on(one, 'contextmenu', event => {{
      event.preventDefault(); h.row = one; show('menu');
      Object.assign(h.menu.style, {{left: event.pageX + 'px', top: event.pageY + 'px'}}); }});
    for (const entry of {list(ENTRIES)!r}) on('menu ' + entry, 'click', () => {{ show('menu', false); act(entry, h.row); }});"""

    async def perform(person: Person) -> None:
        await person.menu(subject)
        await person.click(f"menu {entry}")

    return PageCase(
        document=shell(draw, "Files", el("ul", *rows), menu, script=script),
        values={"subject": subject},
        acts=(f"{entry} {subject}",),
        perform=perform,
    )


def dialog(draw: Draw) -> PageCase:
    """A dialog in front of a page that has buttons of the same names."""
    native = draw.variant % 2 == 0
    name, note = draw.any(PEOPLE), draw.any(REMARKS)
    fields = (
        draw.field("Name", el("input", data_h="name")),
        draw.field("Notes", el("input", data_h="note")),
        draw.toolbar(draw.button("Cancel", "cancel"), draw.button("Save", "save")),
    )
    title = el("h2", "New contact")
    box = (
        el("dialog", title, *fields, data_h="dialog")
        if native
        else el("div", title, *fields, data_h="dialog", role="dialog", hidden="",
                style="position:fixed;inset:60px;background:#fff;border:1px solid")
    )  # fmt: skip
    opened = "h.dialog.showModal()" if native else "show('dialog')"
    closed = "h.dialog.close()" if native else "show('dialog', false)"
    script = f"""
    on('add', 'click', () => later({draw.pick(0, 150)}, () => {{ {opened}; }}));
    on('cancel', 'click', () => {{ act('cancelled'); {closed}; }});
    on('save', 'click', () => {{ {closed}; act('added', h.name.value, h.note.value); }});
    on('page', 'click', () => act('saved the page'));"""

    async def perform(person: Person) -> None:
        await person.click("add")
        await person.fill(name=name, note=note)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Contacts",
            draw.field("Name", el("input")),
            draw.toolbar(draw.button("Save", "page"), draw.button("Add", "add")),
            box,
            script=script,
        ),
        values={"name": name, "note": note},
        acts=(f"added {name} {note}",),
        perform=perform,
    )


def confirm_box(draw: Draw) -> PageCase:
    """An entry is archived after a question in a box that is built for it."""
    subject, *others = draw.some(SUBJECTS, 6)
    listed = draw.data.sample([subject, *others], 6)
    word = draw.pick("Archive", "Delete")
    row = el(
        "template", el("li", el("span", "{name} "), el("button", word, type="button")), data_h="row"
    )
    box = el(
        "template",
        el("div", el("p", f"{word} {{name}}?"), el("button", "Cancel", type="button"), " ",
           el("button", "Confirm" if draw.variant % 2 else word, type="button", data_h="sure"),
           role="alertdialog", style="position:fixed;top:80px;left:80px;background:#ff8"),
        data_h="box",
    )  # fmt: skip
    script = f"""
    for (const name of {[str(one) for one in listed]!r}) {{
      const row = make('row', {{name}});
      h[name] = row.querySelector('button');
      h[name].onclick = () => later(40, () => {{
        const box = make('box', {{name}});
        document.body.append(box);
        box.onclick = event => {{ const button = event.target.closest('button'); if (!button) return;
          box.remove(); if (button === h.sure) {{ row.remove(); act('{word}', name); }} else act('kept', name); }};
      }});
      h.list.append(row); }}"""

    async def perform(person: Person) -> None:
        await person.click(subject, "sure")

    return PageCase(
        document=shell(draw, "Inbox", el("ul", data_h="list"), row, box, script=script),
        values={"subject": subject},
        acts=(f"{word} {subject}",),
        perform=perform,
    )


def toast(draw: Draw) -> PageCase:
    """A message that shows for a few seconds, with a button in it."""
    item = draw.any(GOODS)
    box = el(
        "template",
        el(
            "div",
            el("span", "{name} was moved. "),
            el("button", "Undo", type="button"),
            role="status",
        ),
        data_h="toast",
    )
    script = """
    on('move', 'click', () => { const name = h.name.value; act('moved', name); later(80, () => {
      const toast = make('toast', {name});
      h.undo = toast.querySelector('button');
      h.undo.onclick = () => { act('undone', name); toast.remove(); };
      document.body.append(toast);
      later(8000, () => toast.remove()); }); });"""

    async def perform(person: Person) -> None:
        await person.fill(name=item)
        await person.click("move", "undo")

    return PageCase(
        document=shell(
            draw,
            "Stock",
            draw.field("Title", el("input", data_h="name")),
            draw.toolbar(draw.button("Move", "move"), draw.button("Close", "close")),
            box,
            script=script,
        ),
        values={"item": item},
        acts=(f"moved {item}", f"undone {item}"),
        perform=perform,
    )


def banner(draw: Draw) -> PageCase:
    """A banner that lies over the page until it is answered."""
    name = draw.any(PEOPLE)
    cover = el(
        "div",
        el("p", "This site uses cookies."),
        draw.toolbar(draw.button("Accept all", "accept"), draw.button("Only necessary", "necessary")),
        data_h="banner", style="position:fixed;inset:0;background:#fffd", hidden="",
    )  # fmt: skip
    script = f"""
    later({draw.pick(0, 200)}, () => show('banner'));
    for (const word of ['accept', 'necessary']) on(word, 'click', () => {{ act(word); h.banner.remove(); }});
    on('save', 'click', () => act('joined', h.name.value));"""

    async def perform(person: Person) -> None:
        await person.click("necessary")
        await person.fill(name=name)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Club",
            draw.field("Name", el("input", data_h="name")),
            draw.button("Sign up", "save"),
            cover,
            script=script,
        ),
        values={"name": name},
        acts=("necessary", f"joined {name}"),
        perform=perform,
    )


def popover(draw: Draw) -> PageCase:
    """Cards with a button of three dots; its menu is at the end of the document."""
    card, *others = draw.some(TAGS, 6)
    listed = draw.data.sample([card, *others], 6)
    entry = draw.pick("Rename", "Share", "Duplicate")
    named = {"aria_label": "More"} if draw.variant % 2 else {}

    def tile(one: Data) -> Element:
        return el("article", el("h3", one), el("p", f"{draw.number_of(2, 90)} pictures"),
                  draw.button("⋯", f"more {one}", **named), class_=draw.css("card"))  # fmt: skip

    menu = el("div", *(el("button", one, type="button", data_h=f"menu {one}") for one in ENTRIES[:5]),
              data_h="menu", hidden="")  # fmt: skip
    script = f"""
    for (const one of {[str(one) for one in listed]!r}) on('more ' + one, 'click', () => {{ h.card = one; show('menu'); }});
    for (const entry of {list(ENTRIES[:5])!r}) on('menu ' + entry, 'click', () => {{ show('menu', false);
      act(entry, h.card); }});"""

    async def perform(person: Person) -> None:
        await person.click(f"more {card}", f"menu {entry}")

    return PageCase(
        document=shell(
            draw, "Albums", free(el("section", *map(tile, listed))), menu, script=script
        ),
        values={"album": card},
        acts=(f"{entry} {card}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    menu_bar, hover_menu, context_menu, dialog, confirm_box, toast, banner, popover,
)  # fmt: skip
