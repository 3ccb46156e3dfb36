"""Rules for task and web scripts: the signature, a bundle's own rules, and only known methods of
the api or browser. Lines and columns are those of the script.

The policy is inferred from the steps of a script.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from types import ModuleType
from urllib.parse import urlsplit

from uncaged_bundles.carried import task as carried_task
from uncaged_bundles.carried import workflow as carried
from uncaged_bundles.errors import BundleError
from uncaged_bundles.hosts import flaw_in_address
from uncaged_bundles.records import dataclass
from uncaged_bundles.syntax import parse_module
from uncaged_bundles.validation.access import forbidden_access
from uncaged_bundles.validation.findings import Finding, first
from uncaged_bundles.validation.purity import forbidden_import

EFFECTS = {
    **{
        "call_action": "flow",
        "query_llm": "llm",
        "web_search": "search",
        "web_fetch": "fetch",
        "http": "http",
        "script": "script",
    },
    **{"ask": "ask", "sleep": "sleep", "now": "now", "gather": "all"},
}
"""The effect behind each method of the api."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRules:
    """Rules for one kind of script. subject: the name of its first parameter; methods: of that
    object. driver: the modules that are carried with it. free: their names that a script may use.
    """

    kind: str
    subject: str
    methods: Collection[str]
    driver: tuple[ModuleType, ...]
    free: frozenset[str] = frozenset({"print", "json"})

    @property
    def signature(self) -> str:
        """Return the first line of its function."""
        return f"async def execute({self.subject}, params)"

    @property
    def reserved(self) -> frozenset[str]:
        """Return the names that a script may not use."""
        names = frozenset(
            name for module in self.driver for name in vars(module) if not name.startswith("__")
        )
        return (names | {"run", "descriptor", "EffectError"}) - self.free


TASK_RULES = ScriptRules(
    kind="task", subject="api", methods=EFFECTS, driver=(carried, carried_task)
)


def check_script(text: str, name: str, rules: ScriptRules = TASK_RULES) -> ast.Module:
    """Return the syntax tree of a script.

    Raises:
        BundleError: the first violation of a rule, with line and column.
    """
    tree = parse_script(text, name)
    finding = (
        _flaw_in_signature(tree, rules)
        or forbidden_import(tree)
        or forbidden_access(tree)
        or first(
            (
                *_name_conflicts(tree, rules),
                *_unknown_methods(tree, rules),
                *_invalid_addresses(tree),
            )
        )
    )
    if finding is not None:
        raise BundleError(f"{name}: {finding.located(text)}")
    return tree


def parse_script(text: str, name: str) -> ast.Module:
    """Return the syntax tree of a Python script.

    Raises:
        BundleError: it does not parse, with line and column.
    """
    try:
        return parse_module(text)
    except SyntaxError as exc:
        raise BundleError(
            f"{name}: line {exc.lineno or 1}, column {max(exc.offset or 1, 1)}: not Python: {exc.msg}"
        ) from exc
    except (ValueError, RecursionError, MemoryError) as exc:
        raise BundleError(f"{name}: line 1, column 1: the script cannot be read: {exc}") from exc


def unused_parameters(tree: ast.Module, parameters: Mapping[str, object]) -> tuple[str, ...]:
    """Return the declared parameters that the script never names; none if it uses ``params`` as a
    whole.
    """
    declared = parameters.get("properties", {})
    used: set[str] = set()
    named: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="params") as base, attr=attr):
                named.add(base)
                if attr not in ("get", "keys", "values", "items", "copy"):
                    used.add(attr)
                elif attr != "get":
                    return ()
            case ast.Subscript(
                value=ast.Name(id="params") as base, slice=ast.Constant(value=str(key))
            ):
                named.add(base)
                used.add(key)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="params"), attr="get"),
                args=[ast.Constant(value=str(key)), *_],
            ):
                used.add(key)
            case _:
                pass
    whole = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "params" and node not in named
    ]
    return (
        ()
        if whole or not isinstance(declared, Mapping)
        else tuple(name for name in declared if name not in used)
    )


def infer_policy(tree: ast.Module) -> dict[str, dict[str, object]]:
    """Return the policy that the script's steps need: their effects, limited to hosts and flows
    where those are literals.
    """
    policy: dict[str, dict[str, object]] = {}
    unlimited: set[str] = set()
    for call, method in _steps(tree):
        kind = EFFECTS[method]
        limits = policy.setdefault(kind, {})
        key = {"flow": "names", "http": "hosts", "fetch": "hosts"}.get(kind)
        if key is None:
            continue
        value = _literal_target(call, method)
        if value is None:
            unlimited.add(kind)
            limits.pop(key, None)
        elif kind not in unlimited:
            known = limits.setdefault(key, [])
            if isinstance(known, list) and value not in known:
                known.append(value)
    return policy


def computed_targets(tree: ast.Module) -> tuple[str, ...]:
    """Return the effects whose host or flow is computed, so that the inferred policy has no limit
    for it.
    """
    return tuple(
        sorted(
            {
                EFFECTS[method]
                for call, method in _steps(tree)
                if method in _TARGETS and _literal_target(call, method) is None
            }
        )
    )


_TARGETS = {"call_action": (0, "flow"), "web_fetch": (0, "url"), "http": (1, "url")}


def _steps(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call of a method of the api, with the method's name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in EFFECTS
        ):
            base = node.func.value
            if isinstance(base, ast.Name) and base.id == "api":
                yield node, node.func.attr


def _literal_target(call: ast.Call, method: str) -> str | None:
    """Return the flow or the host of a call, if it is a literal."""
    text, complete = _literal_prefix(_target(call, method))
    if method == "call_action":
        return text if complete else None
    rest = text.partition("://")[2]
    if not rest or not (complete or "/" in rest or "?" in rest):
        return None
    return urlsplit(text).netloc.rpartition("@")[2].lower() or None


def _target(call: ast.Call, method: str) -> ast.expr | None:
    """Return the argument of a call for the flow or the address."""
    place, name = _TARGETS[method]
    value = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return call.args[place] if value is None and len(call.args) > place else value


def _literal_prefix(node: ast.expr | None) -> tuple[str, bool]:
    """Return the literal text at the start of an expression, and whether it is the whole text."""
    match node:
        case ast.Constant(value=str(text)):
            return text, True
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text, False
        case ast.BinOp(left=left, op=ast.Add()):
            return _literal_prefix(left)[0], False
        case _:
            return "", False


def _flaw_in_signature(tree: ast.Module, rules: ScriptRules) -> Finding | None:
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "execute"
    ]
    if not found:
        return Finding(
            line=1,
            column=0,
            message=f"there is no function 'execute'; a {rules.kind} script has {rules.signature}: …",
        )
    if len(found) > 1:
        return Finding.at(found[1], "'execute' is defined a second time; there is one")
    execute = found[0]
    if isinstance(execute, ast.FunctionDef):
        return Finding.at(execute, f"'execute' is not async; write {rules.signature}: …")
    names = [argument.arg for argument in (*execute.args.posonlyargs, *execute.args.args)]
    if (
        names != [rules.subject, "params"]
        or execute.args.kwonlyargs
        or execute.args.vararg
        or execute.args.kwarg
    ):
        return Finding.at(
            execute,
            f"'execute' takes ({ast.unparse(execute.args)}); it takes exactly ({rules.subject}, params)",
        )
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(execute)):
        return Finding.at(
            execute, f"'execute' yields; a {rules.kind} script awaits its steps instead"
        )
    return None


def _name_conflicts(tree: ast.Module, rules: ScriptRules) -> Iterator[Finding]:
    """Yield the driver's names that a script binds at the top level, or reads but does not bind."""
    reserved = rules.reserved
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound: list[tuple[str, ast.stmt | ast.expr]] = [(statement.name, statement)]
        else:
            bound = [
                (node.id, node)
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
        for name, node in bound:
            if name in reserved | {"print"}:
                yield Finding.at(
                    node, f"{name!r} is the name of a part of the driver; rename yours"
                )
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for part in ast.walk(tree):
        if (
            isinstance(part, ast.Name)
            and isinstance(part.ctx, ast.Load)
            and part.id in reserved - own
        ):
            yield Finding.at(
                part,
                f"{part.id!r} belongs to the driver; a script has {rules.subject}, params and print",
            )
        elif isinstance(part, ast.Global):
            yield Finding.at(
                part, "'global' hides what a helper works on; pass it as an argument and return it"
            )


def _unknown_methods(tree: ast.Module, rules: ScriptRules) -> Iterator[Finding]:
    """Yield methods that the script's object does not have."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == rules.subject
            and node.attr not in rules.methods
        ):
            yield Finding.at(
                node,
                f"the {rules.subject} has no {node.attr!r}; it has: {', '.join(rules.methods)}",
            )


def _invalid_addresses(tree: ast.Module) -> Iterator[Finding]:
    """Yield literal addresses, complete at least up to their path, that no request can go to."""
    for call, method in _steps(tree):
        if EFFECTS[method] not in ("http", "fetch") or (target := _target(call, method)) is None:
            continue
        text, complete = _literal_prefix(target)
        _, split, rest = text.partition("://")
        if split and (complete or "/" in rest) and (flaw := flaw_in_address(text)):
            yield Finding.at(target, flaw)
