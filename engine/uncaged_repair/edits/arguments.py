"""Edit operators for the arguments of a call: those that the error of the failing run says are
missing, and those that other calls of the same function pass.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from .edit import SourceEdit
from .edit_site import EditSite
from .scopes import Function

MISSING = re.compile(
    r"([\w.]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.*)"
)
TOO_FEW = re.compile(
    r"([\w.]+?)(?:\(\))? (?:expected (?:at least )?\d+ arguments?, got|takes exactly \w+ arguments? \(\d+ given)"
)
NAMED = re.compile(r"'(\w+)'")
SHORT = 40
MAX_VALUES = 12
DEFAULTS = ("None", "()", "''", "False", "0", "True")


def missing_arguments(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield calls with one argument more, at any place, of a function that the failing run called
    with too few.
    """
    if not isinstance(node, ast.Call):
        return
    name = called_name(node)
    too_few = [missing for function, missing in _too_few(site) if function == name]
    if not too_few:
        return
    parameters = site.index.parameters(name)
    for place in range(len(node.args) + 1):
        wanted = parameters[place] if place < len(parameters) else ""
        for rank, text in enumerate(_values(site, node, place, wanted)):
            likely = "missing argument", 1 / (1 + 0.25 * rank)
            yield from _inserted(site, node, place, text, likely=likely)
    for missing in too_few:
        for argument in missing:
            text = f"{argument}={argument if argument in site.names else None}"
            yield from append_argument(site, node, text, "missing argument", 0.5)


def default_values(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield a default for a parameter that the failing run did not pass."""
    function = site.statement
    if not isinstance(node, ast.arg) or not isinstance(function, Function):
        return
    if not _may_have_default(function, node):
        return
    holder = _class_of(site, function)
    for name, missing in _too_few(site):
        if name in (function.name, holder) and node.arg in missing:
            equals = " = " if node.annotation is not None else "="
            end = site.source.span(node)[1]
            for rank, text in enumerate(DEFAULTS):
                yield site.edit_span(
                    *(end, end, equals + text, "default added", 1 / (1 + 0.3 * rank)),
                    line=node.lineno,
                )


def arguments_of_other_calls(site: EditSite, node: ast.AST) -> Iterator[SourceEdit]:
    """Yield the argument that most other calls of the same function pass at the same place: those
    in the same function, else in the file.
    """
    if not isinstance(node, ast.Call):
        return
    name = called_name(node)
    for calls in (site.scope.calls, site.index.module.calls):
        others = [call for call in calls.get(name, ()) if call is not node and _is_plain(call)]
        if others:
            break
    else:
        return
    for place in range(len(node.args) + 1):
        texts = [site.segment(call.args[place]) for call in others if place < len(call.args)]
        if not _is_plain(node) or not texts:
            continue
        for text, number in Counter(texts).most_common(2):
            likely = "argument of other calls", number / (len(others) + 1)
            if 2 * number < len(others) or len(text) > SHORT or "\n" in text:
                continue
            if place == len(node.args):
                yield from _inserted(site, node, place, text, likely=likely)
            elif text != site.segment(node.args[place]):
                yield site.edit(node.args[place], text, *likely)


def called_name(node: ast.Call) -> str:
    """Return the last name of the function that *node* calls; empty if it has none."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def append_argument(
    site: EditSite, node: ast.Call, text: str, kind: str, weight: float
) -> Iterator[SourceEdit]:
    """Yield the call with *text* after its last argument, also where that ends with a comma."""
    end = site.source.span(node)[1] - 1
    if not site.source.data.endswith(b")", 0, end + 1):
        return
    every: list[ast.AST] = [*node.args, *node.keywords]
    if not every:
        yield site.edit_span(end, end, text, kind, weight)
        return
    last = max(site.source.span(argument)[1] for argument in every)
    rest = site.source.text(last, end)
    if "#" in rest or (len(every) == 1 and isinstance(every[0], ast.GeneratorExp)):
        return
    if "," in rest:
        start = last + rest.index(",") + 1
        stop = end if "\n" not in rest else start
        yield site.edit_span(start, stop, f" {text}", kind, weight)
    else:
        yield site.edit_span(end, end, f", {text}", kind, weight)


def _inserted(
    site: EditSite, node: ast.Call, place: int, text: str, *, likely: tuple[str, float]
) -> Iterator[SourceEdit]:
    """Yield the call with *text* before the positional argument number *place*. likely: the kind
    and the weight of the edit.
    """
    kind, weight = likely
    if place == len(node.args) and (not node.keywords or "=" in text):
        yield from append_argument(site, node, text, kind, weight)
        return
    after = node.args[place] if place < len(node.args) else node.keywords[0]
    if isinstance(after, ast.GeneratorExp) and len(node.args) + len(node.keywords) == 1:
        return  # its parentheses may be those of the call
    start = site.source.span(after)[0]
    yield site.edit_span(start, start, f"{text}, ", kind, weight, line=node.lineno)


def _values(site: EditSite, node: ast.Call, place: int, wanted: str) -> list[str]:
    """Return values for an argument at this *place* that belongs to the parameter *wanted*: first
    its name, then what other calls pass, then the variables in scope.
    """
    module = site.index.module
    elsewhere = Counter(
        site.segment(call.args[place])
        for call in module.calls.get(called_name(node), ())
        if call is not node and place < len(call.args)
    )
    own = {site.segment(argument) for argument in node.args}
    texts = [wanted] if wanted in site.names else []
    texts += [f"self.{wanted}"] if "self" in site.names and wanted in module.attributes else []
    texts += [text for text, _ in elsewhere.most_common(3)]
    texts += [*site.names, "None"]
    fitting = (text for text in texts if text not in own and len(text) <= SHORT)
    return list(dict.fromkeys(text for text in fitting if "\n" not in text))[:MAX_VALUES]


def _too_few(site: EditSite) -> list[tuple[str, Sequence[str]]]:
    """Return the functions that the failing run called with too few arguments, each with the
    parameters that the error names.
    """
    found: list[tuple[str, Sequence[str]]] = []
    for kind, message in site.facts.errors:
        if kind != "TypeError" or not (match := MISSING.match(message) or TOO_FEW.match(message)):
            continue
        holder, _, name = match[1].rpartition(".")
        missing = NAMED.findall(match[2]) if match.re is MISSING else []
        found.append((holder.rpartition(".")[2] if name == "__init__" else name, missing))
    return found


def _may_have_default(function: Function, node: ast.arg) -> bool:
    """Return whether *node* has none, and all positional parameters after it have one."""
    every = [*function.args.posonlyargs, *function.args.args]
    if node in every:
        return every.index(node) == len(every) - len(function.args.defaults) - 1
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return any(argument is node and default is None for argument, default in keywords)


def _class_of(site: EditSite, function: Function) -> str:
    above = site.source.parents.get(function)
    own = isinstance(above, ast.ClassDef) and function.name == "__init__"
    return above.name if own and isinstance(above, ast.ClassDef) else function.name


def _is_plain(call: ast.Call) -> bool:
    return not any(isinstance(argument, ast.Starred) for argument in call.args)
