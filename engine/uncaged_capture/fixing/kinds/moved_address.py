"""Address that a server does not know any more, whose answer names the new one on the same host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from urllib.parse import urlsplit

from ..candidates import FixCandidate
from ..case import FixCase
from ..machine import Machine

__all__ = ["candidates"]

GONE = ("status 404", "status 410", "status 400")
ADDRESS = re.compile(r"https?://[^\s\"'<>)]+|(?<![\w/:.])/[\w.~%/-]+\w")

VERSION = re.compile(r"v\d+|api|latest")
"""Segments that an address gets when a service has a new version."""


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
    paths = {_path_on(url.netloc, one) for one in ADDRESS.findall(text)} - {None, url.path}
    named = sorted(str(path) for path in paths if is_successor(url.path, str(path)))
    if not named:
        yield f"{url.path} answers {failed.word.removeprefix('status ')} and names no address like it on {url.netloc}"
    for path in named:
        changed = moved_in(case.text, url.path, path)
        if changed is None:
            yield f"{url.path} is gone and the answer names {path}, but the script does not state what changed once"
        else:
            why = f"{url.path} is gone, and the answer names {path}"
            yield FixCandidate(kind="moved-address", recipe=case.with_text(changed), why=why)


def is_successor(old: str, new: str) -> bool:
    """Whether a path has most segments of the old one; a page about errors has not."""
    before, after = _segments(old), _segments(new)
    shared = sum(block.size for block in SequenceMatcher(None, before, after).get_matching_blocks())
    if len(before) == len(after):
        return bool(before) and shared * 2 >= len(before)
    added = [part for part in after if part not in before]
    return shared == len(before) and all(VERSION.fullmatch(part) for part in added)


def moved_in(text: str, old: str, new: str) -> str | None:
    """Return the script with the new path: of the whole, or of the segments that differ; None if it
    does not state them once.
    """
    if text.count(old) == 1:
        return text.replace(old, new)
    before, after = _segments(old), _segments(new)
    changes = [
        one for one in SequenceMatcher(None, before, after).get_opcodes() if one[0] != "equal"
    ]
    if len(changes) != 1:
        return None
    [(_, start, end, new_start, new_end)] = changes
    gone, come = "/".join(before[start:end]), "/".join(after[new_start:new_end])
    place = rf"(?<=/){re.escape(gone)}(?=[/\"'?{{]|$)"
    if not gone or not come or len(re.findall(place, text, re.MULTILINE)) != 1:
        return None
    return re.sub(place, lambda _: come, text, count=1, flags=re.MULTILINE)


def _segments(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _path_on(host: str, address: str) -> str | None:
    """Return the path of an address on a host; None for another host's."""
    parts = urlsplit(address)
    return parts.path if parts.netloc in ("", host) else None
