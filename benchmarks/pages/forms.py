"""Pages with forms: texts, lists, all types of inputs, groups of choices, uploads."""

from __future__ import annotations

from .case import PageCase, Template, shell
from .draw import Draw
from .person import Person
from .tree import Data, el, free
from .words import CITIES, GOODS, PEOPLE, REMARKS, SUBJECTS, TAGS

__all__ = ["TEMPLATES"]


def sent(word: str, **values: str) -> str:
    """Return what a page reports about a form."""
    listed = "; ".join(f"{key}={values[key]}" for key in sorted(values))
    return f"{word} {listed}"


def contact(draw: Draw) -> PageCase:
    """A contact form with a search form beside it."""
    name = draw.any(PEOPLE)
    mail = name.split()[0].lower() + "@post.test"
    subject, message = draw.any(SUBJECTS), draw.any(REMARKS)
    fields = [
        draw.field("Name", el("input", name="name", data_h="name")),
        draw.field("E-mail", el("input", name="mail", type="email", data_h="mail")),
        draw.field("Title", el("input", name="title", data_h="title")),
        draw.field("Message", el("textarea", name="text", data_h="text")),
    ]
    search = el(
        "form", draw.field("Search", el("input", type="search", name="q")), el("button", "Go")
    )
    form = el(
        "form",
        free(el("div", *fields)),
        el("button", draw.pick("Send", "Confirm"), type="submit"),
        data_h="form",
    )

    async def perform(person: Person) -> None:
        await person.fill(name=name, mail=mail, title=subject, text=message)
        await (await person.at("form")).evaluate(
            "one => h.submit = one.querySelector('[type=submit]')"
        )
        await person.click("submit")

    return PageCase(
        document=shell(draw, "Contact", search, form, script="sends('form', 'sent');"),
        values={"name": name, "mail": mail, "subject": subject, "message": message},
        acts=(sent("sent", name=name, mail=mail, title=subject, text=message),),
        perform=perform,
    )


def wrapped(draw: Draw) -> PageCase:
    """A form in which each label is around its control, lists included."""
    city, *cities = draw.some(CITIES, 7)
    goods = sorted(GOODS)[draw.variant : draw.variant + 9]
    item, number = draw.any(goods), str(draw.number_of(2, 9))
    listed = sorted([city, *cities])
    form = el(
        "form",
        free(
            el(
                "div",
                el("label", "City ", draw.options(listed, name="city", data_h="city")),
                el("label", el("b", "Title"), draw.options(goods, name="item", data_h="item")),
                el("label", "Quantity", el("input", type="number", name="number", data_h="number")),
                el("label", "Colour", el("input", name="colour")),
            )
        ),
        el("label", el("input", type="checkbox", name="gift", data_h="gift"), " Gift wrap"),
        el("button", "Add to cart", data_h="send"),
        data_h="form",
    )

    async def perform(person: Person) -> None:
        await person.select("city", city)
        await person.select("item", item)
        await person.fill(number=number)
        await person.click("gift", "send")

    def coded(text: str) -> str:
        return text.lower().replace(" ", "-")

    return PageCase(
        document=shell(draw, "Order sheet", form, script="sends('form', 'added');"),
        values={"city": city, "item": item, "number": number},
        acts=(
            sent("added", city=coded(city), item=coded(item), number=number, colour="", gift="on"),
        ),
        perform=perform,
    )


def all_types(draw: Draw) -> PageCase:
    """A form with an input of each type."""
    year, month, day = 2030 + draw.number_of(0, 9), draw.number_of(10, 12), draw.number_of(10, 28)
    values = {
        "date": f"{year}-{month}-{day}",
        "time": f"{draw.number_of(10, 20)}:{draw.number_of(10, 59)}",
        "month": f"{year + 1}-{month}",
        "week": f"{year + 2}-W{draw.number_of(10, 50)}",
        "moment": f"{year}-{month}-{day}T{draw.number_of(10, 20)}:30",
        "colour": f"#{draw.number_of(0x100000, 0xFFFFFF):06x}",
        "phone": f"+41 31 {draw.number_of(100, 999)} {draw.number_of(10, 99)}",
        "site": f"https://{draw.any(TAGS)}.test/",
        "share": str(draw.number_of(21, 79)),
    }
    types = {
        "date": "date", "time": "time", "month": "month", "week": "week", "moment": "datetime-local",
        "colour": "color", "phone": "tel", "site": "url", "share": "range",
    }  # fmt: skip
    labels = {
        "date": "Date", "time": "Time", "month": "Month", "week": "Week", "moment": "Start",
        "colour": "Colour", "phone": "Phone", "site": "Web site", "share": "Volume",
    }  # fmt: skip
    used = draw.design.sample(sorted(types), 6)
    style = draw.pick(0, 1, 2, 4)
    fields = [
        draw.field(labels[key], el("input", type=types[key], name=key, data_h=key), style=style)
        for key in used
    ]
    form = el("form", free(el("div", *fields)), el("button", "Save", data_h="save"), data_h="form")

    async def perform(person: Person) -> None:
        for key in used:
            await person.fill(**{key: values[key]})
        await person.click("save")

    wanted = {key: values[key] for key in used}
    return PageCase(
        document=shell(draw, "Event", form, script="sends('form', 'saved');"),
        values=wanted,
        acts=(sent("saved", **wanted),),
        perform=perform,
    )


def choices(draw: Draw) -> PageCase:
    """Groups of radio buttons and check boxes with the same names in each group."""
    groups = draw.design.sample(["Delivery", "Report", "Payment", "Invoice", "Reminder"], 3)
    options = draw.pick(
        ("Yes", "No", "Later"), ("Daily", "Weekly", "Never"), ("Low", "Normal", "High")
    )
    wanted = {group: draw.design.choice(options) for group in groups}
    topic, *topics = draw.some(TAGS, 6)
    sets = [
        el(
            "fieldset",
            el("legend", group),
            *(
                el(
                    "label",
                    el("input", type="radio", name=group, value=option, data_h=f"{group}{option}"),
                    option,
                )
                for option in options
            ),
        )
        for group in groups
    ]
    boxes = el(
        "fieldset",
        el("legend", "Topics"),
        *(
            el("label", el("input", type="checkbox", name="topic", value=one, data_h=one), one)
            for one in sorted([topic, *topics], key=draw.data.sample(TAGS, len(TAGS)).index)
        ),
    )
    form = el(
        "form", free(el("div", *sets, boxes)), el("button", "Save", data_h="save"), data_h="form"
    )

    async def perform(person: Person) -> None:
        for group, option in wanted.items():
            await person.click(f"{group}{option}")
        await person.click(topic, "save")

    return PageCase(
        document=shell(draw, "Settings", form, script="sends('form', 'saved');"),
        values={"topic": topic},
        acts=(
            "saved "
            + "; ".join(
                sorted([f"{a}={b}" for a, b in wanted.items()] + [f"topic={topic}"], key=_code)
            ),
        ),
        perform=perform,
    )


def _code(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def nameless_fields(draw: Draw) -> PageCase:
    """A table whose fields have no label but the text in the cell before them."""
    person_name, city = draw.any(PEOPLE), draw.any(CITIES)
    texts = {
        "Name": person_name,
        "City": city,
        "Notes": draw.any(REMARKS),
        "Phone": str(draw.number_of(10**6, 10**7)),
    }
    order = draw.design.sample(sorted(texts), len(texts))
    rows = [
        el("tr", el("td", label), el("td", el("input", name=label.lower(), data_h=label)))
        if draw.variant % 2
        else el("tr", el("td", label), el("td", el("input", data_h=label)))
        for label in order
    ]
    table = el("table", free(el("tbody", *rows)))

    async def perform(person: Person) -> None:
        for label in order[:3]:
            await person.fill(**{label: texts[label]})
        await person.click("save")

    script = f"""on('save', 'click', () => act('saved', {sorted(texts)!r}.map(key => key + '=' + h[key].value).join('; ')));"""
    wanted = {label: texts[label] for label in order[:3]}
    return PageCase(
        document=shell(draw, "Sheet", table, draw.button("Save", "save"), script=script),
        values={label.lower(): text for label, text in wanted.items()},
        acts=(sent("saved", **{label: wanted.get(label, "") for label in texts}),),
        perform=perform,
    )


def upload(draw: Draw) -> PageCase:
    """A file that is chosen by a field, or by a button in front of a hidden one."""
    file, note = str(draw.directory / f"{draw.any(TAGS)}.txt"), draw.any(REMARKS)
    hidden = draw.variant % 2 == 1
    chooser = el(
        "input", type="file", name="file", data_h="file", **({"hidden": ""} if hidden else {})
    )
    front = [draw.button("Choose file", "front")] if hidden else []
    form = el(
        "form",
        free(
            el(
                "div",
                el("label", "Attachment ", chooser) if not hidden else el("div", chooser, *front),
                draw.field("Comment", el("input", name="note", data_h="note")),
                draw.field("Title", el("input", name="title")),
            )
        ),
        el("button", "Upload", data_h="send"),
        data_h="form",
    )
    script = "sends('form', 'uploaded');" + (
        "on('front', 'click', () => h.file.click());" if hidden else ""
    )

    async def perform(person: Person) -> None:
        await person.upload("file", file)
        await person.fill(note=note)
        await person.click("send")

    return PageCase(
        document=shell(draw, "Documents", form, script=script),
        values={"file": file, "note": note},
        acts=(sent("uploaded", file=file.rpartition("/")[2], note=note, title=""),),
        perform=perform,
    )


def toggles(draw: Draw) -> PageCase:
    """Switches and check boxes that are drawn by their labels."""
    names = draw.design.sample(
        ["Sound", "Newsletter", "Dark colours", "Location", "Updates", "Hints"], 4
    )
    style = "position:absolute;opacity:0;width:0;height:0"
    drawn = draw.pick(True, False)
    rows = []
    for name in names:
        if drawn:
            box = el("input", type="checkbox", style=style, data_h=name)
            rows.append(
                el(
                    "label",
                    box,
                    el("i", "▢ ", aria_hidden="true"),
                    Data(name),
                    data_h=f"{name} label",
                )
            )
        else:
            rows.append(
                el("div", el("span", name), " ", el("button", "▢", type="button", role="switch",
                   aria_checked="false", aria_label=name, data_h=name))
            )  # fmt: skip
    wanted = names[:2]
    note = draw.any(REMARKS)
    script = f"""
    for (const name of {names!r}) {{ if (h[name].role === 'switch')
      on(name, 'click', () => {{ h[name].ariaChecked = String(h[name].ariaChecked !== 'true'); }}); }}
    on('save', 'click', () => act('saved', {names!r}.filter(
      name => h[name].checked || h[name].ariaChecked === 'true').join(','), h.note.value));"""

    async def perform(person: Person) -> None:
        for name in wanted:
            await person.click(f"{name} label" if drawn else name)
        await person.fill(note=note)
        await person.click("save")

    return PageCase(
        document=shell(
            draw,
            "Preferences",
            free(el("section", *rows)),
            draw.field("Notes", el("input", data_h="note")),
            draw.toolbar(draw.button("Save", "save"), draw.button("Reset", "reset")),
            script=script + "on('reset', 'click', () => act('reset'));",
        ),
        values={"note": note},
        acts=(f"saved {','.join(name for name in names if name in wanted)} {note}",),
        perform=perform,
    )


TEMPLATES: tuple[Template, ...] = (
    contact, wrapped, all_types, choices, nameless_fields, upload, toggles,
)  # fmt: skip
