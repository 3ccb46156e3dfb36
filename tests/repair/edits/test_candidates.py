"""Candidate edits, from text alone."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Protocol

import pytest
from uncaged_repair.edits.candidates import candidates
from uncaged_repair.edits.edit import SourceEdit
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import SourceFile, read_source


class Program(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def right(self) -> Mapping[str, str]: ...
    @property
    def wrong(self) -> Mapping[str, str]: ...


def edits(
    text: str | bytes, facts: ValueFacts | None = None
) -> tuple[SourceFile, list[SourceEdit]]:
    source = read_source("x.py", text if isinstance(text, bytes) else text.encode())
    everywhere = dict.fromkeys(range(1, len(source.line_starts) + 1), 1.0)
    return source, [edit for _, edit in candidates(source, everywhere, facts or ValueFacts())]


def results(text: str, facts: ValueFacts | None = None) -> list[str]:
    source, found = edits(text, facts)
    return [edit.apply(source.data).decode() for edit in found]


def held(**types: str) -> ValueFacts:
    """Facts about the variables of a function that starts in line 1."""
    return ValueFacts(
        locals={
            ("x.py", name): ((1, frozenset(kinds.split("|"))),) for name, kinds in types.items()
        }
    )


LINES = {
    "comparison": ("if a < b:", "if a <= b:", ValueFacts()),
    "comparison over two lines": (
        "if (a <  # why\n        b):",
        "if (a <=  # why\n        b):",
        ValueFacts(),
    ),
    "is not": ("if a  is   not b:", "if a  is b:", ValueFacts()),
    "boundary": ("if a == 0:", "if a <= 1:", ValueFacts()),
    "operator": ("a = b + c", "a = b - c", ValueFacts()),
    "operator of an assignment": ("a += b", "a -= b", ValueFacts()),
    "assignment to addition": ("d['a'] = b", "d['a'] += b", ValueFacts()),
    "operands": ("a = (b + 1) - c", "a = c - (b + 1)", ValueFacts()),
    "operand alone": ("a = b * (c - 1)", "a = b * c", ValueFacts()),
    "sign": ("a = -b", "a = b", ValueFacts()),
    "useless sign": ("a = b[:+c]", "a = b[:-c]", ValueFacts()),
    "attribute of a module that is not imported": (
        "a = isinstance(b, six.string_types)",
        "a = isinstance(b, str)",
        ValueFacts(errors=(("NameError", "name 'six' is not defined"),)),
    ),
    "attribute that a module has lost": (
        "a = inspect.len(b)",
        "a = len(b)",
        ValueFacts(errors=(("AttributeError", "module 'inspect' has no attribute 'len'"),)),
    ),
    "logic": ("if a and b:", "if a or b:", ValueFacts()),
    "condition dropped": ("if a and b:", "if b:", ValueFacts()),
    "negation": ("if f(a):", "if not f(a):", ValueFacts()),
    "negation removed": ("if not a:", "if a:", ValueFacts()),
    "branches": ("a = b if c else d", "a = d if c else b", ValueFacts()),
    "constant": ("a = 5", "a = 6", ValueFacts()),
    "boolean": ("a = True", "a = False", ValueFacts()),
    "string of the file": (
        "a = b['left'] + c['right']",
        "a = b['right'] + c['right']",
        ValueFacts(),
    ),
    "off by one": ("for a in range(b):", "for a in range(b + 1):", ValueFacts()),
    "off by one in a product": ("a = b * c", "a = (b - 1) * c", ValueFacts()),
    "offset": ("a = f(b)", "a = f(b - c)", held(b="int", c="int")),
    "slice": ("a = b[c:]", "a = b[:c]", ValueFacts()),
    "slice of a sequence": ("for a in b:", "for a in b[1:]:", held(b="list")),
    "last item": ("a = b[0]", "a = b[-1]", ValueFacts()),
    "indices of a pair": ("a = b[c, d]", "a = b[d, c]", ValueFacts()),
    "indices of a table": ("a = b[c][d]", "a = b[d][c]", ValueFacts()),
    "variable": ("a = b", "a = c", ValueFacts()),
    "target": ("b[0] = d", "c[0] = d", ValueFacts()),
    "call to variable": ("a = f(b)", "a = c", ValueFacts()),
    "variable for constant": ("while True:", "while b:", ValueFacts()),
    "condition for constant": ("return True", "return b == 0", held(b="int")),
    "expression elsewhere": ("a[b] = c[d]", "c[d] = c[d]", ValueFacts()),
    "arguments": ("a = f(b, c + 1)", "a = f(c + 1, b)", ValueFacts()),
    "argument dropped": ("a = f(b, c)", "a = f(b)", ValueFacts()),
    "argument added": ("a = f(b)", "a = f(b, c)", ValueFacts()),
    "reverse": ("a = sorted(b)", "a = sorted(b, reverse=True)", ValueFacts()),
    "all for any": ("a = any(b)", "a = all(b)", ValueFacts()),
    "sibling method": ("a = b.lstrip()", "a = b.rstrip()", ValueFacts()),
    "length": ("a = b", "a = len(b)", held(b="list")),
    "at least zero": ("a = b - c", "a = max(0, b - c)", held(b="int", c="int")),
    "at least what it was": ("a = b + 1", "a = max(a, b + 1)", held(a="int", b="int")),
    "lower case": ("a = b", "a = b.lower()", held(b="str")),
    "call removed": ("a = sorted(b)", "a = b", ValueFacts()),
    "result of a method removed": ("a = b.strip()", "a = b", ValueFacts()),
    "yield from": ("yield b", "yield from b", ValueFacts()),
    "element": ("return []", "return [b]", ValueFacts()),
    "list of a list": ("return []", "return [[]]", ValueFacts()),
    "pair": ("return b, c", "return c, b", ValueFacts()),
    "condition extended": (
        "if b.next is None:",
        "if b is None or b.next is None:",
        ValueFacts(errors=(("AttributeError", "'NoneType' object"),)),
    ),
    "chain extended": ("if a and b:", "if a and b and c:", ValueFacts()),
    "inner chain narrowed": ("if (a and b) or d:", "if (a and b and c) or d:", held(c="bool")),
    "inner chain extended": (
        "if a and (b or d):",
        "if a and (b or d or c is None):",
        held(c="NoneType|str"),
    ),
    "chain protected": (
        "if a and b.next:",
        "if b is not None and a and b.next:",
        ValueFacts(errors=(("AttributeError", "'NoneType' object"),)),
    ),
    "emptiness": ("if b < 0:", "if b < 0 or not c:", held(b="int", c="list")),
    "exception raised": ("raise KeyError(b)", "raise ValueError(b)", ValueFacts()),
    "return added": ("f(b)", "return f(b)", ValueFacts()),
    "comparison to assignment": ("a == b", "a = b", ValueFacts()),
    "operand of a return": ("return b", "return c + b", ValueFacts()),
    "statement removed": ("b.append(c)\n    d = 1", "d = 1", ValueFacts()),
    "statement added": ("d = 1", "b.append(c)\n    d = 1", held(b="list", c="int", d="int")),
    "variable set": ("d = 1", "b = c\n    d = 1", held(b="Node", c="Node", d="int")),
    "statement order": ("a = 1\n    b = 2", "b = 2\n    a = 1", ValueFacts()),
    "guard": ("d = b[0]", "if not b:\n        return None\n    d = b[0]", held(b="list")),
}


@pytest.mark.parametrize("name", LINES)
def test_each_kind_of_slip_has_an_edit(name: str) -> None:
    """For each class of one-line bugs the line as it should be is among the candidates."""
    wrong, right, facts = LINES[name]
    tail = "\n        pass" if wrong.rstrip().endswith(":") else ""
    head = (
        "def f(a, b, c, d):\n    b = b\n    "
        if name == "variable set"
        else "def f(a, b, c, d):\n    "
    )
    assert f"{head}{right}{tail}\n" in results(f"{head}{wrong}{tail}\n", facts)


def test_a_statement_leaves_and_enters_a_loop() -> None:
    """The last statement of a block may belong behind it, and the one behind it into it."""
    inside = "def f(a):\n    for b in a:\n        c = b\n        return c\n"
    behind = "def f(a):\n    for b in a:\n        c = b\n    return c\n"
    assert behind in results(inside)
    assert inside in results(behind)


def test_a_parameter_that_is_not_kept_is_kept() -> None:
    text = "class A:\n    def __init__(self, size):\n        self.count = 0\n"
    assert text + "        self.size = size\n" in results(text)


@pytest.mark.parametrize("place", ["self.{} = None", "self.made = make({}=None)", "{} = None"])
def test_none_becomes_the_variable_that_is_named_like_its_place(place: str) -> None:
    """Of many parameters the one comes first that has the name of the attribute or argument which
    is None; a name that exists nowhere changes nothing.
    """
    head = "class A:\n    def __init__(self, b, c, d, e, f, g, h, wanted):\n        "
    named = [text for text in results(head + place.format("wanted")) if "None" not in text]
    assert named.index(head + place.format("wanted").replace("None", "wanted")) < named.index(
        head + place.format("wanted").replace("None", "b")
    )
    other = results(head + place.format("other"))
    assert head + place.format("other").replace("None", "b") in other
    assert head + place.format("other").replace("None", "wanted") not in other


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("'NoneType' object does not support item assignment", "{}"),
        ("'NoneType' object is not iterable", "[]"),
        ("'NoneType' object has no attribute 'union'", "set()"),
        ("'NoneType' object has no attribute 'items'", "{}"),
        ("unsupported operand type(s) for +=: 'NoneType' and 'int'", "0"),
        ('can only concatenate str (not "NoneType") to str', "''"),
    ],
)
def test_none_becomes_a_value_that_can_do_what_none_could_not(message: str, value: str) -> None:
    """The literal that fits the error is the first value for `None`, and an early edit of the line;
    without the error it is not so early.
    """
    text = "def f(a, b):\n    c = None\n    return g(a, b, c)\n"
    wanted = text.replace("None", value)
    found = results(text, ValueFacts(errors=(("TypeError", message),)))
    literals = [text.replace("None", other) for other in ("{}", "[]", "set()", "0", "''", "()")]
    assert min(literals, key=found.index) == wanted
    assert found.index(wanted) < 6
    assert results(text).index(wanted) > found.index(wanted)


def test_a_callback_is_stored_although_it_is_a_function() -> None:
    """A parameter that held a function, and one that held a function or a flag, replace `None`."""
    text = "class A:\n    def __init__(self, made, kind):\n        self.made = None\n"
    seen = ValueFacts(
        locals={("x.py", name): ((2, frozenset({"function", "bool"})),) for name in ("kind",)}
        | {("x.py", "made"): ((2, frozenset({"function"})),)}
    )
    found = results(text, seen)
    assert found.index(text.replace("None", "made")) < 5
    assert text.replace("None", "kind") in found


def test_a_missing_name_becomes_one_that_there_is() -> None:
    """A name that the failing run could not find is replaced by the nearest name or by an
    attribute, or imported.
    """
    missing = ValueFacts(errors=(("NameError", "name 'totl' is not defined"),))
    found = results("class A:\n    def f(self, total):\n        return totl\n", missing)
    assert "class A:\n    def f(self, total):\n        return total\n" in found
    assert "class A:\n    def f(self, total):\n        return self.totl\n" in found
    absent = ValueFacts(errors=(("NameError", "name 'math' is not defined"),))
    assert '"""Doc."""\nimport math\n\ndef f(x):\n    return math.pi\n' in results(
        '"""Doc."""\n\ndef f(x):\n    return math.pi\n', absent
    )


def test_attributes_come_from_what_was_seen() -> None:
    """An attribute of the same type is proposed before one of another type, however alike their
    names are.
    """
    text = "class A:\n    def f(self):\n        return self.left\n"
    seen = {
        "A": {"left": frozenset({"int"}), "right": frozenset({"int"}), "lefts": frozenset({"str"})}
    }
    found = results(text, ValueFacts(attributes=seen))
    same, other = (found.index(text.replace("left", name)) for name in ("right", "lefts"))
    assert same < other


def test_types_order_the_variables() -> None:
    """A variable that was seen to hold something else comes after one of the same type; it is not
    left out, since the failing run may have swapped the two.
    """
    text = "def f(a, b, c):\n    return a\n"
    found = results(text, held(a="int", b="list", c="int"))
    same, other = (found.index(text.replace("return a", f"return {name}")) for name in "cb")
    assert same < other


def test_arguments_of_unlike_types_are_exchanged() -> None:
    """In the failing run swapped arguments have each other's types."""
    text = "def f(a, b):\n    return g(a, b)\n"
    assert "def f(a, b):\n    return g(b, a)\n" in results(text, held(a="int", b="list"))


def test_the_repair_of_each_program_is_among_its_candidates(program: Program) -> None:
    """For every program of the corpus some edit gives the file as it should be, or one that means
    the same.
    """
    source = read_source(program.path, program.wrong[program.path].encode())
    errors = (
        ("NameError", "name 'math' is not defined"),
        ("TypeError", "'NoneType'"),
        ("ValueError", "invalid literal"),
    )
    types = {
        "counts": "Counter",
        "paragraphs": "list",
        "lines": "list",
        "amount": "int",
        "wanted": "int",
        "in_stock": "int",
    }
    facts = ValueFacts(
        locals={
            (program.path, name): tuple((line, frozenset({kind})) for line in range(1, 40))
            for name, kind in types.items()
        },
        attributes={
            "Rectangle": dict.fromkeys(("left", "top", "right", "bottom"), frozenset({"int"}))
        },
        errors=errors,
    )
    found = [edit for _, edit in candidates(source, dict.fromkeys(range(1, 60), 1.0), facts)]
    wanted = ast.dump(ast.parse(program.right[program.path]))
    assert any(same(edit.apply(source.data), wanted) for edit in found)


def same(data: bytes, wanted: str) -> bool:
    try:
        return ast.dump(ast.parse(data)) == wanted
    except SyntaxError:
        return False


def test_candidates_leave_all_other_bytes_alone(program: Program) -> None:
    """An edit replaces its span; it never reaches into a comment, a docstring or the next line's
    indentation by accident.
    """
    source, found = edits(program.wrong[program.path].replace("\n", "\r\n").encode())
    assert len(found) > 20
    for edit in found:
        changed = edit.apply(source.data)
        assert changed.startswith(source.data[: edit.start])
        assert changed.endswith(source.data[edit.end :])
        assert source.data[edit.start : edit.end].decode() == edit.before
        assert b"\n" not in changed.replace(b"\r\n", b"")


def test_candidates_are_distinct_and_always_in_the_same_order(program: Program) -> None:
    _, first = edits(program.wrong[program.path])
    _, again = edits(program.wrong[program.path])
    assert first == again
    assert len({(edit.start, edit.end, edit.after) for edit in first}) == len(first)


def test_only_suspicious_lines_are_edited() -> None:
    source = read_source("x.py", b"a = 1\nb = 2\n")
    assert {edit.line for _, edit in candidates(source, {2: 0.5}, ValueFacts())} == {2}


def test_suspicion_and_likelihood_both_count() -> None:
    """The score of an edit is the suspicion of its line times how likely such an edit is."""
    source = read_source("x.py", b"a = b < c\nd = e < f\n")
    scores = {
        edit.line: score
        for score, edit in reversed([*candidates(source, {1: 0.5, 2: 1.0}, ValueFacts())])
        if edit.kind == "comparison"
    }
    assert scores[2] == 2 * scores[1]


def test_names_inside_text_are_edited_and_the_text_is_not() -> None:
    """In an f-string the expressions may be wrong; its text and its formats stay."""
    text = "def f(a, b):\n    return (f'{a} und '\n            f'''{b:>{a}} so\n{a + 1}''')\n"
    source, found = edits(text)
    start, end = source.span(
        next(node for node in ast.walk(source.tree) if isinstance(node, ast.JoinedStr))
    )
    # the text parts have its span
    assert not [
        edit for edit in found if (edit.start, edit.end, edit.kind) == (start, end, "constant")
    ]
    inside = [
        edit.apply(source.data).decode() for edit in found if start < edit.start and edit.end < end
    ]
    assert any("{a - 1}" in result for result in inside)
    assert any("{b} und" in result for result in inside)
    assert all(" und " in result and ":>{" in result and " so\n{" in result for result in inside)


def test_annotations_are_left_alone() -> None:
    text = "def f(a: int = 1) -> list[int]:\n    b: int = a\n    return b\n"
    assert all(
        "a: int" in result and "-> list[int]" in result and "b: int" in result
        for result in results(text)
        if "b: " in result
    )


@pytest.mark.parametrize(
    ("before", "after", "size"),
    [
        ("a", "b", 2),
        ("a + 1", "a", 2),
        ("a", "max(0, a)", 3),
        ("(a - b)", "(b - a)", 2),
        ("longer_name", "x", 2),
        ("100", "-100", 2),
        ("", "f(x)", 2),
    ],
)
def test_the_size_of_an_edit_counts_words_not_letters(before: str, after: str, size: int) -> None:
    edit = SourceEdit(
        path="x.py",
        start=0,
        end=len(before),
        before=before,
        after=after,
        kind="k",
        line=1,
        weight=1.0,
    )
    assert edit.size == size


def test_an_edit_is_described_by_the_line_before_and_after() -> None:
    source, found = edits("def f(a):\n    return a < 0  # ä\n")
    edit = next(edit for edit in found if edit.after == "<=")
    assert edit.describe(source) == "x.py:2 comparison: `return a < 0  # ä` → `return a <= 0  # ä`"
