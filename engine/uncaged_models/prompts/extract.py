"""Extraction of the structured block from an answer, checked against the role's schema. Missing
fields are not filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from uncaged_bundles.contract import CLAIM
from uncaged_engine.services.canonical import depth

from .fences import Block, blocks_of

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_PROBLEMS = 8
MAX_DEPTH = 32
SHOWN_CHARACTERS = 200

Check = Callable[[object], list[str]]
"""Returns the problems of a value in words; empty if it fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Data of an answer. meta: the data. content: the answer without its block, or the block's own
    text if there is nothing else.
    """

    meta: Mapping[str, object]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Unusable answer. problem: the reason, in words that the agent can act on."""

    problem: str


def extract(text: str, check: Check) -> Extracted | Unfit:
    """Find the structured block of an answer: the last fenced JSON block, or an answer that is one
    JSON object as a whole.

    Two different blocks that both fit are refused as ambiguous.
    """
    blocks = candidates(text)
    if not blocks:
        return extract_whole(text, check)
    fitting: list[tuple[Block, dict[str, object]]] = []
    problems: list[str] = []
    for block in blocks:
        value, problem = parse_object(block.content)
        problems = [problem] if value is None else check(value)
        if value is not None and not problems:
            fitting.append((block, value))
    if problems:  # of the last block
        return Unfit(problem="\n".join(problems))
    last, meta = fitting[-1]
    if any(value != meta for _, value in fitting):
        return Unfit(
            problem=f"{len(fitting)} fenced json blocks fit and differ; give exactly one, at the end"
        )
    rest = f"{text[: last.start].rstrip()}\n{text[last.end :].strip()}".strip()
    return Extracted(meta=meta, content=rest or last.content.strip())


def extract_whole(text: str, check: Check) -> Extracted | Unfit:
    """Return the data of an answer that is one JSON object as a whole."""
    bare = text.strip()
    if not bare.startswith("{"):
        return Unfit(problem="there is no fenced json block in the answer")
    value, problem = parse_object(bare)
    if value is None:
        return Unfit(problem=problem)
    problems = check(value)
    return Unfit(problem="\n".join(problems)) if problems else Extracted(meta=value, content=bare)


def candidates(text: str) -> list[Block]:
    """Return the blocks tagged json; without one, untagged blocks that begin like an object."""
    blocks = blocks_of(text)
    tagged = [block for block in blocks if block.tag == "json"]
    return tagged or [
        block for block in blocks if block.tag == "" and block.content.lstrip().startswith("{")
    ]


def parse_object(text: str) -> tuple[dict[str, object] | None, str]:
    """Return the JSON object in *text*, or None and the problem; values that a journal cannot hold
    are a problem, too.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=without_duplicates, parse_constant=refuse_constant
        )
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        return None, "the json block is nested too deeply"
    except UnicodeEncodeError:
        return None, "the json block holds half of a surrogate pair (\\ud800 to \\udfff)"
    except json.JSONDecodeError as exc:
        return None, f"the block is not JSON: {exc.msg}, line {exc.lineno}, column {exc.colno}"
    except ValueError as exc:
        return None, f"the block is not JSON: {exc}"
    if not isinstance(value, dict):
        return None, f"the block must hold a JSON object, not {type(value).__name__}"
    if depth(value) > MAX_DEPTH:
        return None, f"the json block is nested deeper than {MAX_DEPTH}"
    return value, ""


def without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object"
        )
    return result


def refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def checker(
    schema: Mapping[str, object], claim_problem: Callable[[str, object], str | None] | None = None
) -> Check:
    """Return the check against a role's JSON Schema; references resolve only within the schema
    itself and the standard's own.

    Args:
        claim_problem: called with each claim and its value in data that fits otherwise; returns its
            problem.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import EMPTY_REGISTRY

    kind = validator_for(dict(schema), default=Draft202012Validator)
    # without it, a reference to a URL would be fetched
    validator = kind(dict(schema), registry=EMPTY_REGISTRY)
    claims = (
        None
        if claim_problem is None
        else with_claims(kind, claim_problem)(dict(schema), registry=EMPTY_REGISTRY)
    )

    def check(value: object) -> list[str]:
        return problems(value, validator) or ([] if claims is None else problems(value, claims))

    def problems(value: object, validator: Any) -> list[str]:
        try:
            errors = sorted(
                validator.iter_errors(cast("dict[str, Any]", value)),
                key=lambda error: [str(part) for part in error.absolute_path],
            )
            words = [line for error in errors for line in explain(error)]
        except Unresolvable as exc:
            return [f"the role's schema refers to {exc.ref!r}, which is not in it"]
        except (SchemaError, RecursionError, re.error) as exc:
            return [f"the role's schema cannot be used: {type(exc).__name__}"]
        unique = list(dict.fromkeys(words))
        more = len(unique) - MAX_PROBLEMS
        return unique if more <= 0 else [*unique[:MAX_PROBLEMS], f"and {more} more"]

    return check


def with_claims(kind: Any, claim_problem: Callable[[str, object], str | None]) -> Any:
    """Return a validator class that knows the keyword for claims."""
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def verify(
        _validator: object, claim: object, value: object, _schema: object
    ) -> Iterator[ValidationError]:
        problem = claim_problem(str(claim), value)
        if problem is not None:
            yield ValidationError(problem)

    return extend(kind, {CLAIM: verify})  # type: ignore[no-untyped-call]  # the library has no types


def explain(error: ValidationError) -> Iterator[str]:
    """Yield a validation error with its dotted path; for alternative forms, the errors of the
    intended one.
    """
    if error.validator in {"anyOf", "oneOf"} and error.context:
        yield from explain_forms(error)
        return
    message = (
        error.message
        if len(error.message) <= SHOWN_CHARACTERS or error.validator == CLAIM
        else f"{error.message[:SHOWN_CHARACTERS]}…"
    )
    yield f"{dotted(error)}: {message}"


def explain_forms(error: ValidationError) -> Iterator[str]:
    """Yield the errors of the form whose distinguishing values fit; without one, the problems of
    those values.
    """
    forms: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        forms.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [
        problems
        for problems in forms.values()
        if not any(inner.validator in {"const", "enum"} for inner in problems)
    ]
    if meant:
        for inner in min(meant, key=len):
            yield from explain(inner)
        return
    choices: dict[str, list[str]] = {}
    for inner in error.context or ():
        if inner.validator in {"const", "enum"}:
            value: Any = inner.validator_value
            words = [value] if inner.validator == "const" else list(value)
            choices.setdefault(dotted(inner), []).extend(repr(word) for word in words)
    for path, allowed in choices.items():
        yield f"{path}: must be one of {', '.join(dict.fromkeys(allowed))}"


def dotted(error: ValidationError) -> str:
    """Return ``phases[0].name``, or words for the value as a whole."""
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    ).removeprefix(".")
    return path or "the object"
