"""Configuration entries with which MCP clients find this server, in the form of each client's own
file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAME = "uncaged-workflow"
VARIABLE = "UNCAGED_WORKFLOW_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """File in which a client keeps its servers. key: the mapping that holds them. typed: each says
    its kind of transport.

    token: how its file names the token, which does not belong into it. asks: the client asks its
    person for the token, once.
    """

    file: str
    key: str
    typed: bool
    token: str
    asks: bool = False


CLIENTS: Mapping[str, ClientFile] = {
    "claude": ClientFile(
        file=".mcp.json in a project, or claude_desktop_config.json",
        key="mcpServers",
        typed=False,
        token=f"${{{VARIABLE}}}",
    ),
    "cursor": ClientFile(
        file="~/.cursor/mcp.json, or .cursor/mcp.json in a project",
        key="mcpServers",
        typed=False,
        token=f"${{env:{VARIABLE}}}",
    ),
    "vscode": ClientFile(
        file=".vscode/mcp.json in a workspace",
        key="servers",
        typed=True,
        token=f"${{input:{NAME}}}",
        asks=True,
    ),
}


def snippet(
    client: ClientFile, command: Sequence[str], environment: Mapping[str, str], url: str | None
) -> dict[str, object]:
    """Return what belongs into the client's file.

    Args:
        command: starts the server on standard input and output. url: of a server that runs already,
            instead of the command.
    """
    if url is not None:
        entry: dict[str, object] = {
            "type": "http",
            "url": url,
            "headers": {"Authorization": f"Bearer {client.token}"},
        }
        if client.asks:
            asked = {
                "type": "promptString",
                "id": NAME,
                "description": f"The token of {NAME}",
                "password": True,
            }
            return {"inputs": [asked], client.key: {NAME: entry}}
    else:
        entry = {
            **({"type": "stdio"} if client.typed else {}),
            "command": command[0],
            "args": list(command[1:]),
        }
        if environment:
            entry["env"] = dict(environment)
    return {client.key: {NAME: entry}}
