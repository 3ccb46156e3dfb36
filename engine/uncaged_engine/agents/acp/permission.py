"""What an agent asks leave for is answered by the flow's policy alone: inside the worktree yes, outside no, and never more than once.

The words of a policy's ``role.tools``: kinds of tool calls (when there is one, all others are refused), ``sandbox`` (terminals run in the
script sandbox), ``ask`` (what would be refused because it lies outside is asked of a person).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..tools.place import Place
from ..tools.toolbox import NETWORK
from .confine import refused

if TYPE_CHECKING:
    from acp.schema import PermissionOption

SANDBOX = "sandbox"
ASK = "ask"
KINDS = {"list": "read", "write": "edit", "run": "execute", "commit": "execute"}
"""What the tools of our own agents are called among the protocol's kinds."""
CHANGING = frozenset({"edit", "delete", "move"})
ALLOWING = ("allow_once", "allow_always")
REFUSING = ("reject_once", "reject_always")
PATH_KEYS = frozenset(
    {"path", "file_path", "filePath", "abs_path", "notebook_path", "target_file", "cwd", "workdir", "directory"}
    | {"old_path", "new_path", "oldPath", "newPath", "source", "destination"}
)
"""Under these names agents put paths into the input of their tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a role's agent may do. writable: the worktree. kinds: of tool calls; None: all. sandbox: terminals. ask: what is outside."""

    writable: bool
    kinds: frozenset[str] | None
    sandbox: bool
    ask: bool

    @classmethod
    def of(cls, tools: Iterable[str], *, writable: bool) -> Rights:
        words = frozenset(tools)
        kinds = frozenset(KINDS.get(word, word) for word in words - {SANDBOX, ASK, NETWORK})
        return cls(writable=writable, kinds=kinds or None, sandbox=SANDBOX in words, ask=ASK in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as far as it is known."""

    title: str = ""
    kind: str = "other"
    paths: tuple[str, ...] = ()

    def updated(self, fields: Mapping[str, object]) -> Call:
        """The same with what an update says of it."""
        title, kind = fields.get("title"), fields.get("kind")
        return Call(
            title=title if isinstance(title, str) and title else self.title,
            kind=kind if isinstance(kind, str) and kind else self.kind,
            paths=tuple(dict.fromkeys((*self.paths, *paths_of(fields)))),
        )


def paths_of(fields: Mapping[str, object]) -> Iterator[str]:
    """The paths that a tool call names: its places, its differences, and the input of its tool."""
    for key in ("locations", "content"):
        items = fields.get(key)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("path"), str):
                yield item["path"]
    given = fields.get("rawInput")
    if isinstance(given, Mapping):
        yield from (value for key, value in given.items() if key in PATH_KEYS and isinstance(value, str))


def refusal(rights: Rights, place: Place, call: Call, granted: Collection[str] = ()) -> str | None:
    """Why a tool call is refused, in words for the log; None if it is allowed.

    Args:
        granted: paths outside that a person allowed.
    """
    why = withheld(rights, call)
    return why if why is not None else next((refused(place, path) for path in outside(place, call) if path not in granted), None)


def withheld(rights: Rights, call: Call) -> str | None:
    """Why the policy has this kind of call refused, wherever it leads."""
    if rights.kinds is not None and call.kind not in rights.kinds:
        return f"the flow's policy allows {', '.join(sorted(rights.kinds))}, not {call.kind!r}"
    if not rights.writable and call.kind in CHANGING:
        return "the flow's policy lets this role read the workspace, not change it"
    return None


def outside(place: Place, call: Call) -> tuple[str, ...]:
    """The paths of a call that an agent may not have by itself."""
    return tuple(path for path in call.paths if refused(place, path) is not None)


def option_for(options: Sequence[PermissionOption], *, allow: bool) -> str | None:
    """The option to take, the narrowest one first; None when the agent offers none of that kind."""
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in (ALLOWING if allow else REFUSING) if kind in by_kind), None)
