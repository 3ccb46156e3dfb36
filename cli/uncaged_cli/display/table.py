"""Tables that fit the terminal: the last column is cut first; a very narrow terminal gets one block
per row.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

from uncaged_bundles.clean import clean_line, columns, shorten

from .output import Piece, Styled

GAP = "  "
NARROWEST_LAST = 12


def render(
    headers: Sequence[str], rows: Sequence[Sequence[Piece]], *, width: int | None
) -> list[list[Piece]]:
    """Return the lines of a table, each a list of pieces.

    Args:
        headers: one word for each column; the last column holds free text.
        rows: cells in the order of *headers*.
        width: columns of the terminal; None to cut nothing.
    """
    cleaned: dict[str, str] = {}
    cells: list[list[Piece]] = [[_one_line(cell, cleaned) for cell in row] for row in rows]
    lines: list[list[Piece]] = [[*headers], *cells]
    sizes = [_size([_text(cell) for cell in column]) for column in zip(*lines, strict=True)]
    if width is not None:
        room = width - sum(sizes[:-1]) - len(GAP) * (len(headers) - 1)
        if room < min(NARROWEST_LAST, sizes[-1]):
            return [part for row in cells for part in _block(headers, row, width)]
        if sizes[-1] > room:
            sizes[-1] = room
            for row in cells:
                row[-1] = _same(row[-1], shorten(_text(row[-1]), room))
    heading: list[Piece] = [
        Styled(_pad(header, size), "bright_black")
        for header, size in zip(headers, sizes, strict=True)
    ]
    return [_join(line, sizes) for line in [heading, *cells]]


def unique_prefixes(names: Sequence[str], *, minimum: int) -> dict[str, str]:
    """Return the shortest unique prefix of each name, at least *minimum* characters long."""
    ordered = sorted(set(names))
    shared = [0, *(_shared(one, two) for one, two in itertools.pairwise(ordered)), 0]
    return {
        name: name[: max(minimum, shared[index] + 1, shared[index + 1] + 1)]
        for index, name in enumerate(ordered)
    }


def _join(cells: Sequence[Piece], sizes: Sequence[int]) -> list[Piece]:
    """Join a line; cells without a colour become one piece, which is cleaned and painted at
    once.
    """
    plain_cells = [cell for cell in cells if isinstance(cell, str)]
    if len(plain_cells) == len(cells) and "".join(plain_cells).isascii():
        text = GAP.join(map(str.ljust, plain_cells, sizes)).rstrip()
        return [text] if text else []
    line: list[Piece] = []
    plain = ""
    for cell, size in zip(cells[:-1], sizes[:-1], strict=True):
        if isinstance(cell, str):
            plain += _pad(cell, size) + GAP
        else:
            line += [plain, Styled(_pad(cell.text, size), cell.colour)]
            plain = GAP
    line += [plain + cells[-1]] if isinstance(cells[-1], str) else [plain, cells[-1]]
    while line and not _text(line[-1]).strip():
        line.pop()
    return [*line[:-1], _same(line[-1], _text(line[-1]).rstrip())] if line else []


def _block(headers: Sequence[str], cells: Sequence[Piece], width: int) -> list[list[Piece]]:
    lines: list[list[Piece]] = [[cells[0]]]
    for header, cell in zip(headers[1:], cells[1:], strict=True):
        if text := _text(cell):
            wrapped = textwrap.wrap(
                f"{header} {text}", max(10, width - len(GAP)), subsequent_indent=GAP
            )
            lines += [[GAP, _same(cell, part)] for part in wrapped]
    return lines


def _one_line(cell: Piece, cleaned: dict[str, str]) -> Piece:
    """Return the cell in one line; repeated texts are cleaned once."""
    if not isinstance(cell, str):
        return Styled(clean_line(cell.text), cell.colour)
    found = cleaned.get(cell)
    if found is None:
        found = cleaned[cell] = clean_line(cell)
    return found


def _size(texts: Sequence[str]) -> int:
    return max(map(len if "".join(texts).isascii() else columns, texts))


def _text(cell: Piece) -> str:
    return cell if isinstance(cell, str) else cell.text


def _same(cell: Piece, text: str) -> Piece:
    return text if isinstance(cell, str) else Styled(text, cell.colour)


def _pad(text: str, size: int) -> str:
    return text.ljust(size) if text.isascii() else text + " " * (size - columns(text))


def _shared(one: str, two: str) -> int:
    for index, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return index
    return min(len(one), len(two))
