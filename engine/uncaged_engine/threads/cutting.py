"""Truncation of a source thread for a fork: the kept steps, the start record, a replaced outcome.
The source is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.schemas import misfits

from ..effect_kinds import outcome_schema
from ..journal import chain, lines
from ..journal.codec import decode
from ..journal.recover import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Position in a thread: after step *at*, or after the first (or *last*) step of *role*. With
    neither, before the last step.
    """

    at: int | None = None
    role: str | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """Outcome that takes the place of the last kept step's, set by a person."""

    value: object


def kept_steps(history: History, cut: Cut, thread: ThreadId) -> int:
    """Return how many steps a fork keeps.

    Raises:
        UsageError: the thread has fewer steps. NotFoundError: it has none of that role; the message
            lists its roles.
    """
    count = len(history.steps)
    if cut.role is not None:
        roles = [_role(line) for line in history.steps]
        places = [number for number, role in enumerate(roles, start=1) if role == cut.role]
        if not places:
            known = ", ".join(dict.fromkeys(role for role in roles if role)) or "none"
            raise NotFoundError(
                f"thread {thread} has no step of role {cut.role!r}; it has: {known}"
            )
        return places[-1] if cut.last else places[0]
    if cut.at is None:
        return max(count - 1, 0)
    if not 0 <= cut.at <= count:
        raise UsageError(
            f"thread {thread} has {count} whole steps; --at {cut.at} is not among 0 to {count}"
        )
    return cut.at


def _role(line: bytes) -> str | None:
    if not lines.is_role_step(line):
        return None
    record = decode(line[:-1])
    return str(record["role"]) if isinstance(record, dict) else None


def fork_start(
    source: Mapping[str, Any],
    history: History,
    kept: int,
    *,
    thread: ThreadId,
    target: BundleHash,
    replayed: bool = False,
) -> dict[str, object]:
    """Return the start record of the fork: the source's fields, with its origin in ``forkFrom``.

    Args:
        replayed: another version than the source's replays the kept steps, as that does; without
            it, such a version gets them as its input.
    """
    same = replayed or target == source["hash"]
    handed_over = min(history.handed_over, kept) if same else kept
    line = history.steps[kept - 1] if kept else b""
    start = {
        key: value
        for key, value in source.items()
        if key not in ("format", "timestamp", "chain", "forkFrom", "blob")
    }
    start["hash"] = target
    start["threadId"] = thread
    start["forkFrom"] = {
        "threadId": source["threadId"],
        "hash": source["hash"],
        "seq": kept,
        "chain": line[-3 - chain.CHAIN_CHARACTERS : -3].decode() if kept else "",
        "handedOver": handed_over,
    }
    return start


def replacement_of(
    value: object, history: History, kept: int, roles: Mapping[str, RoleSpec], effect: object = None
) -> dict[str, object]:
    """Return the fields of a step whose outcome a person replaces.

    Args:
        value: for a role's step ``{"content"?, "meta"?}``, or its meta alone; for another the
            outcome itself.
        effect: the step's intent; None for a step that the bundle made itself.
        roles: those of the version to run; their schemas hold for a person's answer as for an
            agent's.
    Raises:
        UsageError: there is no step to replace, or the value is not valid for it.
    """
    if kept == 0:
        raise UsageError(
            "there is no step whose outcome could be replaced; keep at least one with --at N"
        )
    before = decode(history.steps[kept - 1][:-1])
    if not isinstance(before, dict) or "role" not in before:
        match effect:
            case {**asked} if len(asked) == 1:
                [(kind, body)] = asked.items()
                if problems := misfits(outcome_schema(str(kind), body), value, "the outcome"):
                    raise UsageError(
                        f"step {kept} is an effect {kind!r}, whose outcome this cannot be: {'; '.join(problems)}"
                    )
        return {"outcome": value}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"step {kept} is a role's: give its meta as a mapping, or content and meta"
        )
    answer = value if set(value) <= {"content", "meta"} else {"meta": value}
    if not isinstance(answer.get("content", ""), str) or not isinstance(
        answer.get("meta", {}), Mapping
    ):
        raise UsageError(f"step {kept} is a role's: content is text, meta is a mapping")
    role = roles.get(str(before["role"])) if before.get("by") != "bundle" else None
    if (
        role is not None
        and "meta" in answer
        and (problems := misfits(role.schema, answer["meta"], "meta"))
    ):
        raise UsageError(
            f"step {kept} is one of {role.name}, whose answer this cannot be: {'; '.join(problems)}"
        )
    own = {
        key: before[key]
        for key in ("role", "content", "meta", "by", "snapshot", lines.PACK_KEY)
        if key in before
    }
    return {**own, **answer}


def copied_lines(
    data: bytes, kept: int, start_digest: bytes, replacement: Mapping[str, object] | None = None
) -> bytes:
    """Return the lines of the source's first *kept* steps, chained to the fork's start record, with
    their timestamps.

    Args:
        data: the undamaged part of the source's journal. start_digest: the digest of the fork's
            start line.
        replacement: the fields of step *kept* instead of its own.
    """
    copied = bytearray()
    digest = start_digest
    done = 0
    for text in data.split(b"\n")[1:-1]:
        if done == kept:
            break
        shape, seq = lines.shape_of(text)
        if shape in ("control", "end"):
            continue
        whole = shape == "step" and not lines.is_sub_step(text)
        body = text[: 1 - chain.SEAL_BYTES]
        if whole and seq == kept and replacement is not None:
            body = lines.step(seq, replacement, _timestamp(text))
        line, digest = chain.seal(digest, body)
        copied += line
        if whole:
            done = seq
    return bytes(copied)


def _timestamp(text: bytes) -> int:
    record = decode(text)
    return int(record["timestamp"]) if isinstance(record, dict) else 0
