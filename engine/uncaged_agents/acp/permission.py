"""Permission requests of an agent, decided by the flow's policy: allowed inside the worktree,
refused outside, and always for one call.

The protocol has kinds of tool calls of its own; each is one or more of the tools that a policy
names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uncaged_bundles.rights import TOOLS, Rights

from ..tools.working_directory import WorkingDirectory
from .paths import path_refusal

if TYPE_CHECKING:
    from acp.schema import PermissionOption

TOOLS_OF: Mapping[str, frozenset[str]] = {
    "read": frozenset({"list", "read"}),
    "search": frozenset({"list", "search"}),
    "edit": frozenset({"edit", "write"}),
    "delete": frozenset({"write"}),
    "move": frozenset({"write"}),
    "execute": frozenset({"run", "commit"}),  # agents commit with a command
}
"""One of these tools is enough for a kind of call. Thinking is free, fetching takes the network; of
other kinds nothing is known.
"""
FREE = frozenset({"think", "switch_mode"})
FETCH = "fetch"
CHANGING = frozenset({"edit", "delete", "move"})
ALLOWING = ("allow_once", "allow_always")
REFUSING = ("reject_once", "reject_always")
PATH_KEYS = frozenset(
    {
        "path",
        "file_path",
        "filePath",
        "abs_path",
        "notebook_path",
        "target_file",
        "cwd",
        "workdir",
        "directory",
    }
    | {"old_path", "new_path", "oldPath", "newPath", "source", "destination"}
)
"""Under these names agents put paths into the input of their tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Tool call, as far as its updates describe it."""

    title: str = ""
    kind: str = "other"
    paths: tuple[str, ...] = ()
    arguments: object = None
    failed: bool = False

    def updated(self, fields: Mapping[str, object]) -> ToolCall:
        """Return the call with the fields of an update."""
        title, kind = fields.get("title"), fields.get("kind")
        return ToolCall(
            title=title if isinstance(title, str) and title else self.title,
            kind=kind if isinstance(kind, str) and kind else self.kind,
            arguments=fields.get("rawInput", self.arguments),
            failed=fields.get("status", "failed" if self.failed else "") == "failed",
            paths=tuple(dict.fromkeys((*self.paths, *paths_of(fields)))),
        )


def paths_of(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths that a tool call names: its locations, its diffs, and its input."""
    for key in ("locations", "content"):
        items = fields.get(key)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("path"), str):
                yield item["path"]
    raw_input = fields.get("rawInput")
    if isinstance(raw_input, Mapping):
        yield from (
            value for key, value in raw_input.items() if key in PATH_KEYS and isinstance(value, str)
        )


def refusal(
    rights: Rights,
    workdir: WorkingDirectory,
    call: ToolCall,
    *,
    writable: bool,
    granted: Collection[str] = (),
) -> str | None:
    """Return why a tool call is refused, in words for the log; None if it is allowed.

    Args:
        writable: whether the role may change the workspace. granted: paths outside that a person
            allowed.
    """
    why = withheld(rights, call, writable=writable)
    return (
        why
        if why is not None
        else next(
            (path_refusal(workdir, path) for path in outside(workdir, call) if path not in granted),
            None,
        )
    )


def withheld(rights: Rights, call: ToolCall, *, writable: bool) -> str | None:
    """Return why the policy refuses this kind of call, whatever its paths; None if it does not."""
    if call.kind == FETCH:
        return None if rights.network else "the flow's policy gives this role no network"
    if (
        rights.tools is not None
        and call.kind not in FREE
        and rights.tools.isdisjoint(TOOLS_OF.get(call.kind, ()))
    ):
        named = ", ".join(tool for tool in TOOLS if tool in rights.tools)
        return f"the flow's policy allows {named or 'no tools'}, not {call.kind!r}"
    if not writable and call.kind in CHANGING:
        return "the flow's policy lets this role read the workspace, not change it"
    return None


def outside(workdir: WorkingDirectory, call: ToolCall) -> tuple[str, ...]:
    """Return the paths of a call that need a permission."""
    return tuple(path for path in call.paths if path_refusal(workdir, path) is not None)


def option_for(options: Sequence[PermissionOption], *, allow: bool) -> str | None:
    """Return the option to select, the narrowest one first; None when the agent offers none of that
    kind.
    """
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next(
        (by_kind[kind] for kind in (ALLOWING if allow else REFUSING) if kind in by_kind), None
    )
