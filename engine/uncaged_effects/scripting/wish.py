"""What a bundle asks of the script effect has the right shape, and does not ask for more than its policy's numbers allow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from uncaged_bundles.hosts import HOST_NETWORK
from uncaged_engine.services.sandbox import Refused

KEYS = frozenset({"language", "body", "arguments", "parameters", "timeout_s", "repeat"})
LANGUAGES = ("bash", "python", "powershell")
DEFAULT_TIMEOUT_S = 60.0
MAX_OUTPUT_BYTES = 1 << 20
MAX_WORD_BYTES = 128 << 10
"""What Linux takes as one argument or variable, its name and the final NUL included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A checked body. parameters: by name, as the bundle gave them. repeat: the bundle says that a second run does no harm."""

    language: str
    body: str
    arguments: tuple[str, ...]
    parameters: Mapping[str, object]
    timeout_s: float
    repeat: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The policy's limits of the script effect.

    network: hosts; ``*`` is any public one. host_network: the machine's own instead. private: hosts may be ones that are not public.
    tolerate: what may be refused without making the script fail. tolerate_all: anything may.
    """

    executables: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    host_network: bool = False
    private: bool = False
    tolerate: tuple[str, ...] = ()
    tolerate_all: bool = False
    environment: tuple[str, ...] = ()
    secrets: Mapping[str, tuple[str, ...]]
    timeout_s: float | None = None
    output_bytes: int = MAX_OUTPUT_BYTES
    memory_bytes: int | None = None
    processes: int | None = None

    @classmethod
    def of(cls, policy: Mapping[str, object]) -> Limits:
        """Take over a policy that was checked when the bundle was read."""

        def texts(key: str) -> tuple[str, ...]:
            return tuple(cast("list[str]", policy.get(key, [])))

        def whole(key: str) -> int | None:
            value = policy.get(key)
            return None if value is None else max(1, int(cast("float", value)))

        timeout_s = policy.get("timeout_s")
        named = cast("Mapping[str, list[str]]", policy.get("secrets", {}))
        return cls(
            executables=texts("executables"),
            modules=texts("modules"),
            read=texts("read"),
            write=texts("write"),
            network=() if policy.get("network") == HOST_NETWORK else texts("network"),
            host_network=policy.get("network") == HOST_NETWORK,
            private=policy.get("private") is True,
            tolerate=() if policy.get("tolerate") is True else texts("tolerate"),
            tolerate_all=policy.get("tolerate") is True,
            environment=texts("environment"),
            secrets={name: tuple(commands) for name, commands in named.items()},
            timeout_s=None if timeout_s is None else float(cast("float", timeout_s)),
            output_bytes=min(whole("maxBytes") or MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES),
            memory_bytes=whole("memoryBytes"),
            processes=whole("processes"),
        )


def read_body(body: object, limits: Limits) -> Wish:
    """Check what the bundle yielded.

    Raises:
        ValueError: it is malformed. Refused: it asks for more time than the policy gives.
    """
    if not isinstance(body, Mapping):
        raise ValueError('its body is {"language": …, "body": text}')
    unknown = sorted(set(body) - KEYS)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} (known: {', '.join(sorted(KEYS))})")
    language, text = body.get("language", "bash"), body.get("body")
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("body must be the script's text")
    if "\0" in text:
        raise ValueError("body holds a NUL character, which no script can")
    arguments, parameters, repeat = body.get("arguments", []), body.get("parameters", {}), body.get("repeat", False)
    if not isinstance(arguments, list | tuple):
        raise ValueError(f"arguments must be a list, not {arguments!r}")
    if not isinstance(parameters, Mapping):
        raise ValueError(f"parameters must be a mapping, not {parameters!r}")
    if not isinstance(repeat, bool):
        raise ValueError(f"repeat must be true or false, not {repeat!r}")
    words = tuple(spelled(value) for value in arguments)
    for number, word in enumerate(words, 1):
        check_word(word, f"argument {number}")
    return Wish(
        language=str(language),
        body=text,
        arguments=words,
        parameters=dict(parameters),
        timeout_s=time_limit(body.get("timeout_s"), limits.timeout_s),
        repeat=repeat,
    )


def time_limit(asked: object, allowed_s: float | None) -> float:
    if asked is None:
        return allowed_s or DEFAULT_TIMEOUT_S
    if isinstance(asked, bool) or not isinstance(asked, int | float) or asked <= 0:
        raise ValueError(f"timeout_s must be a number of seconds above 0, not {asked!r}")
    if allowed_s is not None and asked > allowed_s:
        raise Refused(f"{asked:g} seconds are more than the policy's {allowed_s:g}; {declared('timeout_s', asked)}")
    return float(asked)


def environment_of(parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the variables that carry the parameters: ``PARAM_NAME``; None is left out, what is no text stands as JSON."""
    found: dict[str, str] = {}
    for name, value in parameters.items():
        variable = f"PARAM_{variable_of(name)}"
        if variable in found:
            raise ValueError(f"two parameters give the variable {variable}; rename one")
        if value is None:
            continue
        found[variable] = spelled(value)
        check_word(f"{variable}={found[variable]}", f"parameter {name!r}")
    return found


def variable_of(name: str) -> str:
    return "".join(character if character.isascii() and character.isalnum() else "_" for character in name.upper())


def spelled(value: object) -> str:
    """Return a value as a word: text as it is, anything else as JSON (``true``, ``2.5``, ``["a"]``)."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check_word(word: str, what: str) -> None:
    if "\0" in word:
        raise ValueError(f"{what} holds a NUL character, which no program can be given")
    try:
        size = len(word.encode()) + 1
    except UnicodeEncodeError as exc:
        raise ValueError(f"{what} holds half of a surrogate pair, which no program can be given") from exc
    if size > MAX_WORD_BYTES:
        raise ValueError(
            f"{what} has {size:,} bytes; at most {MAX_WORD_BYTES:,} can be handed to a program: pass the path of a file instead"
        )


def declared(key: str, example: Any) -> str:
    """How to declare something, for the end of a refusal."""
    return f'declare it in the policy: "script": {{"{key}": {json.dumps(example, ensure_ascii=False)}}}'
