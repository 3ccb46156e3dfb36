"""Driver of web flows: recorded steps, or a script ``async def execute(browser, params)``. The builder copies it into each bundle.

Imports only the pure part of the standard library. Types for checkers are in ``web.pyi``.
"""

import json
import re

from .workflow import freeze

PLACEHOLDER = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_-]*)\}")
AS_DATA = ("checked", "nth", "position", "times", "factor", "offset", "options", "files", "arguments")
LOG_LINES = 1000
LOG_CHARACTERS = 2000

log_lines = []


def drive_web(input, *, name, steps):
    """Perform the recorded steps in order, and compare the page with the expectation of each.

    keep: a step's key; what the step answers is in the result under this name.
    """
    params = input["params"]
    kept, alternatives, address = {}, [], {}
    for number, step in enumerate(steps, 1):
        body = {key: fill(key, value, params) for key, value in step.items() if key != "keep"}
        where = f"{name}: step {number} of {len(steps)} ({describe(body)})"
        try:
            answer = yield {"browser": body}
        except Exception as exception:
            if not hasattr(exception, "error"):  # every error of the engine has one
                raise
            error = exception.error
            data = {"step": number, "kind": error.get("kind"), "error": error, "kept": kept}
            return {"success": False, "message": f"{where}: {error.get('message')}", "data": data}
        if isinstance(answer, dict):
            address = {key: answer[key] for key in ("url", "title") if key in answer}
            if answer.get("alternative"):
                alternatives.append({"step": number, "alternative": answer["alternative"]})
            if answer.get("drift"):
                data = {"step": number, "kind": "drift", "drift": answer["drift"], "kept": kept}
                return {"success": False, "message": f"{where}: the page differs: {differences(answer['drift'])}", "data": data}
        if step.get("keep"):
            kept[step["keep"]] = answer.get("text", answer) if isinstance(answer, dict) else answer
    data = {**address, "steps": len(steps), "kept": kept, "alternatives": alternatives}
    texts = [value for value in kept.values() if isinstance(value, str)]
    message = "\n".join(texts)[:LOG_CHARACTERS] or f"{len(steps)} steps performed"
    return {"success": True, "message": message, "data": data}


def fill(key, value, params):
    """Return a value of a step with the parameters in place of their placeholders; ``$${`` is the text ``${``.

    In patterns of an expectation, an asterisk of a parameter is only itself.
    """
    if key == "expect" and isinstance(value, dict):
        literal = {name: as_text(item).replace("*", "\\*") for name, item in params.items()}
        return {inner: fill(inner, item, params if inner == "view" else literal) for inner, item in value.items()}
    if isinstance(value, dict):
        return {inner: fill(key if key == "arguments" else inner, item, params) for inner, item in value.items()}
    if isinstance(value, list):
        return [fill(key, item, params) for item in value]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and whole[1] and key in AS_DATA:
        return params.get(whole[1])
    return PLACEHOLDER.sub(lambda match: as_text(params.get(match[1])) if match[1] else "${", value)


def as_text(value):
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def describe(body):
    """Return a step in a few words."""
    target = body.get("target") or body.get("url") or body.get("key") or ""
    first = target[0] if isinstance(target, list) and target else target
    if isinstance(first, dict):
        first = " ".join(str(value) for key, value in first.items() if key != "nth")
    return f"{body['do']} {first}".strip()[:200]


def differences(drift):
    return "; ".join(f"{one['what']}: expected {one['expected']!r}, found {one['found']!r}" for one in drift)[:LOG_CHARACTERS]


def print(*values, sep=" ", end="\n", file=None, flush=False):  # noqa: ARG001 - the built-in's signature
    """Keep a line for the `log` of the result; a script has no terminal."""
    if len(log_lines) < LOG_LINES:
        log_lines.append(f"{(sep or ' ').join(map(str, values))}{'' if end == chr(10) else end or ''}"[:LOG_CHARACTERS])


class StepError(Exception):
    """A step failed. kind: not-found, ambiguous, timeout, blocked, navigation, crashed, closed, refused or drift."""

    def __init__(self, error):
        super().__init__(str(error.get("message") or "the step failed"))
        self.kind = error.get("kind")
        self.candidates = error.get("candidates") or []
        self.drift = error.get("drift") or []


class WantedStep(dict):
    """An operation that a script waits for."""

    def __await__(self):
        return (yield self)


class Browser:
    """Operations for scripts. Each returns the answer of the operation, or raises `StepError`.

    target: a mapping such as ``{"role": "button", "name": "Save"}``, or a list of alternatives; a text is css. Further
    keys of an operation, such as `timeout_s`, `frame` and `expect`, are keyword arguments.
    """

    __slots__ = ()

    async def navigate(self, url, **more):
        return await take("navigate", {"url": url}, more)

    async def open(self, url, **more):
        return await take("open", {"url": url}, more)

    async def find(self, words, **more):
        return await take("find", {"words": words}, more)

    async def search(self, words, **more):
        return await take("search", {"words": words}, more)

    async def extract(self, schema, text=None, **more):
        return (await take("extract", {"schema": schema, "text": text}, more))["data"]

    async def extract_component(self, text, **more):
        return await take("extract_component", {"text": text}, more)

    async def check_page_state(self, text, **more):
        return await take("check_page_state", {"text": text}, more)

    async def query_content(self, text, **more):
        return await take("query_content", {"text": text}, more)

    async def close(self, **more):
        return await take("close", {}, more)

    async def tabs(self, **more):
        return await take("tabs", {}, more)

    async def switch(self, words=None, **more):
        return await take("switch", {"words": words}, more)

    async def back(self, **more):
        return await take("back", {}, more)

    async def forward(self, **more):
        return await take("forward", {}, more)

    async def reload(self, **more):
        return await take("reload", {}, more)

    async def address(self, **more):
        return await take("address", {}, more)

    async def text(self, target=None, **more):
        return (await take("text", {"target": target}, more))["text"]

    async def html(self, form=None, **more):
        return (await take("html", {"as": form}, more))["text"]

    async def view(self, target=None, **more):
        return (await take("view", {"target": target}, more))["text"]

    async def screenshot(self, target=None, **more):
        return await take("screenshot", {"target": target}, more)

    async def click(self, target, **more):
        return await take("click", {"target": target}, more)

    async def follow(self, words=None, **more):
        return await take("follow", {"words": words}, more)

    async def fill(self, target, text, **more):
        return await take("fill", {"target": target, "text": text}, more)

    async def type(self, text, target=None, **more):
        return await take("type", {"text": text, "target": target}, more)

    async def press(self, key, target=None, **more):
        return await take("press", {"key": key, "target": target}, more)

    async def select(self, target, options, **more):
        return await take("select", {"target": target, "options": options}, more)

    async def check(self, target, checked=True, **more):
        return await take("check", {"target": target, "checked": checked}, more)

    async def upload(self, target, files, **more):
        return await take("upload", {"target": target, "files": files}, more)

    async def hover(self, target, **more):
        return await take("hover", {"target": target}, more)

    async def drag(self, target, onto, **more):
        return await take("drag", {"target": target, "onto": onto}, more)

    async def scroll(self, direction=None, target=None, **more):
        return await take("scroll", {"direction": direction, "target": target}, more)

    async def zoom(self, factor, **more):
        return await take("zoom", {"factor": factor}, more)

    async def speak(self, target=None, **more):
        return await take("speak", {"target": target}, more)

    async def stop_speaking(self, **more):
        return await take("stop_speaking", {}, more)

    async def status(self, text=None, **more):
        return await take("status", {"text": text}, more)

    async def settings(self, **more):
        return await take("settings", {}, more)

    async def wait(self, until=None, target=None, **more):
        return await take("wait", {"for": until, "target": target}, more)


async def take(do, fields, more):
    """Wait for one operation and return its answer."""
    body = {"do": do, **{key: target_of(key, value) for key, value in {**fields, **more}.items() if value is not None}}
    answer = await WantedStep(body)
    if "error" in answer:
        raise StepError(answer["error"])
    outcome = answer["outcome"]
    if isinstance(outcome, dict) and outcome.get("drift"):
        message = f"{describe(body)}: the page differs: {differences(outcome['drift'])}"
        raise StepError({"kind": "drift", "message": message, "drift": outcome["drift"]})
    return freeze(outcome)


def target_of(key, value):
    return {"css": value} if key in ("target", "onto") and isinstance(value, str) else value


def drive_browser(execute, input, name):
    """Lead the script from operation to operation, and make a result of its return value or its exception."""
    script = execute(Browser(), freeze(input["params"]))
    answer, steps = None, 0
    while True:
        try:
            wanted = script.send(answer)
        except StopIteration as stop:
            result = to_web_result(stop.value, name)
            break
        except StepError as exception:
            data = {"step": steps, "kind": exception.kind, "drift": exception.drift}
            result = {"success": False, "message": f"{name}: step {steps}: {exception}", "data": data}
            break
        except Exception as exception:
            result = web_failure(name, f"{type(exception).__name__}: {exception}", f"after step {steps}")
            break
        steps += 1
        try:
            answer = {"outcome": (yield {"browser": dict(wanted)})}
        except Exception as exception:
            if not hasattr(exception, "error"):  # every error of the engine has one
                raise
            answer = {"error": exception.error}
    return {**result, "log": list(log_lines)} if log_lines else result


def to_web_result(value, name):
    """Return the result of a script as `{success, message, data}`."""
    try:
        value = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as exception:
        return web_failure(name, f"the returned value is not JSON data: {exception}", "at its end")
    if value is None:
        return {"success": True, "message": "Script completed", "data": None}
    if not isinstance(value, dict) or "success" not in value:
        return {"success": True, "message": str(value), "data": value}
    message = value.get("message", value.get("error"))
    return {"data": None, **value, "success": bool(value["success"]), "message": "" if message is None else str(message)}


def web_failure(name, cause, where):
    error = f"{name}: {cause} ({where}); change it with 'uncaged-workflow edit {name} --script FILE'"
    return {"success": False, "message": cause, "data": None, "error": error}
