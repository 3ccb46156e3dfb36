"""Changed functions in an interpreter that has imported them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from uncaged_repair.server.patch import LiveFunctions
from uncaged_repair.server.trace import CallTracer

TEXT = """\
import functools

RATE = 2


def double(x):
    return x + x


def fill(text, width=8, *, sign=" ", pad=RATE):
    return text.rjust(width * pad, sign)


def late(x):
    return [y * RATE for y in range(x)]


class Box:
    size = 3

    def grow(self, by=1):
        return self.size + by

    @property
    def area(self):
        return self.size * self.size


def keep(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args) + 1

    return inner


@keep
def kept(x):
    return x - 1


def adder(n):
    def add(x):
        return x + n

    return add


add_two = adder(2)
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "subject.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("subject_of_patching", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


def line_of(text: str) -> int:
    return TEXT[: TEXT.index(text)].count("\n") + 1


def functions(module: ModuleType, called: set[tuple[str, int, str]] | None = None) -> LiveFunctions:
    return LiveFunctions(
        {str(module.__file__): "subject.py"}, called or set(), frozenset({"subject.py"})
    )


def patched(
    module: ModuleType, old: str, new: str, called: set[tuple[str, int, str]] | None = None
) -> str:
    assert TEXT.count(old) == 1
    return functions(module, called).patch(
        "subject.py", TEXT.encode(), TEXT.replace(old, new).encode()
    )


def test_a_function_changes_for_everybody_who_holds_it(module: ModuleType) -> None:
    """Also for a module that took it by name long ago."""
    taken = module.double
    assert patched(module, "x + x", "x * 3") == "patched"
    assert taken(5) == module.double(5) == 15


def test_methods_and_properties_change_for_existing_objects(module: ModuleType) -> None:
    box = module.Box()
    assert patched(module, "self.size + by", "self.size - by") == "patched"
    assert box.grow() == 2
    assert (
        functions(module).patch(
            "subject.py", TEXT.encode(), TEXT.replace("self.size * self.size", "0").encode()
        )
        == "patched"
    )
    assert box.area == 0


def test_code_inside_a_function_changes_with_it(module: ModuleType) -> None:
    assert patched(module, "y * RATE", "y + RATE") == "patched"
    assert module.late(3) == [2, 3, 4]


def test_a_wrapper_that_exists_already_changes(module: ModuleType) -> None:
    """Closures that were made on import, and those still to be made."""
    assert patched(module, "function(*args) + 1", "function(*args) + 10") == "patched"
    assert module.kept(5) == 14
    assert module.keep(lambda: 1)() == 11


def test_a_closure_keeps_what_it_closed_over(module: ModuleType) -> None:
    assert patched(module, "return x + n", "return x * n") == "patched"
    assert module.add_two(5) == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RATE = 2", "RATE = 3"),
        ("size = 3", "size = 4"),
        ("by=1", "by=RATE"),
        ("by=1", "by=2, *more"),
        ("@keep\n", ""),
        ("    return inner", "    return function"),
        ("x + x", "x +"),
    ],
)
def test_what_only_an_import_can_show_is_refused(module: ModuleType, old: str, new: str) -> None:
    """Module variables, class bodies, computed defaults, decorators, and a function that a
    decorator took part in are not changed.
    """
    called = {("subject.py", line_of("def keep"), "keep")}
    assert patched(module, old, new, called) == "cold"
    assert (module.double(2), module.Box().grow(), module.kept(5)) == (4, 4, 5)


def test_a_function_that_ran_on_import_is_refused(module: ModuleType) -> None:
    """The results of such a function would stay those of the old code."""
    assert (
        patched(
            module,
            "def add(x):\n        return x + n",
            "def add(x):\n        return n",
            {("subject.py", line_of("def adder"), "adder")},
        )
        == "cold"
    )


def test_a_change_without_effect_is_reported(module: ModuleType) -> None:
    assert patched(module, "x + x", "(x + x)") == "same"


def test_a_file_that_was_not_imported_needs_no_patch(module: ModuleType) -> None:
    assert functions(module).patch("other.py", b"x = 1\n", b"x = 2\n") == "patched"


def test_the_functions_that_run_are_noted(module: ModuleType) -> None:
    calls = CallTracer({str(module.__file__): "subject.py"})
    before = sys.gettrace()
    calls.start()
    module.double(1)
    calls.stop()
    sys.settrace(before)
    assert calls.keys() == {("subject.py", 6, "double")}


def test_a_changed_default_needs_no_fresh_import(module: ModuleType) -> None:
    """A literal default of a function or a method is changed in place; one that runs code is
    not.
    """
    assert patched(module, "width=8", "width=3") == "patched"
    assert module.fill("a", sign="-") == "-----a"
    assert patched(module, "by=1", "by=5") == "patched"
    assert module.Box().grow() == 8
    assert patched(module, "width=8", "width=RATE") == "cold"
