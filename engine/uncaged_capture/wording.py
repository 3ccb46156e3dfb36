"""Wording of a captured flow: its name, description, sentence patterns and examples. All forms take
it from the prompt in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uncaged_bundles.builders.recipes.grammar_check import check_pattern
from uncaged_bundles.clean import shorten
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.shapes import ShapeError
from uncaged_engine.services.secrets import redact

from .values import Parameter, secrets_in, spans

__all__ = ["NUMBERS", "Wording", "without_secrets", "worded", "wording_of"]

DESCRIPTION_CHARACTERS = 200
PATTERN_CHARACTERS = 300
NUMBERS = frozenset({"integer", "number"})
_MARKS = re.compile(r"[^\w\s.:,'@%/-]|/(?=[/*])|(?<=/)/|(?<!\w)-|-(?!\w)")
"""Marks that mean something in a pattern, such as the comment ``//`` in an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Wording of a flow. examples: sentences, perhaps with ``params``, as recipes have them."""

    name: str
    description: str
    patterns: tuple[str, ...] = ()
    examples: tuple[Mapping[str, object], ...] = ()

    def with_example(self, example: Mapping[str, object]) -> Wording:
        """Return the wording with one more example."""
        return replace(self, examples=(*self.examples, example))


def wording_of(
    name: str, prompt: str, parameters: Sequence[Parameter], secrets: Sequence[Parameter] = ()
) -> Wording:
    """Return the wording that follows from a prompt: the prompt as description, and its sentence
    with the values as captures.

    Args:
        secrets: further parameters; those that are secrets are replaced as well.
    """
    hidden = _secrets(prompt, (*parameters, *secrets))
    task = shorten(" ".join(_replaced(prompt, hidden).split()), DESCRIPTION_CHARACTERS)
    description = f"Does what an agent did for: {task}" if task else "Does what an agent did."
    sentence = " ".join(prompt.split()).rstrip(" .!?")
    pattern = "" if hidden or "\n" in prompt.strip() else _pattern(sentence, parameters)
    return Wording(
        name=name,
        description=description,
        patterns=(pattern,) if pattern else (),
        examples=({"sentence": sentence},) if pattern else (),
    )


def worded(recipe: Mapping[str, object], wording: Wording, remark: str = "") -> dict[str, object]:
    """Return a recipe, of whatever form, with its wording.

    Args:
        remark: a sentence at the end of its description.
    """
    is_script = isinstance(recipe.get("script"), Mapping)
    return {
        **recipe,
        "actionName" if is_script else "name": wording.name,
        "description": " ".join(f"{wording.description} {remark}".split()),
        "grammarPatterns": list(wording.patterns),
        "examples": [dict(one) for one in wording.examples],
    }


def without_secrets(text: str, known: Mapping[str, str]) -> str:
    """Return a text with ``secret:NAME`` in the place of known secrets, value to name, and of those
    of the usual forms.
    """
    redacted = str(redact(text, known))
    found = sorted(secrets_in(redacted), key=lambda one: -len(one[1]))
    return _replaced(redacted, found)


def _replaced(text: str, secrets: Sequence[tuple[str, str]]) -> str:
    """Return a text with ``secret:NAME`` in the place of secrets, which are name and value."""
    for name, value in secrets:
        text = text.replace(value, f"secret:{name}")
    return text


def _pattern(sentence: str, parameters: Sequence[Parameter]) -> str:
    """Return the pattern of a sentence; "" for a long one, or one of values alone."""
    plain = [one for one in parameters if not one.secret]
    if not sentence or len(sentence) > PATTERN_CHARACTERS:
        return ""
    parts, at, used = [], 0, set()
    for span in spans(sentence, plain):
        name = span.parameter.name
        parts.append(_words(re.sub(r"[\"'`“”«»]+$", "", sentence[at : span.start])))
        if name in used:
            return ""
        used.add(name)
        kind = "number" if span.parameter.type in NUMBERS else "wildcard"
        parts.append(f"$({name}:{kind})")
        at = span.end
    parts.append(_words(sentence[at:]))
    pattern = " ".join(filter(None, parts))
    if not re.sub(r"\$\([^)]*\)", "", pattern).strip():
        return ""
    try:
        check_pattern(pattern, [one.name for one in plain], ("grammarPatterns",))
    except ShapeError:
        return ""
    return pattern


def _secrets(prompt: str, parameters: Sequence[Parameter]) -> list[tuple[str, str]]:
    """Return the secrets in a prompt, the longest first: name and value."""
    known = [(one.secret, one.value) for one in parameters if one.secret and one.value in prompt]
    found = {value: name for name, value in (*secrets_in(prompt), *known)}
    return [(name, value) for value, name in sorted(found.items(), key=lambda one: -len(one[0]))]


def _words(text: str) -> str:
    """Return words as a pattern has them, without marks of punctuation."""
    words = [_MARKS.sub(r"\\\g<0>", word.strip(",;:!?.\"'`“”«»")) for word in text.split()]
    return " ".join(filter(None, words))
