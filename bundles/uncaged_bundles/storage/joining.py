"""Join of two registries: flows and grants that one text has and the other lacks. Other lines of
the text that is changed stay as they are.

Versions are compared by their hashes, from the oldest to the newest: two stores note other times
for the same shipped flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..ids import BundleHash
from ..records import dataclass
from .document import Document, Entry
from .draft import RegistryDraft, collector_paused
from .snapshot import FLOWS, GRANTS, Flow, read_document

__all__ = ["JoinedRegistry", "RegistryText", "join_registries"]

_Relation: TypeAlias = Literal["same", "newer", "older", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryText:
    """Text of a registry. where: its name in messages."""

    text: bytes
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRegistry:
    """Result of a join. copied, present: numbers of flows that were added or changed, and that were
    there. grants: number of grants that were added. problems: a sentence for each flow or grant
    that was left as it is, and for each entry of the source that was left out as unreadable.
    """

    text: bytes
    copied: int
    present: int
    grants: int
    problems: tuple[str, ...]


def join_registries(source: RegistryText, target: RegistryText, *, replace: bool) -> JoinedRegistry:
    """Add the flows and grants of *source* to *target*; a blank target becomes the same text.

    A flow is added, or brought up to date if the target has its older versions alone and the same
    marks. A flow of which the target has newer versions and the same marks is there already.

    Args:
        replace: the source's entry replaces that of a flow that differs otherwise.
    Raises:
        DamagedError: a text is no registry, or the joined one would be too large.
    """
    with collector_paused():
        return _joined(source, target, replace=replace)


def _joined(source: RegistryText, target: RegistryText, *, replace: bool) -> JoinedRegistry:
    join = _Join(source, target, replace)
    is_same = target.text == source.text
    if is_same or not target.text.strip():
        count = len(join.found.flows)
        return JoinedRegistry(
            text=source.text,
            copied=0 if is_same else count,
            present=count if is_same else 0,
            grants=0 if is_same else len(join.granted),
            problems=(),
        )
    join.grants()
    join.flows()
    if join.draft.text != target.text:
        Document.parse(join.draft.text, target.where)
    return JoinedRegistry(
        text=join.draft.text,
        copied=join.copied,
        present=join.present,
        grants=join.new_grants,
        problems=tuple(join.problems),
    )


class _Join:
    """One join."""

    def __init__(self, source: RegistryText, target: RegistryText, replace: bool) -> None:
        document = Document.parse(source.text, source.where)
        self._flow_entries = _by_key(document, FLOWS)
        self._grant_entries = _by_key(document, GRANTS)
        self.found, self.granted = read_document(document, source.where)
        self._present, self._present_grants = read_document(
            Document.parse(target.text, target.where), target.where
        )
        self._where = target.where
        self._replace = replace
        self.draft = RegistryDraft(target.text, target.where, lambda _hash: None)
        self.problems = list(self.found.problems)
        self.copied = self.present = self.new_grants = 0

    def grants(self) -> None:
        new: dict[str, Mapping[str, Any]] = {}
        for hash, digest in self.granted.items():
            present = self._present_grants.get(hash)
            if present is None:
                new[hash] = _fields(self._grant_entries[hash])
            elif present != digest:
                self.problems.append(
                    f"the grant of bundle {hash} is for other bytes in the {self._where}, and was left as it is there"
                )
        self.draft.add_entries(GRANTS, new)
        self.new_grants = len(new)

    def flows(self) -> None:
        new: dict[str, Mapping[str, Any]] = {}
        for name, flow in self.found.flows.items():
            difference = self._difference(flow)
            if difference is None:
                self.present += 1
            elif difference and not self._replace:
                self.problems.append(
                    f"flow {name!r} differs: in the {self._where} {difference}; it was left as it is there, --replace takes the other entry"
                )
            else:
                self.copied += 1
                if name in self._present.flows:
                    self._change(flow)
                else:
                    if difference:  # an entry that cannot be read
                        self.draft.drop(FLOWS, name)
                    new[name] = self._entry(flow)
        self.draft.add_entries(FLOWS, new)

    def _difference(self, flow: Flow) -> str | None:
        """Return how the target's entry differs; an empty text if the source's is its
        continuation, None if nothing is to be done.
        """
        if flow.name in self._present.unreadable:
            return "its entry cannot be read"
        present = self._present.flows.get(flow.name)
        if present is None:
            return ""
        relation = _relation(flow, present)
        if relation == "other":
            return f"it has the versions {_versions(present)}, not {_versions(flow)}"
        newer = "has newer versions and " if relation == "older" else ""
        if present.enabled != flow.enabled:
            return f"it {newer}is {'enabled' if present.enabled else 'disabled'}"
        if present.confirm != flow.confirm:
            return f"it {newer}has confirm: {str(present.confirm).lower()}"
        return "" if relation == "newer" else None

    def _change(self, flow: Flow) -> None:
        """Set the source's fields of a flow that the target has."""
        is_marked = self._present.flows[flow.name].confirm
        mark = {"confirm": flow.confirm} if is_marked else {}
        self.draft.put(FLOWS, flow.name, {**self._entry(flow), **mark})

    def _entry(self, flow: Flow) -> Mapping[str, Any]:
        return {**flow.fields(), **_fields(self._flow_entries[flow.name])}


def _relation(flow: Flow, present: Flow) -> _Relation:
    """Compare the versions of a flow with those that the target has."""
    ours, theirs = _oldest_first(flow), _oldest_first(present)
    if ours == theirs:
        return "same"
    if ours[: len(theirs)] == theirs:
        return "newer"
    return "older" if theirs[: len(ours)] == ours else "other"


def _oldest_first(flow: Flow) -> tuple[BundleHash, ...]:
    return tuple(version.hash for version in reversed(flow.versions))


def _versions(flow: Flow) -> str:
    """Return at most the three newest versions as words."""
    shown = [version.hash for version in flow.versions[:3]]
    return ", ".join(shown) + (" and older ones" if len(flow.versions) > len(shown) else "")


def _by_key(document: Document, section: str) -> dict[object, Entry]:
    return {entry.key: entry for entry in document.section(section)}


def _fields(entry: Entry) -> Mapping[str, Any]:
    """Return the fields of a readable entry, unknown ones included."""
    found = entry.value()
    return found if isinstance(found, dict) else {}
