"""Driver of the flows of the pack `browser`, which their bundles carry."""

LOCAL = ("localhost", "127.0.0.1", "[::1]")
SHOWN_CHARACTERS = 2000


def drive_page(input, operation):
    """Perform one operation with the flow's parameters."""
    params = {key: value for key, value in input["params"].items() if value not in (None, "")}
    site = params.pop("site", None)
    if site is not None:
        params["url"] = address_of(site)
    name = params.pop("name", None)
    if name is not None:
        params["target"] = [
            {"role": role, "name": name, "exact": exact}
            for exact in (True, False)
            for role in ("button", "link", "tab", "menuitem")
        ]
    field = params.pop("field", None)
    if field is not None:
        params["target"] = [
            {way: field, "exact": exact}
            for exact in (True, False)
            for way in ("label", "placeholder")
        ]
    try:
        answer = yield {"browser": {**operation, **params}}
    except Exception as exc:
        return {"success": False, "message": str(exc)}
    return {"success": True, "message": words_of(answer), "data": answer}


def address_of(site):
    """Return a site as an address; https without a scheme, and http on this machine."""
    site = site.strip().removesuffix(".")
    if site.startswith(("http://", "https://")):
        return site
    host = site.partition("/")[0].rpartition(":")[0] or site.partition("/")[0]
    return ("http://" if host in LOCAL else "https://") + site


def words_of(answer):
    """Return an answer as a person reads it."""
    if isinstance(answer, list):
        return "\n".join(
            f"{'*' if tab['current'] else ' '} {tab['tab']}  {tab['title'] or tab['url']}"
            for tab in answer
        )
    if "actions" in answer:
        return actions_in(answer)
    if "text" in answer:
        return answer["text"][:SHOWN_CHARACTERS]
    if "voice" in answer:
        return f"reading {answer['characters']} characters aloud"
    if "stopped" in answer:
        return "stopped" if answer["stopped"] else "no page is being read aloud"
    if "title" in answer:
        return f"{answer['title']} ({answer['url']})" if answer["title"] else answer["url"]
    if "moved" in answer:
        return "scrolled" if answer["moved"] else "the page does not scroll further"
    if "open" in answer:
        return f"closed; {answer['open']} tabs are open"
    return "done"


def actions_in(answer):
    """Return the actions of a page as lines, each with its name, its label and its parameters."""
    lines = []
    for one in answer["actions"]:
        names = one.get("parameters", {}).get("properties", {})
        listed = f" ({', '.join(names)})" if names else ""
        lines.append(f"{one['name']}  {one['label']}{listed}")
    shown, length = [], 0
    for line in lines:
        length += len(line) + 1
        if length > SHOWN_CHARACTERS:
            shown.append(f"… {len(lines) - len(shown)} more")
            break
        shown.append(line)
    left = [f"left out: {one}" for one in answer.get("leftOut", [])]
    return "\n".join([answer["title"] or answer["url"], *shown, *left])
