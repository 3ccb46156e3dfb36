"""Shell text with variables in place of values."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uncaged_capture.forms.rewriting import (
    Replacements,
    ShellVariable,
    literal_texts,
    opened_documents,
    quoted,
    rewrite_command,
    rewrite_text,
)
from uncaged_capture.values import kind_of

VALUES = ("red", "7", "a b", "x/y.txt", "it's", "$HOME", "2.5")
PLACES = st.sampled_from(
    ["{}", '"{}"', "'{}'", "-n{}", '"a {} b"', "'x {} y'", "p={}", "d/{}", '"$Q{}"', "'{}''{}'"]
)


def variables_of(*values: str) -> list[ShellVariable]:
    return [
        ShellVariable(name=f"PARAM_{number}", value=value, type=kind_of(value))
        for number, value in enumerate(values)
    ]


def printed(command: str, *values: str) -> str:
    environment = {f"PARAM_{number}": value for number, value in enumerate(values)} | {"Q": "q"}
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@settings(max_examples=30, deadline=None)
@given(
    words=st.lists(st.tuples(PLACES, st.sampled_from(VALUES[:2])), max_size=5),
    document=st.booleans(),
    quote=st.booleans(),
)
def test_the_recorded_values_give_the_recorded_command(
    words: list[tuple[str, str]], document: bool, quote: bool
) -> None:
    """Wherever values are, the words of the command are the same with variables in it."""
    command = " ".join(
        ["printf '%s\\n' .", *(place.replace("{}", value) for place, value in words)]
    )
    if document:
        word = "'END'" if quote else "END"
        command += f" && cat <<{word}\nthe {VALUES[0]} \\$x ${{Q}} {VALUES[1]}\nEND"
    found = Replacements()
    changed = rewrite_command(opened_documents(command), variables_of(*VALUES[:2]), found)
    assert printed(changed, *VALUES[:2]) == printed(command)
    for number, value in enumerate(VALUES[:2]):
        if ("{}", value) in words:
            assert f"PARAM_{number}" in found.used


@settings(max_examples=30, deadline=None)
@given(text=st.lists(st.sampled_from([*VALUES, " ", "'", '"', "\n", "$(x)", "`"]), max_size=8))
def test_a_text_is_one_word(text: list[str]) -> None:
    """With the recorded values it is the recorded text, whatever marks are in it."""
    joined = " ".join(text)
    found = Replacements()
    word = rewrite_text(joined, variables_of(*VALUES), found)
    assert printed(f"printf '%s.' {word}", *VALUES) == f"{joined}."
    assert printed(f"printf '%s.' {quoted(joined)}") == f"{joined}."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("git log src", ["src"]),
        ("for f in a/*.c; do gcc -o x $f; done", ["a/*.c", "-o", "x"]),
        ("echo 'a b' > \"out $x.txt\"", ["a b", "out ", ".txt"]),
    ],
)
def test_texts_in_which_values_may_be(text: str, wanted: list[str]) -> None:
    """Neither programs nor subcommands nor variables."""
    assert literal_texts(text) == wanted
