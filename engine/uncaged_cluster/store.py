"""Store in a schema of a PostgreSQL database (`StoreBackend`), and its entry point."""

from __future__ import annotations

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.shared import Dispatcher, DispatcherChoice
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
from .turns import RESTATE, TurnRunner, TurnTable


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
        from .dispatching import ClusterDispatcher  # readers do without

        watching = DatabaseSession(self._session.address)
        return ClusterDispatcher(
            self._session, watching, self._notifications, self._runner(watching)
        )

    def runs_with(self) -> DispatcherChoice | None:
        engine = TurnTable(self._session).engine()
        if engine != RESTATE:
            return None if engine is None else DispatcherChoice(name=engine)
        from .runners.restate_choice import chosen_address

        found = chosen_address(self._session)
        return DispatcherChoice(name=engine, admin=found.admin, ingress=found.ingress)

    def run_with_restate(self, admin: str, ingress: str | None) -> None:
        from .runners.restate_choice import choose_restate, restate_address

        choose_restate(self._session, restate_address(admin, ingress))

    def _runner(self, watching: DatabaseSession) -> TurnRunner:
        if TurnTable(self._session).engine() == RESTATE:
            from .runners.restate_turns import RestateRunner

            return RestateRunner(self._session, watching)
        try:
            from .runners.dbos_turns import DbosRunner  # 0.5 s, which a copy does without
        except ModuleNotFoundError as exc:
            raise EnvironmentLacks(
                f"running threads on a shared store needs the package {exc.name}: pip install 'uncaged-workflow[cluster]'"
            ) from exc
        return DbosRunner(self._session, watching)

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
