"""Edits that pass the tests and are no repair."""

from __future__ import annotations

import pytest
from uncaged_repair.edits.edit import Nature, SourceEdit
from uncaged_repair.edits.spans import read_source
from uncaged_repair.harness.results import Frame
from uncaged_repair.validation.plausibility import Plausibility, plausibility

HEAD = """\
import logging
from typing import TypeVar

LIMIT = 7
T = TypeVar("T")
log = logging.getLogger(__name__)


class Other: ...


def other(): ...


"""


def judge(
    before: str, old: str, new: str, *, nature: Nature = "change", fails: str = "", called: str = ""
) -> Plausibility:
    """Judge the edit old → new of a function. fails: text of the line that fails. called: the
    function that it calls and that raises.
    """
    text = HEAD + before
    assert text.count(old) == 1
    start = text.encode().index(old.encode())
    edit = SourceEdit(
        path="m.py",
        start=start,
        end=start + len(old.encode()),
        before=old,
        after=new,
        kind="k",
        line=text[:start].count("\n") + 1,
        weight=1.0,
        nature=nature,
    )
    frames = [Frame(path="tests/test_m.py", line=3, function="test")]
    if fails:
        line = text[: text.index(fails)].count("\n") + 1
        frames.append(Frame(path="m.py", line=line, function="f"))
    if called:
        frames.append(Frame(path="m.py", line=2, function=called))
    return plausibility(read_source("m.py", text.encode()), edit, frames)


LOOP = """\
def f(a, b):
    total = 0
    for item in a:
        if item > b:
            raise ValueError(f"{item} is too large")
        total += check(item)
    return total
"""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("    total = 0\n", "    return b\n    total = 0\n", "jumps over"),
        ("        total +=", "        continue\n        total +=", "jumps over"),
        ("item > b", "False", "constant"),
        ("item > b", "item > b and False", "constant"),
        ("item > b", "not 1", "constant"),
        ("item > b", "item >= item", "constant"),
        ("item > b", "b is not b", "constant"),
        ("item > b", "len(a) >= 0", "constant"),
        ("{item} is", "{LIMIT} is", "`LIMIT`"),
        ("in a:", "in log:", "logger"),
        ("item > b", "item > T", "type variable"),
        ("return total", "return total + logging", "module"),
    ],
)
def test_an_edit_that_hides_the_failure_is_refused(old: str, new: str, word: str) -> None:
    """An early jump, a constant condition, a constant in a message and a name that is no data are
    no repair, whatever the tests say.
    """
    assert word in judge(LOOP, old, new).hides


@pytest.mark.parametrize(
    ("old", "new", "fails", "called", "word"),
    [
        ("        total += check(item)\n", "", "total += check", "check", "deletes"),
        ("        total += check(item)\n", "        pass\n", "total += check", "", "deletes"),
        ("check(item)", "item", "total += check", "check", "call of `check`"),
        (
            'raise ValueError(f"{item} is too large")',
            "continue",
            "raise ValueError",
            "",
            "`raise`",
        ),
    ],
)
def test_the_failing_statement_may_not_be_taken_away(
    old: str, new: str, fails: str, called: str, word: str
) -> None:
    """The statement, the call and the `raise` that fail stay; the same edit elsewhere is another
    matter.
    """
    assert word in judge(LOOP, old, new, fails=fails, called=called).hides
    assert not judge(LOOP, old, new, fails="total = 0").hides


def test_all_exceptions_may_not_be_dropped() -> None:
    """A handler that is made to catch everything hides what it drops; one that does something with
    the exception, or that names another, does not.
    """
    text = "def f(a):\n    try:\n        return a[0]\n    except KeyError:\n        pass\n"
    for new in ("except Exception:", "except:", "except (KeyError, BaseException):"):
        assert "all exceptions" in judge(text, "except KeyError:", new).hides
    assert judge(text, "except KeyError:", "except IndexError:") == Plausibility()
    kept = text.replace("pass", "return None")
    assert judge(kept, "except KeyError:", "except Exception:") == Plausibility()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("item > b", "item >= b"),
        ("total = 0", "total = 1"),
        ("    total = 0\n", "    if not a:\n        return 0\n    total = 0\n"),
        ("{item} is", "{b} is"),
        ("check(item)", "other(item)"),
        ("return total", "return total or LIMIT"),
        ("ValueError", "TypeError"),
        ("item > b", "isinstance(item, Other)"),
        ("item > b", "check(item) == check(item)"),
        ("item > b", "len(a) > 0"),
        ("item > b", "b.x > b.y"),
        ("in a:", "in sorted(a):"),
    ],
)
def test_an_ordinary_edit_is_plausible(old: str, new: str) -> None:
    """A changed operator, a guarded return, another local, function or exception is a repair."""
    assert judge(LOOP, old, new, fails="total += check", called="check") == Plausibility()


@pytest.mark.parametrize("operator", ["in", "<=", ">", "not in"])
def test_a_text_is_compared_as_a_whole(operator: str) -> None:
    """A literal text that was compared for equality is not searched or ordered instead; versions
    may be ordered, and what was searched before stays so.
    """
    text = 'def f(a, b):\n    return a == "close" or b == "2.0"\n'
    assert "'close'" in judge(text, 'a == "close"', f'a {operator} "close"').hides
    assert judge(text, 'a == "close"', 'a != "close"') == Plausibility()
    assert judge(text, 'a == "close"', '"close" in a') == Plausibility()
    assert judge(text, 'b == "2.0"', 'b >= "2.0"') == Plausibility()
    searched = text.replace("==", "in")
    assert judge(searched, 'a in "close"', 'b not in "close"') == Plausibility()


def test_a_doubtful_edit_is_the_last_choice() -> None:
    """A class or a function for a value, and a lost recursion, are possible, but doubtful."""
    assert "class `Other`" in judge(LOOP, "item > b", "item > Other").doubt
    assert "function `other`" in judge(LOOP, "return total", "return total + other").doubt
    text = "def f(a):\n    return 1 if not a else f(a[1:]) + 1\n"
    assert "recursion" in judge(text, "f(a[1:]) + 1", "a + 1").doubt
    assert not judge(text, "f(a[1:]) + 1", "f(a[1:]) + 2").doubt
