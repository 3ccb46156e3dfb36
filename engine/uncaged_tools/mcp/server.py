"""MCP server with a tool for each enabled flow, tools for threads, and threads as resources. Its
only state is the store.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from uncaged_bundles.errors import NotFoundError, UncagedError, without_thread
from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import GONE

from ..flows import FlowResult, FlowTool, find_tool, split, tools
from . import resources, threads
from .changes import ToolListWatcher
from .client_files import NAME
from .following import start_and_wait

INSTRUCTIONS = (
    "Each tool is a flow that its person has allowed, or one of run, status, answer and fork, which are about threads. A call waits until "
    "the flow's thread stops; cancelled, it ends the thread. A thread that waits for a person says so in its status. Threads are resources."
)
OUTPUT = {
    "type": "object",
    "properties": {
        "threadId": {"type": "string"},
        "status": {
            "type": "string",
            "description": "completed, failed, killed, limit, waiting, paused, running …",
        },
        "success": {"type": "boolean"},
        "message": {"type": "string"},
        "data": {"description": "The flow's result."},
        "direct": {"type": "boolean", "description": "The data is to be handed out as it is."},
    },
    "required": ["threadId", "status", "success", "message", "data"],
}
UNFINISHED = frozenset({"waiting", "paused", "running"})

Context = ServerRequestContext[Any, Any]


def make_server(engine: Engine, flows: Collection[str] | None = None) -> Server[Any]:
    """Return the server of a store. flows: offer only these; None offers all that are enabled."""
    handlers = RequestHandlers(engine, flows)
    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=handlers.changes.watching,
        on_subscriptions_listen=handlers.changes.listen,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


class RequestHandlers:
    """Handlers of the protocol's requests for one store; blocking work runs in threads."""

    def __init__(self, engine: Engine, flows: Collection[str] | None) -> None:
        self._engine, self._flows = engine, flows
        self.changes = ToolListWatcher(engine.registry_mark, self._enabled_tools)

    async def list_tools(
        self, context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self.changes.remember(context)
        enabled = await anyio.to_thread.run_sync(self._enabled_tools)
        listed = [
            *(tool_entry(tool.name, tool.description, tool.schema) for tool in enabled),
            *(
                tool_entry(name, tool.description, tool.schema, changes=tool.changes)
                for name, tool in threads.THREAD_TOOLS.items()
                if self._offers(name)
            ),
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await cancel_on_disconnect(context.request, lambda: self._use_tool(context, params))

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await anyio.to_thread.run_sync(
            resources.list_threads, self._engine, params.cursor if params else None
        )

    async def list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.list_templates()

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await anyio.to_thread.run_sync(resources.read_thread, self._engine, str(params.uri))

    def _enabled_tools(self) -> list[FlowTool]:
        return tools(self._engine, reserved=threads.THREAD_TOOLS, flows=self._flows)

    def _offers(self, thread_tool: str) -> bool:
        """Return whether a tool for threads is offered: `run` starts any flow, so a server of a few
        flows leaves it out.
        """
        return thread_tool != "run" or self._flows is None

    async def _use_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = params.name, params.arguments or {}
        try:
            if name in threads.THREAD_TOOLS and self._offers(name):
                return call_result(
                    await threads.use(self._engine, name, arguments, context.session)
                )
            enabled = await anyio.to_thread.run_sync(self._enabled_tools)
            return await call_flow(self._engine, enabled, name, arguments, context)
        except UncagedError as exc:
            return types.CallToolResult(
                content=[types.TextContent(text=without_thread(exc))], is_error=True
            )


async def cancel_on_disconnect(
    request: object, use: Callable[[], Awaitable[types.CallToolResult]]
) -> types.CallToolResult:
    """Return the result of a call, which an HTTP client cancels by disconnecting, in every version
    of the protocol.

    Without a store of events no later request could fetch its result.
    """
    gone = request.scope.get(GONE) if isinstance(request, Request) else None
    if gone is None:
        return await use()
    result = types.CallToolResult(
        content=[types.TextContent(text="the client is gone")], is_error=True
    )
    # raised outside of the group, which would wrap it
    refused: UncagedError | MCPError | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await gone.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            result = await use()
        except (UncagedError, MCPError) as exc:
            refused = exc
        tasks.cancel_scope.cancel()
    if refused is not None:
        raise refused
    return result


async def call_flow(
    engine: Engine,
    found: Sequence[FlowTool],
    name: str,
    arguments: Mapping[str, object],
    context: Context,
) -> types.CallToolResult:
    try:
        tool = find_tool(found, name)
    except NotFoundError as exc:
        raise MCPError(types.INVALID_PARAMS, str(exc)) from exc
    prompt, parameters = split(tool, arguments)
    start = lambda: engine.run(tool.flow, prompt=prompt, params=parameters)  # noqa: E731 - runs in a thread of its own
    return flow_call_result(await start_and_wait(start, engine, context.session, what=tool.flow))


def tool_entry(
    name: str, description: str, schema: Mapping[str, Any], *, changes: bool = True
) -> types.Tool:
    hints = None if changes else types.ToolAnnotations(read_only_hint=True)
    return types.Tool(
        name=name,
        description=description,
        input_schema=dict(schema),
        output_schema=OUTPUT,
        annotations=hints,
    )


def flow_call_result(result: FlowResult) -> types.CallToolResult:
    """Return the MCP result of a flow; direct output is the text by itself."""
    if not result.direct:
        return call_result(result.document())
    text = (
        result.data if isinstance(result.data, str) else json.dumps(result.data, ensure_ascii=False)
    )
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=result.document()
    )


def call_result(document: Mapping[str, Any]) -> types.CallToolResult:
    text = json.dumps(document, ensure_ascii=False)
    failed = not document["success"] and document["status"] not in UNFINISHED
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=dict(document), is_error=failed
    )
