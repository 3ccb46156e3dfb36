"""Handshake and sessions of the Agent Client Protocol, before the first prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.version import __version__

if TYPE_CHECKING:
    from acp.connection import Connection
    from acp.schema import InitializeResponse, NewSessionResponse
    from pydantic import BaseModel

    Answer = TypeVar("Answer", bound=BaseModel)

AUTH_REQUIRED = -32000


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Settings of a turn.

    name: of the agent, for messages. login: how a person logs in. authenticate: the method to try
    if the agent is not logged in, if one works without a person. start_s: for the handshake and the
    session. timeout_s: for the whole turn. grace_s: to react to a cancel.
    """

    name: str
    login: str
    authenticate: str | None
    start_s: float
    timeout_s: float
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """Description that an agent gives of itself before a prompt; each field is empty if it gives
    none. agent: name and version.
    """

    agent: str
    model: str


class ProtocolViolation(Exception):
    """The agent sent a response that does not fit the protocol."""


async def ask(
    connection: Connection, method: str, request: BaseModel, answer: type[Answer]
) -> Answer:
    """Send a request and return its answer.

    Raises:
        ProtocolViolation, RequestError (the agent answers with an error), ConnectionError (the
            connection is closed).
    """
    from acp.utils import request_model_from_dict
    from pydantic import ValidationError

    try:
        return await request_model_from_dict(connection, method, request, answer)
    except ValidationError as exc:
        problem = exc.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise ProtocolViolation(
            f"its answer to {method} is none of the Agent Client Protocol's ({where}: {problem['msg']})"
        ) from exc


async def initialise(
    connection: Connection, settings: TurnSettings, remark: Callable[[str], None]
) -> InitializeResponse:
    """Initialise the connection; EnvironmentLacks when the agent speaks another version."""
    from acp import PROTOCOL_VERSION, schema

    request = schema.InitializeRequest(
        protocol_version=PROTOCOL_VERSION,
        client_capabilities=schema.ClientCapabilities(
            fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
        ),
        client_info=schema.Implementation(
            name="uncaged-workflow", title="Uncaged Workflow", version=__version__
        ),
    )
    capabilities = await ask(connection, "initialize", request, schema.InitializeResponse)
    if capabilities.protocol_version != PROTOCOL_VERSION:
        raise EnvironmentLacks(
            f"{settings.name} speaks version {capabilities.protocol_version} of the Agent Client Protocol, but version {PROTOCOL_VERSION}"
            " is needed",
            remedy="bring it up to date",
        )
    remark(
        f"agent {agent_title(capabilities)}"
        if capabilities.agent_info is not None
        else "the agent does not say what it is"
    )
    return capabilities


def agent_title(capabilities: InitializeResponse) -> str:
    about = capabilities.agent_info
    return f"{about.name} {about.version}" if about is not None else ""


def model_of(opened: NewSessionResponse) -> str:
    """Return the model of a new session, if the agent offers a choice."""
    for option in opened.config_options or ():
        if option.category == "model":
            return str(option.current_value)
    return ""


async def load(
    connection: Connection,
    capabilities: InitializeResponse,
    known: str,
    directory: str,
    remark: Callable[[str], None],
) -> bool:
    """Load the session *known*, if the agent can and still has it."""
    from acp import RequestError, schema

    if capabilities.agent_capabilities is None or not capabilities.agent_capabilities.load_session:
        return False
    try:
        request = schema.LoadSessionRequest(cwd=directory, session_id=known, mcp_servers=[])
        await ask(connection, "session/load", request, schema.LoadSessionResponse)
    except RequestError as exc:
        if exc.code == AUTH_REQUIRED:
            raise
        remark(f"session {known} is gone ({exc}); a new one begins")
        return False
    return True


async def begin(
    connection: Connection, settings: TurnSettings, directory: str
) -> NewSessionResponse:
    """Open a new session; if the agent is not logged in, try once the method that needs no
    person.
    """
    from acp import RequestError, schema

    request = schema.NewSessionRequest(cwd=directory, mcp_servers=[])
    try:
        return await ask(connection, "session/new", request, schema.NewSessionResponse)
    except RequestError as exc:
        if exc.code != AUTH_REQUIRED or settings.authenticate is None:
            raise
    method = schema.AuthenticateRequest(method_id=settings.authenticate)
    await ask(connection, "authenticate", method, schema.AuthenticateResponse)
    return await ask(connection, "session/new", request, schema.NewSessionResponse)
