"""Pages with frames, shadow DOM, and windows of their own."""

from __future__ import annotations

from .case import OTHER_ORIGIN, PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import el
from .words import CITIES, PEOPLE, PLACES, REMARKS, TAGS

__all__ = ["TEMPLATES"]


def framed(draw: Draw) -> PageCase:
    """A form in a frame, of this site or of another one, beside a form of the page."""
    name, city = draw.any(PEOPLE), draw.any(CITIES)
    foreign = OTHER_ORIGIN if draw.variant % 2 else ""
    titled = {"title": draw.pick("Payment", "Delivery")} if draw.variant % 3 else {}
    inner = shell(
        draw, "Inside", draw.field("Name", el("input", data_h="name")),
        draw.field("City", el("select", *(el("option", one) for one in CITIES), data_h="city")),
        draw.button("Save", "save"), script="on('save', 'click', () => act('saved', h.name.value, h.city.value));", bare=True,
    )  # fmt: skip

    async def perform(person: Person) -> None:
        inside = await person.inside("frame")
        await inside.fill(name=name)
        await inside.select("city", city)
        await inside.click("save")

    frame = el(
        "iframe", src=f"{foreign}/inside", data_h="frame", width="500", height="200", **titled
    )
    advert = el("iframe", src="/advert", width="200", height="60")
    return PageCase(
        document=shell(
            draw,
            "Checkout",
            advert,
            draw.field("Name", el("input")),
            draw.button("Save", "page"),
            frame,
            script="on('page', 'click', () => act('wrong button'));",
        ),
        others={
            "/inside": inner,
            "/advert": shell(draw, "Advert", el("a", "Buy", href="#"), script="", bare=True),
        },
        values={"name": name, "city": city},
        acts=(f"saved {name} {city}",),
        perform=perform,
    )


def nested_frames(draw: Draw) -> PageCase:
    """A frame in a frame."""
    note = draw.any(REMARKS)
    inner = shell(
        draw,
        "Innermost",
        draw.field("Notes", el("input", data_h="note")),
        draw.button("Send", "send"),
        script="on('send', 'click', () => act('sent', h.note.value));",
        bare=True,
    )
    middle = shell(
        draw,
        "Middle",
        el("p", "Middle"),
        el("iframe", src="/inner", data_h="inner", name="inner" if draw.variant % 2 else "f1"),
        script="",
        bare=True,
    )

    async def perform(person: Person) -> None:
        inside = await person.inside("middle", "inner")
        await inside.fill(note=note)
        await inside.click("send")

    return PageCase(
        document=shell(
            draw,
            "Frames",
            el("iframe", src="/middle", data_h="middle", width="500", height="300"),
            script="",
        ),
        others={"/middle": middle, "/inner": inner},
        values={"note": note},
        acts=(f"sent {note}",),
        perform=perform,
    )


def shadow_form(draw: Draw) -> PageCase:
    """A form of custom elements, each with a shadow root."""
    name, city = draw.any(PEOPLE), draw.any(CITIES)
    style = draw.variant % 4
    template = el(
        "template", el("div", draw.field("{label}", el("input"), style=style)), data_h="field"
    )
    button = el(
        "template",
        el("button", "{text}", type="button", class_=draw.css("button")),
        data_h="button",
    )
    script = """
    customElements.define('x-field', class extends HTMLElement { connectedCallback() {
      const root = this.attachShadow({mode: 'open'});
      root.append(make('field', {label: this.getAttribute('label')}));
      h[this.getAttribute('label')] = root.querySelector('input'); } });
    customElements.define('x-button', class extends HTMLElement { connectedCallback() {
      const root = this.attachShadow({mode: 'open'});
      root.append(make('button', {text: this.getAttribute('text')}));
      h[this.getAttribute('text')] = root.querySelector('button'); } });
    for (const label of ['Name', 'City', 'Country']) { const one = document.createElement('x-field');
      one.setAttribute('label', label); h.host.append(one); }
    for (const text of ['Cancel', 'Save']) { const one = document.createElement('x-button');
      one.setAttribute('text', text); h.host.append(one); }
    h.Save.onclick = () => act('saved', h.Name.value, h.City.value);
    h.Cancel.onclick = () => act('cancelled');"""

    async def perform(person: Person) -> None:
        await person.fill(Name=name, City=city)
        await person.click("Save")

    return PageCase(
        document=shell(
            draw, "Address", el("section", data_h="host"), template, button, script=script
        ),
        values={"name": name, "city": city},
        acts=(f"saved {name} {city}",),
        perform=perform,
    )


def shadow_menu(draw: Draw) -> PageCase:
    """Cards of custom elements in a custom element, each with a menu in its shadow root."""
    place, *others = draw.some(PLACES, 5)
    listed = draw.data.sample([place, *others], 5)
    entry = draw.pick("Share", "Rename")
    card = el(
        "template",
        el("div", el("h3", "{name}"), el("button", "More", type="button"),
           el("ul", el("li", "Share", role="menuitem"), el("li", "Rename", role="menuitem"), hidden="")),
        data_h="card",
    )  # fmt: skip
    script = f"""
    customElements.define('x-card', class extends HTMLElement {{ connectedCallback() {{
      const name = this.getAttribute('name'), root = this.attachShadow({{mode: 'open'}});
      const card = make('card', {{name}}), menu = card.querySelector('ul');
      root.append(card);
      h['more ' + name] = card.querySelector('button');
      h['more ' + name].onclick = () => {{ menu.hidden = !menu.hidden; }};
      ['Share', 'Rename'].forEach((word, index) => {{ const one = menu.children[index]; h[word + ' ' + name] = one;
        one.onclick = () => {{ menu.hidden = true; act(word, name); }}; }}); }} }});
    customElements.define('x-shelf', class extends HTMLElement {{ connectedCallback() {{
      const root = this.attachShadow({{mode: 'open'}});
      for (const name of {[str(one) for one in listed]!r}) {{ const one = document.createElement('x-card');
        one.setAttribute('name', name); root.append(one); }} }} }});"""

    async def perform(person: Person) -> None:
        await person.click(f"more {place}", f"{entry} {place}")

    return PageCase(
        document=shell(
            draw,
            "Places",
            el("x-shelf"),
            card,
            el("style", "[hidden] { display: none }"),
            script=script,
        ),
        values={"place": place},
        acts=(f"{entry} {place}",),
        perform=perform,
    )


def new_window(draw: Draw) -> PageCase:
    """A form in a window that a link or a script opens; the first one goes on afterwards."""
    place, name = draw.any(PLACES), draw.any(PEOPLE)
    by_script = draw.variant % 2
    opener = (
        draw.button("Details", "open")
        if by_script
        else el("a", "Details", href="/form", target="_blank", data_h="open", rel="opener")
    )
    form = shell(
        draw,
        "Details",
        draw.field("Name", el("input", data_h="name")),
        draw.button("Save", "save"),
        script="on('save', 'click', () => { act('saved', h.name.value); opener.postMessage(h.name.value, '*'); close(); });",
        bare=True,
    )
    script = f"""
    addEventListener('message', event => {{ h.result.textContent = event.data; h.got = event.data; }});
    {"on('open', 'click', () => { window.open('/form', 'form'); });" if by_script else ""}
    on('finish', 'click', () => act('finished', h.place.value, h.got));"""

    async def perform(person: Person) -> None:
        await person.fill(place=place)
        async with person.page.expect_popup() as info:
            await person.click("open")
        other = Person(await info.value)
        await other.page.wait_for_load_state()
        await other.fill(name=name)
        await other.click("save")
        await person.page.wait_for_function("h.got")
        await person.click("finish")

    return PageCase(
        document=shell(
            draw,
            "Request",
            draw.field("Title", el("input", data_h="place")),
            opener,
            el("output", data_h="result"),
            draw.button("Finish", "finish"),
            script=script,
        ),
        others={"/form": form},
        values={"place": place, "name": name},
        acts=(f"saved {name}", f"finished {place} {name}"),
        perform=perform,
    )


def second_tab(draw: Draw) -> PageCase:
    """A list whose entries open in tabs of their own, where the task ends."""
    tag, *others = draw.some(TAGS, 6)
    listed = draw.data.sample([tag, *others], 6)
    note = draw.any(REMARKS)
    links = [
        el("li", el("a", one, href=f"/entry/{one}", target="_blank", data_h=one)) for one in listed
    ]
    entries = {
        f"/entry/{one}": shell(
            draw,
            "Entry",
            el("h2", one),
            draw.field("Comment", el("textarea", data_h="note")),
            draw.toolbar(draw.button("Cancel", "cancel"), draw.button("Send", "send")),
            script=f"""on('cancel', 'click', () => act('cancelled'));
            on('send', 'click', () => act('sent', {str(one)!r}, h.note.value));""",
            bare=True,
        )
        for one in listed
    }

    async def perform(person: Person) -> None:
        async with person.page.expect_popup() as info:
            await person.click(tag)
        other = Person(await info.value)
        await other.page.wait_for_load_state()
        await other.fill(note=note)
        await other.click("send")

    return PageCase(
        document=shell(draw, "Topics", el("ul", *links), script=""),
        others=entries,
        values={"topic": tag, "note": note},
        acts=(f"sent {tag} {note}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    framed, nested_frames, shadow_form, shadow_menu, new_window, second_tab,
)  # fmt: skip
