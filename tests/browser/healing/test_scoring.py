"""Choice of the element that takes the place of another: facts in, a choice or a refusal out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from uncaged_browser.elements.facts import ElementFacts
from uncaged_browser.healing.scoring import Chosen, NotChosen, choose
from uncaged_browser.healing.sought import SoughtElement, sought_of
from uncaged_browser.operations import read_operation
from uncaged_bundles.records import replace as record_replace

SAVE = ElementFacts(
    tag="button",
    type="submit",
    role="button",
    name="Save",
    text="Save",
    near=("Street", "City", "Cancel"),
    form="Address",
    landmark="form Address",
    place=(100, 300, 60, 30),
)


def sought(do: str = "click", facts: ElementFacts = SAVE, **more: Any) -> SoughtElement:
    body: dict[str, Any] = {
        "do": do,
        "target": [{"role": facts.role, "name": facts.name}],
        "facts": facts.document(),
    }
    found = sought_of(read_operation({**body, **more}))
    assert found is not None
    return found


def button(name: str, facts: ElementFacts = SAVE, **more: Any) -> ElementFacts:
    return replace(facts, name=name, text=name, **more)


def field(name: str, **more: Any) -> ElementFacts:
    return ElementFacts(tag="input", type="text", role="textbox", name=name, label=name, **more)


def chosen(*elements: ElementFacts, of: SoughtElement | None = None) -> str:
    """Return the name that was chosen, or the refusal."""
    found = choose(of or sought(), elements)
    return found.facts.name if isinstance(found, Chosen) else found.reason


def test_a_reworded_button_is_taken() -> None:
    """The likest by far, whatever its place, class and id are."""
    moved = button("Save changes", place=(700, 20, 90, 30), id="x")
    assert (
        chosen(button("Cancel", type="button"), moved, button("Help", type="button"))
        == "Save changes"
    )


def test_a_row_with_another_number_is_another_row() -> None:
    """A number in the text that tells an element from its equals is data of the row."""
    known = ElementFacts(tag="a", role="link", name="Details", near=("INV-100", "12.00"))
    target = [{"role": "link", "name": "Details", "near": "INV-100"}]
    wanted = sought(facts=known, target=target)
    same = replace(known, name="Show details")
    other = replace(same, near=("INV-101", "12.00"))
    found = choose(wanted, [other, same])
    assert isinstance(found, Chosen) and found.number == 1
    assert "is not near INV-100" in chosen(other, of=wanted)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Delete account", "does another thing: delete"),
        ("Save and pay", "does another thing: pay"),
        ("Speichern und absenden", "does another thing: send"),
        ("Don't save", "is a negation"),
        ("Cancel", "does another thing than"),
        ("Supprimer", "does another thing: delete"),
        ("", "no name"),
        ("Newsletter", "no element has a name like"),
    ],
)
def test_a_button_of_other_meaning_is_refused(name: str, reason: str) -> None:
    """In the very place of the old one, with the same neighbours, and alone."""
    assert reason in chosen(button(name))


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("Cancel order", "Order"),
        ("Order", "Cancel order"),
        ("Cancel order", "Cancel"),
        ("Order history", "Order"),
        ("Order", "Order history"),
        ("Buy", "Buy later"),
        ("Delete draft", "Delete"),
        ("Delete account", "Account"),
        ("Save and send", "Save"),
        ("Book now, pay later", "Book"),
        ("Pay later", "Pay now"),
        ("Cart", "Empty cart"),
        ("Sign out", "Sign out everywhere"),
        ("Cancel", "Cancel subscription"),
        ("Archive", "Unarchive"),
        ("Publish", "Unpublish"),
        ("Install", "Uninstall"),
        ("Select all", "Deselect all"),
        ("Unfreeze card", "Freeze card"),
        ("Review", "Preview"),
    ],
)
@pytest.mark.parametrize("role", ["button", "link"])
def test_a_name_that_promises_more_or_less_is_another(former: str, now: str, role: str) -> None:
    """The only candidate, in the very place of the old element, with the same neighbours."""
    old = replace(SAVE, role=role, name=former, text=former, type="")
    assert chosen(button(now, old), of=sought(facts=old)) != now


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("Send", "Send message"),
        ("Delete", "Delete entry"),
        ("Place order", "Order now"),
        ("Proceed to checkout", "Checkout"),
        ("Archive", "Move to archive"),
        ("Cancel", "Discard"),
        ("Log out", "Sign out"),
        ("Subscribe", "Subscribe to the newsletter"),
        ("Add to cart", "Add"),
    ],
)
def test_the_same_action_in_other_words_is_taken(former: str, now: str) -> None:
    """An added word names the thing, and nothing that tells actions apart is left out."""
    old = button(former)
    assert chosen(button(now), button("Help", type="button"), of=sought(facts=old)) == now


def test_a_left_out_word_does_not_matter_with_the_same_mark() -> None:
    """A mark of the page's program says that it is the same element, with fewer words, too."""
    old = button("Delete draft", test_id="delete")
    assert chosen(button("Delete", old), of=sought(facts=old)) == "Delete"
    assert chosen(button("Delete", old, test_id="other"), of=sought(facts=old)) != "Delete"


def test_two_that_are_alike_are_refused() -> None:
    """Equal ones, and one whose rival may not be taken."""
    assert "two elements are alike" in chosen(button("Save changes"), button("Save changes"))
    assert "two elements are alike" in chosen(
        button("Save changes"), button("Save changes", type="button", place=(100, 330, 60, 30))
    )


def test_one_of_several_rows_is_told_by_its_neighbours() -> None:
    """The row's own text decides; texts that all rows have do not. Without it, none is taken."""
    rows = ["Blue Lamp", "Red Chair", "Green Desk"]
    old = button("Remove", type="button", near=("Red Chair", "Edit", "5 $"))
    now = [button("Delete", type="button", near=(row, "Edit", "5 $")) for row in rows]
    found = choose(sought(facts=old), now)
    assert isinstance(found, Chosen) and found.number == 1
    other = replace(old, near=("White Sofa", "Edit", "5 $"))
    assert isinstance(choose(sought(facts=other), now), NotChosen)


def test_another_host_is_refused() -> None:
    """A link that leads elsewhere, and a button whose form does."""
    link = ElementFacts(tag="a", role="link", name="Terms", text="Terms", near=("Help",))
    elsewhere = replace(link, name="Terms of use", text="Terms of use", host="evil.test")
    assert "leads to evil.test" in chosen(elsewhere, of=sought(facts=link))
    assert chosen(replace(elsewhere, host=""), of=sought(facts=link)) == "Terms of use"
    known = replace(link, host="evil.test")
    assert chosen(elsewhere, of=sought(facts=known)) == "Terms of use"
    assert "leads to evil.test" in chosen(button("Save changes", host="evil.test"))


def test_an_element_of_another_step_is_left_to_it() -> None:
    """A field whose name is that of another target is not taken for this one."""
    old, other = field("City", near=("Country",)), field("City of birth", near=("Country",))
    now = [other]
    assert chosen(*now, of=sought("fill", old, text="x")) == "City of birth"
    found = choose(sought("fill", old, text="x"), now, [sought("fill", other, text="y")])
    assert isinstance(found, NotChosen) and "another step" in found.reason


def test_a_password_is_typed_into_a_password_field_only() -> None:
    """And nothing else is typed into one; a secret needs one, even where nothing was noted."""
    plain, hidden = (
        field("Code"),
        field(
            "Code",
        ),
    )
    hidden = replace(hidden, type="password")
    assert chosen(plain, of=sought("fill", hidden, text="x")).startswith("no operable")
    assert chosen(hidden, of=sought("fill", plain, text="x")).startswith("no operable")
    bare = sought_of(
        read_operation({"do": "fill", "target": {"label": "Code"}, "text": "secret:A"})
    )
    assert chosen(plain, of=bare).startswith("no operable")
    assert chosen(hidden, of=bare) == "Code"


def test_a_value_of_the_run_must_be_in_the_name() -> None:
    """An element for a parameter's value is not replaced by one for another, or for any."""
    old = ElementFacts(tag="a", role="link", name="Order Blue Lamp", text="Order Blue Lamp")
    wanted = record_replace(sought(facts=old), values=("Blue Lamp",))
    for name in ("Order", "Order Blue Desk Lamp", "Order Red Chair"):
        assert isinstance(choose(wanted, [replace(old, name=name, text=name)]), NotChosen), name
    now = replace(old, name="Buy Blue Lamp now", text="Buy Blue Lamp now")
    assert chosen(now, of=wanted) == "Buy Blue Lamp now"


def test_the_kind_must_fit_the_operation() -> None:
    """A click on a button is no click on a field, and a list is no text field."""
    assert chosen(field("Save"), of=sought()).startswith("no operable")
    listed = ElementFacts(tag="select", type="select-one", role="combobox", name="City")
    assert chosen(listed, of=sought("fill", field("City"), text="x")).startswith("no operable")
    slider = ElementFacts(tag="input", type="range", role="slider", name="Budget")
    moved = replace(slider, name="Available budget")
    assert chosen(field("Remarks"), moved, of=sought("fill", slider, text="5")) == moved.name
    assert chosen(field("City"), of=sought("select", listed, options=["x"])).startswith(
        "no operable"
    )


def test_what_only_reads_and_references_are_not_looked_for() -> None:
    """Another element has another text."""
    for body in ({"do": "text", "target": {"css": "h1"}}, {"do": "click", "target": {"ref": "e1"}}):
        assert sought_of(read_operation(body)) is None


def test_the_row_that_a_target_names_must_be_there() -> None:
    """Where a text near it alone tells the target from its equals, the only one that is left is
    not taken without that text; a synonym of it is the text.
    """
    old = button("Remove", type="button", near=("Delivery", "Edit"))
    near = {"role": "button", "name": "Remove", "near": "Delivery"}
    wanted = sought(facts=old, target=[near])
    for row, taken in (("Shipping", True), ("Invoice", False)):
        now = button("Delete", type="button", near=(row, "Edit"))
        found = choose(wanted, [now])
        assert isinstance(found, Chosen) is taken, found
    assert isinstance(found, NotChosen) and "is not near Delivery" in found.reason


def test_a_field_without_a_name_is_known_by_the_text_beside_it() -> None:
    """As in a table whose cells have no labels."""
    old = ElementFacts(tag="input", type="text", role="textbox", near=("City", "Name"))
    wanted = sought("fill", old, text="x", target=[{"role": "textbox", "name": "", "near": "City"}])
    now = [replace(old, near=(one, other)) for one, other in (("Name", "Town"), ("Town", "Name"))]
    found = choose(wanted, now)
    assert isinstance(found, Chosen) and found.number == 1
    others = [replace(old, near=(one, "Sheet")) for one in ("Name", "Remarks")]
    assert isinstance(choose(wanted, others), NotChosen)


def test_a_nameless_element_is_only_taken_alone_and_never_clicked() -> None:
    """An area for writing is; one of two, and what would be clicked, is not."""
    area = ElementFacts(tag="div", type="contenteditable", near=("Bold", "Italic"), heading="Draft")
    writes = sought("fill", area, text="x", target=[{"css": "div.area"}])
    clicks = sought("click", area, target=[{"css": "div.area"}])
    assert isinstance(choose(writes, [area, button("Save")]), Chosen)
    for wanted, elements in ((writes, [area, area]), (clicks, [area]), (writes, [button("")])):
        assert isinstance(choose(wanted, elements), NotChosen)


def test_an_attribute_that_is_kept_counts_against_those_without_it() -> None:
    """Of equal names in groups whose titles were reworded, the one of the same group is taken."""
    old = ElementFacts(
        tag="input", type="radio", role="radio", name="Yes", field="payment", near=("No", "Payment")
    )
    near = {"role": "radio", "name": "Yes", "near": "Payment"}
    wanted = sought("check", old, target=[near])
    now = [
        replace(old, field=field, near=("No", title))
        for field, title in (("delivery", "Delivery"), ("payment", "Money"))
    ]
    found = choose(wanted, now)
    assert isinstance(found, Chosen) and found.number == 1


def test_a_button_without_a_name_is_no_rival_by_the_text_beside_it() -> None:
    """A picture beside the sought button has the button's text beside it."""
    old = button("Save draft", near=("Delete",))
    picture = replace(old, name="", text="", near=("Keep draft Delete",))
    assert chosen(picture, replace(old, name="Keep draft"), of=sought(facts=old)) == "Keep draft"


def test_of_several_with_its_names_one_must_be_far_ahead() -> None:
    """The margin is wider than for an element that was not found."""
    plain = replace(SAVE, form="", landmark="")
    rows = [button("Save", plain, near=(row, "Edit")) for row in ("Lamp", "Chair")]
    wanted = sought(facts=rows[1])
    assert isinstance(choose(wanted, rows), Chosen)
    assert isinstance(choose(record_replace(wanted, several=True), rows), NotChosen)
