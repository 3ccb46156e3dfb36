"""Bundles of web flows: recorded steps with their driver, or a script for a browser."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from urllib.parse import urlsplit

from uncaged_bundles.carried import web as carried_web
from uncaged_bundles.carried import workflow as carried
from uncaged_bundles.syntax import parse_module

from ..recipes.descriptor import describe
from ..recipes.flows import WebFlow
from ..recipes.web_recipe import read_steps
from ..text.layout import write_driven
from ..text.literal import write_constant
from .script import bundle_head, marked, script_in
from .task_check import ScriptRules, check_script

WEB_RULES = ScriptRules(
    kind="web",
    subject="browser",
    methods=tuple(name for name in vars(carried_web.Browser) if not name.startswith("_")),
    driver=(carried, carried_web),
    free=frozenset({"print", "json", "re", "StepError"}),
)
LOADS = ("navigate", "open")
ASKING = frozenset({"extract", "extract_component", "check_page_state", "query_content"})
"""Operations that ask a model, which the policy has to allow."""


def write_web(flow: WebFlow) -> bytes:
    """Return the bundle of a web flow, not yet validated.

    Raises:
        BundleError: its script breaks a rule, with line and column of the script, or a step names
            an unknown parameter.
    """
    descriptor = describe(
        flow,
        kind="web",
        policy={"browser": dict(flow.policy), **({"llm": {}} if _asks_a_model(flow) else {})},
        scope=dict(flow.scope),
        maxSeconds=flow.max_seconds,
    )
    if flow.script:
        text = flow.script.rstrip("\n")
        check_script(text, flow.name, WEB_RULES)
        names = ["drive_browser", "print", "StepError"]
        rest = (
            f"{marked(text, flow.name)}\n\n\ndef run(input, options):\n"
            f'    return (yield from drive_browser(execute, input, "{flow.name}"))\n'
        )
    else:
        names = ["drive_web"]
        read_steps(list(flow.steps), flow.parameters, (flow.name, "steps"))
        rest = (
            f"{write_constant('steps', [dict(step) for step in flow.steps])}\n\n\n"
            "def run(input, options):\n"
            f'    return (yield from drive_web(input, name="{flow.name}", steps=steps))\n'
        )
    return write_driven(bundle_head(flow, "web"), descriptor, carried_web.__name__, names, rest)


def _asks_a_model(flow: WebFlow) -> bool:
    """Whether a step asks a model, or a script calls a method that does."""
    if any(step.get("do") in ASKING for step in flow.steps):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ASKING
        and isinstance(node.value, ast.Name)
        and node.value.id == WEB_RULES.subject
        for node in ast.walk(parse_module(flow.script))
    )


def web_parts(source: str) -> tuple[tuple[Mapping[str, object], ...], str]:
    """Return the steps and the script inside a web flow's bundle; one of them is empty."""
    script = script_in(source)
    if script is not None:
        return (), script
    for node in parse_module(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="steps")], value=value):
                return tuple(ast.literal_eval(value)), ""
            case _:
                continue
    return (), ""


def is_browser_script(language: str, text: str) -> bool:
    """Tell whether a script file is a web flow: its ``execute`` takes a browser."""
    if language != "python":
        return False
    try:
        tree = parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == "execute"
        and [argument.arg for argument in node.args.args][:1] == [WEB_RULES.subject]
        for node in tree.body
    )


def literal_hosts(text: str) -> list[str]:
    """Return the hosts that a script loads, if the address of every load begins with a literal
    host; else none.
    """
    found: list[str] = []
    for node in ast.walk(parse_module(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=WEB_RULES.subject), attr=method), args=args
            ) if method in LOADS:
                host = _literal_host(args[0]) if args else ""
                if not host:
                    return []
                found.append(host)
            case _:
                continue
    return list(dict.fromkeys(found))


def _literal_host(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return urlsplit(text).netloc.rpartition("@")[2].lower()
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            rest = text.partition("://")[2]
            return urlsplit(text).netloc.rpartition("@")[2].lower() if "/" in rest else ""
        case _:
            return ""
