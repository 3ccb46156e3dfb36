"""Redesign of the benchmark's pages."""

from __future__ import annotations

import re

from benchmarks.pages.redesign import SYNONYMS, redesigned
from benchmarks.pages.tree import Data, Element, el, free, render

FIELDS = ("Name", "E-mail", "Phone", "City", "Street", "Message", "Title", "Notes")


def form() -> Element:
    """A page with eight fields, in any order, and a text of its data."""
    fields = [
        el(
            "p",
            el("label", name, for_=f"field-{name.lower()}"),
            el("input", name=name.lower(), id=f"field-{name.lower()}", class_="wide field"),
        )
        for name in FIELDS
    ]
    return el(
        "html",
        el("style", ".wide { width: 20em } #field-city, p.field { margin: 1.5em }"),
        el("main", free(el("form", *fields)), el("h2", Data("Save"), class_="heading")),
    )


def test_a_redesign_renames_reorders_rewords_and_wraps() -> None:
    """No class or id of the page is left, all references fit, fields have another order, and some
    texts, but none of the data, have another wording.
    """
    before, after = render(form()), render(redesigned(form(), 3))
    classes = set(re.findall(r'(?:class|id|for)="([^"]*)"', before))
    assert not classes & set(re.findall(r'(?:class|id|for)="([^"]*)"', after))
    ids, labels = (set(re.findall(rf' {key}="([^"]*)"', after)) for key in ("id", "for"))
    assert ids == labels
    assert len(ids) == len(FIELDS)
    rules = re.findall(r"[.#]([a-z][\w-]*)", after.partition("</style>")[0])
    assert set(rules) <= set(re.findall(r"[\w-]+", " ".join(re.findall('="([^"]*)"', after))))
    assert "margin: 1.5em" in after
    names = re.findall(r' name="([^"]*)"', after)
    assert sorted(names) == sorted(name.lower() for name in FIELDS)
    assert names != [name.lower() for name in FIELDS]
    assert ">Save</h2>" in after
    assert after.count("<span") == len(FIELDS)
    assert after.count("<div") == len(("form", "h2"))
    reworded = [name for name in FIELDS if f">{SYNONYMS[name]}</label>" in after]
    assert 0 < len(reworded) < len(FIELDS)


def test_a_redesign_depends_on_the_page_alone() -> None:
    """The same page gets the same redesign each time, and another page another one."""
    assert redesigned(form(), 3) == redesigned(form(), 3)
    assert redesigned(form(), 3) != redesigned(form(), 4)
    assert len(set(SYNONYMS.values()) | set(SYNONYMS)) == 2 * len(SYNONYMS), "one meaning each"
