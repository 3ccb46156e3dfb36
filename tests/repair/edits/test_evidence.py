"""Evidence for and against edits, by the order of the candidates."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.edit import SourceEdit
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import read_source

FIGURES = """\
import logging
from typing import TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)
Number = int
LIMIT = 3


class Figure:
    pass


def helper():
    return LIMIT


def pick(first, second):
    return first
"""


def edits(text: str, line: int, facts: ValueFacts | None = None) -> dict[str, SourceEdit]:
    """Return the candidates of one line by what the line then is, best first."""
    source = read_source("x.py", text.encode())
    found: dict[str, SourceEdit] = {}
    for _, edit in candidates(source, {line: 1.0}, facts or ValueFacts()):
        lines = edit.apply(source.data).decode().splitlines()
        found.setdefault("\n".join(lines[line - 1 : line + 1]).strip(), edit)
    return found


def rank(found: dict[str, SourceEdit], text: str) -> int:
    return list(found).index(text)


def test_what_is_no_data_does_not_replace_data() -> None:
    """Modules, type variables, aliases of types, loggers, classes and functions are not offered
    where a value is; the constant and the other parameter are.
    """
    found = edits(FIGURES, 19)
    assert {"return second", "return LIMIT"} <= found.keys()
    for name in ("logging", "TypeVar", "T", "log", "Number", "Figure", "helper", "pick"):
        assert f"return {name}" not in found


def test_what_was_seen_to_be_no_data_does_not_replace_data() -> None:
    """A parameter that held a function, a class or a logger in the failing run is not offered; one
    that held a number is.
    """
    text = "def f(a, b, c, d):\n    return a\n"
    seen = ValueFacts(
        locals={
            ("x.py", name): ((1, frozenset({kind})),)
            for name, kind in {"b": "function", "c": "Logger", "d": "int"}.items()
        }
    )
    found = edits(text, 2, seen)
    assert "return d" in found
    assert not {"return b", "return c"} & found.keys()


def test_an_edit_that_ends_the_recursion_is_behind_its_cousins() -> None:
    """Dropping the recursive call ranks far behind an edit that keeps it, and behind the same edit
    of a call that is not recursive.
    """
    text = "def depth(node):\n    return 2 + depth(node.next)\n"
    found = edits(text, 2)
    assert "ends the recursion" in found["return 2"].traits
    assert rank(found, "return 1 + depth(node.next)") < rank(found, "return 2")
    other = edits(text.replace("def depth", "def height"), 2)
    assert other["return 2"].weight > 2 * found["return 2"].weight


def test_an_edit_that_leaves_a_variable_unused_is_behind_its_cousins() -> None:
    text = "def f(a, b):\n    c = a * b\n    d = a + b\n    return c + d * c\n"
    found = edits(text, 4)
    assert "leaves a variable unused" in found["return c + a * c"].traits
    assert "leaves a variable unused" not in found["return c + d * d"].traits
    assert rank(found, "return c + d * d") < rank(found, "return c + a * c")


def test_a_constant_in_a_message_is_behind_a_variable_in_it() -> None:
    """The name in a message is not likely to be a constant of the module; elsewhere it is."""
    text = (
        "LIMIT = 3\ndef f(name, size):\n    size = size\n    text = f'{name} of {name}'\n"
        "    raise ValueError(f'{name} is too long', size, name)\n"
    )
    found = edits(text, 5)
    shown = found["raise ValueError(f'{LIMIT} is too long', size, name)"]
    assert "constant in a message" in shown.traits
    assert rank(found, "raise ValueError(f'{size} is too long', size, name)") < rank(
        found, "raise ValueError(f'{LIMIT} is too long', size, name)"
    )
    plain = edits("LIMIT = 3\ndef f(name, size):\n    return name + name\n", 3)
    assert "constant in a message" not in plain["return LIMIT + name"].traits


def test_an_edit_that_keeps_the_test_from_the_failing_line_is_marked() -> None:
    """An early `return`, and a condition that prevents the `raise` below it, are marked and rank
    last; the removal of the `raise` is a deletion.
    """
    text = "def f(a, b):\n    if a > b:\n        raise ValueError(a)\n    c = a - b\n    return c\n"
    guarded = edits(text, 2)["if a > b and b:\n        raise ValueError(a)"]
    assert guarded.nature == "hide"
    assert "hides the failure" in guarded.traits
    removed = edits(text, 3)["pass\n    c = a - b"]
    assert removed.nature == "delete"
    early = [edit for edit in edits(text, 4).values() if edit.kind == "guard"]
    assert early
    assert {edit.nature for edit in early} == {"hide"}
    changed = edits(text, 4)["c = b - a\n    return c"]
    assert changed.nature == "change"
    assert changed.weight > 2 * max(edit.weight for edit in early)


def test_an_edit_of_code_that_runs_on_import_is_marked() -> None:
    """An edit of a module variable or of a computed default ranks behind, as each try costs a fresh
    import; a literal default and a function's body do not.
    """
    body = "    return a + width\n"
    text = f"RATE = 2\ndef f(a, width=8, pad=RATE):\n{body}"
    first = edits(text, 1)["RATE = 3\ndef f(a, width=8, pad=RATE):"]
    assert "runs on import" in first.traits
    defaults = edits(text, 2)
    literal = defaults[f"def f(a, width=9, pad=RATE):\n{body}".strip()]
    computed = defaults[f"def f(a, width=RATE, pad=RATE):\n{body}".strip()]
    assert "runs on import" not in literal.traits
    assert "runs on import" in computed.traits
    assert "runs on import" not in edits(text, 3)["return a - width"].traits


def test_an_early_return_of_another_variable_is_marked() -> None:
    """A `return` inside a loop is marked unless the function returns the same value elsewhere."""
    text = (
        "def f(rows, top):\n    best = 0\n    for row in rows:\n        best = max(best, row)\n"
        "    top = best\n    return best\n"
    )
    found = edits(text, 4)
    natures = {
        edit.after.strip(): edit.nature for edit in found.values() if edit.kind == "return inserted"
    }
    assert natures["return top"] == "hide"
    assert natures["return best"] == "change"


def test_a_condition_that_is_narrowed_before_a_value_is_an_ordinary_edit() -> None:
    text = "def f(a, b):\n    if a > b:\n        a = 0\n    return a\n"
    assert edits(text, 2)["if a > b and b:\n        a = 0"].nature == "change"


def test_a_condition_is_edited_without_a_new_variable_first() -> None:
    """An edit that makes a condition depend on one more variable is behind those that do not; a
    variable outside of a condition is not affected.
    """
    text = "def f(a, b, c):\n    if a < b:\n        return c\n    return a\n"
    found = edits(text, 2)
    assert "new dependency" in found["if a < c:\n        return c"].traits
    for better in ("a <= b", "b < b"):
        assert "new dependency" not in found[f"if {better}:\n        return c"].traits
        assert rank(found, f"if {better}:\n        return c") < rank(
            found, "if a < c:\n        return c"
        )
    assert "new dependency" not in edits(text, 4)["return c"].traits


def test_the_error_of_the_failing_test_raises_the_edits_that_fit_it() -> None:
    """An IndexError makes a bound likelier than without it."""
    text = "def f(a, b):\n    return a[b + 1]\n"
    plain = edits(text, 2)["return a[b + 2]"]
    fitting = edits(text, 2, ValueFacts(errors=(("IndexError", "list index out of range"),)))
    assert fitting["return a[b + 2]"].weight > plain.weight


def test_numbers_of_the_failing_test_are_tried() -> None:
    """A number that the assertion shows is a candidate for a number of the line; its texts are no
    candidates for texts.
    """
    shown = ValueFacts(errors=(("AssertionError", "assert 'metres' == 'feet' and 4711 == 12"),))
    found = edits("def f(a):\n    return a, 'yards', 5\n", 2, shown)
    assert "return a, 'yards', 4711" in found
    assert "return a, 'metres', 5" not in found


def test_a_name_that_is_used_nearby_is_before_one_from_far_away() -> None:
    far = "\n".join(f"    spare = spare + {number}" for number in range(2, 12))
    text = f"def f(a, near, spare):\n{far}\n    a = near + near\n    return a\n"
    found = edits(text, 13)
    assert "used nearby" in found["return near"].traits
    assert rank(found, "return near") < rank(found, "return spare")


def test_a_missing_name_is_removed_or_defined() -> None:
    """An edit that keeps the name that the failing run could not find would only hide its line."""
    text = "def f(a):\n    if a in (1, 2):\n        return long(a)\n    return a\n"
    missing = ValueFacts(errors=(("NameError", "name 'long' is not defined"),))
    assert "not in" in after(edits(text, 2))
    assert "not in" not in after(edits(text, 2, missing))
    found = edits(text, 3, missing)
    assert next(iter(found)).startswith("return int(a)"), "the name that replaced it is first"
    assert all("long" in edit.before + edit.after for edit in found.values())
    defined = "long = int\n" + text
    assert "not in" in after(edits(defined, 3, missing))


def after(found: Mapping[str, SourceEdit]) -> set[str]:
    """The texts that edits put in place of others."""
    return {edit.after for edit in found.values()}
