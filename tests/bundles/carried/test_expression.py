"""Expressions: compiled outside, computed inside, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_bundles.builders.blocks.expression import compile_expression
from uncaged_bundles.carried.expression import BadExpression, compute
from uncaged_bundles.shapes import ShapeError

VARIABLES: dict[str, Any] = {
    "n": 3,
    "name": "Ada",
    "items": [{"id": 1, "ok": True}, {"id": 2, "ok": False}],
    "user": {"name": "Bob", "tags": ["a", "b"]},
    "none": None,
}


def value_of(text: str) -> Any:
    return compute(compile_expression(text, ("x",)), VARIABLES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("1 + 2 * 3", 7),
            ("7 // 2 - 7 % 4", 0),
            ("-n", -3),
            ("n / 2", 1.5),
            ("'a' + 'b'", "ab"),
            ("[1] * 3", [1, 1, 1]),
        ),
        *(
            ("user.name", "Bob"),
            ("user['tags'][1]", "b"),
            ("items[-1].id", 2),
            ("name[1:]", "da"),
            ("name[:-1]", "Ad"),
        ),
        *(
            ("n > 2 and name == 'Ada'", True),
            ("0 or 'x'", "x"),
            ("not items", False),
            ("1 < n <= 3", True),
            ("none is None", True),
        ),
        *(
            ("'a' in user.tags", True),
            ("'z' not in user.tags", True),
            ("'many' if len(items) > 1 else 'few'", "many"),
        ),
        *(
            ("[i.id for i in items if i.ok]", [1]),
            ("{'k': n, 'l': [n]}", {"k": 3, "l": [3]}),
            ("f'{name}: {n} {none}'", "Ada: 3 null"),
        ),
        *(
            ("name.lower().replace('a', 'o')", "odo"),
            ("', '.join(user.tags)", "a, b"),
            ("' x '.strip()", "x"),
            ("'a b'.split()", ["a", "b"]),
        ),
        *(
            ("user.get('none', 5)", 5),
            ("sorted([3, 1])", [1, 3]),
            ("max(1, n)", 3),
            ("sum([1, 2])", 3),
            ("round(2.567, 1)", 2.6),
        ),
        *(
            ("json('[1, 2]')[0]", 1),
            ("text({'a': 1})", '{"a": 1}'),
            ("int('5') + 1", 6),
            ("unique([1, 2, 1])", [1, 2]),
            ("reversed('ab')", ["b", "a"]),
        ),
        *(
            ("user.keys()", ["name", "tags"]),
            ("user.items()[0]", ["name", "Bob"]),
            ("any([0, 1])", True),
            ("(1, 2)", [1, 2]),
        ),
    ],
)
def test_an_expression_has_pythons_meaning(text: str, value: object) -> None:
    """Values are as JSON holds them."""
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user.__class__", "'user.__class__' is not possible here"),
        ("open('x')", "there is no function 'open'"),
        ("name.encode()", "there is no method 'encode'"),
        ("(lambda: 1)()", "cannot be called"),
        ("2 ** 9", "is not possible here"),
        ("[x for x in items for y in items]", "is not possible here"),
        ("x := 1", "not an expression"),
        ("import os", "not an expression"),
        ("1 +", "not an expression"),
        ("", "not an expression"),
        ("f'{n:5}'", "an f-string"),
        ("max(*items)", "is not possible here"),
        ("b'x'", "is not possible here"),
        ("1" + "+1" * 3000, "at most 2,000"),
        ("(" * 300 + ")" * 300, "too many nested parentheses"),
    ],
)
def test_what_does_not_compute_is_refused_when_the_flow_is_added(text: str, said: str) -> None:
    """Calls, attributes and statements that reach further do not exist."""
    with pytest.raises(ShapeError, match=r"^x: ") as caught:
        compile_expression(text, ("x",))
    assert said in str(caught.value)


def test_a_refusal_has_its_column() -> None:
    """The place in the expression, from 1."""
    with pytest.raises(ShapeError, match=r"x: column 5: there is no function 'eval'"):
        compile_expression("n + eval('1')", ("x",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("missing + 1", "there is no variable 'missing'; there are: n, name"),
        ("user.age", "there is no 'age' in"),
        ("items[9]", "IndexError"),
        ("1 / 0", "ZeroDivisionError"),
        ("'a' + 1", "TypeError"),
        ("'%s' % n", "'%' is for numbers"),
        ("'x' * 999999999", "too long"),
        ("[i * 99999999999 for i in ['abc']]", "too long"),
        ("'a'.replace('a', 'b' * 1000001)", "too long"),
        ("[[1 for y in 'x' * 1000] for x in 'x' * 1000]", "too much work"),
        ("round(1, -99999999)", "rounded to at most"),
        ("n.lower()", "has no 'lower'"),
        ("json('{')", "JSONDecodeError"),
    ],
)
def test_an_expression_that_comes_to_nothing_says_why(text: str, said: str) -> None:
    """And never takes the sandbox's time or memory with it."""
    with pytest.raises(BadExpression) as caught:
        value_of(text)
    assert said in str(caught.value)


def test_the_name_of_a_comprehension_does_not_stay() -> None:
    """The former value of the name is restored, and variables outside are unchanged."""
    before = dict(VARIABLES)
    assert value_of("[[n for n in [1, 2]], n]") == [[1, 2], 3]
    assert value_of("[len([q for q in [1]]), [1 for q in []]]") == [1, []]
    assert before == VARIABLES
