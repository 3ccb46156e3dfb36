"""Pages that are used by pulling and by pointing: boards, sorted lists, drawings, sliders, maps."""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import Data, Element, el
from .words import CITIES, SUBJECTS, TAGS

__all__ = ["TEMPLATES"]

LANES = ("Waiting", "In work", "Done")


def board(draw: Draw) -> PageCase:
    """A board: cards are pulled into a lane by the browser's own drag and drop."""
    card, *others = draw.some(SUBJECTS, 6)
    listed = draw.data.sample([card, *others], 6)
    lane = draw.pick(*LANES[1:])
    tiles = [
        el("div", one, draggable="true", data_h=one, class_=draw.css("card")) for one in listed
    ]
    lanes = [
        el("section", el("h2", one), *(tiles if one == LANES[0] else []), data_h=one,
           style="min-height:80px;border:1px dotted")
        for one in LANES
    ]  # fmt: skip
    script = f"""
    let pulled = '';
    for (const one of {[str(one) for one in listed]!r}) on(one, 'dragstart', event => {{ pulled = one;
      event.dataTransfer.setData('text', one); }});
    for (const lane of {list(LANES)!r}) {{
      on(lane, 'dragover', event => event.preventDefault());
      on(lane, 'drop', event => {{ event.preventDefault(); h[lane].append(h[pulled]); act('moved', pulled, 'to', lane); }}); }}
    on('save', 'click', () => act('saved'));"""

    async def perform(person: Person) -> None:
        await person.drag(card, lane)
        await person.click("save")

    return PageCase(
        document=shell(draw, "Board", *lanes, draw.button("Save", "save"), script=script),
        values={"card": card},
        acts=(f"moved {card} to {lane}", "saved"),
        perform=perform,
    )


def board_and_name(draw: Draw) -> PageCase:
    """A board on which a card is written first, and then pulled."""
    title, (first, *others) = draw.any(SUBJECTS), draw.some(TAGS, 4)
    lanes = [
        el(
            "section",
            el("h2", one),
            el("div", data_h=f"{one} cards", style="min-height:60px"),
            data_h=one,
        )
        for one in LANES
    ]
    card = el("template", el("article", el("span", "{title}"), draggable="true"), data_h="card")
    script = f"""
    const add = title => {{ const card = make('card', {{title}}); h['card ' + title] = card;
      card.addEventListener('dragstart', event => {{ h.pulled = title; event.dataTransfer.setData('text/plain', title); }});
      h['Waiting cards'].append(card); }};
    {[str(one) for one in (first, *others)]!r}.forEach(add);
    on('add', 'click', () => {{ add(h.title.value); h.title.value = ''; }});
    for (const lane of {list(LANES)!r}) {{ on(lane, 'dragover', event => event.preventDefault());
      on(lane, 'drop', event => {{ event.preventDefault(); h[lane + ' cards'].append(h['card ' + h.pulled]);
        act(h.pulled, 'in', lane); }}); }}"""

    async def perform(person: Person) -> None:
        await person.fill(title=title)
        await person.click("add")
        await person.drag(f"card {title}", "Done")

    return PageCase(
        document=shell(
            draw,
            "Plan",
            draw.field("Title", el("input", data_h="title")),
            draw.button("Add", "add"),
            card,
            *lanes,
            script=script,
        ),
        values={"title": title},
        acts=(f"{title} in Done",),
        perform=perform,
    )


SORTING = """
let pulled = null;
h.list.addEventListener('pointerdown', event => {
  const handle = event.target.closest('.grip'); if (!handle) return;
  pulled = handle.closest('li'); h.list.setPointerCapture(event.pointerId); });
h.list.addEventListener('pointermove', event => {
  if (!pulled) return;
  const over = document.elementsFromPoint(event.clientX, event.clientY).find(one => one.tagName === 'LI' && one !== pulled);
  if (!over) return;
  const box = over.getBoundingClientRect();
  over[event.clientY < box.top + box.height / 2 ? 'before' : 'after'](pulled); });
h.list.addEventListener('pointerup', () => { pulled = null; });
on('save', 'click', () => act('saved', [...h.list.children].map(one => one.dataset.name).join(', ')));
"""


def sorting(draw: Draw) -> PageCase:
    """A list that is sorted by pulling the whole entry, or its grip, with the pointer."""
    names = draw.some(CITIES, 4)
    moved, target = names[0], names[3]
    whole = draw.variant % 2 == 0
    items = [
        el("li", one, data_name=one, data_h=one, class_="grip", style="cursor:grab;touch-action:none;height:30px")
        if whole
        else el("li", el("span", "⠿", class_="grip", style="cursor:grab;touch-action:none", data_h=one), " ",
                el("span", one), data_name=one, data_h=f"line {one}", style="height:30px")
        for one in names
    ]  # fmt: skip
    script = SORTING.replace(".grip", "[style*=grab]")
    wanted = [*names[1:], names[0]]

    async def perform(person: Person) -> None:
        await person.drag(moved, target if whole else f"line {target}", 0.8)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Route",
            el("ol", *items, data_h="list"),
            draw.button("Save", "save"),
            script=script,
        ),
        values={"moved": moved, "last": target},
        acts=(f"saved {', '.join(wanted)}",),
        perform=perform,
    )


def canvas_clicks(draw: Draw) -> PageCase:
    """A picture of which a quarter is clicked."""
    names = ("north west", "north east", "south west", "south east")
    index = draw.pick(0, 1, 2, 3)
    texts = draw.some(TAGS, 4)
    title = draw.any(CITIES)
    script = f"""
    const pen = h.map.getContext('2d');
    {[str(one) for one in texts]!r}.forEach((text, index) => pen.fillText(text, 20 + index % 2 * 150, 40 + (index > 1) * 100));
    on('map', 'click', event => {{ h.part = {list(names)!r}[(event.offsetX > 150) + 2 * (event.offsetY > 100)]; }});
    on('save', 'click', () => act('marked', h.part, h.title.value));"""

    async def perform(person: Person) -> None:
        await person.click_at("map", 70 + index % 2 * 150, 40 + (index > 1) * 100)
        await person.fill(title=title)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Map",
            el("canvas", width="300", height="200", data_h="map", style="border:1px solid"),
            draw.field("Title", el("input", data_h="title")),
            draw.button("Save", "save"),
            script=script,
        ),
        values={"title": title},
        acts=(f"marked {names[index]} {title}",),
        perform=perform,
    )


def drawing(draw: Draw) -> PageCase:
    """A field for a signature, which is drawn with the pointer."""
    name = draw.any(TAGS)
    left, right = (40.0, 20.0 * draw.pick(1, 2)), (240.0, 20.0 * draw.pick(4, 6))
    script = """
    let from = null;
    on('pad', 'pointerdown', event => { from = [event.offsetX, event.offsetY]; });
    on('pad', 'pointerup', event => {
      if (from) h.line = [...from, event.offsetX, event.offsetY].map(one => Math.round(one / 20)).join(' '); from = null; });
    on('save', 'click', () => act('signed', h.line, h.name.value));"""
    points = [round(part / 20) for part in (*left, *right)]

    async def perform(person: Person) -> None:
        await person.draw("pad", left, right)
        await person.fill(name=name)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Signature",
            el(
                "canvas",
                width="300",
                height="160",
                data_h="pad",
                style="border:1px solid;touch-action:none",
            ),
            draw.field("Name", el("input", data_h="name")),
            draw.button("Confirm", "save"),
            script=script,
        ),
        values={"name": name},
        acts=(f"signed {' '.join(map(str, points))} {name}",),
        perform=perform,
    )


def knob(draw: Draw) -> PageCase:
    """A slider of plain elements, pulled with the pointer along its track."""
    names = draw.design.sample(["Bass", "Treble", "Balance"], 3)
    name, part = draw.design.choice(names), draw.pick(60, 90, 150)
    note = draw.any(TAGS)
    roles = (
        {"role": "slider", "tabindex": "0", "aria-valuenow": "0"} if draw.variant % 2 == 0 else {}
    )

    def track(one: str) -> Element:
        label = {"aria-label": one} if roles else {}
        thumb = el(
            "div",
            data_h=f"{one} thumb",
            style="position:absolute;width:20px;height:20px;background:#36c;cursor:grab",
            **roles,
            **label,
        )
        return el("div", el("span", one), el("div", thumb, data_h=f"{one} track",
                  style="position:relative;width:220px;height:20px;background:#ddd;touch-action:none"))  # fmt: skip

    script = f"""
    for (const one of {names!r}) {{
      const thumb = h[one + ' thumb'], track = h[one + ' track'];
      let held = false;
      thumb.addEventListener('pointerdown', () => {{ held = true; }});
      addEventListener('pointermove', event => {{ if (!held) return;
        const x = Math.max(0, Math.min(200, event.clientX - track.getBoundingClientRect().left - 10));
        thumb.style.left = x + 'px'; h['set ' + one] = Math.round(x / 10); }});
      addEventListener('pointerup', () => {{ held = false; }}); }}
    on('save', 'click', () => act('set', {names!r}.map(one => one + ' ' + (h['set ' + one] || 0)).join(', '), h.note.value));"""

    async def perform(person: Person) -> None:
        await person.draw(f"{name} thumb", (10, 10), (10 + part, 10))
        await person.fill(note=note)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Sound",
            el("section", *map(track, names)),
            draw.field("Notes", el("input", data_h="note")),
            draw.button("Apply", "save"),
            script=script,
        ),
        values={"note": note},
        acts=(
            f"set {', '.join(f'{one} {part // 10 if one == name else 0}' for one in names)} {note}",
        ),
        perform=perform,
    )


def drop_zone(draw: Draw) -> PageCase:
    """Goods that are pulled into one of several boxes, by the pointer alone."""
    item, *others = draw.some(TAGS, 5)
    listed: list[Data] = draw.data.sample([item, *others], 5)
    boxes = draw.design.sample(["Left", "Middle", "Right"], 3)
    box = draw.design.choice(boxes)
    goods = [
        el(
            "div",
            one,
            data_h=one,
            style="display:inline-block;padding:6px;cursor:grab;touch-action:none;user-select:none",
        )
        for one in listed
    ]
    targets = [
        el(
            "div",
            one,
            data_h=f"box {one}",
            style="display:inline-block;width:110px;height:70px;border:1px solid",
        )
        for one in boxes
    ]
    script = f"""
    let pulled = '';
    for (const one of {[str(one) for one in listed]!r}) on(one, 'pointerdown', () => {{ pulled = one; }});
    addEventListener('pointerup', event => {{ if (!pulled) return; const one = pulled; pulled = '';
      const under = document.elementsFromPoint(event.clientX, event.clientY);
      for (const box of {boxes!r}) if (under.includes(h['box ' + box])) act('put', one, box); }});
    on('save', 'click', () => act('saved'));"""

    async def perform(person: Person) -> None:
        await person.drag(item, f"box {box}")
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Sorting",
            el("div", *goods),
            el("div", *targets),
            draw.button("Save", "save"),
            script=script,
        ),
        values={"item": item},
        acts=(f"put {item} {box}", "saved"),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    board, board_and_name, sorting, canvas_clicks, drawing, knob, drop_zone,
)  # fmt: skip
