"""Refusal by the policy that names the entry that it lacks. The new version is wider, so a person
grants it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from ..candidates import FixCandidate
from ..case import FixCase
from ..machine import Machine

__all__ = ["candidates"]

SCRIPT_ENTRY = re.compile(r'declare it in the policy: "script": \{"(?P<key>\w+)": (?P<value>.+)\}')
LISTED_ENTRY = re.compile(r'add "(?P<entry>[^"]+)" to "(?P<kind>\w+)": \{"(?P<key>\w+)": \[')
FLOW_ENTRY = re.compile(r"flow: '(?P<name>[\w-]+)' is not among the flows that the policy names")
KEYS = ("executables", "read", "write", "modules")


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the entries that refusals name."""
    del machine
    recipe, named = case.recipe, list[str]()
    for kind, key, entry in dict.fromkeys(_entries(case)):
        known = replace(case, recipe=recipe).limits(kind).get(key, [])
        if not is_wanted(case, key, entry):
            yield f"the policy refused {entry}, which the flow does not name"
        elif isinstance(known, list) and entry not in known:
            recipe = replace(case, recipe=recipe).with_limits(kind, **{key: [*known, entry]})
            named.append(f"{kind}: {key} {entry}")
    if named:
        why = f"the policy refused what the flow needs; it is added: {', '.join(named)}"
        yield FixCandidate(kind="refused-entry", recipe=recipe, why=why)


def _entries(case: FixCase) -> Iterator[tuple[str, str, str]]:
    """Yield effect kind, key and entry of each refusal of the failed step."""
    if case.failed is None or case.failed.word not in ("refused", "policy"):
        return
    text = case.failed.message
    for found in SCRIPT_ENTRY.finditer(text):
        known = case.limits("script").get(found["key"], [])
        try:
            listed = json.loads(found["value"])
        except ValueError:
            continue
        if found["key"] in KEYS and isinstance(listed, list) and isinstance(known, list):
            for entry in listed:
                if entry not in known:
                    yield "script", found["key"], _portable(case, str(entry))
    for found in LISTED_ENTRY.finditer(text):
        yield found["kind"], found["key"], found["entry"]
    for found in FLOW_ENTRY.finditer(text):
        yield "flow", "names", found["name"]


def is_wanted(case: FixCase, key: str, entry: str) -> bool:
    """Whether the flow itself names what was refused, or a value of its run does. A redirect, or a
    program that another one starts, is not the flow's.
    """
    if entry.startswith("param:"):
        return True
    body = case.failed.step.body if case.failed is not None else None
    url = str(body.get("url", "")) if isinstance(body, Mapping) else ""
    if key in ("hosts", "network") and url:
        return urlsplit(url).netloc == entry
    named = Path(entry).name if key in ("read", "write") else entry
    values = " ".join(str(value) for value in case.params.values())
    return (
        re.search(rf"(?<![\w.-]){re.escape(named)}(?![\w-])", f"{case.text} {values}") is not None
    )


def _portable(case: FixCase, entry: str) -> str:
    """Return the entry for the path of a parameter, if a refused path is its value."""
    named = (str(one["name"]) for one in case.parameters if one.get("type") == "path")
    return next((f"param:{name}" for name in named if case.params.get(name) == entry), entry)
