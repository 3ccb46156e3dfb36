"""Nodes of a page view, read from the accessibility snapshot that Playwright writes, without
wrappers that say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["OPERABLE", "ViewNode", "plain", "read_snapshot"]

OPERABLE = frozenset(
    {
        "button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "menuitemcheckbox",
        "menuitemradio", "option", "radio", "scrollbar", "searchbox", "slider", "spinbutton", "switch",
        "tab", "textbox", "treeitem",
    }
)  # fmt: skip
"""Roles of elements that a person operates."""
WRAPPERS = frozenset({"generic", "listitem", "paragraph", "rowgroup", "none", "presentation"})
"""Roles that are left out where they have no name and are not clickable."""
INLINE = frozenset(
    {"code", "deletion", "emphasis", "insertion", "mark", "strong", "subscript", "superscript", "time"}
)  # fmt: skip
VALUED = frozenset({"combobox", "listbox", "searchbox", "slider", "spinbutton", "textbox"})
"""Roles whose text is a value, which may be a part of the name."""
LINE = re.compile(r"( *)- (.*)")
ATTRIBUTE = re.compile(r"\[([^\]=]+)(?:=([^\]]*))?\]")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
ESCAPES = {"n": " ", "t": " ", "r": " ", "b": "", "f": ""}
FOLDED_ATTRIBUTES = frozenset({"active", "box", "cursor", "level", "ref"})
MIN_LISTED = 4
"""A list of fewer items is not shown as a list."""


@dataclass(slots=True, kw_only=True)
class ViewNode:
    """One element, or a text between elements (role ``text``). states: such as ``checked``.
    snapshot_ref: the reference in Playwright's snapshot. clickable: it has the pointer of a link.
    block: a text that stays apart from those beside it.
    """

    role: str
    name: str = ""
    text: str = ""
    states: tuple[str, ...] = ()
    snapshot_ref: str = ""
    clickable: bool = False
    block: bool = False
    children: list[ViewNode] = field(default_factory=list)

    @property
    def is_operable(self) -> bool:
        """Whether a person operates it."""
        named = self.role == "generic" and self.name  # such as the summary of details
        return bool(self.snapshot_ref and (self.role in OPERABLE or self.clickable or named))

    def within(self) -> Iterator[ViewNode]:
        """Yield the node and all below it, in the order of the page."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def read_snapshot(snapshot: str) -> list[ViewNode]:
    """Return the nodes of a snapshot; a line that is none is text."""
    root = ViewNode(role="generic")
    open_nodes: list[tuple[int, ViewNode]] = [(-1, root)]
    for line in snapshot.splitlines():
        match = LINE.fullmatch(line)
        if match is None:
            continue
        indent = len(match[1])
        while open_nodes[-1][0] >= indent:
            open_nodes.pop()
        parent = open_nodes[-1][1]
        node = _read_line(match[2])
        if node.role.startswith("/"):
            continue
        parent.children.append(node)
        open_nodes.append((indent, node))
    return _reduced(root)


def _read_line(content: str) -> ViewNode:
    key, value = _key_and_value(content)
    role, _, rest = key.partition(" ")
    name = ""
    rest = rest.lstrip()
    if rest.startswith('"'):
        end = _end_of_quoted(rest)
        name, rest = plain(_unescaped(rest[1:end])), rest[end + 1 :]
    attributes = {found[1]: found[2] for found in ATTRIBUTE.finditer(rest)}
    states = tuple(
        word if value_of is None else f"{word}={value_of}"
        for word, value_of in attributes.items()
        if word not in FOLDED_ATTRIBUTES
    )
    return ViewNode(
        role=role,
        name=name,
        text=plain(value),
        states=states,
        snapshot_ref=attributes.get("ref") or "",
        clickable=attributes.get("cursor") == "pointer",
    )


def _key_and_value(content: str) -> tuple[str, str]:
    """Split ``key: value`` of YAML, either of which may be quoted."""
    if content.startswith("'"):
        match = re.match(r"'((?:[^']|'')*)'(?::\s*(.*))?$", content)
        if match is not None:
            return match[1].replace("''", "'"), _scalar(match[2] or "")
    position = 0
    space = content.find(' "')
    if space >= 0 and content[:space].isalpha():
        position = space + 2 + _end_of_quoted(content[space + 1 :])
    colon = content.find(":", position)
    if colon < 0:
        return content, ""
    return content[:colon], _scalar(content[colon + 1 :].strip())


def _end_of_quoted(text: str) -> int:
    """Return the index of the quote that ends a text, which begins with one."""
    index = 1
    while index < len(text) and text[index] != '"':
        index += 2 if text[index] == "\\" else 1
    return index


def _scalar(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return _unescaped(text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        word = match[1]
        return chr(int(word[1:], 16)) if len(word) > 1 else ESCAPES.get(word, word)

    return ESCAPE.sub(replaced, text)


def plain(text: str) -> str:
    """Return a page's text on one line, in which nothing looks like a reference of the view."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(shown.split()).replace("[ref=", "(ref=").replace("[more=", "(more=")


def _reduced(node: ViewNode) -> list[ViewNode]:
    """Return the nodes that show what is below a node."""
    stack: list[tuple[ViewNode, bool]] = [(node, False)]
    done: dict[int, list[ViewNode]] = {}
    while stack:  # a page may be nested deeper than Python's own stack
        current, finished = stack.pop()
        if not finished:
            stack.append((current, True))
            stack.extend((child, False) for child in current.children)
            continue
        inner: list[ViewNode] = []
        for child in current.children:
            inner.extend(done.pop(id(child)))
        done[id(current)] = _shown(current, _joined(inner))
    return done[id(node)]


def _shown(node: ViewNode, inner: list[ViewNode]) -> list[ViewNode]:
    """Return what a node is shown as, whose children are reduced already."""
    if node.text and node.role != "text":
        inner = [ViewNode(role="text", text=node.text), *inner]
        node.text = ""
    node.children = inner
    if node.role == "text":
        return [node] if node.text else []
    if node.role in INLINE and not any(one.role != "text" for one in inner):
        return [ViewNode(role="text", text=" ".join(one.text for one in inner))] if inner else []
    if node.clickable and any(one.is_operable for one in inner):
        node.clickable = False
    if node.role == "row" and inner and not any(map(_holds_more, inner)):
        node.text = " | ".join(_text_of(one) for one in inner)
        node.name, node.children = "", []
        return [node] if node.text.strip(" |") else []
    if not node.is_operable and not node.name and not node.states:
        if node.role in WRAPPERS or (node.role == "list" and len(inner) < MIN_LISTED):
            for one in inner:
                one.block = True
            return inner
        if not inner and node.role not in ("iframe", "img"):
            return []
    if node.role == "img" and not node.name and not node.is_operable:
        return inner
    _without_repetition(node)
    return [node]


def _holds_more(cell: ViewNode) -> bool:
    return any(one.is_operable and one.role != "gridcell" for one in cell.within()) or any(
        one.role == "heading" for one in cell.within()
    )


def _text_of(node: ViewNode) -> str:
    own = node.name or node.text
    return own or " ".join(filter(None, map(_text_of, node.children)))


def _without_repetition(node: ViewNode) -> None:
    """Remove a text that says what the name says, and put a single text into the node itself."""
    name = node.name
    if name and node.role not in VALUED:
        node.children = [one for one in node.children if one.role != "text" or one.text not in name]
        if all(one.role in ("text", "img") for one in node.children) and node.role != "img":
            node.children = [one for one in node.children if one.name not in name or one.text]
    if len(node.children) == 1 and node.children[0].role == "text":
        node.text, node.children = node.children[0].text, []


def _joined(nodes: Sequence[ViewNode]) -> list[ViewNode]:
    """Return nodes with texts that follow each other as one, without labels beside their fields."""
    joined: list[ViewNode] = []
    for index, node in enumerate(nodes):
        beside = (*nodes[max(0, index - 1) : index], *nodes[index + 1 : index + 2])
        if node.role == "text" and any(node.text == other.name for other in beside):
            continue
        last = joined[-1] if joined else node
        texts = last is not node and last.role == node.role == "text"
        if texts and not (last.block or node.block):
            joined[-1] = ViewNode(role="text", text=f"{last.text} {node.text}")
        else:
            joined.append(node)
    return joined
