"""Discovery of a model server on loopback: a short request to each of the usual ports, all at
once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

PORTS = {11434: "Ollama", 1234: "LM Studio", 8000: "vLLM", 8080: "llama.cpp"}
"""The server that usually listens there, for messages."""

LIMIT_S = 0.2
MAX_BYTES = 1 << 20
NOT_CHAT = ("embed", "rerank", "whisper", "tts")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """OpenAI-compatible server, with the first of its chat models."""

    port: int
    model: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def find_server(ports: Sequence[int] = tuple(PORTS)) -> LocalServer | None:
    """Return the first of *ports* that answers with a model."""
    with ThreadPoolExecutor(len(ports)) as pool:
        models = list(pool.map(first_model, ports))
    return next(
        (
            LocalServer(port=port, model=model)
            for port, model in zip(ports, models, strict=True)
            if model
        ),
        None,
    )


def first_model(port: int) -> str:
    """Return the first chat model of the server on *port*; "" if there is none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        response = connection.getresponse()
        data = json.loads(response.read(MAX_BYTES)) if response.status == 200 else {}
    except (OSError, HTTPException, ValueError):
        return ""
    finally:
        connection.close()
    entries = data.get("data") if isinstance(data, dict) else None
    names = (
        [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]
        if isinstance(entries, list)
        else []
    )
    return next((name for name in names if not any(word in name.lower() for word in NOT_CHAT)), "")
