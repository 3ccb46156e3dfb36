"""A web flow on a page that was redesigned: healed, proposed, accepted, and run without healing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.processes import end, workers_of
from testbed.recordings import Commands, commands_of
from testbed.steering import finish, intent_of, settle, wait_for
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

OLD = "<label>Title <input id=t></label> <button onclick=save()>Save</button> <button onclick=remove()>Delete</button>"
NEW = """<button onclick=remove() class=a>Remove</button><p><span><button onclick=save() class=b>Save changes</button></span></p>
<section><label>Headline <input></label></section>"""
GONE = "<label>Title <input></label> <button onclick=remove()>Delete all</button>"
"""Where the button was, another one is."""
SCRIPT = """<script>
const tell = what => fetch('/did?' + what + '=' + encodeURIComponent(document.querySelector('input').value))
  .then(() => { document.querySelector('h1').textContent = what; });
function save() { tell('saved'); }
function remove() { tell('deleted'); }
</script>"""


@dataclass(kw_only=True)
class Page:
    """A page in one of its designs. done: what was asked of its server."""

    design: str = OLD
    done: list[str] = field(default_factory=list)

    def answer(self, request: Seen) -> Reply:
        if request.path.startswith("/did?"):
            self.done.append(request.path.partition("?")[2])
            return text("ok")
        page = f"<!doctype html><title>Notes</title><h1>Edit</h1>{self.design}{SCRIPT}"
        return text(page, "text/html; charset=utf-8")


@pytest.fixture(scope="module")
def page() -> Page:
    return Page()


@pytest.fixture(scope="module")
def web(page: Page) -> Iterator[WebServer]:
    with serving(page.answer) as server:
        yield server


@pytest.fixture(scope="module")
def commands(
    tmp_path_factory: pytest.TempPathFactory, forked: ForkedCommands
) -> Iterator[Commands]:
    directory = tmp_path_factory.mktemp("healed")
    with commands_of(Store.open(directory / "store"), directory, os.environ, forked) as found:
        yield found


def recipe(name: str, web: WebServer) -> dict[str, object]:
    save = [{"role": "button", "name": "Save"}, {"css": "button:nth-of-type(1):text-is('Save')"}]
    return {
        "kind": "web",
        "name": name,
        "description": "Save a note.",
        "parameters": {"title": {"type": "string", "required": True, "description": "its title"}},
        "scope": {"type": "site", "domains": [web.host], "private": True},
        "steps": [
            {"do": "navigate", "url": f"{web.url}/"},
            {"do": "fill", "target": [{"label": "Title"}], "text": "${title}", "timeout_s": 4},
            {"do": "click", "target": save, "expect": {"heading": "saved"}, "timeout_s": 4},
        ],
    }


def add(commands: Commands, name: str, document: object) -> None:
    file = Path(commands.directory / f"{name}.json")
    file.write_text(json.dumps(document))
    added = commands.run("add", name, str(file), "--accept")
    assert added.code == 0, added.err


def test_a_redesigned_page_heals_is_proposed_and_accepted(
    commands: Commands, page: Page, web: WebServer
) -> None:
    """The run says what it healed; the proposal shows why and what differs; accepted, the next run
    heals nothing; `rollback` returns to the old version.
    """
    add(commands, "note", recipe("note", web))
    page.design, page.done = OLD, []
    assert commands.run("run", "note", "--param", "title=one").code == 0
    page.design = NEW
    healed = commands.run("run", "note", "--param", "title=two")
    assert (healed.code, page.done) == (0, ["saved=one", "saved=two"]), healed.err
    assert 'healed: label Title → textbox "Headline"' in healed.out
    assert 'healed: role button "Save" → button "Save changes"' in healed.out
    assert "next: uncaged-workflow proposals" in healed.err
    assert commands.run("verify", "latest").code == 0
    thread = commands.run("thread", "latest", "--json").document
    [proposal] = commands.run("proposals", "--json").document["proposals"]
    assert proposal["threadIds"] == [thread["threadId"]] and proposal["policy"] == []
    assert [one["step"] for one in proposal["evidence"]["steps"]] == [2, 3]
    shown = commands.run("proposal", "show", proposal["proposalId"]).out
    assert "no further permission" in shown and "+" in shown and "Save changes" in shown
    again = commands.run("run", "note", "--param", "title=three")
    assert "healed" in again.out, "a proposal is not active until it is accepted"
    [same] = commands.run("proposals", "--json").document["proposals"]
    assert same["proposalId"] == proposal["proposalId"] and len(same["threadIds"]) == 2
    assert commands.run("proposal", "accept", proposal["proposalId"]).code == 0
    after = commands.run("run", "note", "--param", "title=four")
    assert after.code == 0 and "healed" not in after.out, after.out
    assert page.done[2:] == ["saved=three", "saved=four"]
    page.design = OLD
    assert commands.run("rollback", "note").code == 0
    assert "healed" not in commands.run("run", "note", "--param", "title=five").out


def test_a_run_that_may_not_heal_fails_with_the_candidate(
    commands: Commands, page: Page, web: WebServer
) -> None:
    """`--heal off` fails as before; a script reports the nearest element and uses nothing; a button
    of other meaning is never pressed; `--heal apply` accepts what was found.
    """
    add(commands, "memo", recipe("memo", web))
    page.design, page.done = NEW, []
    off = commands.run("run", "memo", "--param", "title=x", "--heal", "off")
    assert off.code == 3 and "no visible element" in off.out and "nearest" not in off.out
    script = commands.directory / "scripted.py"
    script.write_text(
        f"""async def execute(browser, params):
    await browser.navigate("{web.url}/")
    await browser.click({{"role": "button", "name": "Save"}}, timeout_s=1)
"""
    )
    assert commands.run("add", "scripted", str(script), "--accept").code == 0
    policy = commands.directory / "policy.json"
    policy.write_text(json.dumps({"browser": {"hosts": [web.host], "private": True}}))
    assert commands.run("edit", "scripted", "--policy", str(policy), "--accept").code == 0
    by_hand = commands.run("run", "scripted")
    assert by_hand.code == 3 and 'the nearest element is button "Save changes"' in by_hand.out
    page.design = GONE
    other = commands.run("run", "memo", "--param", "title=x")
    assert other.code == 3 and "does another thing: delete" in other.out, other.out
    assert page.done == []
    assert commands.run("proposals", "--flow", "memo", "--json").document["proposals"] == []
    page.design = NEW
    assert commands.run("run", "memo", "--param", "title=y", "--heal", "apply").code == 0
    [applied] = commands.run("proposals", "--flow", "memo", "--all", "--json").document["proposals"]
    assert (applied["state"], page.done) == ("accepted", ["saved=y"])


def test_a_redone_step_uses_what_was_healed(commands: Commands, page: Page, web: WebServer) -> None:
    """After the session was lost, `--redo` repeats the healed steps with their new targets."""
    wait = {"do": "wait", "for": "element", "target": {"css": "#ready"}, "timeout_s": 60}
    document = recipe("later", web)
    add(commands, "later", {**document, "steps": [*list(document["steps"]), wait]})  # type: ignore[call-overload]
    page.design, page.done = NEW, []
    engine = Engine(commands.store)
    thread = engine.run("later", prompt="", params={"title": "six"})
    wait_for(engine, thread, intent_of(4))
    for session in workers_of(commands.store.root):
        if "uncaged_browser.session" in " ".join(session.cmdline()[:6]):
            browser = [child.pid for child in session.children(recursive=True)]
            end([session.pid, *browser])  # the session first: without its browser it would answer
    assert settle(engine, thread)["status"] == "paused"
    engine.resume(thread)
    assert settle(engine, thread)["status"] == "unknown"
    page.design = f"{NEW}<p id=ready>Ready</p>"
    engine.resume(thread, redo=True)
    assert finish(engine, thread)["success"] is True
    assert page.done == ["saved=six", "saved=six"]
