"""What a built workflow needs to drive itself is defined here once, and the builder copies it word for word into each bundle.

So a moderator meets the same objects in a test, while building and in a bundle. No import may stand here: it would become every bundle's.
Types for checkers are in ``workflow.pyi``.
"""

START = "__start__"
END = "__end__"


class View(dict):
    """A mapping that cannot be changed, with its keys as attributes: `step.meta.status`, or `step["meta"]["status"]`.

    A key that is spelled like a method of a mapping is reached as `meta["items"]` only.
    """

    def __init__(self, fields=()):
        dict.update(self, [(key, freeze(value)) for key, value in dict(fields).items()])

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"there is no {name!r} here; there are: {', '.join(map(repr, self))}")

    def refuse(self, *_args, **_kwargs):
        """Stand in for every method that would change the mapping."""
        raise TypeError("this is read-only; change a copy, such as dict(view)")

    __delattr__ = __delitem__ = __ior__ = __setattr__ = __setitem__ = refuse
    clear = pop = popitem = setdefault = update = refuse


class Items(list):
    """A list that cannot be changed."""

    def __init__(self, items=()):
        list.extend(self, [freeze(item) for item in items])

    def refuse(self, *_args, **_kwargs):
        """Stand in for every method that would change the list."""
        raise TypeError("this is read-only; change a copy, such as list(items)")

    __delitem__ = __iadd__ = __imul__ = __setitem__ = refuse
    append = clear = extend = insert = pop = remove = reverse = sort = refuse


def freeze(value):
    """Return JSON data as it is, with every mapping and list in it made read-only."""
    if isinstance(value, dict):
        return value if isinstance(value, View) else View(value)
    if isinstance(value, list | tuple):
        return value if isinstance(value, Items) else Items(value)
    return value


def drive_roles(input, options, *, roles, moderator, result=None, recover=None):
    """Ask the role that the moderator picks, append its step, and go on until it picks END; return the thread's result.

    A choice is a role, or a role and a note to it: `"coder"`, `("coder", "Only the parser.")`.
    A role that fails (no usable answer, out of time) ends the thread without success, unless `recover(ctx, failure)`
    picks a role to go on with.
    """
    steps = Items(view_step(step) for step in input["steps"] if "meta" in step)
    start = {"prompt": input["prompt"], "params": input["params"]}
    ctx = View({"threadId": options["threadId"], "start": start, "steps": steps})
    failures = 0
    question = ask_for(moderator(ctx), roles, "moderator")
    while question is not None:
        try:
            step = yield {"role": question}
        except Exception as exception:
            if not hasattr(exception, "error"):  # what the engine throws in has one
                raise
            failures += 1
            failure = View({**exception.error, "role": question["name"], "times": failures})
            question = ask_for(recover(ctx, failure), roles, "recover") if recover else None
            if question is None:
                message = f"the role {failure.role!r} failed: {failure.message}"
                return {"success": False, "message": message, "data": {"role": failure.role, "kind": failure.kind}}
        else:
            failures = 0
            list.append(steps, view_step(step))
            question = ask_for(moderator(ctx), roles, "moderator")
    if result:
        return result(ctx)
    return {"success": True, "message": steps[-1].content if steps else "", "data": steps[-1].meta if steps else None}


def view_step(step):
    """Return what a moderator sees of a step: never who answered or what it cost, so that it cannot depend on that."""
    return View({key: step[key] for key in ("role", "content", "meta", "timestamp") if key in step})


def ask_for(choice, roles, chooser):
    """Return what a role effect asks for a choice; nothing for END."""
    if choice == END:
        return None
    role, *note = choice if isinstance(choice, tuple) and choice else (choice,)
    known = isinstance(role, str) and role in roles
    if known and not note:
        return {"name": role}
    if known and len(note) == 1 and isinstance(note[0], str):
        return {"name": role, "prompt": note[0]}
    raise LookupError(f"{chooser} picked {choice!r}, which is no role here; there are: {', '.join(roles)} (and END)")


def follow_table(graph):
    """Return the moderator that looks up the next role in *graph* by the last step's role and status."""

    def moderator(ctx):
        if not ctx.steps:
            return graph[START]
        step = ctx.steps[-1]
        row = graph.get(step.role, {})
        if isinstance(row, str):
            return row
        status = step.meta.get("status")
        if status not in row:
            raise LookupError(f"the table has no edge for role {step.role!r} with status {status!r}")
        return row[status]

    return moderator
