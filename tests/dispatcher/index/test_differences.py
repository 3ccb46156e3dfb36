"""Changed lines between two versions of a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from uncaged_dispatcher.index.differences import changed_lines

LINES = st.lists(st.text("ab", max_size=3), unique=True, max_size=8).map(sorted)


@given(LINES, LINES)
def test_changed_lines_hold_every_difference(one: list[str], other: list[str]) -> None:
    """The changed parts are whole lines of both texts, and every line that only one has is in
    them.
    """
    before, after = ("".join(f"{line}\n" for line in lines).encode() for lines in (one, other))
    left, right = changed_lines(before, after)
    assert {line.encode() for line in set(one) - set(other)} <= set(left.split(b"\n"))
    assert {line.encode() for line in set(other) - set(one)} <= set(right.split(b"\n"))
    for part, whole in ((left, before), (right, after)):
        assert part in whole
        assert part == b"" or part.endswith(b"\n")
        assert set(part.splitlines()) <= set(whole.splitlines())


def test_one_new_line_among_many_is_found_alone() -> None:
    """A line that was inserted is the only changed one."""
    before = [f"{number:05d}\n" for number in range(0, 2000, 2)]
    after = sorted([*before, "00777\n"])
    assert changed_lines("".join(before).encode(), "".join(after).encode()) == (b"", b"00777\n")
