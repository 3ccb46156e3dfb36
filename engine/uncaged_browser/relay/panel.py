"""Content of the side panel: the page of `uncaged-workflow serve`, or why there is none."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Awaitable, Callable

__all__ = ["PanelContent", "serve_page"]

PanelContent = Callable[[], Awaitable[dict[str, object]]]
"""Returns ``{"address"}`` of a page to show, or ``{"text"}``."""
LOOPBACK = "127.0.0.1"
REPLY_S = 3.0
VIEW = "#/ask"
"""The view of the page that the panel shows: the conversation."""
NOT_RUNNING = "`uncaged-workflow serve` does not run at {}. Start it, and its page is shown here."
NO_PAGE = "The program at {} has no page that can be shown here."


def serve_page(port: Callable[[], int]) -> PanelContent:
    """Return the content for the server at a port, which is read anew each time. The store's token
    is not sent: another program may listen there.
    """

    async def content() -> dict[str, object]:
        chosen = port()
        address = f"http://{LOOPBACK}:{chosen}/"
        has_page = await asyncio.to_thread(_has_page, chosen)
        if has_page is None:
            return {"text": NOT_RUNNING.format(address)}
        return {"address": f"{address}{VIEW}"} if has_page else {"text": NO_PAGE.format(address)}

    return content


def _has_page(port: int) -> bool | None:
    """Whether the server at a port has a page; None if nothing listens there."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=REPLY_S)
    try:
        connection.request("GET", "/", headers={"Accept": "text/html"})
        reply = connection.getresponse()
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException):
        return False
    else:
        kind = reply.headers.get_content_type()
        return reply.status == http.HTTPStatus.OK and kind == "text/html"
    finally:
        connection.close()
