"""Carrying of a moderator's code: each name is in the bundle, or refused with its place."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from uncaged_bundles.authoring import Role, View, Workflow
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.errors import BundleError

Load = Callable[..., Any]
ROLE = Role(
    name="coder", description="d", system_prompt="s", extract_prompt="e", schema={"type": "object"}
)
EMPTY = View({"threadId": "t", "start": {"prompt": "", "params": {}}, "steps": []})


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Write modules, import the one named `flow`, and forget all of them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(files: dict[str, str], name: str = "flow") -> Any:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text))
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


def build(moderator: Any, **more: Any) -> str:
    workflow = Workflow(name="flow", description="d", roles=[ROLE], moderator=moderator, **more)
    return build_workflow(workflow).decode()


def built(moderator: Any, **more: Any) -> dict[str, Any]:
    """Build, execute, and return what the bundle defines."""
    namespace: dict[str, Any] = {}
    exec(compile(build(moderator, **more), "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    return namespace


def test_helpers_constants_classes_and_lambdas_come_along(load: Load) -> None:
    """Whatever the moderator names, and whatever that names, from any module of the author's."""
    flow = load(
        {
            "flow.py": """
            from uncaged_bundles.authoring import END
            from rules import LIMIT, Counted, is_open as still_open

            twice = lambda number: number * 2
            unused = 1

            def moderator(ctx):
                return "coder" if still_open(ctx) and Counted(twice(LIMIT)).small else END
            """,
            "rules.py": """
            from dataclasses import dataclass
            from base import FLOOR as lowest

            LIMIT, OTHER = lowest + 3, 5

            @dataclass(frozen=True)
            class Counted:
                number: int

                @property
                def small(self) -> bool:
                    return self.number < 10

            def is_open(ctx):
                return all(step.role in NAMES for step in ctx.steps)

            NAMES = frozenset(name.lower() for name in ("CODER",))
            """,
            "base.py": "FLOOR = 1\nCEILING = 9\n",
        }
    )
    bundle = built(flow.moderator)
    assert bundle["moderator"](EMPTY) == flow.moderator(EMPTY) == "coder"
    assert bundle["lowest"] == 1
    assert "OTHER" in bundle
    assert not {"unused", "CEILING"} & set(bundle)


def test_imports_are_collected_sorted_and_stand_once(load: Load) -> None:
    """Standard modules stay imports: whole modules first, names merged, and only those that are
    used.
    """
    flow = load(
        {
            "flow.py": """
            from uncaged_bundles.authoring import END
            import re, json as js
            import collections.abc
            from collections import deque, Counter as Tally
            from rules import pick

            def moderator(ctx):
                return pick(re.sub("x", "", js.loads('"c"')), Tally, isinstance(ctx, collections.abc.Mapping))
            """,
            "rules.py": """
            import re
            from collections import OrderedDict
            from math import floor

            def pick(*_):
                return re.sub("y", "", OrderedDict(a="coder")["a"])
            """,
        }
    )
    lines = [
        line for line in build(flow.moderator).split("\n") if line.startswith(("import ", "from "))
    ]
    assert lines == [
        "import collections.abc",
        "import json as js",
        "import re",
        "from collections import Counter as Tally, OrderedDict",
    ]


def test_a_package_with_relative_imports_and_re_exports(load: Load) -> None:
    """Names are followed through `__init__` and dots to where they are defined."""
    flow = load(
        {
            "kit/__init__.py": "from .rules import pick\n",
            "kit/rules.py": "from .names import CODER\n\ndef pick():\n    return CODER\n",
            "kit/names.py": "CODER = 'coder'\n",
            "kit/flow.py": "from . import pick\n\ndef moderator(ctx):\n    return pick()\n",
        },
        "kit.flow",
    )
    assert built(flow.moderator)["moderator"](EMPTY) == "coder"


def test_modules_come_in_the_order_of_their_imports(load: Load) -> None:
    """A constant that is computed at load finds what it needs, however the moderator names
    things.
    """
    flow = load(
        {
            "flow.py": "from second import B\nfrom first import A\n\ndef moderator(ctx):\n    return A if B else A\n",
            "second.py": "from first import A, double\n\nB = double(A)\n",
            "first.py": "A = 'coder'\n\ndef double(text):\n    return text * COUNT\n\nCOUNT = 2\n",
        }
    )
    assert built(flow.moderator)["B"] == "codercoder"


def test_source_is_carried_word_for_word(load: Load) -> None:
    """Comments above, decorators, annotations and the author's layout survive."""
    flow = load(
        {
            "flow.py": """\
            from __future__ import annotations
            # Why three: it was measured.
            LIMIT = 3  # times
            A = 1; B = (
                2)

            import functools
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from collections.abc import Mapping
                from uncaged_bundles.authoring import View

            # Cached, since it is slow.
            @functools.cache
            def pick(count: int)    ->   "str":
                return 'coder' if count < LIMIT else "coder"

            def moderator(ctx: View, /) -> str | Mapping[str, str]:
                return pick(len(ctx.steps) + A + B)
            """
        }
    )
    text = build(flow.moderator)
    assert (
        "\n# Why three: it was measured.\nLIMIT = 3  # times\nA = 1; B = (\n    2)\n\n\n# Cached, since it is slow.\n@functools.cache\n"
        in text
    )
    assert "\ndef pick(count: int)    ->   \"str\":\n    return 'coder' if" in text
    assert "from collections.abc import Mapping" in text
    assert "TYPE_CHECKING" not in text
    assert text.count("from __future__") == 1


def test_the_first_line_of_a_program_is_no_comment(load: Load) -> None:
    """The line that names an interpreter belongs to the file; the comment below it goes with the
    function.
    """
    flow = load(
        {
            "flow.py": "#!/usr/bin/env python\n# Always the same.\ndef moderator(ctx):\n    return 'coder'\n"
        }
    )
    text = build(flow.moderator)
    assert "\n# Always the same.\ndef moderator(ctx):\n" in text
    assert "#!" not in text


def test_constants_stand_together_and_comments_apart(load: Load) -> None:
    """Layout follows the rules of a formatter, wherever the statements came from."""
    flow = load(
        {"flow.py": "A = 1\n\nB = 2\n\n# Why.\nC = 3\ndef moderator(ctx):\n    return A + B + C\n"}
    )
    assert "\nA = 1\nB = 2\n\n# Why.\nC = 3\n\n\ndef moderator(ctx):\n" in build(flow.moderator)


def test_a_file_named_like_a_standard_module_is_still_the_authors(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The imported file counts, not its name."""
    # an earlier test may have imported the real one
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    flow = load(
        {
            "flow.py": "from colorsys import pick\n\ndef moderator(ctx):\n    return pick()\n",
            "colorsys.py": "def pick():\n    return 'coder'\n",
        }
    )
    text = build(flow.moderator)
    assert "def pick():" in text
    assert "colorsys" not in text


def test_a_function_under_another_name_is_found(load: Load) -> None:
    """A lambda with a name at the top level is a function like any other; so is an imported one."""
    flow = load(
        {
            "flow.py": "choose = lambda ctx: 'coder'\nfrom rules import pick\n",
            "rules.py": "def pick(ctx):\n    return 'coder'\n",
        }
    )
    assert "moderator=choose" in build(flow.choose)
    assert "moderator=pick" in build(flow.pick)


FILLED = {
    "decorators": (
        "ROUTES = {}\ndef route(function):\n    ROUTES['coder'] = function\n    return function\n@route\ndef coder():\n    pass\n",
        r"rules\.py:1: 'ROUTES' is \{'coder': .*\}, but its definition alone gives \{\}",
    ),
    "a call": (
        "ROUTES = []\ndef fill():\n    ROUTES.append('coder')\nfill()\n",
        r"'ROUTES' is \['coder'\], but its definition alone gives \[\]",
    ),
    "inside": (
        "ROUTES = {'a': [set()]}\ndef fill():\n    ROUTES['a'][0].add(1)\nfill()\n",
        r"'ROUTES' is .*\{1\}",
    ),
    "a field": (
        "from dataclasses import dataclass\n@dataclass\nclass Box:\n    size: int\n"
        "ROUTES = Box(1)\ndef fill():\n    ROUTES.size = 2\nfill()\n",
        r"'ROUTES' is Box\(size=2\), but its definition alone gives Box\(size=1\)",
    ),
    "at the top level": (
        "ROUTES = {}\nROUTES['coder'] = 1\n",
        r"rules\.py:1: 'ROUTES' is \{'coder': 1\}, but .* gives \{\}",
    ),
    "a set": (
        "ROUTES = {1}\nROUTES.add(2)\nROUTES.discard(1)\n",
        r"'ROUTES' is \{2\}, but its definition alone gives \{1\}",
    ),
    "a function's attribute": (
        "def ROUTES():\n    return ROUTES.limit\nROUTES.limit = 3\n",
        "'ROUTES' is <function ROUTES",
    ),
    "a class's attribute": (
        "class ROUTES:\n    limit = 1\nROUTES.limit = 3\n",
        r"'ROUTES' is <class 'rules\.ROUTES'>",
    ),
    "an object's attribute": (
        "from types import SimpleNamespace\nROUTES = SimpleNamespace(limit=1)\nROUTES.limit = 3\n",
        r"'ROUTES' is namespace\(limit=3\), but its definition alone gives namespace\(limit=1\)",
    ),
    "a number": (
        "ROUTES = 1\ndef fill():\n    globals()['ROUTES'] = 2\nfill()\n",
        "'ROUTES' is 2, but its definition alone gives 1",
    ),
}


@pytest.mark.parametrize("name", FILLED)
def test_what_is_filled_in_later_is_noticed(load: Load, name: str) -> None:
    """A constant that is changed after its definition, directly or not, is refused: the bundle
    would have another value.
    """
    text, message = FILLED[name]
    flow = load(
        {
            "rules.py": text,
            "flow.py": "from rules import ROUTES\n\ndef moderator(ctx):\n    return ROUTES\n",
        }
    )
    with pytest.raises(BundleError, match=message):
        build(flow.moderator)


def test_values_that_cannot_be_compared_count_by_their_kind(load: Load) -> None:
    """Compiled patterns, caches, functions in tables, data that contains itself: the same text
    makes the same things.
    """
    flow = load(
        {
            "flow.py": """
            from __future__ import annotations
            import functools, itertools, random, re
            from dataclasses import dataclass, field

            @dataclass
            class Box:
                items: list[int] = field(default_factory=list)

            @functools.cache
            def cached():
                return "coder"

            NAN = float("nan")
            THINGS = [re.compile("x"), cached, random.Random(3), itertools.count(), {"a": cached, "b": Box}, Box([1]), {3, "x"}, NAN]
            LOOP = (lambda box: [box, box.append(box)])([])[0]

            def moderator(ctx):
                return [THINGS, LOOP][0][1]()
            """
        }
    )
    assert built(flow.moderator)["moderator"](EMPTY) == "coder"


def test_a_circle_of_modules_that_only_works_from_one_side_is_refused(load: Load) -> None:
    """Two modules that import each other may load in an order that one file does not have."""
    flow = load(
        {
            "flow.py": "from first import A\n\ndef moderator(ctx):\n    return A\n",
            "first.py": "B = 'coder'\nfrom second import C\nA = C\n",
            "second.py": "import sys\nfrom first import B\nC = B\n",
        }
    )
    with pytest.raises(
        BundleError,
        match=r"do not load by themselves: name 'B' is not defined; does a module import one that imports it\?",
    ):
        build(flow.moderator)


def test_result_and_recover_are_carried_too(load: Load) -> None:
    """All three functions may share helpers, which are carried once."""
    flow = load(
        {
            "flow.py": """
            from uncaged_bundles.authoring import END
            def name():
                return "coder"

            def moderator(ctx):
                return name()

            def result(ctx):
                return {"success": True, "message": name()}

            def recover(ctx, failure):
                return name() if failure.times < 2 else END
            """
        }
    )
    text = build(flow.moderator, result=flow.result, recover=flow.recover)
    assert text.count("def name():") == 1
    assert "moderator=moderator, result=result, recover=recover" in " ".join(text.split())


def test_a_trusted_workflow_may_import_any_standard_module(load: Load) -> None:
    """Modules that the sandbox would forbid are allowed without one."""
    flow = load(
        {"flow.py": "import os\n\ndef moderator(ctx):\n    return os.path.basename('x/coder')\n"}
    )
    with pytest.raises(BundleError, match=r"flow\.py:1: import of 'os': .*script"):
        build(flow.moderator)
    assert "\nimport os\n" in build(flow.moderator, policy={"role": {}, "trusted": True})


REFUSED = {
    "closure": (
        "def make(limit):\n    def moderator(ctx):\n        return limit\n    return moderator\nmoderator = make('coder')\n",
        r"flow\.py:2: the moderator 'moderator' closes over 'limit'",
    ),
    "class": (
        "class moderator:\n    def __call__(self, ctx):\n        return 'coder'\n",
        r"the moderator is <class 'flow\.moderator'>; write a plain function",
    ),
    "default": (
        "def moderator(ctx, limit=3):\n    return 'coder'\n",
        r"flow\.py:1: the moderator 'moderator' has a default for 'limit'",
    ),
    "parameters": (
        "def moderator(ctx, limit):\n    return 'coder'\n",
        r"flow\.py:1: .* takes \(ctx, limit\); it must take exactly \(ctx\)",
    ),
    "keywords": ("def moderator(*, ctx):\n    return 'coder'\n", r"it must take exactly \(ctx\)"),
    "generator": ("def moderator(ctx):\n    yield 'coder'\n", "is a generator or async"),
    "async": ("async def moderator(ctx):\n    return 'coder'\n", "is a generator or async"),
    "partial": (
        "from functools import partial\ndef pick(a, ctx):\n    return a\nmoderator = partial(pick, 'coder')\n",
        r"the moderator is functools\.partial",
    ),
    "default of a helper": (
        "LIMIT = 3\ndef helper(a, *, limit=LIMIT):\n    return 'coder'\ndef moderator(ctx):\n    return helper(1)\n",
        r"flow\.py:2: the default of 'limit' is no plain constant",
    ),
    "default that can change": (
        "def helper(seen=[]):\n    return 'coder'\ndef moderator(ctx):\n    return helper()\n",
        r"flow\.py:1: the default of 'seen'",
    ),
    "default of a method": (
        "class A:\n    def b(self, c=set()):\n        return 'coder'\ndef moderator(ctx):\n    return A().b()\n",
        r"flow\.py:2: the default of 'c'",
    ),
    "default of a lambda": (
        "helper = lambda seen={}: 'coder'\ndef moderator(ctx):\n    return helper()\n",
        r"flow\.py:1: the default of 'seen'",
    ),
    "global": (
        "COUNT = 0\ndef moderator(ctx):\n    global COUNT\n    COUNT += 1\n    return 'coder'\n",
        r"flow\.py:3: 'global' for 'COUNT': nothing is kept between calls",
    ),
    "unknown name": (
        "def moderator(ctx):\n    x = 1\n    return nowhere\n",
        r"flow\.py:3: 'nowhere' cannot be carried; it is defined nowhere",
    ),
    "star": (
        "from rules import *\ndef moderator(ctx):\n    return pick()\n",
        r"flow\.py:3: 'pick' cannot be carried; import it by name",
    ),
    "file": (
        "def moderator(ctx):\n    return __file__\n",
        r"flow\.py:2: '__file__' belongs to the file",
    ),
    "twice": (
        "A = 'x'\nA = 'coder'\ndef moderator(ctx):\n    return A\n",
        r"flow\.py:4: 'A' is bound more than once, at .*flow\.py:1 and .*flow\.py:2",
    ),
    "if": (
        "if True:\n    A = 'coder'\ndef moderator(ctx):\n    return A\n",
        r"flow\.py:4: 'A' is bound inside 'if' at .*flow\.py:1",
    ),
    "try": (
        "try:\n    from rules import pick\nexcept ImportError:\n    pick = None\ndef moderator(ctx):\n    return pick()\n",
        r"flow\.py:6: 'pick' is bound inside 'try' at .*flow\.py:1",
    ),
    "loop": (
        "for A in ['coder']:\n    pass\ndef moderator(ctx):\n    return A\n",
        r"flow\.py:4: 'A' is bound inside 'for'",
    ),
    "module": (
        "import rules\ndef moderator(ctx):\n    return rules.pick()\n",
        r"flow\.py:1: 'rules' is a module, and none is carried",
    ),
    "module of a package": (
        "from kit import inner\ndef moderator(ctx):\n    return inner.pick()\n",
        r"flow\.py:1: 'inner' is a module, and none is carried",
    ),
    "third party": (
        "from yaml import safe_load\ndef moderator(ctx):\n    return safe_load('coder')\n",
        r"flow\.py:1: 'yaml' is an installed package, not part of your code",
    ),
    "ours": (
        "from uncaged_bundles.authoring import Role\ndef moderator(ctx):\n    return Role\n",
        r"flow\.py:1: 'Role' is part of uncaged_bundles\.authoring",
    ),
    "not loaded": (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from elsewhere import Thing\ndef moderator(ctx: Thing) -> str:\n    return ''\n",
        r"flow\.py:4: the module 'elsewhere' is not loaded",
    ),
    "forbidden import": (
        "import subprocess\ndef moderator(ctx):\n    return subprocess\n",
        r"flow\.py:1: import of 'subprocess': .*'script' effect",
    ),
    "import inside": (
        "def moderator(ctx):\n    from rules import pick\n    return pick()\n",
        r"flow\.py:2: an import inside a function is not carried",
    ),
    "forbidden inside": (
        "def moderator(ctx):\n    import os\n    return os\n",
        r"flow\.py:2: import of 'os'",
    ),
    "reserved": (
        "def run(ctx):\n    return 'coder'\nmoderator = run\n",
        r"flow\.py:1: 'run' is a name that every bundle uses itself",
    ),
    "clash": (
        "from rules import pick\ndef helper():\n    return 'coder'\ndef moderator(ctx):\n    return pick() + helper()\n",
        r"two things are named 'helper', at .*:\d and at .*:\d; a bundle is one file",
    ),
    "clash with the driver": (
        "class Items:\n    pass\ndef moderator(ctx):\n    return Items\n",
        r"two things are named 'Items', at .*workflow\.py:\d+ and at .*flow\.py:1",
    ),
    "clash of import and definition": (
        "from rules import encode\nimport json\ndef moderator(ctx):\n    return encode(json)\n",
        r"two things are named 'json'",
    ),
    "built-in": (
        "from rules import pick\ndef filter(a, b):\n    return b\ndef moderator(ctx):\n    return filter(None, pick())\n",
        r"means the built-in 'filter', but .*flow\.py:2 defines another",
    ),
}
OTHERS = {
    "rules.py": """
    def pick():
        return [*filter(None, helper())][0]

    def helper():
        return ["coder"]

    json = 1

    def encode(x):
        return json
    """,
    "kit/__init__.py": "",
    "kit/inner.py": "def pick():\n    return 'coder'\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_is_named_with_its_place(load: Load, name: str) -> None:
    """Each refusal says which name, in which line of which file, and what to do instead."""
    text, message = REFUSED[name]
    flow = load({"flow.py": text, **OTHERS})
    with pytest.raises(BundleError, match=message):
        build(flow.moderator)


def test_a_function_without_a_name_is_refused(load: Load) -> None:
    """A lambda in place, or a function that is only reachable through another, has no text of its
    own to carry.
    """
    flow = load(
        {
            "flow.py": "functions = [lambda ctx: 'coder']\ndef make():\n    def pick(ctx):\n        return 'coder'\n    return pick\n"
        }
    )
    for function in (flow.functions[0], flow.make()):
        with pytest.raises(
            BundleError,
            match=r"flow\.py:\d: the moderator '.*' has no name at the top level of its module",
        ):
            build(function)


def test_a_module_without_source_is_refused(load: Load, tmp_path: Path) -> None:
    """Without text there is nothing to carry."""
    flow = load({"flow.py": "def moderator(ctx):\n    return 'coder'\n"})
    (tmp_path / "flow.py").unlink()
    with pytest.raises(BundleError, match="the module 'flow' has no source text to carry"):
        build(flow.moderator)


def test_a_file_that_no_longer_parses_is_refused(load: Load, tmp_path: Path) -> None:
    """A file edited since it was loaded may hold anything."""
    flow = load({"flow.py": "def moderator(ctx):\n    return 'coder'\n"})
    (tmp_path / "flow.py").write_text("def moderator(ctx:\n")
    with pytest.raises(BundleError, match=r"flow\.py:1: .*changed since it was loaded"):
        build(flow.moderator)


def test_statements_that_only_look_on_are_no_change(load: Load) -> None:
    """Asserts, the main block and other definitions may name what is carried."""
    flow = load(
        {
            "flow.py": """
            '''Docs.'''
            A = {"x": "coder"}
            assert A
            B: dict = A
            (C, [D, *E]) = 1, [2, 3]
            if __name__ == "__main__":
                print(A)

            def moderator(ctx):
                return A["x"]
            """
        }
    )
    assert built(flow.moderator)["moderator"](EMPTY) == "coder"
