"""Text of a page view, within a number of characters. A part that does not fit is cut, and has a
reference by which it is shown (``[more=e12]``).

A page's text is data. Where it addresses an assistant or gives it orders, the line says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from .tree import ViewNode

__all__ = ["AN_ORDER", "ORDER", "ViewWriter", "characters_for", "nodes_with_words"]

HTML_PER_VIEW = 12
"""A view has at most one character for so many of the page's HTML, within the bounds below."""
MIN_CHARACTERS = 1_500
MAX_CHARACTERS = 12_000
PART_CHARACTERS = 3 * MAX_CHARACTERS
"""Parts that are cut are as long at most, so that a view of one, which may be longer, is whole."""
MIN_SHARE = 80
"""A part that gets fewer characters than this is left out whole."""
FOLD_CHARACTERS = 26
AN_ORDER = "[data: the page gives an order here]"
ORDER = re.compile(
    r"(?i)\b(ignore|disregard|forget)\b.{0,40}\b(previous|prior|above|earlier|your)\b"
    r"|\b(assistants?|ai agents?|ai|agents?|chatbots?|language models?|llms?|claude|chatgpt|gpt)\s*[,:!]"
    r"|\b(dear|attention|note to|instructions? (for|to)|hey)\s+(all\s+)?(the\s+)?(ai|assistants?|agents?|llms?|models?)\b"
    r"|\bsystem\s*(prompt|message|:)|\byou (must|are to|have to) now\b"
    r"|\b(send|post|forward|mail|upload|reveal|print)\b.{0,30}\b(cookies?|passwords?|credentials?|api keys?|tokens?|secrets?)\b"
)
"""Text that is addressed to an assistant or gives it orders."""


def characters_for(html_characters: int) -> int:
    """Return the length of the view of a page whose HTML has so many characters."""
    return max(MIN_CHARACTERS, min(MAX_CHARACTERS, html_characters // HTML_PER_VIEW))


def nodes_with_words(nodes: Sequence[ViewNode], words: str) -> list[ViewNode]:
    """Return the smallest parts that have all the words, in the order of the page."""
    wanted = words.casefold().split()
    found: list[ViewNode] = []
    for node in nodes:
        if not all(word in _all_text(node) for word in wanted):
            continue
        inner = nodes_with_words(node.children, words)
        found.extend(inner or [node])
    return found


def _all_text(node: ViewNode) -> str:
    return " ".join(f"{one.role} {one.name} {one.text}" for one in node.within()).casefold()


class ViewWriter:
    """Writes nodes. orders: texts of the page that give orders, among the written ones."""

    def __init__(
        self,
        reference: Callable[[ViewNode], str],
        reference_of_part: Callable[[Sequence[ViewNode]], str],
    ) -> None:
        self.orders: list[str] = []
        self._reference = reference
        self._part = reference_of_part
        self._costs: dict[int, int] = {}

    def write(self, nodes: Sequence[ViewNode], characters: int) -> str:
        """Return the lines of nodes within about so many characters."""
        for node in nodes:
            self._measure(node)
        return "\n".join(self._lines(nodes, characters, 0))

    def _measure(self, node: ViewNode) -> None:
        """Keep the cost of each node with all below it, at an average indentation."""
        for one in reversed(list(node.within())):
            own = len(one.role) + len(one.name) + len(one.text) + 8
            own += 10 if one.is_operable else 0
            self._costs[id(one)] = own + sum(self._costs[id(child)] for child in one.children)

    def _lines(self, nodes: Sequence[ViewNode], characters: int, depth: int) -> Iterator[str]:
        shares = _shares([self._costs[id(node)] for node in nodes], characters)
        folded: list[ViewNode] = []
        for node, share in zip(nodes, [*shares, *([0] * (len(nodes) - len(shares)))], strict=True):
            cost = self._costs[id(node)]
            if share < min(cost, MIN_SHARE // 2):
                folded.append(node)
                continue
            yield from self._fold(folded, depth)
            folded = []
            yield from self._one(node, share, depth)
        yield from self._fold(folded, depth)

    def _one(self, node: ViewNode, share: int, depth: int) -> Iterator[str]:
        own = self._costs[id(node)] - sum(self._costs[id(child)] for child in node.children)
        room = min(share, own) if node.children else share
        yield self._line(node, room, depth)
        if node.children:
            yield from self._lines(node.children, max(0, share - room), depth + 1)

    def _line(self, node: ViewNode, characters: int, depth: int) -> str:
        """Return the line of a node; long texts are cut and get a reference."""
        fixed = len(node.role) + (10 if node.is_operable else 0)
        name, text = node.name, node.text
        cut = len(name) + len(text) + fixed > max(characters, MIN_SHARE)
        if cut:
            left = max(MIN_SHARE // 2, characters - fixed - FOLD_CHARACTERS)
            name = _head(name, left)
            text = _head(text, max(0, left - len(name)))
        parts = [] if node.role == "text" else [node.role]
        if name:
            parts.append(f'"{name}"')
        parts.extend(f"[{state}]" for state in node.states)
        if node.is_operable:
            parts.append(f"[ref={self._reference(node)}]")
        line = " ".join(parts)
        if text:
            line = f"{line}: {text}" if line else text
        elif node.children:
            line += ":"
        if cut:
            line += f" [more={self._part([_whole(node)])}]"
        whole = f"{node.name} {node.text}"
        if ORDER.search(whole):
            self.orders.append(whole.strip())
            line += f" {AN_ORDER}"
        return " " * depth + line

    def _fold(self, nodes: Sequence[ViewNode], depth: int) -> Iterator[str]:
        for part in self._parts(nodes):
            yield f"{' ' * depth}… {len(part):,} more [more={self._part(part)}]"

    def _parts(self, nodes: Sequence[ViewNode]) -> Iterator[list[ViewNode]]:
        """Divide nodes into parts, each of which a further view shows whole."""
        part: list[ViewNode] = []
        characters = 0
        for node in nodes:
            cost = self._costs.get(id(node), len(node.text))
            if part and characters + cost > PART_CHARACTERS:
                yield part
                part, characters = [], 0
            if cost > PART_CHARACTERS and node.children:
                own = [_whole(node)] if node.name or node.text else []
                yield from self._parts([*own, *node.children])
            else:
                part.append(node)
                characters += cost
        if part:
            yield part


def _whole(node: ViewNode) -> ViewNode:
    """Return a node without what is below it, which has lines of its own."""
    return ViewNode(role="text", text=" ".join(filter(None, (node.name, node.text))))


def _head(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    head = text[:characters].rpartition(" ")[0] or text[:characters]
    return f"{head}…"


def _shares(costs: Sequence[int], characters: int) -> list[int]:
    """Divide characters among parts: each gets what it needs or an equal share of the rest. If the
    share would be too small, only the first parts get one.
    """
    if sum(costs) <= characters:
        return list(costs)
    count = len(costs)
    least = sum(min(cost, MIN_SHARE) for cost in costs)
    if least > characters:
        left = characters - FOLD_CHARACTERS
        count = 0
        for cost in costs:
            left -= min(cost, MIN_SHARE)
            if left < 0:
                break
            count += 1
    level, rest, waiting = 0, characters, sorted(costs[:count])
    for index, cost in enumerate(waiting):
        level = rest // (len(waiting) - index)
        if cost > level:
            break
        rest -= cost
    else:
        return list(costs[:count])
    return [min(cost, level) for cost in costs[:count]]
