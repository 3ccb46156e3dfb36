"""What a form makes of a trace: a recipe with its parameters, and what a person is shown of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uncaged_bundles.builders.recipes.grammar_check import check_pattern
from uncaged_bundles.clean import shorten
from uncaged_bundles.records import dataclass, field
from uncaged_bundles.shapes import ShapeError

from ..selecting import Dropped
from ..values import Parameter, secrets_in, spans

__all__ = ["Captured", "default_of", "description_of", "patterns_of"]

DESCRIPTION_CHARACTERS = 200
PATTERN_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A flow that was made of a trace and is not proved yet.

    recipe: JSON data, see `parse_recipe`. secrets: the commands that may
    get each secret, by its name. steps: one line for each step of the flow. remarks: what a person
    should know of it.
    """

    recipe: Mapping[str, object]
    parameters: tuple[Parameter, ...]
    steps: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    remarks: tuple[str, ...] = ()
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, object]:
        """Return the values of the recorded run, by the names of the parameters."""
        return {one.name: default_of(one) for one in self.parameters}


def default_of(parameter: Parameter) -> object:
    """Return the value of the recorded run as its type has it."""
    if parameter.secret:
        return f"secret:{parameter.secret}"
    match parameter.type:
        case "integer":
            return int(parameter.value)
        case "number":
            return float(parameter.value)
        case _:
            return parameter.value


def description_of(prompt: str, parameters: Sequence[Parameter] = ()) -> str:
    """Return the description of a flow that does what a prompt asked for, without secrets."""
    text = prompt
    for name, value in _secrets(prompt, parameters):
        text = text.replace(value, f"secret:{name}")
    task = shorten(" ".join(text.split()), DESCRIPTION_CHARACTERS)
    return f"Does what an agent did for: {task}" if task else "Does what an agent did."


def patterns_of(prompt: str, parameters: tuple[Parameter, ...]) -> list[dict[str, object]]:
    """Return the sentence pattern of a prompt of one line, with its values as captures, and the
    prompt as its example; none of a long prompt, or of one with a secret.
    """
    sentence = " ".join(prompt.split()).rstrip(" .!?")
    plain = [one for one in parameters if not one.secret]
    if _secrets(prompt, parameters):
        return []
    if not sentence or "\n" in prompt.strip() or len(sentence) > PATTERN_CHARACTERS:
        return []
    parts, at, used = [], 0, set()
    for span in spans(sentence, plain):
        name = span.parameter.name
        before = re.sub(r"[\"'`“”«»]+$", "", sentence[at : span.start])
        parts.append(_words(before))
        if name in used:
            return []
        used.add(name)
        kind = "number" if span.parameter.type in ("integer", "number") else "wildcard"
        parts.append(f"$({name}:{kind})")
        at = span.end
    parts.append(_words(sentence[at:]))
    pattern = " ".join(filter(None, parts))
    if not re.sub(r"\$\([^)]*\)", "", pattern).strip():
        return []
    try:
        check_pattern(pattern, [one.name for one in plain], ("grammarPatterns",))
    except ShapeError:
        return []
    return [{"pattern": pattern, "examples": [sentence]}]


def _secrets(prompt: str, parameters: Sequence[Parameter]) -> list[tuple[str, str]]:
    """Return the secrets in a prompt, the longest first: name and value."""
    known = [(one.secret, one.value) for one in parameters if one.secret and one.value in prompt]
    found = {value: name for name, value in (*secrets_in(prompt), *known)}
    return [(name, value) for value, name in sorted(found.items(), key=lambda one: -len(one[0]))]


def _words(text: str) -> str:
    """Return words as a pattern has them, without marks of punctuation."""
    words = [
        re.sub(r"[()|$?*+\\]", r"\\\g<0>", word.strip(",;:!?.\"'`“”«»")) for word in text.split()
    ]
    return " ".join(filter(None, words))
