"""A flow of another distribution, as a definition: one role, asked once."""

from uncaged_bundles.authoring import END, START, View, Workflow

from .greeter import role


def result(ctx: View) -> dict[str, object]:
    meta = ctx.steps[-1].meta
    return {"success": meta.status == "greeted", "message": meta.greeting}


workflow = Workflow(
    name="greet",
    description="Greets whoever the prompt names.",
    roles=(role,),
    moderator={START: "greeter", "greeter": {"greeted": END, "shy": END}},
    result=result,
)
