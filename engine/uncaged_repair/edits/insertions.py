"""Edit operators that add a statement: an `append`, an assignment, a step, a jump, a `return`, a
guard, an import.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .edit import Nature, SourceEdit
from .edit_site import EditSite
from .facts import MISFIT, Types, compatible, fit, number_fit
from .statements import block_of, is_bare_constant, line_span

MAX_ASSIGNMENTS = 40
EMPTY: Types = frozenset({"list", "str", "dict", "set", "tuple"})
GROWING = {"list": ("append", "extend"), "set": ("add",), "deque": ("append", "appendleft")}


def stored_parameters(site: EditSite) -> Iterator[SourceEdit]:
    """Yield assignments of parameters that `__init__` does not store."""
    if site.function is not None and site.function.name == "__init__":
        yield from _inserted(site, _stored_parameters)


def appends(site: EditSite) -> Iterator[SourceEdit]:
    """Yield calls that add an element to a list or a set."""
    yield from _inserted(site, _appends)


def reassignments(site: EditSite) -> Iterator[SourceEdit]:
    """Yield assignments of another variable, and steps by one."""
    yield from _inserted(site, _reassignments)


def ends(site: EditSite) -> Iterator[SourceEdit]:
    """Yield `return` and jumps at the end of a block."""
    yield from _inserted(site, _ends, before=False)


def repetitions(site: EditSite) -> Iterator[SourceEdit]:
    """Yield simple statements of the function once more."""
    yield from _inserted(site, _repetitions)


def guards(site: EditSite) -> Iterator[SourceEdit]:
    """Yield `if x is None: return …` and the like, with the values that the function returns
    elsewhere.
    """
    yield from _inserted(site, _guards)


def _inserted(
    site: EditSite, statements: Callable[[EditSite], Iterator[_New]], *, before: bool = True
) -> Iterator[SourceEdit]:
    """Yield *statements* before this one, if wanted, and after it if it ends its block."""
    statement = site.statement
    here, block = line_span(site, statement), block_of(site, statement)
    if here is None or block is None or site.function is None or is_bare_constant(statement):
        return
    first_name = min(
        [site.function.lineno, *(node.lineno for node in site.function.decorator_list)]
    )
    if statement.lineno <= first_name:
        return
    newline, indent = site.source.newline, site.source.indent(statement)
    branch = site.source.data.startswith(b"elif", site.source.span(statement)[0])
    for new in statements(site) if before and not branch else ():
        text = _indented(new.text, indent, newline)
        yield site.edit_span(
            here[0], here[0], text, new.kind, new.likely, nature=new.nature, line=statement.lineno
        )
    if block[-1] is statement and not isinstance(
        statement, ast.Return | ast.Raise | ast.Break | ast.Continue
    ):
        missing = "" if site.source.data.endswith((b"\n", b"\r"), 0, here[1]) else newline
        for new in statements(site):
            text = missing + _indented(new.text, indent, newline)
            yield site.edit_span(
                here[1],
                here[1],
                text,
                new.kind,
                new.likely,
                nature=new.nature,
                line=statement.lineno,
            )


def imports(site: EditSite) -> Iterator[SourceEdit]:
    """Yield the import of a standard module whose name the failing run did not find."""
    body = site.source.tree.body
    for kind, message in site.facts.errors:
        name = message.split("'")[1] if kind == "NameError" and message.count("'") >= 2 else ""
        used = any(isinstance(node, ast.Name) and node.id == name for node in site.nodes)
        if name in sys.stdlib_module_names and used:
            after = [
                statement
                for statement in body
                if is_bare_constant(statement)
                or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")
            ]
            start = (
                site.source.line_starts[after[-1].end_lineno or 1]
                if after and after[-1] is not body[-1]
                else site.source.line_starts[body[0].lineno - 1]
            )
            yield site.edit_span(
                start, start, f"import {name}{site.source.newline}", "import added", 1.0
            )


@dataclass(frozen=True, slots=True)
class _New:
    """Statement to be added."""

    text: str
    kind: str
    likely: float
    nature: Nature = "change"


def _variables(site: EditSite) -> dict[str, Types]:
    """Return the variables in scope that may be changed, with their types."""
    return {
        name: types
        for name, types in site.names.items()
        if name not in ("self", "cls") and not name.isupper()
    }


def _is_looped(site: EditSite) -> bool:
    return any(isinstance(above, ast.For | ast.While) for above in _enclosing(site))


def _ends(site: EditSite) -> Iterator[_New]:
    early = any(True for _ in _enclosing(site))
    usual = {site.segment(value) for value in site.scope.results}
    for rank, value in enumerate(_return_values(site)):
        nature: Nature = "hide" if early and value not in usual else "change"
        yield _New(f"return {value}", "return inserted", 1 / (1 + 0.15 * rank), nature)
    for jump, likely in (("break", 1.0), ("continue", 0.9)) if _is_looped(site) else ():
        yield _New(jump, "jump inserted", likely)


def _repetitions(site: EditSite) -> Iterator[_New]:
    for rank, text in enumerate(_repeated(site)):
        yield _New(text, "statement repeated", 1 / (1 + 0.15 * rank))


def _appends(site: EditSite) -> Iterator[_New]:
    known = _variables(site)
    growing = [
        (name, container)
        for name, types in known.items()
        for container in GROWING
        if container in types
    ]
    others = [other for other in known if not _is_unset(site, other)] if growing else []
    for rank, (name, container) in enumerate(growing):
        for other in (other for other in others if other != name):
            for turn, method in enumerate(GROWING[container]):
                fits = method != "extend" or bool(known[other] & {"list", "tuple"})
                likely = (1.0 if fits else MISFIT) / (1 + 0.12 * rank + turn)
                yield _New(f"{name}.{method}({other})", "element appended", likely)


def _reassignments(site: EditSite) -> Iterator[_New]:
    known, rank = _variables(site), 0
    for name in (name for name in known if name in site.scope.stored):
        others = [other for other in known if other != name]
        for other in sorted(others, key=lambda other: not _same_type(known[name], known[other])):
            fits = 1.0 if _same_type(known[name], known[other]) else MISFIT
            yield _New(f"{name} = {other}", "assignment added", fits / (1 + 0.1 * rank))
            rank += 1
            if rank >= MAX_ASSIGNMENTS:
                return
        for step in ("+= 1", "-= 1", "= 0"):
            likely = number_fit(known[name]) / (1 + 0.1 * rank)
            yield _New(f"{name} {step}", "step added", likely)
        rank += 1


def _stored_parameters(site: EditSite) -> Iterator[_New]:
    if site.function is None:
        return
    for argument in (*site.function.args.args[1:], *site.function.args.kwonlyargs):
        if argument.arg not in site.scope.kept:
            wanted = any(
                f"'{argument.arg}'" in message
                for kind, message in site.facts.errors
                if kind == "AttributeError"
            )
            text = f"self.{argument.arg} = {argument.arg}"
            yield _New(text, "parameter stored", 1.0 if wanted else 0.5)


def _guards(site: EditSite) -> Iterator[_New]:
    seen, looped = list(_variables(site)), _is_looped(site)
    results = _return_values(site)[:3] or ["0", "[]", "False"]
    none = any("NoneType" in message for _, message in site.facts.errors)
    parameters = [name for name in seen if name in site.scope.parameters]
    for rank, name in enumerate(parameters[:4]):
        types = site.names[name]
        number = number_fit(types)
        tests = [
            (f"{name} is None", 1.0 if none else 0.3),
            (f"not {name}", 0.5 * fit(types, EMPTY)),
            (f"{name} == 0", 0.4 * number),
            (f"{name} < 0", 0.3 * number),
        ]
        for test, first in tests:
            for turn, result in enumerate([*results, "None"]):
                likely = first / (1 + 0.3 * rank + 0.4 * turn)
                yield _New(f"if {test}:\n    return {result}", "guard", likely, "hide")
    for rank, name in enumerate(seen[:5] if looped else []):
        yield _New(f"if not {name}:\n    continue", "guard", 0.3 / (1 + 0.3 * rank), "hide")


def _repeated(site: EditSite) -> list[str]:
    """Return the simple statements of the function outside this block, one line each."""
    if site.function is None:
        return []
    block = block_of(site, site.statement) or []
    near = {id(statement) for statement in block}
    found = [
        node
        for node in site.scope.statements
        if id(node) not in near and not is_bare_constant(node)
    ]
    texts = [site.segment(node) for node in found]
    return [text for text in dict.fromkeys(texts) if "\n" not in text and len(text) <= 80][:12]


def _return_values(site: EditSite) -> list[str]:
    """Return values for `return`: those that the function returns elsewhere, then its variables
    from the last to the first.
    """
    if site.function is None:
        return []
    used = [site.segment(value) for value in site.scope.results]
    names = [name for name in site.names if name not in ("self", "cls") and not name.isupper()]
    short = [text for text in used if len(text) <= 30 and "\n" not in text]
    return list(
        dict.fromkeys([*short, *reversed(names), *(("self",) if "self" in site.names else ())])
    )[:10]


def _is_unset(site: EditSite, name: str) -> bool:
    """Return whether a variable is first assigned later, outside of any loop around this
    statement.
    """
    if site.function is None or any(
        isinstance(above, ast.For | ast.While) for above in _enclosing(site)
    ):
        return False
    last = site.statement.end_lineno or site.statement.lineno
    stored = site.scope.stored.get(name, ())
    return (
        name not in site.scope.parameters
        and bool(stored)
        and min(node.lineno for node in stored) > last
    )


def _same_type(left: Types, right: Types) -> bool:
    return compatible(left, right) and (bool(left & right) or not left or not right)


def _enclosing(site: EditSite) -> Iterator[ast.AST]:
    """Yield the statements around this one, up to its function."""
    for above in site.source.ancestors(site.statement):
        if above is site.function:
            return
        yield above


def _indented(text: str, indent: str, newline: str) -> str:
    unit = "\t" if "\t" in indent else "    "
    return "".join(f"{indent}{line.replace('    ', unit)}{newline}" for line in text.split("\n"))
