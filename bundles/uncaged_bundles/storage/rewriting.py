"""Line-based changes of a YAML text that keep comments and all other lines.

A pair of a block mapping is replaced, appended or removed as whole lines. Comments on removed lines
are kept above their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import yaml

Compose = Callable[[str], yaml.Node | None]
Represent = Callable[[object], yaml.Node]
Spot = tuple[int, int]


class Rewriting:
    """A YAML text during a change. compose: parses it. serialize: returns the lines of a mapping
    with one pair.
    """

    def __init__(
        self, text: str, compose: Compose, serialize: Callable[[str, yaml.Node], list[str]]
    ) -> None:
        self._lines = text.removeprefix("\ufeff").rstrip("\n").split("\n")
        self._compose = compose
        self._serialize = serialize

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def set(self, path: tuple[str, ...], key: str, value: yaml.Node) -> None:
        """Set a key of the mapping at *path*.

        Raises:
            LookupError: there is no block mapping at *path*, so that the pair cannot be a line of
                its own.
        """
        mapping = self._mapping(path)
        new = self._serialize(key, value)
        indent = " " * mapping.value[0][0].start_mark.column
        found = _pair(mapping, key)
        if found is None:
            after = last_line(mapping) + 1
            self._lines[after:after] = [indent + line for line in new]
            return
        first, last = found[0].start_mark.line, last_line(found[1], found[0])
        comments = [
            self._lines[line][column:] for line, column in self._comments(found, first, last)
        ]
        if len(new) == 1 and first == last and len(comments) == 1:
            new = [f"{new[0]}  {comments.pop()}"]
        self._lines[first : last + 1] = [indent + line for line in (*comments, *new)]

    def drop(self, path: tuple[str, ...], key: str) -> None:
        """Remove a key from the mapping at *path*.

        Raises:
            LookupError: as for `set`, or the mapping would be empty.
        """
        mapping = self._mapping(path)
        found = _pair(mapping, key)
        if found is None:
            return
        if len(mapping.value) == 1:
            raise LookupError(key)
        first, last = found[0].start_mark.line, last_line(found[1], found[0])
        indent = " " * found[0].start_mark.column
        self._lines[first : last + 1] = [
            indent + self._lines[line][column:]
            for line, column in self._comments(found, first, last)
        ]

    def _mapping(self, path: tuple[str, ...]) -> yaml.MappingNode:
        node = self._compose(self.text)
        for key in path:
            found = _pair(node, key) if isinstance(node, yaml.MappingNode) else None
            if found is None:
                raise LookupError(key)
            node = found[1]
        if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
            raise LookupError(path)
        return node

    def _comments(self, pair: tuple[yaml.Node, yaml.Node], first: int, last: int) -> Iterator[Spot]:
        """Yield the place of the comment on each of these lines: a # after a space, outside of
        values.
        """
        spans = [span for node in pair for span in _scalars(node)]
        for number in range(first, last + 1):
            line = self._lines[number]
            for column, character in enumerate(line):
                spaced = column == 0 or line[column - 1] in " \t"
                if (
                    character == "#"
                    and spaced
                    and not any(start <= (number, column) < end for start, end in spans)
                ):
                    yield number, column
                    break


def _pair(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    found = [
        pair
        for pair in mapping.value
        if isinstance(pair[0], yaml.ScalarNode) and pair[0].value == key
    ]
    if len(found) > 1:
        raise LookupError(key)  # written twice: which of the two is meant is for a person to say
    return found[0] if found else None


def _scalars(node: yaml.Node) -> Iterator[tuple[Spot, Spot]]:
    if isinstance(node, yaml.ScalarNode):
        yield (
            (node.start_mark.line, node.start_mark.column),
            (node.end_mark.line, node.end_mark.column),
        )
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for part in pair:
                yield from _scalars(part)
    else:
        for item in node.value:
            yield from _scalars(item)


def last_line(node: yaml.Node, key: yaml.Node | None = None) -> int:
    """Return the last line of a value's text; a block's end mark is after the comments that follow
    it.
    """
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return last_line(node.value[-1][1], node.value[-1][0])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return last_line(node.value[-1])
    at_least = node.start_mark.line if key is None else key.end_mark.line
    if isinstance(node, yaml.ScalarNode) and not node.value and node.style is None:
        return at_least  # nothing is written there
    return max(at_least, node.end_mark.line - (node.end_mark.column == 0))
