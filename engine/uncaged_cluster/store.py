"""Store in a schema of a PostgreSQL database (`StoreBackend`), and its entry point."""

from __future__ import annotations

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.shared import Dispatcher
from uncaged_engine.services.stores import StoreBackend

from .address import parse_address
from .contents import BlobRows, BundleRows
from .conversations import ConversationRows
from .documents import DocumentRows, RegistryRow
from .migrations import ready
from .notifications import Notifications
from .pending import PendingThreads
from .progress import ProgressChannels
from .retention import RetentionRows
from .session import DatabaseSession
from .threads import ThreadRows


class PostgresStore:
    """An open store. Its parts share one connection."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
        self.bundles = BundleRows(session)
        self.registry = RegistryRow(session)
        self._notifications = notifications = Notifications(session.address)
        self.threads = ThreadRows(session, notifications)
        self.blobs = BlobRows(session)
        self.conversations = ConversationRows(session, notifications)
        self.documents = DocumentRows(session)
        self.queue = PendingThreads(session)
        self.progress = ProgressChannels(session, notifications)
        self.retention = RetentionRows(session)

    @property
    def address(self) -> str:
        return str(self._session.address)

    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher of the store's threads (`SharedStore`)."""
        try:
            from .dispatching import DbosDispatcher  # 0.5 s, which a copy does without
        except ModuleNotFoundError as exc:
            raise EnvironmentLacks(
                f"running threads on a shared store needs the package {exc.name}: pip install 'uncaged-workflow[cluster]'"
            ) from exc
        return DbosDispatcher(self._session, self._notifications)

    def close(self) -> None:
        self._session.close()


def open_store(address: str, *, create: bool, is_visible: bool) -> StoreBackend:
    """Open the store at a ``postgresql://`` address (`StoreOpener`)."""
    session = DatabaseSession(parse_address(address, is_visible=is_visible))
    try:
        ready(session, create=create)
    except BaseException:
        session.close()
        raise
    return PostgresStore(session)
