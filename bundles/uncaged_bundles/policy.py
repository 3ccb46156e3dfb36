"""Policies: the effects that a bundle may perform, and the sentences that ask a person to grant
them.

A policy maps an effect kind to its limits. An absent kind is refused, ``{}`` as a whole means pure,
and an unknown kind or key is an error, so that a misspelt limit is never read as no limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import shapes
from .fields import shape_of
from .limits import ANY_REFUSAL, KNOWN_EFFECTS, WHOLE_NETWORK, WORKSPACE_LEVELS, EffectKinds, Limits
from .records import dataclass

ALWAYS_ALLOWED = frozenset({"output"})
TRUSTED = "trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits by effect kind. *trusted*: no sandbox, no replay, any standard module."""

    limits: Mapping[str, Mapping[str, object]]
    trusted: bool


def parse_policy(
    raw: object, known_effects: EffectKinds = KNOWN_EFFECTS, path: shapes.Path = ("policy",)
) -> Policy:
    """Check a policy of a descriptor or a grant.

    Raises:
        ShapeError: with the dotted path.
    """
    policy = shapes.mapping(raw, path)
    trusted = shapes.truth(policy.get(TRUSTED, False), (*path, TRUSTED))
    limits: dict[str, Mapping[str, object]] = {}
    for kind, value in policy.items():
        if kind == TRUSTED:
            continue
        if kind not in known_effects:
            known = ", ".join(sorted(known_effects))
            raise shapes.ShapeError(
                (*path, kind),
                f"{shapes.shown(kind)} is not an effect; known effects: {known} (and 'trusted')",
            )
        limits[kind] = shapes.mapping(value, (*path, kind))
        for key, limit in limits[kind].items():
            shapes.json_data(limit, (*path, kind, key))
        shape_of(known_effects[kind]).values(value, (*path, kind))
    return Policy(limits=limits, trusted=trusted)


def is_pure(policy: Policy) -> bool:
    """Tell whether the policy asks for nothing, so that it needs no grant."""
    return not policy.limits and not policy.trusted


def refusal(policy: Policy, kind: str) -> str | None:
    """Return why an effect of this kind is refused and how to declare it; None if it is allowed."""
    if kind in policy.limits or kind in ALWAYS_ALLOWED:
        return None
    example = f'"policy": {{"{kind}": {{}}}}'
    return f"effect {kind!r} is not in the bundle's policy; declare it in the descriptor ({example}) and add the bundle again"


def widening(
    before: Policy | None, after: Policy, known_effects: EffectKinds = KNOWN_EFFECTS
) -> tuple[str, ...]:
    """Return a sentence for each thing that *after* allows and *before* did not; empty if a former
    grant covers it all.
    """
    return tuple(_widening(before, after, known_effects))


def _widening(before: Policy | None, after: Policy, known_effects: EffectKinds) -> Iterator[str]:
    if after.trusted and not (before and before.trusted):
        yield "trusted: runs outside the sandbox, with every right that you have, and cannot be replayed"
    former = before.limits if before else {}
    for kind, limits in after.limits.items():
        words = known_effects.get(kind, Limits)
        if kind in former:
            yield from _wider(kind, words.in_words(former[kind]), words.in_words(limits))
        else:
            shown = {**words.unset(limits), **words.in_words(limits)}
            meaning = words.meaning or f"perform the effect {kind!r}"
            yield f"{kind}: may {meaning}{_spelled_out(shown)}{words.first_sentence(limits)}"
        yield from words.widened(former.get(kind, {}), limits)


def _wider(kind: str, former: Mapping[str, object], limits: Mapping[str, object]) -> Iterator[str]:
    for key, limit in limits.items():
        if key not in former:
            yield f"{kind}: {key} is now set to {_spelled(limit)} (was left to the default)"
        elif not _is_within(key, limit, former[key]):
            yield f"{kind}: {key} " + _difference(former[key], limit)
    # no workspace named is none at all
    for key in sorted(former.keys() - limits.keys() - {"workspace"}):
        yield f"{kind}: {key} is no longer set (was {_spelled(former[key])})"


def _spelled_out(limits: Mapping[str, object]) -> str:
    return (
        "; " + "; ".join(f"{key}: {_spelled(limit)}" for key, limit in limits.items())
        if limits
        else ""
    )


def _is_within(key: str, limit: object, former: object) -> bool:
    """Tell whether *limit* is certainly no wider than *former*. In doubt it is not, and a person is
    asked.
    """
    if limit == former and type(limit) is type(former):
        return True
    if isinstance(limit, list) and (key, former) in (
        ("network", WHOLE_NETWORK),
        ("tolerate", ANY_REFUSAL),
    ):
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
            return all(
                name in former and _is_within(name, value, former[name])
                for name, value in limit.items()
            )
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
            return (
                "; ".join(
                    f"{_spelled(name)} for {_spelled(value)}" for name, value in limit.items()
                )
                or "nothing"
            )
        case bool():
            return "yes" if limit else "no"
        case str() if not limit.isprintable():
            return repr(limit)  # a host must not be able to paint over the question
        case _:
            return str(limit)
