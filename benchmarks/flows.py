"""Bundles of the benchmarks: minimal flows around one effect."""

from __future__ import annotations

VALUE_BYTES = 1000

_HEAD = """\
descriptor = {"contract": 1, "name": "%s", "description": "A flow for benchmarks.", "kind": "task", "policy": {"null": {}}}


def run(input, options):
"""

STEPS = """\
    for number in range(int(input["prompt"])):
        yield {"null": {"value": "v", "times": 1000}}
    return {"success": True, "message": "done"}
"""

# After its steps, the machine lacks something; each resume gets one such effect further and is left
# at the next.
STOPS = """\
    for number in range(int(input["prompt"])):
        yield {"null": {"value": "v", "times": 1000}}
    while True:
        yield {"null": {"lack": "nothing that could be installed"}}
"""

WAITS = """\
    yield {"null": {"sleep_s": 86400}}
"""

# Wakes up every so many milliseconds; the prompt says how many.
NAPS = """\
    while True:
        yield {"null": {"sleep_s": int(input["prompt"]) / 1000}}
"""

_ROLE = {
    "description": "Does a part.",
    "systemPrompt": "You do your part of the work, and say how it went.",
    "extractPrompt": "How it went.",
    "schema": {
        "type": "object",
        "properties": {"status": {"enum": ["done"]}},
        "required": ["status"],
    },
}
TURNS = f"""\
descriptor = {{
    "contract": 1,
    "name": "turns",
    "description": "A flow for benchmarks.",
    "kind": "workflow",
    "roles": {{"coder": {_ROLE}, "reviewer": {_ROLE}}},
    "policy": {{"role": {{}}}},
}}


def run(input, options):
    for number in range(int(input["prompt"])):
        yield {{"role": {{"name": ("coder", "reviewer")[number % 2]}}}}
    return {{"success": True, "message": "done"}}
""".encode()
"""Two roles that take turns."""


def source(name: str, body: str, *, edition: int = 0) -> bytes:
    """Return the bytes of a bundle; another *edition* has another hash, and so its own worker."""
    return f"{_HEAD % name}{body}\n# edition {edition}\n".encode()
