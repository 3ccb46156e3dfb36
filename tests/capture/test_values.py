"""Values of prompts as parameters, and secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_capture.values import (
    Parameter,
    kind_of,
    occurrences,
    parameters_of,
    secrets_in,
    spans,
)


def found(prompt: str, *texts: str, **given: str) -> dict[str, str]:
    return {one.name: one.value for one in parameters_of(texts, prompt, given)}


def test_values_that_recur_become_parameters_named_by_their_noun() -> None:
    """The longest first; words of the task itself are none."""
    assert found(
        "Count the lines with ERROR in the file var/app.log and write them to out.txt, at most 20",
        "ERROR", "var/app.log", "out.txt", "-n20", "lines",
    ) == {"file": "var/app.log", "target": "out.txt", "text": "ERROR", "number": "20"}  # fmt: skip
    assert found("Set the port 8080 for user ada", "port=8080", "user: ada") == {
        "port": "8080",
        "user": "ada",
    }


def test_a_phrase_is_one_value() -> None:
    """Quoted or not, as long as it recurs as it is."""
    assert found("Put 'hello big world' into a.txt", "hello big world\n", "a.txt") == {
        "text": "hello big world",
        "target": "a.txt",
    }
    assert found("greet Ada Lovelace from Bob", "Dear Ada Lovelace,", "Bob") == {
        "text": "Ada Lovelace",
        "text2": "Bob",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("3", "13"), ("3", "3.5"), ("3", "1.3"), ("3", "a3"), ("3", "$3"), ("3", "3-4"),
        ("notes", "notes.test"), ("log", "catalog"), ("foo", "foo-bar"), ("ada", "ada@x.test"),
        ("a.txt", "data.txt"), ("a.txt", "b-a.txt"), ("/tmp/a", "/tmp/ab"), ("/a", "x/a"),
    ],
)  # fmt: skip
def test_a_part_of_another_word_is_no_value(value: str, text: str) -> None:
    """Neither of a number, a name of a file, a path nor an address."""
    assert list(occurrences(value, text)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("3", "-n3"), ("3", "-3"), ("3", "(3)"), ("3", "x=3"), ("foo", "s/foo/bar/"), ("src", "src/a.py"),
        ("old_a", "src/old_a.py"), ("old_a", "from .old_a import"), ("txt", "*.txt"), ("foo", r"\bfoo\b"),
        ("a.txt", "src/a.txt"), ("ada", "ada."), ("/tmp/a", "/tmp/a/b"), ("*.py", "'*.py'"), ("~/x", "ls ~/x"),
    ],
)  # fmt: skip
def test_a_whole_word_is_a_value(value: str, text: str) -> None:
    """Also as a part of a path, or as the value of an option."""
    (span,) = occurrences(value, text)
    assert text[span[0] : span[1]] == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("12", "integer"), ("-3", "integer"), ("007", "text"), ("9.5", "number"), ("9.50", "text"), ("2024-02-29", "date"),
        ("2023-02-29", "text"), ("https://a.test/x?y=1", "url"), ("a.txt", "path"), ("src/a", "path"), ("~/x", "path"),
        ("ada@a.test", "text"), ("Ada", "text"), ("http://", "text"), ("1.2.3", "text"),
    ],
)  # fmt: skip
def test_the_form_decides_the_type(value: str, kind: str) -> None:
    """A number that would be written in another way is a text."""
    assert kind_of(value) == kind


def test_given_values_replace_those_of_the_prompt() -> None:
    """One that does not recur is no parameter."""
    assert found("Sort a.txt", "a.txt", "b.txt", target="b.txt", lost="c") == {"target": "b.txt"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("curl -H 'Authorization: Bearer abcdef123456789' x", {"TOKEN": "abcdef123456789"}),
        ("curl https://ada:hunter22@a.test/", {"PASSWORD": "hunter22"}),
        ("export API_KEY=zzz999zzz", {"TOKEN": "zzz999zzz"}),
        ("echo sk-abcdefghijklmnop1234", {"TOKEN": "sk-abcdefghijklmnop1234"}),
        ("curl -u x:secret:SHOP a.test", {"SHOP": "secret:SHOP"}),
        ("log in with secret:SHOP_TOKEN", {"SHOP_TOKEN": "secret:SHOP_TOKEN"}),
        ("the secret: abcdef123", {"TOKEN": "abcdef123"}),
        ('curl -H "Authorization: Bearer $TOKEN" x', {}),
        ("grep -c token a.txt", {}),
    ],
)
def test_secrets_by_their_form(text: str, wanted: dict[str, str]) -> None:
    """And those whose value was replaced before the trace was written."""
    assert dict(secrets_in(text)) == wanted


def test_a_secret_is_a_parameter_in_any_case() -> None:
    """Also if values are given, and never a second time as a value of the prompt."""
    text = "curl -H 'Authorization: Bearer abcdef123456789' https://a.test/x"
    prompt = "fetch https://a.test/x with abcdef123456789"
    assert parameters_of([text], prompt, {"page": "https://a.test/x"}) == (
        Parameter(name="page", value="https://a.test/x", type="url"),
        Parameter(name="token", value="abcdef123456789", type="text", secret="TOKEN"),
    )
    assert [one.secret for one in parameters_of([text], prompt)] == ["", "TOKEN"]


WORDS = st.lists(
    st.sampled_from(
        ["copy", "a.txt", "to", "src/b.py", "3", "13", "Ada", "-n3", "'x y'", "3.5", "x"]
    ),
    max_size=9,
).map(" ".join)


@given(prompt=WORDS, texts=st.lists(WORDS, max_size=3))
def test_parameters_of_any_prompt(prompt: str, texts: list[str]) -> None:
    """Each value occurs in the prompt and in a text; names differ; spans do not overlap, and
    putting the values back gives the text.
    """
    parameters = parameters_of(texts, prompt)
    assert len({one.name.lower() for one in parameters}) == len(parameters)
    for one in parameters:
        assert one.value in prompt
        assert any(list(occurrences(one.value, text)) for text in texts)
    for text in texts:
        rebuilt, at = "", 0
        for span in spans(text, parameters):
            assert span.start >= at
            rebuilt += text[at : span.start] + span.parameter.value
            at = span.end
        assert rebuilt + text[at:] == text


@given(value=st.text(min_size=1, max_size=6), text=st.text(max_size=30))
def test_occurrences_are_whole(value: str, text: str) -> None:
    """A value that begins or ends with a letter has no letter or digit beside it."""
    for start, end in occurrences(value, text):
        assert text[start:end] == value
        if value[-1].isalpha():
            assert not text[end : end + 1].isalnum()
        if value[0].isalpha() and start:
            assert not text[start - 1].isalnum()
