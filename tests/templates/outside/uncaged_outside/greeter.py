"""A role of another distribution."""

from uncaged_bundles.authoring import Role

role = Role(
    name="greeter",
    description="Greets whoever the task names.",
    system_prompt="Greet whoever the task names, in one sentence.\n",
    extract_prompt="Take the greeting.",
    schema={
        "type": "object",
        "properties": {
            "status": {"enum": ["greeted", "shy"]},
            "greeting": {"type": "string", "minLength": 1},
        },
        "required": ["status", "greeting"],
    },
)
