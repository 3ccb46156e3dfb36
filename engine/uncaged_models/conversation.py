"""Conversation with a model: turns and parts, independent of the API, that can be saved and
loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from uncaged_bundles.storage.files import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Part with text of a turn."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """Tool call of the model. arguments: JSON as the model wrote it, possibly malformed."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any]:
        """Return the arguments as an object; ValueError names the problem."""
        text = self.arguments.strip() or "{}"
        try:
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except json.JSONDecodeError as exc:
            raise ValueError(
                f"the arguments are not JSON: {exc.msg}, line {exc.lineno}, column {exc.colno}"
            ) from exc
        except RecursionError:
            raise ValueError("the arguments are nested too deeply") from None
        except ValueError as exc:
            raise ValueError(f"the arguments are not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise ValueError(f"the arguments must be a JSON object, not {type(value).__name__}")
        return value

    def sent_back(self) -> dict[str, Any]:
        """Return the arguments for the next request; empty if no server would accept them."""
        try:
            return self.parsed()
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of a tool call. failed: text is the reason of a failure. final: text is the answer of
    the role.
    """

    call: str
    text: str
    failed: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Part in the form of its own API, which has to be sent back unchanged, such as signed
    thinking.
    """

    data: Mapping[str, Any]


Part = Text | ToolUse | ToolResult | Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """Turn of a conversation."""

    by: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can contain but requests, files and journals cannot."""
    return text.encode("utf-8", "backslashreplace").decode()


def user_turn(text: str) -> ChatTurn:
    """Return a turn of the user with only text."""
    return ChatTurn(by="user", parts=(Text(text=clean(text)),))


@dataclass(slots=True, kw_only=True)
class Conversation:
    """Conversation: the system prompt and the turns."""

    system: str
    turns: list[ChatTurn]

    def save(self, path: Path, redact: Callable[[object], object] = lambda data: data) -> None:
        """Write the conversation to *path* after redaction, readable by its owner only."""
        data = {
            "system": self.system,
            "turns": [
                {"by": turn.by, "parts": [_plain(part) for part in turn.parts]}
                for turn in self.turns
            ],
        }
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, json.dumps(redact(data)).encode())

    @classmethod
    def load(cls, path: Path) -> Conversation | None:
        """Return the conversation that `save` wrote; None if the file is missing or incomplete."""
        try:
            data = json.loads(path.read_bytes())
            turns = [
                ChatTurn(by=turn["by"], parts=tuple(_parts(turn["parts"])))
                for turn in data["turns"]
            ]
            return cls(system=data["system"], turns=turns)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _plain(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"text": part.text}
        case ToolUse():
            return {"call": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return {"result": part.call, "text": part.text, "failed": part.failed}
        case Raw():
            return {"raw": dict(part.data)}


def _parts(plain: Iterable[Mapping[str, Any]]) -> Iterable[Part]:
    for item in plain:
        if "call" in item:
            yield ToolUse(id=item["call"], name=item["name"], arguments=item["arguments"])
        elif "result" in item:
            yield ToolResult(call=item["result"], text=item["text"], failed=item["failed"])
        elif "raw" in item:
            yield Raw(data=item["raw"])
        else:
            yield Text(text=item["text"])
