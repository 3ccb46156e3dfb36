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
from .draft import RegistryDraft
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
    that was left as it is, and for each entry that cannot be read.
    """

    text: bytes
    copied: int
    present: int
    grants: int
    problems: tuple[str, ...]


def join_registries(source: RegistryText, target: RegistryText, *, replace: bool) -> JoinedRegistry:
    """Add the flows and grants of *source* to *target*; a blank target becomes the same text.

    A flow is added, or brought up to date if the target has its older versions alone and the same
    marks. A flow of which the target has newer versions is there already.

    Args:
        replace: the source's entry replaces that of a flow that differs otherwise.
    Raises:
        DamagedError: a text is no registry, or the joined one would be too large.
    """
    join = _Join(source, target, replace)
    if not target.text.strip():
        return JoinedRegistry(
            text=source.text,
            copied=len(join.found.flows),
            present=0,
            grants=len(join.granted),
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
        for hash, digest in self.granted.items():
            present = self._present_grants.get(hash)
            if present is None:
                self.draft.put(GRANTS, hash, _fields(self._grant_entries[hash]))
                self.new_grants += 1
            elif present != digest:
                self.problems.append(
                    f"the grant of bundle {hash} is for other bytes in the {self._where}, and was left as it is there"
                )

    def flows(self) -> None:
        for name, flow in self.found.flows.items():
            difference = self._difference(flow)
            if difference is None:
                self.present += 1
            elif difference and not self._replace:
                self.problems.append(
                    f"flow {name!r} differs: in the {self._where} {difference}; it was left as it is there, --replace takes the other entry"
                )
            else:
                self._put(flow)
                self.copied += 1

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
        if relation == "older":
            return None
        if relation == "other":
            return f"it has the versions {_versions(present)}, not {_versions(flow)}"
        if present.enabled != flow.enabled:
            return f"it is {'enabled' if present.enabled else 'disabled'}"
        if present.confirm != flow.confirm:
            return f"it has confirm: {str(present.confirm).lower()}"
        return None if relation == "same" else ""

    def _put(self, flow: Flow) -> None:
        if flow.name in self._present.unreadable:
            self.draft.drop(FLOWS, flow.name)
        fields = {**flow.fields(), **_fields(self._flow_entries[flow.name])}
        present = self._present.flows.get(flow.name)
        if present is not None and present.confirm:
            fields["confirm"] = flow.confirm
        self.draft.put(FLOWS, flow.name, fields)


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
