"""What a bundle may do to the world is exactly what its policy names, and what a person grants is said in plain sentences first.

A policy maps an effect kind to its limits. An absent kind is refused, ``{}`` as a whole means pure, and an unknown kind or key is an error,
so that a limit with a slip of the pen can never be read as no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from . import rights, shapes
from .hosts import HOST_NETWORK
from .records import dataclass

KNOWN_EFFECTS: Mapping[str, frozenset[str]] = {
    "role": frozenset({"workspace", "timeout_s"}) | rights.KEYS,
    "null": frozenset(),
    "http": frozenset({"hosts", "secrets", "private", "maxBytes", "timeout_s"}),
    "fetch": frozenset({"hosts", "private", "maxBytes", "timeout_s"}),
    "search": frozenset(),
    "llm": frozenset({"models"}),
    "script": frozenset({"executables", "modules", "read", "write", "network", "private", "secrets", "environment"})
    | frozenset({"tolerate", "timeout_s", "maxBytes", "memoryBytes", "processes"}),
    "flow": frozenset({"names"}),
    "all": frozenset(),
    "ask": frozenset(),
    "sleep": frozenset(),
    "now": frozenset(),
}
ALWAYS_ALLOWED = frozenset({"output"})
TRUSTED = "trusted"
WORKSPACE_LEVELS = ("none", "read", "write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits by effect kind. *trusted*: no sandbox, no replay, any standard module."""

    limits: Mapping[str, Mapping[str, object]]
    trusted: bool


def parse_policy(raw: object, known_effects: Mapping[str, frozenset[str]] = KNOWN_EFFECTS, path: shapes.Path = ("policy",)) -> Policy:
    """Check a policy as it stands in a descriptor or a grant; ShapeError has the dotted path."""
    policy = shapes.mapping(raw, path)
    trusted = shapes.truth(policy.get(TRUSTED, False), (*path, TRUSTED))
    limits: dict[str, Mapping[str, object]] = {}
    for kind, value in policy.items():
        if kind == TRUSTED:
            continue
        if kind not in known_effects:
            known = ", ".join(sorted(known_effects))
            raise shapes.ShapeError((*path, kind), f"{shapes.shown(kind)} is not an effect; known effects: {known} (and 'trusted')")
        limits[kind] = shapes.mapping(value, (*path, kind))
        shapes.known_keys(limits[kind], known_effects[kind], (*path, kind))
        for key, limit in limits[kind].items():
            shapes.json_data(limit, (*path, kind, key))
            check = (_ROLE_SHAPES.get(key) if kind == "role" else None) or _SHAPES.get(key) if kind in KNOWN_EFFECTS else None
            if check is not None:
                check(limit, (*path, kind, key))
    return Policy(limits=limits, trusted=trusted)


def is_pure(policy: Policy) -> bool:
    """Whether the policy asks for nothing, so that nobody has to grant it."""
    return not policy.limits and not policy.trusted


def refusal(policy: Policy, kind: str) -> str | None:
    """Why an effect of this kind is refused and how to declare it; None when the kind is allowed."""
    if kind in policy.limits or kind in ALWAYS_ALLOWED:
        return None
    example = f'"policy": {{"{kind}": {{}}}}'
    return f"effect {kind!r} is not in the bundle's policy; declare it in the descriptor ({example}) and add the bundle again"


def widening(before: Policy | None, after: Policy) -> tuple[str, ...]:
    """What *after* may do that *before* could not, one plain sentence each; empty when a former yes covers it all."""
    return tuple(_widening(before, after))


def _widening(before: Policy | None, after: Policy) -> Iterator[str]:
    if after.trusted and not (before and before.trusted):
        yield "trusted: runs outside the sandbox, with every right that you have, and cannot be replayed"
    former = before.limits if before else {}
    for kind, limits in after.limits.items():
        if kind not in former:
            sentence = f"{kind}: may {_MEANING.get(kind, f'perform the effect {kind!r}')}" + _spelled_out(
                _in_words(kind, _with_hosts(kind, _plain(kind, limits)))
            )
            yield sentence + (rights.told_at_first(limits) if kind == "role" else "")
        else:
            yield from _wider(kind, _in_words(kind, _plain(kind, former[kind])), _in_words(kind, _plain(kind, limits)))
        if kind == "role":
            yield from rights.widened(former.get(kind, {}), limits)


def _wider(kind: str, former: Mapping[str, object], limits: Mapping[str, object]) -> Iterator[str]:
    for key, limit in limits.items():
        if key not in former:
            yield f"{kind}: {key} is now set to {_spelled(limit)} (was left to the default)"
        elif not _is_within(key, limit, former[key]):
            yield f"{kind}: {key} " + _difference(former[key], limit)
    for key in sorted(former.keys() - limits.keys() - {"workspace"}):  # no workspace named is none at all
        yield f"{kind}: {key} is no longer set (was {_spelled(former[key])})"


def _plain(kind: str, limits: Mapping[str, object]) -> Mapping[str, object]:
    """Without the limits that are said in words of their own."""
    return {key: limit for key, limit in limits.items() if kind != "role" or key not in rights.KEYS}


def _with_hosts(kind: str, limits: Mapping[str, object]) -> Mapping[str, object]:
    """The same, with what it means that no hosts are named."""
    if kind not in ("http", "fetch") or "hosts" in limits:
        return limits
    return {"hosts": "any, those of this machine and its network too" if limits.get("private") else "any public one", **limits}


def _in_words(kind: str, limits: Mapping[str, object]) -> Mapping[str, object]:
    """The same, where a script's limit says little by itself: the machine's network, and refusals that do not make it fail."""
    if kind != "script":
        return limits
    named = {("network", HOST_NETWORK): WHOLE_NETWORK, ("tolerate", True): "any"}
    return {key: named.get((key, limit), limit) if isinstance(limit, str | bool) else limit for key, limit in limits.items()}


def _spelled_out(limits: Mapping[str, object]) -> str:
    return "; " + "; ".join(f"{key}: {_spelled(limit)}" for key, limit in limits.items()) if limits else ""


def _is_within(key: str, limit: object, former: object) -> bool:
    """Whether *limit* is certainly no wider than *former*. In doubt it is not, and a person is asked."""
    if limit == former and type(limit) is type(former):
        return True
    if isinstance(limit, list) and (key, former) in (("network", WHOLE_NETWORK), ("tolerate", "any")):
        return True
    if key == "workspace" and limit in WORKSPACE_LEVELS and former in WORKSPACE_LEVELS:
        return WORKSPACE_LEVELS.index(str(limit)) <= WORKSPACE_LEVELS.index(str(former))
    match former, limit:
        case bool(), bool():
            return former or not limit
        case (bool(), _) | (_, bool()):
            return False
        case int() | float(), int() | float():
            return limit <= former
        case list(), list():
            return all(item in former for item in limit)
        case dict(), dict():
            return all(name in former and _is_within(name, value, former[name]) for name, value in limit.items())
        case _:
            return False


def _difference(former: object, limit: object) -> str:
    if isinstance(former, list) and isinstance(limit, list):
        return f"now also {_spelled([item for item in limit if item not in former])} (was {_spelled(former)})"
    return f"is now {_spelled(limit)} (was {_spelled(former)})"


def _spelled(limit: object) -> str:
    match limit:
        case []:
            return "nothing"
        case list():
            return ", ".join(_spelled(item) for item in limit)
        case dict():
            return "; ".join(f"{_spelled(name)} for {_spelled(value)}" for name, value in limit.items()) or "nothing"
        case bool():
            return "yes" if limit else "no"
        case str() if not limit.isprintable():
            return repr(limit)  # a host must not be able to paint over the question
        case _:
            return str(limit)


WHOLE_NETWORK = "the machine's own, with its local services, its neighbours and clouds' addresses of machine credentials"

_MEANING: Mapping[str, str] = {
    "role": "ask agents to answer for roles",
    "null": "yield the null effect, which does nothing",
    "http": "send requests to web servers",
    "fetch": "read web pages",
    "search": "search the web",
    "llm": "ask a language model",
    "script": "run scripts of the operating system",
    "flow": "start other flows",
    "all": "perform several effects at once",
    "ask": "ask a person and wait for the answer",
    "sleep": "wait",
    "now": "read the clock",
}


def _hosts_by_secret(value: object, path: shapes.Path) -> None:
    for name, hosts in shapes.mapping(value, path).items():
        shapes.texts(hosts, (*path, name))


def _script_network(value: object, path: shapes.Path) -> None:
    if value != HOST_NETWORK:
        shapes.texts(value, path)


def tolerated(value: object, path: shapes.Path) -> object:
    """Return what a script may be refused without failing: ``True`` for anything, else a list of texts."""
    return value if value is True else shapes.texts(value, path)


_SHAPES: Mapping[str, Callable[[object, shapes.Path], object]] = {
    "workspace": shapes.one_of(*WORKSPACE_LEVELS),
    "secrets": _hosts_by_secret,
    "private": shapes.truth,
    "network": _script_network,
    "tolerate": tolerated,
    **dict.fromkeys(("hosts", "models", "names"), shapes.texts),
    **dict.fromkeys(("executables", "modules", "read", "write", "environment"), shapes.texts),
    **dict.fromkeys(("timeout_s", "maxBytes", "maxDepth", "memoryBytes", "processes"), shapes.positive),
}


_ROLE_SHAPES: Mapping[str, Callable[[object, shapes.Path], object]] = {
    "tools": rights.tools_words,
    "network": shapes.truth,
    "sandbox": shapes.truth,
    "outside": shapes.one_of(*rights.OUTSIDE),
}
