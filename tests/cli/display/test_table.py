"""Tables on wide, narrow and no terminals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.clean import columns
from uncaged_cli.display.output import Piece, Styled
from uncaged_cli.display.table import render, unique_prefixes

HEADERS = ("id", "status", "message")
ROWS: list[list[Piece]] = [
    [
        Styled("01HX5WBE00", "cyan"),
        "completed",
        "a long message that says a good deal about what happened",
    ],
    ["01HX5WBE01", Styled("failed", "red"), "short"],
]


def text_of(lines: list[list[Piece]]) -> list[str]:
    return [
        "".join(piece if isinstance(piece, str) else piece.text for piece in line) for line in lines
    ]


def test_without_a_terminal_nothing_is_cut() -> None:
    """A pipe gets every word, in columns."""
    assert text_of(render(HEADERS, ROWS, width=None)) == [
        "id          status     message",
        "01HX5WBE00  completed  a long message that says a good deal about what happened",
        "01HX5WBE01  failed     short",
    ]


def test_the_last_column_gives_way() -> None:
    """On a terminal of 50 columns the message is cut and nothing else."""
    lines = text_of(render(HEADERS, ROWS, width=50))
    assert lines[1] == "01HX5WBE00  completed  a long message that says a…"
    assert all(columns(line) <= 50 for line in lines)


def test_a_very_narrow_terminal_gets_blocks() -> None:
    """A table whose columns do not fit side by side shows each row as a block, uncut."""
    lines = text_of(render(HEADERS, ROWS, width=24))
    assert lines[0] == "01HX5WBE00"
    assert lines[1] == "  status completed"
    assert "  message a long message" in lines
    assert all(columns(line) <= 24 for line in lines)


def test_cells_cannot_break_out_of_their_line() -> None:
    """A line feed or a control sequence in a cell stays inside the cell's line."""
    rows: list[list[Piece]] = [["a\nb", "\x1b[2Jc", "d\re"]]
    assert text_of(render(("x", "y", "z"), rows, width=None))[1] == "a b  c  d e"


def test_wide_characters_keep_the_columns_straight() -> None:
    """A CJK character counts two columns."""
    rows: list[list[Piece]] = [["漢字", "x"], ["abc", "y"]]
    lines = text_of(render(("n", "v"), rows, width=None))
    assert lines == ["n     v", "漢字  x", "abc   y"]


@given(
    st.sets(st.text(alphabet="01AB", min_size=6, max_size=6), min_size=1, max_size=40),
    st.integers(min_value=1, max_value=6),
)
def test_a_prefix_belongs_to_one_name_alone(names: set[str], minimum: int) -> None:
    """Each shortened name finds its own and no other."""
    for name, prefix in unique_prefixes(sorted(names), minimum=minimum).items():
        assert len(prefix) >= minimum
        assert [other for other in names if other.startswith(prefix)] == [name]
