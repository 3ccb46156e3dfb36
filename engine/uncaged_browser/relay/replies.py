"""Replies of the extension, read as those of a program that may be another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from uncaged_bundles import shapes

from ..problems import BrowserProblem

__all__ = ["read_tab", "read_tabs", "read_target"]

Read = TypeVar("Read")
TEXTS = ("url", "pendingUrl", "title")


def read_tabs(reply: object) -> list[dict[str, Any]]:
    """Return the tabs that ``tabs.query`` found, each with its number as ``id``.

    Raises:
        BrowserProblem: the reply is malformed.
    """
    return _checked(
        lambda: [_tab(one, ("tabs", at)) for at, one in enumerate(shapes.items(reply, ("tabs",)))]
    )


def read_tab(reply: object) -> dict[str, Any]:
    """Return the tab that ``tabs.create`` made.

    Raises:
        BrowserProblem: the reply is malformed.
    """
    return _checked(lambda: _tab(reply, ("tab",)))


def read_target(reply: object) -> dict[str, Any]:
    """Return what ``Target.getTargetInfo`` says of a tab, with its ``targetId``.

    Raises:
        BrowserProblem: the reply is malformed.
    """

    def read() -> dict[str, Any]:
        info = shapes.mapping(shapes.mapping(reply, ("reply",)).get("targetInfo"), ("targetInfo",))
        shapes.filled(info.get("targetId"), ("targetInfo", "targetId"))
        return info

    return _checked(read)


def _tab(value: object, path: shapes.Path) -> dict[str, Any]:
    tab = shapes.mapping(value, path)
    shapes.whole(tab.get("id"), (*path, "id"))
    for key in TEXTS:
        if not isinstance(tab.get(key, ""), str):
            raise shapes.ShapeError((*path, key), "must be text")
    return tab


def _checked(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except shapes.ShapeError as exc:
        raise BrowserProblem("refused", f"the extension's reply is malformed: {exc}") from None
