"""Proposals of a shared store, as its documents. Of two who decide about one, the second is refused
by the version of the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncaged_bundles.ids import is_thread_id
from uncaged_bundles.storage.proposals import SUFFIX, ProposalFiles

from ..stores.protocol import DocumentStorage

FOLDER = "proposals/"


class ProposalDocuments(ProposalFiles):
    """The proposals among a store's documents. `put` raises `ChangedMeanwhile` if the document is
    not the one that was read last.
    """

    def __init__(self, documents: DocumentStorage, address: str) -> None:
        self._documents = documents
        self._address = address
        self._versions: dict[str, str] = {}

    @contextmanager
    def deciding(self) -> Iterator[None]:
        yield  # the documents' versions keep two apart

    def _ids(self) -> list[str]:
        names = (name for name in self._documents.names() if name.startswith(FOLDER))
        return [
            *filter(
                is_thread_id, (name.removeprefix(FOLDER).removesuffix(SUFFIX) for name in names)
            )
        ]

    def _read(self, id: str) -> bytes | None:
        found = self._documents.read(_name(id))
        if found is None:
            self._versions.pop(id, None)
            return None
        self._versions[id] = found.version
        return found.data

    def _write(self, id: str, data: bytes) -> None:
        version = self._versions.get(id)
        self._versions[id] = self._documents.replace(_name(id), data, version=version)

    def _place(self, id: str) -> str:
        return f"{_name(id)} in {self._address}"


def _name(id: str) -> str:
    return f"{FOLDER}{id}{SUFFIX}"
