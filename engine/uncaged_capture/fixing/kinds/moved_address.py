"""Address that a server does not know any more, whose answer names the new one on the same host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from ..candidates import FixCandidate
from ..case import FixCase
from ..machine import Machine

__all__ = ["candidates"]

GONE = ("status 404", "status 410", "status 400")
ADDRESS = re.compile(r"https?://[^\s\"'<>)]+|(?<![\w/:.])/[\w.~%/-]+\w")


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the path that the answer names."""
    del machine
    failed = case.failed
    if failed is None or failed.word not in GONE or failed.step.kind not in ("http", "fetch"):
        return
    body, outcome = failed.step.body, failed.step.outcome
    if not isinstance(body, Mapping) or not isinstance(outcome, Mapping):
        return
    url = urlsplit(str(body.get("url", "")))
    text = json.dumps([outcome.get("json"), outcome.get("text"), outcome.get("headers")])
    named = {_path_on(url.netloc, one) for one in ADDRESS.findall(text)} - {None, url.path, "/"}
    if not named:
        yield f"{url.path} answers {failed.word.removeprefix('status ')} and names no other address on {url.netloc}"
        return
    if case.text.count(url.path) != 1 or len(url.path) < 2:
        yield f"{url.path} is gone, and the script does not state that path once"
        return
    for path in sorted(str(one) for one in named):
        why = f"{url.path} is gone, and the answer names {path}"
        changed = case.with_text(case.text.replace(url.path, path))
        yield FixCandidate(kind="moved-address", recipe=changed, why=why)


def _path_on(host: str, address: str) -> str | None:
    """Return the path of an address on a host; None for another host's."""
    parts = urlsplit(address)
    return parts.path if parts.netloc in ("", host) else None
