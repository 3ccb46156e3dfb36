"""The flows of the soak test: each performs the plan that it is prompted with, one effect after the
other.
"""

from __future__ import annotations

import random
from pathlib import Path

OPERATIONS = (
    "post",
    "post",
    "post",
    "all",
    "all",
    "child",
    "script",
    "script",
    "ask",
    "sleep",
    "get",
)
CHILD_OPERATIONS = ("post", "post", "all", "sleep")

SOURCE = """import json

descriptor = {{
    "contract": 1,
    "name": {name!r},
    "description": "Performs the effects of its prompt.",
    "kind": "task",
    "policy": {{
        "http": {{"hosts": ["127.0.0.1:{port}"], "private": True}},
        "all": {{}},
        "ask": {{}},
        "now": {{}},
        "sleep": {{}},
        "flow": {{"names": ["soak-child"]}},
        "script": {{"executables": ["sleep"], "write": [{place!r}]}},
    }},
}}
URL = "http://127.0.0.1:{port}/"
SCRIPT = "sleep 0.1; echo \\"$PARAM_KEY\\" >> {place}/ran; sleep 0.1"


def effect_of(operation, number, options):
    post = {{"http": {{"method": "POST", "url": URL, "json": {{"number": number}}}}}}
    return {{
        "post": post,
        "get": {{"http": {{"url": URL}}}},
        "all": {{"all": {{"effects": [post, {{"now": {{}}}}, post, {{"http": {{"url": URL}}}}]}}}},
        "script": {{"script": {{"language": "bash", "body": SCRIPT, "parameters": {{"key": f"{{options['threadId']}}/{{number}}"}}}}}},
        "ask": {{"ask": {{"question": f"What about {{number}}?"}}}},
        "sleep": {{"sleep": {{"seconds": 0.2}}}},
    }}[operation]


def run(input, options):
    for number, operation in enumerate(json.loads(input["prompt"]), 1):
        try:
            if isinstance(operation, list):
                yield {{"flow": {{"name": "soak-child", "prompt": json.dumps(operation)}}}}
            else:
                yield effect_of(operation, number, options)
        except EffectError:
            continue
    return {{"success": True, "message": "done"}}
"""


def source(name: str, port: int, place: Path) -> str:
    """Return a bundle's text.

    Args:
        place: the directory to which its scripts append what they did.
    """
    return SOURCE.format(name=name, port=port, place=str(place))


def chance_of(*words: object) -> random.Random:
    """Return the random numbers of one part of a run; the same words give the same numbers."""
    return random.Random("/".join(map(str, words)))  # noqa: S311 - a test's choices


def plan(chance: random.Random) -> list[object]:
    """Draw the effects of one thread; a list among them is the plan of a child."""
    drawn = chance.choices(OPERATIONS, k=chance.randint(2, 8))
    return [
        chance.choices(CHILD_OPERATIONS, k=chance.randint(1, 3)) if one == "child" else one
        for one in drawn
    ]
