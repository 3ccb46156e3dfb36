"""Several calls of flows, one after the other; each may use the results of those before it."""

from uncaged_bundles.carried.placeholders import BadReference, resolve

DESCRIPTOR = {
    "contract": 1,
    "name": "calls",
    "displayName": "Run calls",
    "description": "Runs a list of calls of flows in order and passes results on.",
    "kind": "task",
    "parameters": {
        "type": "object",
        "properties": {
            "calls": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "flow": {"type": "string"},
                        "params": {"type": "object"},
                        "data": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["flow"],
                },
                "description": "The calls. data: names of parameters that take data, not text.",
            },
            "entities": {
                "type": "array",
                "default": [],
                "description": "Things that calls refer to as ${entity-N}.",
            },
            "paths": {
                "enum": ["throw", "fallback-to-name", "passthrough", "off"],
                "default": "throw",
            },
        },
        "required": ["calls"],
    },
    "policy": {"flow": {}},
}


def drive_calls(input):
    params = input["params"]
    calls, entities, mode = (
        params["calls"],
        params.get("entities", []),
        params.get("paths", "throw"),
    )
    results, done = [], []
    for number, call in enumerate(calls):
        name = call["flow"]
        try:
            filled = resolve(
                call.get("params", {}), results, entities, mode, as_data=call.get("data", ())
            )
        except BadReference as exc:
            return ended(False, f"call {number + 1} of {len(calls)}, {name}: {exc}", done)
        try:
            outcome = yield {"flow": {"name": name, "params": filled}}
        except Exception as exc:
            return ended(False, f"call {number + 1} of {len(calls)}, {name}: {exc}", done)
        done.append({"flow": name, **outcome})
        if not outcome["success"]:
            return ended(
                False, f"call {number + 1} of {len(calls)}, {name}: {outcome['message']}", done
            )
        results.append(outcome["data"])
    return ended(True, "\n".join(str(one["message"]) for one in done if one["message"]), done)


def ended(success, message, done):
    return {"success": success, "message": message, "data": {"results": done}}
