"""A missing statement: one more `append`, an assignment, a step, a jump, a `return`, a guard, an
import.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping

from .edit import Edit
from .facts import Types, fit, numeric
from .scene import Scene
from .statements import SIMPLE, block_of, documentation, whole_lines

GROWING = {"list": ("append", "extend"), "set": ("add",), "deque": ("append", "appendleft")}


def insertions(scene: Scene) -> Iterator[Edit]:
    """A statement before this one; and after it, if it ends its block."""
    statement = scene.statement
    here, block = whole_lines(scene, statement), block_of(scene, statement)
    if here is None or block is None or scene.function is None or documentation(statement):
        return
    first_name = min(
        [scene.function.lineno, *(node.lineno for node in scene.function.decorator_list)]
    )
    if statement.lineno <= first_name:
        return
    newline, indent = scene.source.newline, scene.source.indent(statement)
    branch = scene.source.data[scene.source.span(statement)[0] :].startswith(b"elif")
    for text, weight in _worth(scene, last=False):
        if not branch:
            yield scene.edit_span(
                here[0],
                here[0],
                _lines(text, indent, newline),
                "statement added",
                weight,
                line=statement.lineno,
            )
    if block[-1] is statement and not isinstance(
        statement, ast.Return | ast.Raise | ast.Break | ast.Continue
    ):
        missing = "" if scene.source.data[: here[1]].endswith((b"\n", b"\r")) else newline
        for text, weight in _worth(scene, last=True):
            yield scene.edit_span(
                here[1],
                here[1],
                missing + _lines(text, indent, newline),
                "statement added",
                weight,
                line=statement.lineno,
            )


def imports(scene: Scene) -> Iterator[Edit]:
    """The import of a standard module that the failing run did not find."""
    body = scene.source.tree.body
    for kind, message in scene.facts.errors:
        name = message.split("'")[1] if kind == "NameError" and message.count("'") >= 2 else ""
        used = any(
            isinstance(node, ast.Name) and node.id == name for node in ast.walk(scene.statement)
        )
        if name in sys.stdlib_module_names and used:
            after = [
                one
                for one in body
                if documentation(one)
                or (isinstance(one, ast.ImportFrom) and one.module == "__future__")
            ]
            start = (
                scene.source.line_starts[after[-1].end_lineno or 1]
                if after and after[-1] is not body[-1]
                else scene.source.line_starts[body[0].lineno - 1]
            )
            yield scene.edit_span(
                start, start, f"import {name}{scene.source.newline}", "import added", 1.0
            )


def _worth(scene: Scene, *, last: bool) -> Iterator[tuple[str, float]]:
    """Yield statements with their weights; *last*: the place is the end of a block."""
    known = {
        name: types
        for name, types in scene.names.items()
        if name not in ("self", "cls") and not name.isupper()
    }
    yield from _constructor(scene)
    yield from _grown(scene, known)
    yield from _rebound_names(scene, known)
    looped = any(isinstance(above, ast.For | ast.While) for above in _within(scene))
    if last:
        for rank, name in enumerate(_returned(scene)):
            yield f"return {name}", 0.45 / (1 + 0.15 * rank)
        yield from (("break", 0.4), ("continue", 0.35)) if looped else ()
    for rank, text in enumerate(_existing(scene)):
        yield text, 0.2 / (1 + 0.15 * rank)
    yield from _guards(scene, list(known), looped)


def _grown(scene: Scene, known: Mapping[str, Types]) -> Iterator[tuple[str, float]]:
    """One more element for a list or a set."""
    growing = [
        (name, container)
        for name, types in known.items()
        for container in GROWING
        if container in types
    ]
    for rank, (name, container) in enumerate(growing):
        for other in (one for one in known if one != name and not _stored_later(scene, one)):
            for turn, method in enumerate(GROWING[container]):
                if method != "extend" or known[other] & {"list", "tuple"}:
                    yield f"{name}.{method}({other})", 0.3 / (1 + 0.12 * rank + turn)


def _rebound_names(scene: Scene, known: Mapping[str, Types]) -> Iterator[tuple[str, float]]:
    """A variable set to another one, or moved by one step."""
    rank = 0
    for name in (one for one in known if _rebound(scene, one)):
        for other in (one for one in known if one != name and _alike(known[name], known[one])):
            yield f"{name} = {other}", 0.22 / (1 + 0.1 * rank)
            rank += 1
        if known[name] and numeric(known[name]) and "bool" not in known[name]:
            for step in ("+= 1", "-= 1", "= 0"):
                yield f"{name} {step}", 0.22 / (1 + 0.1 * rank)
            rank += 1


def _constructor(scene: Scene) -> Iterator[tuple[str, float]]:
    """Parameters that `__init__` does not keep."""
    if scene.function is None or scene.function.name != "__init__":
        return
    kept = {
        node.attr
        for node in ast.walk(scene.function)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for argument in (*scene.function.args.args[1:], *scene.function.args.kwonlyargs):
        if argument.arg not in kept:
            wanted = any(
                f"'{argument.arg}'" in message
                for kind, message in scene.facts.errors
                if kind == "AttributeError"
            )
            yield f"self.{argument.arg} = {argument.arg}", 0.95 if wanted else 0.4


def _guards(scene: Scene, seen: list[str], looped: bool) -> Iterator[tuple[str, float]]:
    """`if x is None: return …` and the like, with what the function returns elsewhere."""
    results = _returned(scene)[:3] or ["0", "[]", "False"]
    none = any("NoneType" in message for _, message in scene.facts.errors)
    parameters = [
        name
        for name in seen
        if scene.function is not None and any(one.arg == name for one in scene.function.args.args)
    ]
    for rank, name in enumerate(parameters[:4]):
        types = scene.names[name]
        tests = [(f"{name} is None", 0.3 if none else 0.08)]
        if not types or types & {"list", "str", "dict", "set", "tuple"}:
            tests.append((f"not {name}", 0.16))
        if types and numeric(types):
            tests += [(f"{name} == 0", 0.12), (f"{name} < 0", 0.1)]
        for test, weight in tests:
            for turn, result in enumerate([*results, "None"]):
                yield f"if {test}:\n    return {result}", weight / (1 + 0.3 * rank + 0.4 * turn)
    for rank, name in enumerate(seen[:5] if looped else []):
        yield f"if not {name}:\n    continue", 0.08 / (1 + 0.3 * rank)


def _existing(scene: Scene) -> list[str]:
    """Return the simple statements that the function has elsewhere, one line each."""
    if scene.function is None:
        return []
    block = block_of(scene, scene.statement) or []
    near = {id(one) for one in block}
    found = [
        node
        for node in ast.walk(scene.function)
        if isinstance(node, SIMPLE) and id(node) not in near and not documentation(node)
    ]
    texts = [scene.segment(node) for node in found]
    return [text for text in dict.fromkeys(texts) if "\n" not in text and len(text) <= 80][:12]


def _returned(scene: Scene) -> list[str]:
    """Return what `return` may give back: what the function returns elsewhere, then its variables
    from the last to the first.
    """
    if scene.function is None:
        return []
    used = [
        scene.segment(node.value)
        for node in ast.walk(scene.function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
    names = [name for name in scene.names if name not in ("self", "cls") and not name.isupper()]
    short = [text for text in used if len(text) <= 30 and "\n" not in text]
    return list(
        dict.fromkeys([*short, *reversed(names), *(("self",) if "self" in scene.names else ())])
    )[:10]


def _rebound(scene: Scene, name: str) -> bool:
    return scene.function is not None and any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(scene.function)
    )


def _stored_later(scene: Scene, name: str) -> bool:
    """A variable whose first assignment comes later, outside any loop around here, has no value
    yet.
    """
    if scene.function is None or any(
        isinstance(above, ast.For | ast.While) for above in _within(scene)
    ):
        return False
    lines = [
        node.lineno
        for node in ast.walk(scene.function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    parameters = {
        argument.arg for argument in ast.walk(scene.function.args) if isinstance(argument, ast.arg)
    }
    return (
        name not in parameters
        and bool(lines)
        and min(lines) > (scene.statement.end_lineno or scene.statement.lineno)
    )


def _alike(one: Types, other: Types) -> bool:
    return fit(one, other) and (bool(one & other) or not one or not other)


def _within(scene: Scene) -> Iterator[ast.AST]:
    """Yield the statements around this one, up to its function."""
    for above in scene.source.ancestors(scene.statement):
        if above is scene.function:
            return
        yield above


def _lines(text: str, indent: str, newline: str) -> str:
    unit = "\t" if "\t" in indent else "    "
    return "".join(f"{indent}{line.replace('    ', unit)}{newline}" for line in text.split("\n"))
