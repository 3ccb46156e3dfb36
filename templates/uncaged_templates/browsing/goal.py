"""Driver of the flow `web-goal`, which its bundle carries: an agent reaches a goal on the pages of
one site.
"""

import re

ADDRESS = re.compile(
    r"(?i)\b(https?://[^\s<>\"']+|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?(?:/\S*)?"
    r"|(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?(?:/\S*)?)"
)
OWN = re.compile(
    r"localhost|(?:127|10)(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}"
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}|\[[0-9a-f:.]*\]?|.*\.local"
)
NO_ADDRESS = "name the page to begin at: --param url=ADDRESS, or an address in the prompt"
NO_GOAL = "say what is to be done: --prompt TEXT"


def drive_goal(input):
    """Ask the navigator, with its browser limited to the hosts of the address and of `hosts`."""
    params, goal = input["params"], input["prompt"].strip()
    url = address_in(params.get("url") or goal)
    if not goal or url is None:
        return {"success": False, "message": NO_ADDRESS if goal else NO_GOAL}
    hosts = [host_of(url), *params.get("hosts", [])]
    limits = {
        "start": url,
        "steps": params.get("steps", 30),
        "hosts": hosts,
        "private": any(OWN.fullmatch(host.rpartition(":")[0] or host) for host in hosts),
    }
    body = {
        "name": "navigator",
        "prompt": f"Begin at {url}. The browser may load pages of {', '.join(hosts)} alone.",
        "within": {"browser": limits},
        "timeout_s": params.get("seconds", 600),
    }
    try:
        step = yield {"role": body}
    except Exception as exc:
        return {"success": False, "message": str(exc), "data": {"url": url, "hosts": hosts}}
    meta = step["meta"]
    data = {"url": url, "hosts": hosts, "missing": meta.get("missing", "")}
    return {"success": meta["status"] == "done", "message": meta["message"], "data": data}


def address_in(text):
    """Return the first address in a text, with its scheme; None if there is none."""
    found = ADDRESS.search(text)
    if found is None:
        return None
    address = found[0].rstrip(".,;:!?)")
    if "://" in address:
        return address
    host = address.partition("/")[0].partition(":")[0]
    return ("http://" if OWN.fullmatch(host) else "https://") + address


def host_of(url):
    """Return the host of an address, with a port that it names."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
