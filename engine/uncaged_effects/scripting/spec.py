"""Body of the ``script`` effect, checked against the limits of the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass, field
from uncaged_engine.door.bodies import Seconds
from uncaged_engine.services.sandbox import Refused

if TYPE_CHECKING:
    from uncaged_bundles.limits import ScriptLimits

LANGUAGES = ("bash", "python", "powershell")
DEFAULT_TIMEOUT_S = 60.0
MAX_OUTPUT_BYTES = 1 << 20
MAX_WORD_BYTES = 128 << 10
"""Linux's limit of one argument or variable, with its name and the final NUL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSpec:
    """Script with its arguments and time limit. parameters: values of the body by name."""

    language: str
    body: str
    arguments: tuple[str, ...]
    parameters: Mapping[str, object]
    timeout_s: float


def output_bytes(limits: ScriptLimits) -> int:
    """Return the limit of a script's output."""
    return min(whole(limits.max_bytes) or MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)


def whole(limit: float | None) -> int | None:
    """Round a limit of a policy down to a count of at least one."""
    return None if limit is None else max(1, int(limit))


def script_text(value: object, path: shapes.Path) -> str:
    """Return the text of a script; refuse a blank one and one with NUL."""
    if "\0" in shapes.filled(value, path):
        raise shapes.ShapeError(path, "holds a NUL character, which no script can")
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptBody:
    """Body of a ``script`` effect. repeat: whether a second run does no harm."""

    language: Annotated[str, shapes.one_of(*LANGUAGES)] = "bash"
    body: Annotated[str, script_text]
    arguments: Annotated[Sequence[object], shapes.items] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    timeout_s: Seconds = None
    repeat: bool = False


def spec_of(options: ScriptBody, limits: ScriptLimits) -> ScriptSpec:
    """Return the script of a body.

    Raises:
        ValueError: an argument fits no command line. Refused: the body asks for more time than the
            policy gives.
    """
    words = tuple(spelled(value) for value in options.arguments)
    for number, word in enumerate(words, 1):
        check_word(word, f"argument {number}")
    return ScriptSpec(
        language=options.language,
        body=options.body,
        arguments=words,
        parameters=dict(options.parameters),
        timeout_s=time_limit(options.timeout_s, limits.timeout_s),
    )


def time_limit(requested_s: float | None, allowed_s: float | None) -> float:
    if requested_s is None:
        return allowed_s or DEFAULT_TIMEOUT_S
    if allowed_s is not None and requested_s > allowed_s:
        raise Refused(
            f"{requested_s:g} seconds are more than the policy's {allowed_s:g}; {declared('timeout_s', requested_s)}"
        )
    return float(requested_s)


def environment_of(parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters as variables ``PARAM_NAME``: text unchanged, None left out, anything
    else as JSON.
    """
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
    return "".join(
        character if character.isascii() and character.isalnum() else "_"
        for character in name.upper()
    )


def spelled(value: object) -> str:
    """Return text unchanged and anything else as JSON (``true``, ``2.5``, ``["a"]``)."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check_word(word: str, what: str) -> None:
    if "\0" in word:
        raise ValueError(f"{what} holds a NUL character, which no program can be given")
    try:
        size = len(word.encode()) + 1
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"{what} holds half of a surrogate pair, which no program can be given"
        ) from exc
    if size > MAX_WORD_BYTES:
        raise ValueError(
            f"{what} has {size:,} bytes; at most {MAX_WORD_BYTES:,} can be handed to a program: pass the path of a file instead"
        )


def declared(key: str, example: Any) -> str:
    """Return the end of a refusal: the line of the policy that would allow it."""
    return f'declare it in the policy: "script": {{"{key}": {json.dumps(example, ensure_ascii=False)}}}'
