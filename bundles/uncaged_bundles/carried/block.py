"""What a block flow needs to drive itself is defined here once, and the builder copies it word for word into each bundle.

Blocks run one after the other over one set of variables. The first that fails ends the flow, and a direct output does too.
Types for checkers are in ``block.pyi``.
"""

from .expression import BadExpression, compute
from .template import BadText, fill, fill_json, fill_url, fill_value, to_json, to_text

SHOWN_CHARACTERS = 500
LONG_PAGE_CHARACTERS = 100_000
USUAL_ITEMS = 100
LONGEST_MESSAGE = 4000
MOST_CALLS = 10
CHOOSE = "Call one of these flows, or answer. What they came to so far is in the input. The flows:"
LAST = "What the flows came to is in the input. Answer now."
SHORTER = "Summarise the following page. Keep every fact, number, name and link that somebody may need who has not read it."


class BlockFailed(Exception):
    """A block failed: its number, its type and why."""


class Blocks:
    """One run of a block flow. total: how many blocks it has. direct: the value that a block gave out directly, in a list."""

    def __init__(self, variables, expressions, total):
        self.variables = variables
        self.total = total
        self.expressions = expressions
        self.direct = []

    def run_all(self, steps, before):
        """Run the blocks inside a block; the last one's value is theirs."""
        value = None
        for number, step in enumerate(steps, 1):
            value = yield from self.run(step, f"{before}.{number}")
            if self.direct:
                break
        return value

    def run(self, step, number):
        """Run one block, keep its value in its variable, and return it."""
        kind, config = step["type"], step["config"]
        try:
            value = yield from self.labelled(self.perform(kind, config, number), f"block {number} of {self.total} ({kind})")
        except (BadText, BadExpression) as exception:
            raise BlockFailed(number, kind, str(exception)) from None
        except Exception as exception:
            if not hasattr(exception, "error"):  # what the engine throws in has one
                raise
            why = f"{exception.error.get('message') or exception.error.get('kind')}"
            raise BlockFailed(number, kind, f"the LLM block failed: {why}" if kind == "llmInstruction" else why) from None
        name = config.get("resultVariable") or config.get("responseVariable")
        if name:
            self.variables[name] = value
        if config.get("directOutput") is True and not self.direct:
            self.direct = [value]
        return value

    def labelled(self, effects, label):
        """Pass effects on, each with a few words for those who follow; those of a block inside have their own."""
        answer, failure = None, None
        while True:
            try:
                effect = effects.throw(failure) if failure else effects.send(answer)
            except StopIteration as stop:
                return stop.value
            answer, failure = None, None
            [(name, body)] = effect.items()
            try:
                answer = yield effect if "label" in body else {name: {**body, "label": label}}
            except Exception as exception:
                if not hasattr(exception, "error"):  # what the engine throws in has one
                    raise
                failure = exception

    def perform(self, kind, config, number):
        match kind:
            case "start":
                return dict(self.variables)
            case "apiCall":
                return (yield from self.call_api(config))
            case "llmInstruction":
                return (yield from self.ask_model(config))
            case "webScraping":
                return (yield from self.read_page(config))
            case "flow":
                return (yield from self.call_flow(config))
            case "code":
                return compute(self.expressions[config["expression"]], self.variables)
            case "condition":
                chosen = "then" if compute(self.expressions[config["expression"]], self.variables) else "else"
                return (yield from self.run_all(config.get(chosen, []), number))
        return (yield from self.repeat(config, number))

    def call_api(self, config):
        method = config.get("method", "GET").upper()
        effect = {"method": method, "url": fill_url(config["url"], self.variables), "headers": self.headers(config), **extras(config)}
        if method != "GET":
            effect |= self.body(config)
        answer = yield {"http": effect}
        text = answer.get("text") or ""
        if not 200 <= answer["status"] < 300:
            said = text or (to_json(answer["json"]) if "json" in answer else "")
            raise BadText(f"HTTP {answer['status']}: {said[:SHOWN_CHARACTERS] or 'no body'}")
        return answer.get("json", answer.get("base64", text))

    def headers(self, config):
        headers = {}
        for header in config.get("headers") or []:
            name, value = (to_text(fill(header.get(part, ""), self.variables)) for part in ("key", "value"))
            if any(mark in name + value for mark in "\r\n\0"):
                raise BadText(f"the header {name[:80]!r} has a line break in it")
            if name:
                headers[name] = value
        return headers

    def body(self, config):
        kind, body = config.get("bodyType", "json"), config.get("body")
        if kind == "form":
            form = {}
            for field in config.get("formData") or []:
                name, value = (to_text(fill(field.get(part, ""), self.variables)) for part in ("key", "value"))
                if name:
                    form.setdefault(name, []).append(value)
            return {"form": {name: values[0] if len(values) == 1 else values for name, values in form.items()}}
        if body is None or body == "":
            return {}
        if kind == "text":
            return {"text": to_text(fill(body, self.variables))}
        return {"json": fill_json(body, self.variables) if isinstance(body, str) else fill_value(body, self.variables)}

    def ask_model(self, config):
        prompt = to_text(fill(config["instruction"], self.variables))
        if not prompt.strip():
            raise BadText("the LLM block failed: its instruction is empty")
        effect = {"prompt": prompt, **({"model": config["model"]} if config.get("model") else {}), **extras(config)}
        if config.get("tools"):
            return (yield from self.let_choose(effect, config["tools"]))
        return said((yield {"llm": effect}))

    def let_choose(self, effect, tools):
        """Ask the model what to do next, and do it, until it answers; the last time it can only answer."""
        flows = {tool["flow"]: tool.get("description", "") for tool in tools}
        listed = "\n".join(f"- {name}: {text}" for name, text in flows.items())
        calls = []
        while True:
            names = list(flows) if len(calls) < MOST_CALLS else []
            prompt = f"{effect['prompt']}\n\n{CHOOSE}\n{listed}" if names else f"{effect['prompt']}\n\n{LAST}"
            answer = yield {"llm": {**effect, "prompt": prompt, "schema": choice_schema(names), **({"input": calls} if calls else {})}}
            choice = answer["data"] if "data" in answer and "text" in answer else answer
            name, given = choice.get("flow"), choice.get("arguments") or {}
            if name not in flows or len(calls) >= MOST_CALLS:
                return choice.get("answer") or ""
            try:
                came = yield {"flow": {"name": name, "params": given}}
            except Exception as exception:
                if not hasattr(exception, "error"):  # what the engine throws in has one
                    raise
                came = {"success": False, "message": exception.error.get("message"), "data": None}
            calls.append({"flow": name, "arguments": given, **{key: came[key] for key in ("success", "message", "data")}})

    def read_page(self, config):
        url = fill_url(config["url"], self.variables)
        if not url:
            raise BadText("there is no URL to read")
        form = config.get("captureAs") or "text"
        effect = {"url": url, "as": {"text": "markdown", "querySelector": "selector"}.get(form, form), **extras(config)}
        if form == "querySelector":
            effect["selector"] = fill(config.get("querySelector") or "", self.variables)
        page = yield {"fetch": effect}
        text = page["text"]
        if not text.strip():
            raise BadText(f"nothing to read at {url}")
        while config.get("enableSummarization") is True and len(text) > LONG_PAGE_CHARACTERS:
            shorter = []
            for part in split(text, LONG_PAGE_CHARACTERS):
                shorter.append(said((yield {"llm": {"prompt": SHORTER, "input": part}})))
            joined = "\n\n".join(shorter)
            if len(joined) >= len(text):
                raise BadText(f"the page at {url} has {len(text)} characters, and its summary is no shorter")
            text = joined
        return text

    def call_flow(self, config):
        effect = {"name": fill(config["flow"], self.variables), "params": fill_value(config.get("params") or {}, self.variables)}
        if config.get("prompt"):
            effect["prompt"] = to_text(fill(config["prompt"], self.variables))
        answer = yield {"flow": effect}
        if not answer["success"]:
            raise BadText(f"the flow {effect['name']!r} did not succeed: {answer['message']}")
        return answer["message"] if answer["data"] is None else answer["data"]

    def repeat(self, config, number):
        items = fill_value(config["list"], self.variables)
        if isinstance(items, str):
            items = fill_json(items, {}) if items.lstrip().startswith("[") else items
        if not isinstance(items, list):
            raise BadText(f"{to_text(items)[:80]!r} is no list")
        most = config.get("limit", USUAL_ITEMS)
        if len(items) > most:
            raise BadText(f"the list has {len(items)} items, and the limit of this block is {most}")
        values = []
        for index, item in enumerate(items):
            self.variables[config.get("itemVariable") or "item"] = item
            self.variables[config.get("indexVariable") or "index"] = index
            values.append((yield from self.run_all(config["steps"], number)))
            if self.direct:
                break
        return values


def choice_schema(names):
    """Return the form of a model's choice: a flow with its arguments, or the answer."""
    answer = {"type": "string", "description": "the answer, once no flow is needed any more"}
    if not names:
        return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    flow = {"enum": [*names, None], "description": "the flow to call next, or null"}
    return {"type": "object", "properties": {"flow": flow, "arguments": {"type": "object"}, "answer": answer}, "required": ["flow"]}


def extras(config):
    """Return what a block hands on to its effect as it stands."""
    return {key: config[key] for key in ("retry", "timeout_s") if key in config}


def split(text, size):
    """Return *text* in parts of at most *size* characters, cut at the end of a paragraph, a line or a word where there is one."""
    parts = []
    while len(text) > size:
        cut = next((at + len(mark) for mark in ("\n\n", "\n", " ") if (at := text.rfind(mark, size // 2, size - len(mark))) >= 0), size)
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text] if text.strip() else parts


def said(answer):
    """Return the text of a model's answer."""
    return answer["text"] if isinstance(answer, dict) and "text" in answer else to_text(answer)


def drive_blocks(input, *, steps, variables, expressions):
    """Run all blocks, and say of each what it came to.

    variables: what they start with, where the run's parameters say nothing else.
    """
    blocks = Blocks({**variables, **input["params"]}, expressions, len(steps))
    results, failure = [], None
    for number, step in enumerate(steps, 1):
        try:
            value = yield from blocks.run(step, str(number))
        except BlockFailed as exception:
            place, kind, why = exception.args
            failure = f"block {place} ({kind}): {why}"
            results.append({"success": False, "error": failure, "block": place, "type": kind})
            break
        results.append({"success": True, "result": value})
        if blocks.direct:
            break
    direct = blocks.direct[0] if blocks.direct else None
    data = {"success": failure is None, "results": results, "variables": dict(blocks.variables), "directOutput": direct}
    last = direct if blocks.direct else results[-1].get("result") if steps[len(results) - 1]["type"] != "start" else None
    message = failure or ("done" if last is None else to_text(last))
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + " …"
    return {"success": failure is None, "message": message, "data": data, **({"direct": True} if blocks.direct else {})}
