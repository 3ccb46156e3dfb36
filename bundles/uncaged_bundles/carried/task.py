"""What a task flow's script is given is defined here once, and the builder copies it word for word into each bundle.

A script awaits steps. Each is an effect, and what came of it always has `text`, `data` and `error`: a failure is looked at, not caught.
A failure that the script never looked at makes its result unsuccessful.
No import but of the pure standard library may stand here. Types for checkers are in ``task.pyi``.
"""

import json

from .workflow import View, freeze

ASKED_ALONE = ("ask",)
LOG_LINES = 1000
LOG_CHARACTERS = 2000

kept_lines = []
unseen_failures = []


def print(*values, sep=" ", end="\n", file=None, flush=False):  # noqa: ARG001 - the built-in's signature
    """Keep a line for the `log` of the result; a script has no terminal."""
    if len(kept_lines) < LOG_LINES:
        kept_lines.append(f"{(sep or ' ').join(map(str, values))}{'' if end == chr(10) else end or ''}"[:LOG_CHARACTERS])


class Answer(View):
    """What a step came to; reading its `error`, or all of it, is to look at a failure."""

    def __getitem__(self, key):
        if key not in self:
            raise KeyError(key)
        return self.get(key)

    def get(self, key, default=None):
        if key == "error":
            mark_seen(self)
        return dict.get(self, key, default)

    def keys(self):
        mark_seen(self)
        return dict.keys(self)

    def values(self):
        mark_seen(self)
        return dict.values(self)

    def items(self):
        mark_seen(self)
        return dict.items(self)

    def __iter__(self):
        return iter(self.keys())

    def __repr__(self):
        return repr(dict(self.items()))


def mark_seen(answer):
    unseen_failures[:] = [(other, what) for other, what in unseen_failures if other is not answer]


def to_answer(what, fields):
    """Make what a script sees of a step; `what` names the step if it failed."""
    answer = Answer(fields)
    error = fields["error"]
    if error is not None:
        unseen_failures.append((answer, f"{what}: {error}"))
    return answer


class Wanted(list):
    """Effects that a script waits for; their answers come back in order."""

    def __await__(self):
        return (yield self)


class Api:
    """What a script may ask of the world. Each method but `gather` answers with `text`, `data` and `error` (None if all went well)."""

    __slots__ = ()

    async def call_action(self, flow, action=None, params=None, retry=None):
        """Run another flow to its end; an action is handed to it as its prompt."""
        return await take_step("flow", {"name": flow, "prompt": action, "params": params, "retry": retry}, read_flow)

    async def query_llm(self, prompt, *, input=None, parse_json=False, model=None, schema=None, retry=None):
        """Ask a language model. parse_json: `data` is the JSON in its answer. schema: `data` fits this JSON Schema."""
        body = {"prompt": prompt, "input": input, "model": model, "schema": schema, "retry": retry}
        answer = await take_step("llm", body, read_llm)
        return with_json(answer) if parse_json and dict.get(answer, "error") is None and answer.data is None else answer

    async def web_search(self, query, limit=None, retry=None):
        """Search the web; `data` is a list of `title`, `url` and `snippet`."""
        return await take_step("search", {"query": query, "limit": limit, "retry": retry}, read_search)

    async def web_fetch(self, url, *, form="markdown", selector=None, retry=None):
        """Read a web page. form: markdown or text. selector: only the parts that match this CSS selector."""
        body = {"url": url, "as": "selector" if selector else form, "selector": selector, "retry": retry}
        return await take_step("fetch", body, read_fetch)

    async def http(self, method, url, *, query=None, headers=None, json=None, form=None, text=None, timeout_s=None, retry=None):
        """Send a request; `data` has `status`, `headers` and `json` or `body`. A status of 400 and above is an error."""
        body = {"method": method, "url": url, "query": query, "headers": headers}
        body |= {"json": json, "form": form, "text": text, "timeout_s": timeout_s, "retry": retry}
        return await take_step("http", body, read_http)

    async def script(self, body, *, language="bash", arguments=None, parameters=None, timeout_s=None, retry=None):
        """Run a script of the operating system; `text` is what it kept_lines."""
        fields = {"language": language, "body": body, "arguments": arguments, "parameters": parameters}
        return await take_step("script", {**fields, "timeout_s": timeout_s, "retry": retry}, read_script)

    async def ask(self, question, schema=None, choices=None):
        """Ask a person, and wait for the answer."""
        return await take_step("ask", {"question": question, "schema": schema, "choices": choices}, read_value)

    async def sleep(self, seconds):
        """Wait."""
        return await take_step("sleep", {"seconds": seconds}, read_value)

    async def now(self):
        """Read the clock: milliseconds since 1970, UTC."""
        return await take_step("now", {}, read_value)

    async def gather(self, *steps):
        """Wait for several steps, or for helpers that wait for steps, and return their results in order.

        All that can go on at once does; then all wait for what they asked. The first exception of a helper is raised after all have ended.
        """
        runs = [as_coroutine(one) for one in steps]
        results = [None] * len(runs)
        failures = []
        answers = dict.fromkeys(range(len(runs)))
        while answers:
            wanted = {}
            for index, given in answers.items():
                try:
                    wanted[index] = runs[index].send(given)
                except StopIteration as stop:
                    results[index] = stop.value
                except Exception as exception:
                    failures.append(exception)
            heard = iter(await Wanted(effect for effects in wanted.values() for effect in effects) if wanted else ())
            answers = {index: [next(heard) for _ in effects] for index, effects in wanted.items()}
        if failures:
            raise failures[0]
        return results


async def as_coroutine(awaitable):
    """Make a coroutine of anything that can be awaited."""
    return await awaitable


async def take_step(kind, body, read):
    """Wait for one effect and return what a script sees of it."""
    fields = {key: value for key, value in body.items() if value is not None}
    what = f"{kind} {fields.get('name') or fields.get('url') or ''}".strip()
    [answer] = await Wanted([{kind: fields}])
    if "error" in answer:
        error = answer["error"].get("message") or answer["error"].get("kind") or "it failed"
        return to_answer(what, {"text": "", "data": None, "error": error})
    return to_answer(what, {"error": None, **read(answer["outcome"])})


def read_value(value):
    return {"text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "data": value}


def read_flow(value):
    error = None if value["success"] else value["message"] or "the flow did not succeed"
    return {"text": value["message"] or "", "data": value["data"], "error": error}


def read_llm(value):
    if isinstance(value, dict) and "text" in value and set(value) <= {"text", "data"}:
        return {"text": value["text"], "data": value.get("data")}
    return {"text": value, "data": None} if isinstance(value, str) else read_value(value)


def read_search(value):
    lines = [f"{found['title']}: {found['url']}\n{found.get('snippet') or ''}".rstrip() for found in value["results"]]
    return {"text": "\n\n".join(lines), "data": value["results"]}


def read_fetch(value):
    return {"text": value["text"], "data": value}


def read_http(value):
    text = value.get("text") or (json.dumps(value["json"], ensure_ascii=False) if "json" in value else value.get("body") or "")
    error = f"HTTP {value['status']}: {text[:500]}".rstrip(": ") if value["status"] >= 400 else None
    return {"text": text, "data": value, "error": error}


def read_script(value):
    if value["success"]:
        return {"text": value["stdout"], "data": value}
    why = "its time was over" if value["timedOut"] else f"exit code {value['exitCode']}"
    return {"text": value["stdout"], "data": value, "error": f"{why}: {value['stderr'].strip()[-500:]}".rstrip(": ")}


def with_json(answer):
    """Find the JSON in a model's answer: the whole of it, or a fenced block in it."""
    text = answer.text.strip()
    if "```" in text:
        text = text.split("```")[1].removeprefix("json").strip()
    try:
        return to_answer("llm", {**answer, "data": json.loads(text)})
    except ValueError as exception:
        return to_answer("llm", {**answer, "error": f"the model's answer is not JSON ({exception}): {answer.text[:200]}"})


def drive_task(execute, input, name):
    """Lead the script from effect to effect, and make a result of what it returns or raises."""
    script = execute(Api(), freeze(input["params"]))
    answers, steps, last = None, 0, "the start"
    while True:
        try:
            wanted = script.send(answers)
        except StopIteration as stop:
            unseen = [what for _, what in unseen_failures]
            result = with_unseen(to_result(stop.value, name), unseen)
            break
        except Exception as exception:
            result = to_failure(name, f"{type(exception).__name__}: {exception}", f"after {last}", str(exception))
            break
        steps += len(wanted)
        last = f"step {steps} ({', '.join(dict.fromkeys(kind for effect in wanted for kind in effect))})"
        answers = yield from answer_all(wanted)
    return {**result, "log": list(kept_lines)} if kept_lines else result


def answer_all(effects):
    """Yield the effects, together where that is possible, and return their answers in order."""
    apart = [len(effects) == 1 or any(kind in effect for kind in ASKED_ALONE) for effect in effects]
    together = [effect for effect, alone in zip(effects, apart, strict=True) if not alone]
    heard = iter((yield {"all": {"effects": together}}) if together else ())
    answers = []
    for effect, alone in zip(effects, apart, strict=True):
        answers.append((yield from answer_one(effect)) if alone else next(heard))
    return answers


def answer_one(effect):
    try:
        return {"outcome": (yield effect)}
    except Exception as exception:
        if not hasattr(exception, "error"):  # what the engine throws in has one
            raise
        return {"error": exception.error}


def to_result(value, name):
    """Make a result of whatever a script returns."""
    try:
        value = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as exception:
        return to_failure(name, f"what the script returned is not JSON data: {exception}", "at its end", "")
    if value is None:
        return {"success": True, "message": "Script completed", "data": None}
    if not isinstance(value, dict) or "success" not in value:
        return {"success": True, "message": str(value), "data": value}
    said = value.get("message", value.get("error"))
    return {"data": None, **value, "success": bool(value["success"]), "message": "" if said is None else str(said)}


def with_unseen(result, unseen):
    """Make a result unsuccessful if a step failed and the script never looked at that."""
    if not unseen or not result["success"]:
        return result
    own = f"; its own message was: {result['message']}" if result["message"] else ""
    return {**result, "success": False, "message": f"{'; '.join(unseen)} (the script did not look at this error{own})"}


def to_failure(name, cause, where, message):
    error = f"{name}: {cause} ({where}); mend it with 'uncaged-workflow edit {name} --script FILE'"
    return {"success": False, "message": message or cause, "data": None, "error": error}
