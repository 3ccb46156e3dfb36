"""Proposals: new versions of flows with their evidence, not active until a person accepts them.

One file each, ``proposals/ID.json``; the proposed bundle is in ``bundles/`` without a grant. A file
may come from a stranger: each field is checked when it is read, and a file that cannot be read
hides no other.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from .. import shapes
from ..errors import DamagedError, NotFoundError, UncagedError, UsageError
from ..ids import BundleHash, ThreadId, is_bundle_hash, is_thread_id
from ..names import FlowName, parse_flow_name
from ..records import dataclass
from .files import changing, read_if_there, write_atomically
from .store import Store

__all__ = ["Proposal", "ProposalDirectory", "ProposalFiles", "ProposalState", "ProposalsFound"]

ProposalState = Literal["open", "accepted", "rejected", "stale"]
"""stale: the flow has another head than the one that the proposal was made for."""
FORMAT = 1
MAX_BYTES = 1 << 20
MAX_THREADS = 20
MAX_MS = (1 << 48) - 1
"""Latest time that an id can hold, in the year 10889."""
LOCK_TIMEOUT_S = 30.0
SUFFIX = ".json"
KEYS = ("format", "proposalId", "flow", "from", "to", "by", "policy", "evidence", "threadIds", "state", "createdMs")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposed version of a flow.

    before: the head that it replaces; after: the proposed bundle. by: what proposes it, such as
    ``healing``. policy: a sentence for each thing that it newly allows, as it was found then.
    evidence: JSON data of its maker. threads: those that gave the evidence, the newest last.
    """

    id: str
    flow: FlowName
    before: BundleHash
    after: BundleHash
    by: str
    created_ms: int
    policy: tuple[str, ...] = ()
    evidence: Mapping[str, object] = MappingProxyType({})
    threads: tuple[ThreadId, ...] = ()
    state: ProposalState = "open"

    def document(self) -> dict[str, object]:
        """Return the proposal as JSON data."""
        return {
            "proposalId": self.id,
            "flow": self.flow,
            "from": self.before,
            "to": self.after,
            "by": self.by,
            "policy": list(self.policy),
            "evidence": dict(self.evidence),
            "threadIds": list(self.threads),
            "state": self.state,
            "createdMs": self.created_ms,
        }

    @classmethod
    def read(cls, data: bytes, id: str) -> Proposal:
        """Read a proposal's file.

        Raises:
            ShapeError: it is malformed, of a newer format, or another proposal's.
        """
        path: shapes.Path = ("proposal",)
        if len(data) > MAX_BYTES:
            raise shapes.ShapeError(path, f"has {len(data):,} bytes; at most {MAX_BYTES:,}")
        fields = shapes.mapping(_parsed(data, path), path)
        number = shapes.whole(shapes.required(fields, "format", path), (*path, "format"))
        if number != FORMAT:
            raise shapes.ShapeError((*path, "format"), f"is {number}; this version reads {FORMAT}")
        shapes.json_data(fields, path)
        shapes.known_keys(fields, KEYS, path)
        if fields.get("proposalId") != id:
            raise shapes.ShapeError((*path, "proposalId"), "is not the name of its file")
        state: Any = shapes.one_of(*get_args(ProposalState))(fields.get("state"), (*path, "state"))
        return cls(
            id=id,
            flow=_flow(fields.get("flow"), (*path, "flow")),
            before=_hash(fields.get("from"), (*path, "from")),
            after=_hash(fields.get("to"), (*path, "to")),
            by=shapes.filled(fields.get("by"), (*path, "by")),
            created_ms=shapes.whole_between(0, MAX_MS)(
                fields.get("createdMs"), (*path, "createdMs")
            ),
            policy=tuple(shapes.texts(fields.get("policy", []), (*path, "policy"))),
            evidence=shapes.mapping(fields.get("evidence", {}), (*path, "evidence")),
            threads=_threads(fields.get("threadIds", []), (*path, "threadIds")),
            state=state,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalsFound:
    """Contents of the directory. proposals: the newest first. problems: a sentence for each file
    that cannot be read.
    """

    proposals: tuple[Proposal, ...]
    problems: tuple[str, ...]


class ProposalFiles(ABC):
    """The proposals of one store, wherever their files are."""

    def all(self) -> ProposalsFound:
        """Read all proposals."""
        found: list[Proposal] = []
        problems: list[str] = []
        for id in sorted(self._ids(), reverse=True):
            try:
                found.append(self.get(id))
            except NotFoundError:
                pass  # removed meanwhile
            except UncagedError as exc:
                problems.append(str(exc))
        return ProposalsFound(proposals=tuple(found), problems=tuple(problems))

    def get(self, id: str) -> Proposal:
        """Read the proposal with this id.

        Raises:
            NotFoundError: there is none. DamagedError: its file cannot be read.
        """
        if not is_thread_id(id):
            raise UsageError(f"{id[:80]!r} is not the id of a proposal")
        data = self._read(id)
        if data is None:
            raise NotFoundError(
                f"no proposal {id}; 'uncaged-workflow proposals' lists what there is"
            )
        try:
            return Proposal.read(data, id)
        except shapes.ShapeError as exc:
            raise DamagedError(
                f"{self._place(id)} cannot be read: {exc}; remove the file, nothing depends on it"
            ) from exc

    def find(self, text: str) -> Proposal:
        """Return the proposal with this id, or with the only one that begins with it, in any case.

        Raises:
            UsageError: several begin with it. NotFoundError: none does. DamagedError: see `get`.
        """
        found = [id for id in self._ids() if text and id.startswith(text.upper())]
        if len(found) > 1:
            raise UsageError(
                f"{text!r} is the start of {len(found)} proposal ids: {', '.join(sorted(found)[:10])}; type more of it"
            )
        if not found:
            raise NotFoundError(
                f"no proposal {text[:80]!r}; 'uncaged-workflow proposals' lists what there is"
            )
        return self.get(found[0])

    def put(self, proposal: Proposal) -> None:
        """Write a proposal, durably and whole; the caller is `deciding`."""
        text = json.dumps({"format": FORMAT, **proposal.document()}, ensure_ascii=False, indent=2)
        self._write(proposal.id, f"{text}\n".encode())

    @abstractmethod
    def deciding(self) -> AbstractContextManager[None]:
        """Return a block in which proposals are read and then written.

        Raises:
            RefusedError: another process is deciding for long.
        """

    @abstractmethod
    def _ids(self) -> list[str]:
        """Return the ids of all proposals."""

    @abstractmethod
    def _read(self, id: str) -> bytes | None:
        """Return a proposal's file; None if there is none."""

    @abstractmethod
    def _write(self, id: str, data: bytes) -> None:
        """Write a proposal's file, durably and whole."""

    @abstractmethod
    def _place(self, id: str) -> str:
        """Return the name of a proposal's file, for messages."""


class ProposalDirectory(ProposalFiles):
    """The proposals of a store in a directory."""

    def __init__(self, store: Store) -> None:
        self._path = store.root / "proposals"

    @contextmanager
    def deciding(self) -> Iterator[None]:
        with changing(self._path, timeout_s=LOCK_TIMEOUT_S):
            yield

    def _ids(self) -> list[str]:
        try:
            names = os.listdir(self._path)  # noqa: PTH208 - names alone, no paths
        except FileNotFoundError:
            return []
        ids = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return [id for id in ids if is_thread_id(id)]

    def _read(self, id: str) -> bytes | None:
        return read_if_there(self._file(id))

    def _write(self, id: str, data: bytes) -> None:
        self._path.mkdir(mode=0o700, exist_ok=True)
        write_atomically(self._file(id), data)

    def _place(self, id: str) -> str:
        return str(self._file(id))

    def _file(self, id: str) -> Path:
        return self._path / f"{id}{SUFFIX}"


def _parsed(data: bytes, path: shapes.Path) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise shapes.ShapeError(path, "is not whole JSON") from None


def _hash(value: object, path: shapes.Path) -> BundleHash:
    text = shapes.text(value, path)
    if not is_bundle_hash(text):
        raise shapes.ShapeError(path, f"{text[:80]!r} is not a bundle's hash")
    return BundleHash(text)


def _flow(value: object, path: shapes.Path) -> FlowName:
    try:
        return parse_flow_name(shapes.text(value, path))
    except UsageError as exc:
        raise shapes.ShapeError(path, str(exc)) from exc


def _threads(value: object, path: shapes.Path) -> tuple[ThreadId, ...]:
    listed = shapes.texts(value, path)
    if len(listed) > MAX_THREADS or not all(map(is_thread_id, listed)):
        raise shapes.ShapeError(path, f"is a list of at most {MAX_THREADS} thread ids")
    return tuple(map(ThreadId, listed))
