"""Code of a changed statement, compiled without the rest of its module."""

from __future__ import annotations

from pathlib import Path
from types import CodeType

import pytest
from uncaged_repair.server.segments import SegmentCompiler

STANDARD = Path(pytest.__file__).parent.parent / "_pytest"
MODULES = ("fixtures.py", "runner.py")


def shape(code: CodeType) -> tuple[object, ...]:
    """Return what a code object does, with its lines."""
    inner = [value for value in code.co_consts if isinstance(value, CodeType)]
    lines = [line for _, _, line in code.co_lines()]
    return code.co_code, code.co_names, code.co_varnames, lines, tuple(map(shape, inner))


def functions(code: CodeType) -> dict[tuple[int, str], CodeType]:
    """Return the code of each function and method, not of those inside them."""
    found: dict[tuple[int, str], CodeType] = {}
    for value in code.co_consts:
        if isinstance(value, CodeType) and value.co_flags & 2:
            found[value.co_firstlineno, value.co_name] = value
        elif isinstance(value, CodeType):
            found |= functions(value)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODULES if (STANDARD / name).is_file()])
def test_a_statement_compiles_to_the_code_of_the_whole_module(name: str) -> None:
    """For a change in the middle of each function or class of a real module, both versions have
    the code and the lines that a compilation of the whole file gives.
    """
    data = (STANDARD / name).read_bytes()
    lines = data.split(b"\n")
    compiler = SegmentCompiler()
    whole = functions(compile(data, name, "exec", dont_inherit=True))
    checked = 0
    for number, line in enumerate(lines):
        if (
            number % 3
            or not line.strip().startswith(b"return ")
            or line.count(b"(") != line.count(b")")
        ):
            continue
        new = b"\n".join(
            [*lines[:number], line[: line.index(b"return")] + b"return 17", *lines[number + 1 :]]
        )
        try:
            changed = functions(compile(new, name, "exec", dont_inherit=True))
        except SyntaxError:  # the expression goes on in the next line
            continue
        old_code, new_code = compiler.compile(name, data, new)
        for known, code in ((whole, old_code), (changed, new_code)):
            for key, inner in functions(code).items():
                assert shape(inner) == shape(known[key])
                checked += 1
    assert checked > 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f():\n    return 1\n", "def f():\n    return 2\n"),
        ("x = 1\ndef f(): return 1\n", "x = 2\ndef f(): return 1\n"),
        ("x = 1\ndef f():\n    return 1\ny = 2\n", "x = 1\ndef f():\n    return (1\ny = 2)\n"),
        ("x = 1\ndef f():\n    return 1\ny = 2\n", "x = 1\ndef f():\n    return 1\nz = 0\ny = 2\n"),
        ("x = 1\rdef f():\r    return 1\r", "x = 1\rdef f():\r    return 2\r"),
        (
            "# -*- coding: latin-1 -*-\ndef f():\n    return 'é'\n",
            "# -*- coding: latin-1 -*-\ndef f():\n    return 'è'\n",
        ),
    ],
)
def test_a_change_anywhere_compiles(old: str, new: str) -> None:
    """A change of the module's own statements, across statements, or in odd line ends and encodings
    has the effect that it has in the whole file.
    """
    encoding = "latin-1" if "latin" in old else "utf-8"
    try:
        expected: dict[str, object] | None = {}
        exec(compile(new.encode(encoding), "m", "exec"), expected)  # noqa: S102 - text of this file
    except SyntaxError:
        expected = None
    compiler = SegmentCompiler()
    if expected is None:
        with pytest.raises(SyntaxError):
            compiler.compile("m", old.encode(encoding), new.encode(encoding))
        return
    found: dict[str, object] = {}
    exec(compiler.compile("m", old.encode(encoding), new.encode(encoding))[1], found)  # noqa: S102 - the same
    result, wanted = found["f"], expected["f"]
    assert callable(result)
    assert callable(wanted)
    assert result() == wanted()
