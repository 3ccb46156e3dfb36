"""A flow of another distribution, as a bundle that its author wrote by hand: it uses that
distribution's effect.
"""

source = b"""\
descriptor = {
    "contract": 1,
    "name": "greet-loudly",
    "description": "Greets whoever the prompt names, in capitals.",
    "kind": "workflow",
    "roles": {
        "greeter": {
            "description": "Greets whoever the task names.",
            "systemPrompt": "Greet whoever the task names, in one sentence.",
            "extractPrompt": "Take the greeting.",
            "schema": {"type": "object", "properties": {"greeting": {"type": "string"}}, "required": ["greeting"]},
        },
    },
    "policy": {"role": {}, "shout": {"maxCharacters": 40}},
}


def run(input, options):
    step = yield {"role": {"name": "greeter"}}
    loud = yield {"shout": {"text": step["meta"]["greeting"]}}
    return {"success": True, "message": loud}
"""
