"""Translations in tests: the answers of a scripted model, and what it was shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_engine.api import Engine

from .modelserver import ModelServer, Turn, says


def reply(
    *calls: tuple[str, Mapping[str, object]],
    unknown: Sequence[str] = (),
    question: Mapping[str, object] | None = None,
    **more: Any,
) -> Turn:
    """A model's answer in the form that `interpret` asks for; each call with the flow's name as the
    words that it answers.
    """
    listed = [{"flow": flow, "params": params, "text": flow} for flow, params in calls]
    asked = {} if question is None else {"question": question}
    return says(json.dumps({"calls": listed, "unknown": list(unknown), **asked}), **more)


def use(engine: Engine, server: ModelServer, more: str = "") -> None:
    """Configure the server as the store's only model."""
    engine.store.config_path.write_text(
        f"models:\n  m: {{use: openai, baseUrl: {server.base_url('openai')}, model: tiny}}\n{more}"
    )


def shown(request: Any) -> Any:
    """The input that the model was shown, from the prompt's last fence."""
    text = request["messages"][-1]["content"]
    fence = text[text.index("```json") + len("```json") :]
    return json.loads(fence[: fence.index("\n```")])
