"""What a script flow needs to drive itself is defined here once, and the builder copies it word for word into each bundle.

No import but of the pure standard library may stand here. Types for checkers are in ``script.pyi``.
"""

import json

SHOWN_CHARACTERS = 4000


def drive_script(input, *, name, script, arguments, form):
    """Run the script once, with the parameters of the run, and say what came of it.

    arguments: what stands on its command line: texts, and `{"param", "flag", "switch"}` for the value of a parameter.
    form: `json` when what it prints is JSON.
    """
    params = {key: value for key, value in input["params"].items() if value is not None}
    words = [word for part in arguments for word in spell(part, params)]
    effect = {**script, "parameters": params, **({"arguments": words} if words else {})}
    try:
        data = yield {"script": effect}
    except Exception as exception:
        if not hasattr(exception, "error"):  # what the engine throws in has one
            raise
        message = f"{name}: {exception.error.get('message')}; change it with 'uncaged-workflow edit {name}'"
        return {"success": False, "message": message, "data": exception.error}
    if not data["success"]:
        why = f"it ended with exit code {data['exitCode']}"
        if data["timedOut"]:
            why = f"its time was over after {data['durationMs'] // 1000} s"
        elif data["exitCode"] == 0:
            why = "it was refused something"
        said = "\n".join([data["stderr"].strip()[-SHOWN_CHARACTERS:], *data.get("refused", [])]).strip()
        message = f"{name}: {why}{': ' if said else ''}{said}\nchange it with 'uncaged-workflow edit {name}'"
        return {"success": False, "message": message, "data": data}
    if form != "json":
        return {"success": True, "message": shorten(data["stdout"].strip("\n")) or "done; it printed nothing", "data": data}
    try:
        return {"success": True, "message": shorten(data["stdout"].strip("\n")), "data": {**data, "output": json.loads(data["stdout"])}}
    except ValueError as exception:
        message = f"{name}: what it printed is not JSON ({exception}); change it with 'uncaged-workflow edit {name}'"
        return {"success": False, "message": message, "data": data}


def spell(part, params):
    """Return the words on the command line that one part of it stands for."""
    if isinstance(part, str):
        return [part]
    value = params.get(part["param"])
    if value is None or (part.get("switch") and not value):
        return []
    flag = [part["flag"]] if part.get("flag") else []
    if part.get("switch"):
        return flag
    return [*flag, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


def shorten(text):
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[{len(text) - SHOWN_CHARACTERS} more characters are in data.stdout]"
