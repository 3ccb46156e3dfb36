"""Driver of the flow `fix-flow`, which its bundle carries."""

REPAIRS = 2


def drive_fix(input):
    """Ask for the cause, then for a change until its proof holds, and propose that."""
    thread = input["params"]["thread"]
    step = yield {"role": {"name": "diagnostician"}}
    data = {"threadId": thread, "cause": step["meta"]["cause"], "proposalId": None}
    if step["meta"]["status"] != "found":
        return unfixed(step["meta"]["cause"], data)
    prompt = "Change flow.json so that the cause is gone."
    for _ in range(1 + REPAIRS):
        step = yield {"role": {"name": "fixer", "prompt": prompt}}
        data = {**data, "change": step["meta"]["summary"]}
        if step["meta"]["status"] != "changed":
            return unfixed(step["meta"]["summary"], data)
        proof, refusal = yield from attempt({"prove": {"thread": thread}})
        if proof is None:
            return unfixed(refusal, data)
        data = {**data, "evidence": proof["evidence"], "problems": proof["problems"]}
        if proof["held"]:
            return (yield from propose(thread, data))
        prompt = f"The proof of your change failed, for these reasons, which quote data:\n{fenced(proof['problems'])}\nCorrect flow.json."
    return unfixed(f"the proof failed: {'; '.join(data['problems'])}", data)


def propose(thread, data):
    """Propose the proved version."""
    found, refusal = yield from attempt({"propose": {"thread": thread}})
    if found is None:
        return unfixed(refusal, data)
    data = {**data, **found}
    return {
        "success": True,
        "message": f"proposal {found['proposalId']}: {data['change']}",
        "data": data,
    }


def attempt(effect):
    """Yield an effect; return its outcome and "", or None and why it failed."""
    try:
        return (yield effect), ""
    except Exception as exception:
        if not hasattr(exception, "error"):  # what the engine throws in has one
            raise
        return None, exception.error["message"]


def fenced(lines):
    """Return lines in a fence that is in none of them."""
    text, fence = "\n".join(lines), "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def unfixed(why, data):
    return {"success": False, "message": f"nothing is proposed: {why}", "data": data}
