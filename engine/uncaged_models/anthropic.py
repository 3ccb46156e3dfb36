"""Client of the Anthropic Messages API through its SDK.

The SDK reads the stream and classifies errors. Its own retries are off, because their pauses cannot
be interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from uncaged_engine.services.network import RequestCancelled, WebProblem

from .client import ModelReply, ModelRequest, OnPiece, Stop, ToolDescription, Usage
from .connection import ModelConnection
from .conversation import ChatTurn, Part, Raw, Text, ToolResult, ToolUse, clean
from .errors import Endpoint, ReplyBroken
from .schemas import closed
from .settings import ModelSettings

if TYPE_CHECKING:
    import anthropic

CACHED = {"cache_control": {"type": "ephemeral"}}
STOPS: Mapping[str, Stop] = {
    "max_tokens": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context",
}
STATUS_OF = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "billing_error": 402,
    "invalid_request_error": 400,
    "request_too_large": 413,
    "timeout_error": 504,
}
"""HTTP status by error type: an error in the middle of a stream comes with status 200."""


NO_KEY = "none"
"""Placeholder, since the SDK requires a key; it is not sent to a server without one."""


class AnthropicClient:
    """Client that sends requests over a connection that other threads may cut."""

    def __init__(self, settings: ModelSettings, connection: ModelConnection) -> None:
        import anthropic

        self.model = settings.model
        self._settings = settings
        self._endpoint = Endpoint(url=settings.url, model=settings.model)
        self._sdk = anthropic.Anthropic(
            api_key=settings.key or NO_KEY,
            base_url=settings.url,
            timeout=connection.timeout,
            max_retries=0,
            http_client=connection.http,
            open_telemetry=False,
        )

    def send(self, request: ModelRequest, on_piece: OnPiece) -> ModelReply:
        import anthropic
        import httpx2

        draft = AnthropicDraft()
        try:
            without = None if self._settings.key else {"Authorization": anthropic.Omit()}
            with self._sdk.messages.create(
                **self._body(request), stream=True, extra_headers=without
            ) as stream:
                self._endpoint.expect_stream(stream.response.headers)
                for event in stream:
                    draft.take(event, on_piece)
        except anthropic.APIStatusError as exc:
            raise self._refused(exc) from None  # its chain holds the request with the key
        except anthropic.APIConnectionError as exc:
            raise self._endpoint.network_error(exc.__cause__ or exc) from None
        except (WebProblem, RequestCancelled, httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._endpoint.network_error(exc, draft.usage) from None
        except (ValueError, LookupError, TypeError, AttributeError) as exc:
            raise ReplyBroken(
                f"{self._endpoint.url} sent something that is no answer: {exc}", usage=draft.usage
            ) from exc
        if draft.stopped is None:
            raise ReplyBroken(
                f"the answer of {self._endpoint.url} ended before it was whole", usage=draft.usage
            )
        return draft.reply()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_tokens,
            "messages": messages(request.turns),
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, **CACHED}]
        if request.tools:
            body["tools"] = list(tools(request.tools))
        if request.tools and not request.free:
            body["tool_choice"] = {"type": "none"}
        form = (
            closed(request.schema) if request.schema is not None and settings.structured else None
        )
        if form is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": form}}
        if settings.options:
            body["extra_body"] = dict(settings.options)
        return body

    def _refused(self, error: anthropic.APIStatusError) -> Exception:
        status = (
            STATUS_OF.get(str(error.type), 500) if error.status_code < 400 else error.status_code
        )
        words = f"{error.type or ''} {error.api_message or error.message}".strip()
        return self._endpoint.refused(
            status, words, retry_after_s=retry_after_s(error.response.headers)
        )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `Retry-After` header; model endpoints do not use its form with a
    date.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return None


def tools(described: Iterable[ToolDescription]) -> Iterable[dict[str, Any]]:
    """Yield the tools in the API's form; the last one ends the cached prefix."""
    *others, last = described
    for tool in (*others, last):
        yield {
            "name": tool.name,
            "description": tool.description,
            "input_schema": dict(tool.parameters),
            **(CACHED if tool is last else {}),
        }


def messages(turns: Iterable[ChatTurn]) -> list[dict[str, Any]]:
    result = [{"role": turn.by, "content": [block(part) for part in turn.parts]} for turn in turns]
    for message in reversed(result):
        if message["role"] == "user":
            cast("list[dict[str, Any]]", message["content"])[-1].update(CACHED)
            break
    return result


def block(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case ToolUse():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.sent_back()}
        case ToolResult():
            return {
                "type": "tool_result",
                "tool_use_id": part.call,
                "content": part.text,
                "is_error": part.failed,
            }
        case Raw():
            return dict(part.data)


@dataclass(slots=True)
class AnthropicDraft:
    """Reply that is still arriving. stopped: the API's own stop reason, if known."""

    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    pieces: dict[int, list[str]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    counts: dict[str, int] = field(default_factory=dict)
    stopped: str | None = None
    detail: str = ""

    def take(self, event: Any, on_piece: OnPiece) -> None:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                self.blocks[event.index] = event.content_block.model_dump(
                    mode="json", exclude_none=True
                )
                first = self.blocks[event.index].get("text", "")
                self.pieces[event.index] = [first] if first else []
            case "content_block_delta":
                self._add(event.index, event.delta, on_piece)
            case "message_delta":
                self._count(event.usage)
                self.stopped = event.delta.stop_reason or self.stopped
                if event.delta.stop_details is not None:
                    details = event.delta.stop_details
                    self.detail = ": ".join(
                        word for word in (details.category, details.explanation) if word
                    )
            case _:
                pass

    def _add(self, index: int, delta: Any, on_piece: OnPiece) -> None:
        match delta.type:
            case "text_delta":
                self.pieces[index].append(delta.text)
                on_piece(delta.text, True)
            case "input_json_delta":
                self.pieces[index].append(delta.partial_json)
                on_piece(delta.partial_json, False)
            case "thinking_delta":
                self.pieces[index].append(delta.thinking)
                on_piece(delta.thinking, False)
            case "signature_delta":
                self.blocks[index]["signature"] = delta.signature
            case _:
                pass

    def _count(self, usage: Any) -> None:
        """Take the token counts of an event: totals so far; a later event may omit some."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ):
            value = getattr(usage, name, None)
            if isinstance(value, int):
                self.counts[name] = value
        cached, stored = (
            self.counts.get("cache_read_input_tokens", 0),
            self.counts.get("cache_creation_input_tokens", 0),
        )
        self.usage = Usage(
            input=self.counts.get("input_tokens", 0) + cached + stored,
            output=self.counts.get("output_tokens", 0),
            cached=cached,
            stored=stored,
        )

    def reply(self) -> ModelReply:
        parts = tuple(part for index in sorted(self.blocks) for part in self._part(index))
        return ModelReply(
            parts=parts,
            stop=STOPS.get(self.stopped or "", "end"),
            usage=self.usage,
            detail=self.detail,
        )

    def _part(self, index: int) -> Iterable[Part]:
        found, text = self.blocks[index], clean("".join(self.pieces[index]))
        match found["type"]:
            case "text":
                if text:
                    yield Text(text=text)
            case "tool_use":
                yield ToolUse(
                    id=found["id"],
                    name=found["name"],
                    arguments=text or json.dumps(found.get("input") or {}),
                )
            case "thinking":
                yield Raw(
                    data={
                        "type": "thinking",
                        "thinking": found.get("thinking", "") + text,
                        "signature": found.get("signature", ""),
                    }
                )
            case _:
                yield Raw(data=found)
