"""Changed default values, applied to live functions."""

from __future__ import annotations

from types import FunctionType

import pytest
from uncaged_repair.server.defaults import changed_defaults

TEXT = """\
RATE = 2


class Box:
    def fill(self, text, width=8, *, sign=" ", pad=RATE):
        return (text, width, sign, pad)


def other(x=1):
    return x


@staticmethod
def kept(x=1):
    return x
"""


def changed(before: str, after: str) -> object:
    """Change a default of `Box.fill` in the text, apply that to the live function, and call it."""
    found = changed_defaults(TEXT.encode(), TEXT.replace(before, after).encode())
    assert found is not None
    assert (found.name, found.line) == ("fill", 5)
    space: dict[str, type] = {}
    exec(compile(TEXT, "box.py", "exec", dont_inherit=True), space)  # noqa: S102 - our own text
    box = space["Box"]()
    found.apply(vars(space["Box"])["fill"])
    return box.fill("a")


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ("width=8", "width=9", ("a", 9, " ", 2)),
        ("self, text,", "self, text='b',", ("a", 8, " ", 2)),
        ('sign=" "', "sign='-'", ("a", 8, "-", 2)),
        ("width=8", "width=None", ("a", None, " ", 2)),
        ("pad=RATE", "pad=(1, 2)", ("a", 8, " ", (1, 2))),
    ],
)
def test_a_changed_default_reaches_the_live_function(
    before: str, after: str, result: object
) -> None:
    """A literal default, positional or by keyword, changed or new, is that of the next call; all
    others stay.
    """
    assert changed(before, after) == result


def test_a_new_default_makes_an_argument_optional() -> None:
    """A parameter that gets its first default may be left out."""
    new = TEXT.replace("def other(x=1)", "def other(x, y=(), z=1)")
    assert changed_defaults(TEXT.encode(), new.encode()) is None, "another signature"
    old = TEXT.replace("def other(x=1)", "def other(x)")
    found = changed_defaults(old.encode(), TEXT.encode())
    assert found is not None

    space: dict[str, FunctionType] = {}
    exec(compile(old, "box.py", "exec", dont_inherit=True), space)  # noqa: S102 - our own text
    found.apply(space["other"])
    assert space["other"]() == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("width=8", "width=RATE"),
        ("width=8", "width"),
        ("def other(x=1):\n    return x", "def other(x=2):\n    return 2"),
        ("x=1", "x=2"),
        ("RATE = 2", "RATE = 3"),
        ("@staticmethod\ndef kept(x=1)", "@staticmethod\ndef kept(x=2)"),
        ("def other(x=1)", "def other(x=1)"),
    ],
)
def test_any_other_change_needs_a_fresh_import(before: str, after: str) -> None:
    """A default that is no literal or is gone, two functions, a decorated one, a change elsewhere,
    and no change at all are refused.
    """
    assert changed_defaults(TEXT.encode(), TEXT.replace(before, after).encode()) is None
