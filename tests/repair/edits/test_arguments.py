"""Arguments that are missing, or differ from those of other calls."""

from __future__ import annotations

import re

import pytest
from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import parses, read_source

PROGRAM = """\
class Writer:
    def push(self, item, key, data=None):
        return [item, key, data]

    def start(self, key, data):
        self.item = self.push(self.item, key, None)

    def end(self, key, data):
        CALL
"""


def kinds(text: str, line: int, message: str = "") -> dict[str, str]:
    """Return the kinds of the edits of one line by what the line then is, best first."""
    source = read_source("x.py", text.encode())
    facts = ValueFacts(errors=(("TypeError", message),) if message else ())
    found: dict[str, str] = {}
    for _, edit in candidates(source, {line: 1.0}, facts):
        data = edit.apply(source.data)
        if parses(data):
            found.setdefault(data.decode().splitlines()[line - 1].strip(), edit.kind)
    return found


def lines(text: str, line: int, message: str = "") -> list[str]:
    return list(kinds(text, line, message))


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        (
            "return self.push(key, data)",
            "return self.push(self.item, key, data)",
            "Writer.push() missing 1 required positional argument: 'key'",
        ),
        (
            "return self.push(self.item, data=data)",
            "return self.push(self.item, key, data=data)",
            "Writer.push() missing 1 required positional argument: 'key'",
        ),
        (
            "return unpack('!H', )",
            "return unpack('!H', data)",
            "unpack expected 2 arguments, got 1",
        ),
        (
            "return self.out.write()",
            "return self.out.write(data)",
            "StringIO.write() takes exactly one argument (0 given)",
        ),
        (
            "return send(key)",
            "return send(key, data=data)",
            "send() missing 1 required keyword-only argument: 'data'",
        ),
    ],
)
def test_a_missing_argument_is_added_where_it_belongs(wrong: str, right: str, message: str) -> None:
    """The argument that the error misses is among the first edits, at the front, in the middle, by
    its name and after a last comma; an error about another function does not put it there.
    """
    place = PROGRAM.splitlines().index("        CALL") + 1
    text = PROGRAM.replace("CALL", wrong)
    found = kinds(text, place, message)
    assert found[right] == "missing argument"
    assert list(found).index(right) < 25
    other = kinds(text, place, re.sub(r"\w+(\(\)| expected)", r"other\1", message, count=1))
    assert "missing argument" not in other.values()


def test_an_argument_is_added_after_a_last_comma_without_an_error() -> None:
    """A call that ends with a comma gets no second one."""
    found = lines("def f(a, b):\n    return g(a, )\n\ndef h(a):\n    return g(a, size=1)\n", 2)
    assert {"return g(a, b)", "return g(a, size=1)"} <= {text.replace(" )", ")") for text in found}


def test_a_parameter_that_is_not_passed_gets_a_default() -> None:
    """The parameter that the error names gets one, if the ones after it have one; others do not."""
    message = "update() missing 1 required positional argument: 'rows'"
    found = lines("def update(a, rows, size=3):\n    return rows\n", 1, message)
    assert found.index("def update(a, rows=(), size=3):") < 10
    assert "def update(a, rows=None, size=3):" in found
    assert "def update(a=None, rows, size=3):" not in found
    made = "Table.__init__() missing 1 required positional argument: 'rows'"
    text = "class Table:\n    def __init__(self, rows: list) -> None:\n        self.rows = rows\n"
    assert "def __init__(self, rows: list = ()) -> None:" in lines(text, 2, made)
    assert "def update(a, rows=(), size=3):" not in lines(
        "def update(a, rows, size=3):\n    return rows\n", 1, message.replace("update", "other")
    )


def test_the_argument_of_the_other_calls_is_tried_first() -> None:
    """A constant that the other calls of the function pass is put in place of another one, or
    added; without a majority among them it is not.
    """
    head = "def f(red, green, blue):\n    return "
    for wrong in ("int(blue, None)", "int(blue, 17)", "int(blue)"):
        found = lines(f"{head}int(red, 16), int(green, 16), {wrong}\n", 2)
        assert found.index("return int(red, 16), int(green, 16), int(blue, 16)") < 8
    two = kinds(f"{head}int(red, 8), int(green, 16), int(blue)\n", 2)
    four = kinds(f"{head}int(red, 8), int(green, 16), int(red, 2), int(blue)\n", 2)
    assert two["return int(red, 8), int(green, 16), int(blue, 16)"] == "argument of other calls"
    added = four.get("return int(red, 8), int(green, 16), int(red, 2), int(blue, 16)")
    assert added != "argument of other calls"


def test_none_becomes_the_parameter_that_the_called_function_names() -> None:
    """`None` that is passed where the function has a parameter of a variable's name becomes that
    variable first; a parameter that is not used otherwise comes before one that is.
    """
    head = "def g(key, spaces):\n    return key\n\ndef f(a, b, c, d, e, key, h, spaces):\n"
    found = lines(f"{head}    return g(key + spaces + a + b + c + d, None)\n", 5)
    named = "return g(key + spaces + a + b + c + d, spaces)"
    assert found.index(named) < found.index("return g(key + spaces + a + b + c + d, a)")
    text = "def f(a, b, c, unread):\n    return k(None) + a + b + c\n"
    found = lines(text, 2)
    assert found.index("return k(unread) + a + b + c") < found.index("return k(a) + a + b + c")
