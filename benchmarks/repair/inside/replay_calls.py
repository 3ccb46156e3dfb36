"""Script for a library's own interpreter: makes recorded calls, and random variations of their
arguments, and prints a description of each outcome as JSON lines.

Usage: python replay_calls.py RECORDED VARIATIONS FIRST
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import inspect
import io
import json
import os
import pickle
import random
import re
import resource
import signal
import sys
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any

CALL_S = 2
MAX_ITEMS = 300
MAX_DEPTH = 6
MEMORY_BYTES = 4 << 30
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
WORDS = ("", " ", "a", "0", "-1", "\n", "é", "x" * 50, "A,b", "%", "{}")
NUMBERS = (0, 1, -1, 2, 10, 255, -7, 1 << 40)


def main(recorded: Path, variations: int, first: int) -> None:
    """Print one line for each call from number *first* on: number, whether it is a variation, and
    the outcome. A call that ends this process is the last one printed as begun.
    """
    with recorded.open("rb") as file:
        record = pickle.load(file)  # noqa: S301 - written by the plugin beside this script
    sys.path[:] = [*sys.path, *(path for path in record["path"] if path not in sys.path)]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    functions: dict[tuple[str, str], list[FunctionType]] = {}
    for number, (call, varied) in enumerate(_calls(record["calls"], variations)):
        if number < first:
            continue
        module, name, data = call
        out.write(json.dumps({"number": number}) + "\n")
        out.flush()
        if (module, name) not in functions:
            functions[module, name] = _functions(module, name)
        outcome = _outcome(functions[module, name], data, number if varied else None)
        out.write(json.dumps({"number": number, "varied": varied, "outcome": outcome}) + "\n")
        out.flush()
    out.close()
    os._exit(0)  # threads and exit handlers of the library have no say


def _calls(calls: list[Any], variations: int) -> list[tuple[Any, bool]]:
    """Return the recorded calls, then *variations* in turn of all of them."""
    if not calls:
        return []
    return [(call, False) for call in calls] + [
        (calls[number % len(calls)], True) for number in range(variations)
    ]


def _functions(module: str, name: str) -> list[FunctionType]:
    """Return the functions as they were defined, below their decorators. A property has several."""
    try:
        path = import_module(module).__file__ or ""
    except Exception:
        return []
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, FunctionType)
        and getattr(one.__code__, "co_qualname", one.__qualname__) == name
        and os.path.realpath(one.__code__.co_filename) == os.path.realpath(path)
    ]


def _outcome(functions: list[FunctionType], data: bytes, seed: int | None) -> str | None:
    """Return the description of the outcome; None if the call cannot be made here."""
    signal.alarm(CALL_S)
    try:
        positional, keywords = pickle.loads(data)  # noqa: S301 - see above
        function = next(one for one in functions if _binds(one, positional, keywords))
        if seed is not None:
            chance = random.Random(seed)  # noqa: S311 - variations, not secrets
            _vary(positional, keywords, chance)
    except BaseException:
        signal.alarm(0)
        return None
    random.seed(0)
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()) as errors,
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            result = function(*positional, **keywords)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            returned = _describe(result, 0, {})
        after = _describe((positional, keywords), 0, {})
        return f"{returned} | {after} | {printed.getvalue()[:500]}{errors.getvalue()[:500]}"
    except BaseException as exc:
        text = "" if seed is not None else ADDRESS.sub("", str(exc))[:500]
        return f"raises {type(exc).__name__} {text}"
    finally:
        signal.alarm(0)


def _binds(function: FunctionType, positional: list[Any], keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*positional, **keywords)
    except TypeError:
        return False
    return True


def _too_long(*_: object) -> None:
    raise TimeoutError("the call took too long")


def _vary(positional: list[Any], keywords: dict[str, Any], chance: random.Random) -> None:
    """Change one to three values among the arguments, or leave some arguments to their defaults; an
    object is changed only inside.
    """
    if chance.random() < 0.2:
        del positional[chance.randint(0, len(positional)) :]
        for name in [name for name in keywords if chance.random() < 0.5]:
            del keywords[name]
        return
    keys: list[Any] = [*range(len(positional)), *keywords]
    for _ in range(chance.randint(1, 3) if keys else 0):
        key = chance.choice(keys)
        holder: Any = positional if isinstance(key, int) else keywords
        holder[key] = _varied(holder[key], chance, 0)


def _varied(value: Any, chance: random.Random, depth: int) -> Any:  # noqa: PLR0912 - one branch for each type
    """Return a value of the same type, changed a little."""
    if depth > 4:
        return value
    if isinstance(value, bool):
        return not value
    if type(value) is int:
        return chance.choice([value + 1, value - 1, -value, value * 2, *NUMBERS])
    if type(value) is float:
        return chance.choice([value + 0.5, -value, value * 10, 0.0, value / 3])
    if type(value) is str:
        return _varied_text(value, chance)
    if type(value) is bytes:
        return _varied_text(value.decode("latin-1"), chance).encode("latin-1", "replace")
    if isinstance(value, re.Match):
        return value.re.search(_varied(value.string, chance, depth + 1)) or value
    if type(value) in (list, tuple):
        items = list(value)
        place = chance.randrange(len(items)) if items else 0
        match chance.randrange(5) if items else 5:
            case 0:
                del items[place]
            case 1:
                items.insert(place, copy.copy(items[place]))
            case 2:
                items.reverse()
            case _ if not items:
                pass
            case _:
                items[place] = _varied(items[place], chance, depth + 1)
        return type(value)(items)
    if type(value) in (set, frozenset) and value:
        items = sorted(value, key=repr)
        items[chance.randrange(len(items))] = _varied(chance.choice(items), chance, depth + 1)
        return type(value)(items)
    if isinstance(value, dict) and value:
        key = chance.choice(list(value))
        if chance.random() < 0.3:
            del value[key]
        else:
            value[key] = _varied(value[key], chance, depth + 1)
        return value
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and fields and not isinstance(value, type | FunctionType):
        key = chance.choice(sorted(fields))
        fields[key] = _varied(fields[key], chance, depth + 1)
    return value


def _varied_text(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return chance.choice(
        [
            text[:at] + chance.choice(WORDS) + text[at:],
            text[:at] + text[at + 1 :],
            text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
            text[at:] + text[:at],
            text.swapcase(),
            text + text,
            text[:at],
            chance.choice(WORDS),
        ]
    )


def _describe(value: Any, depth: int, seen: dict[int, tuple[int, Any]]) -> str:
    """Return a text that is equal for equal structures, without addresses."""
    kind = type(value).__qualname__
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | bytearray):
        return f"{kind}:{ADDRESS.sub('', repr(value))[:2000]}"
    if id(value) in seen:
        return f"seen:{seen[id(value)][0]}"
    if depth > MAX_DEPTH:
        return kind
    seen[id(value)] = (len(seen), value)  # kept alive: another object must not get its id
    if isinstance(value, dict):
        pairs = [
            f"{_describe(key, depth + 1, seen)}={_describe(item, depth + 1, seen)}"
            for key, item in islice(value.items(), MAX_ITEMS)
        ]
        inner = ",".join(pairs)
    elif isinstance(value, set | frozenset):
        inner = ",".join(sorted(_describe(item, depth + 1, {}) for item in value))
    elif isinstance(value, type | FunctionType):
        return f"{kind}:{value.__module__}.{value.__qualname__}"
    elif isinstance(value, list | tuple) or hasattr(type(value), "__next__"):
        inner = ",".join(_describe(item, depth + 1, seen) for item in islice(value, MAX_ITEMS))
    else:
        plain = getattr(type(value), "__repr__", None) is object.__repr__
        inner = "" if plain else ADDRESS.sub("", repr(value))[:2000]
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and fields:
        inner += (
            "{"
            + ",".join(
                f"{key}={_describe(item, depth + 1, seen)}"
                for key, item in sorted(fields.items(), key=lambda pair: str(pair[0]))
            )
            + "}"
        )
    for name in getattr(type(value), "__slots__", ()) or ():
        with contextlib.suppress(AttributeError):
            inner += f";{name}={_describe(getattr(value, name), depth + 1, seen)}"
    return f"{kind}({inner})"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
