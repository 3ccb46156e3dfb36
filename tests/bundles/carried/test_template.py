"""Placeholders in texts, by the documented rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.carried.template import (
    BadText,
    fill,
    fill_json,
    fill_url,
    fill_value,
    find_value,
)

VARIABLES: dict[str, Any] = {
    "user": {
        "id": "123",
        "profile": {"email": "user@example.com", "tags": ["admin", "moderator"]},
        "a b": 1,
        "x.y": 2,
    },
    "responses": [
        {"status": "success", "data": "result1"},
        {"status": "pending", "data": "result2"},
    ],
    "text": '{"inner": {"list": [10, 20]}}',
    "plain": "just text",
    "number": 4.5,
    "whole": 7,
    "yes": True,
    "nothing": None,
    "empty": "",
    "template": "${plain}",
    "two words": "spaced",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("user.id", "123"),
        ("user.profile.email", "user@example.com"),
        ("user.profile.tags[0]", "admin"),
        ("responses[1].status", "pending"),
        ("responses[0].data", "result1"),
        ('user["a b"]', 1),
        ("user['a b']", 1),
        ('user["x.y"]', 2),
        ("text.inner.list[1]", 20),
        ("two words", "spaced"),
        ("nothing", None),
    ],
)
def test_a_path_leads_to_its_value(path: str, value: object) -> None:
    """Keys, indexes, quoted keys, and JSON that is held as text."""
    assert find_value(VARIABLES, path) == [value]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "missing",
            "user.missing",
            "user.missing.deeper",
            "responses[2]",
            "responses[-1]",
            "responses.length",
            "responses[0",
        ),
        *(
            "user[0]",
            "plain.x",
            "plain[0]",
            "number.real",
            "nothing.x",
            "user.__class__",
            "user.profile.tags.append",
            "user.items",
        ),
        *(
            " user",
            "user ",
            "user. id",
            "user..id",
            ".user",
            "[0]",
            "user[]",
            "user[x]",
            'user["id]',
            "",
            "user.id.",
            "text.inner.list[9]",
        ),
    ],
)
def test_a_path_that_leads_nowhere_finds_nothing(path: str) -> None:
    """A missing key, an index out of range, a wrong type, an attribute of the language, or
    nonsense.
    """
    assert find_value(VARIABLES, path) == []


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${user.id}", "123"),
        ("a ${plain} b ${user.id}", "a just text b 123"),
        ("${number} ${whole} ${yes} ${nothing}", "4.5 7 true null"),
        ("${user.profile.tags}", '["admin","moderator"]'),
        ("${responses[0]}", '{"status":"success","data":"result1"}'),
        ("[${empty}]", "[]"),
        ("${missing} ${ user } ${}", "${missing} ${ user } ${}"),
        ("${template}", "${plain}"),
        ('${user["a b"]}', "1"),
        ("$${plain}", "$just text"),
        ("${a${plain}}", "${ajust text}"),
    ],
)
def test_a_text_is_filled_once(text: str, filled: str) -> None:
    """An unknown placeholder is unchanged, and a filled-in value is not searched for
    placeholders.
    """
    assert fill(text, VARIABLES) == filled


def test_without_any_variable_placeholders_stay() -> None:
    """No variables at all is no special case."""
    assert fill("${a} and ${b.c}", {}) == "${a} and ${b.c}"


def test_every_text_in_a_value_is_filled_and_the_rest_is_untouched() -> None:
    """However deep; a lone placeholder keeps its type where values are wanted."""
    config = {"a": ["${whole}", 5, {"b": "x${whole}"}], "c": None, "${plain}": True}
    assert fill(config, VARIABLES) == {"a": ["7", 5, {"b": "x7"}], "c": None, "${plain}": True}
    assert fill_value(config, VARIABLES) == {"a": [7, 5, {"b": "x7"}], "c": None, "${plain}": True}
    assert fill_value("${missing}", VARIABLES) == "${missing}"


@pytest.mark.parametrize(
    ("template", "url"),
    [
        (
            "https://api.example.com/s?q=${v}",
            "https://api.example.com/s?q=a%2Fb%3Fc%3Dd%26e%23f%20%C3%A9",
        ),
        (
            "https://api.example.com/${v}/x",
            "https://api.example.com/a%2Fb%3Fc%3Dd%26e%23f%20%C3%A9/x",
        ),
        ("${base}?userId=${id}", "https://api.example.com/data?userId=1%262"),
        ("${base}", "https://api.example.com/data"),
        ("https://${host}/x", "https://api.example.com:8443/x"),
        ("https://x.com/${missing}", "https://x.com/${missing}"),
    ],
)
def test_a_value_in_an_address_is_encoded(template: str, url: str) -> None:
    """In path and query; at the beginning it is the address itself."""
    variables = {
        "v": "a/b?c=d&e#f é",
        "base": "https://api.example.com/data",
        "id": "1&2",
        "host": "api.example.com:8443",
    }
    assert fill_url(template, variables) == url


@pytest.mark.parametrize(
    "value", ["evil.com/", "a@evil.com", "evil.com?", "evil.com#", "a\\b", "x y", "[::1"]
)
def test_a_value_in_a_host_cannot_be_more_than_a_host(value: str) -> None:
    """Nothing that is filled in leads elsewhere."""
    with pytest.raises(BadText, match="cannot stand in the host"):
        fill_url("https://${v}.example.com/x", {"v": value})


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("https://h.example/a/${v}/b", ".."),
        ("https://h.example/.${v}", "."),
        ("https://h.example/${v}.", "."),
        ("${b}/${v}", "."),
    ],
)
def test_a_value_in_a_path_leads_nowhere_else(template: str, value: str) -> None:
    """URL encoding leaves dots, so a segment of dots alone is refused; in a query they are a text
    like any other.
    """
    with pytest.raises(BadText, match="cannot stand in the path of an address"):
        fill_url(template, {"v": value, "b": "https://h.example"})
    assert fill_url("https://h.example/a?v=${v}", {"v": ".."}) == "https://h.example/a?v=.."


@given(st.text())
def test_a_value_in_a_query_stays_one_value(value: str) -> None:
    """Whatever it holds, a server reads exactly it."""
    from urllib.parse import parse_qsl, urlsplit

    value = value.encode("utf-8", "replace").decode()
    parts = urlsplit(fill_url("https://h.example/p?a=${v}&b=2", {"v": value}))
    assert parse_qsl(parts.query, keep_blank_values=True) == [("a", value), ("b", "2")]
    assert (parts.netloc, parts.path, parts.fragment) == ("h.example", "/p", "")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_value_in_a_json_body_cannot_add_to_it(value: Any) -> None:
    """Within quotes it is that text; outside it is that value."""
    quoted = fill_json('{"a": "<${v}>", "b": 1}', {"v": value})
    assert set(quoted) == {"a", "b"}
    assert (
        quoted["a"]
        == f"<{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(',', ':'))}>"
    )
    bare = fill_json('{"a": ${v}, "b": 1}', {"v": value})
    assert set(bare) == {"a", "b"}
    if not isinstance(value, str):
        assert bare["a"] == value


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("5", 5),
        ("true", True),
        ("null", None),
        ("abc", "abc"),
        ('1, "c": 2', '1, "c": 2'),
        ("NaN", "NaN"),
    ],
)
def test_text_outside_quotes_is_json_where_it_is_some(value: str, meant: object) -> None:
    """Arguments of models are texts; a number among them is a number in a body."""
    assert fill_json('{"a": ${v}}', {"v": value}) == {"a": meant}


@pytest.mark.parametrize(
    "text", ["{", "plain", '{"a": ${missing}}', '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]
)
def test_a_body_that_is_no_json_is_refused(text: str) -> None:
    """A body that is no JSON is an error, and no other text is sent."""
    with pytest.raises(BadText, match="the body is not JSON"):
        fill_json(text, {})
