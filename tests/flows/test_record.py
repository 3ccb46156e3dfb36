"""Flows recorded by the command: a task done in a headless browser, its parameters, its proof run,
and what ends or refuses a recording.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.recordings import Commands, commands_of, do, interrupt, order
from testbed.shop import Shop, open_shop
from testbed.steering import finish
from testbed.still_pages import data_of
from testbed.terminal import InteractiveCommand
from uncaged_browser.browsers.installed import find_browser
from uncaged_browser.recording.flows import EXPORTS
from uncaged_browser.recording.imports import import_recording
from uncaged_browser.session.client import SessionClient
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PATCHED = """
import runpy
from functools import partialmethod
from playwright.sync_api import BrowserType
BrowserType.launch = partialmethod(BrowserType.launch, executable_path="{browser}")
runpy.run_path("{file}", run_name="__main__")
"""
"""Runs a script of Playwright with the browser of this machine."""
SENDING = 'it presses "Confirm order"'


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """A shop that keeps its orders."""
    with open_shop(1) as found:
        yield found


@pytest.fixture(scope="module")
def commands(
    tmp_path_factory: pytest.TempPathFactory, forked: ForkedCommands
) -> Iterator[Commands]:
    """The command with a store in which the shop's password is known."""
    directory = tmp_path_factory.mktemp("recorded")
    password = directory / "password"
    password.write_text("correct horse battery")
    store = Store.open(directory / "store")
    store.config_path.write_text(f"secrets: {{PASSWORD: {{file: {password}}}}}\n")
    with commands_of(store, directory, os.environ, forked) as found:
        yield found


@pytest.fixture(scope="module")
def recording(commands: Commands, shop: Shop) -> Path:
    """The file of a recorded order, which was proved up to the step that sends it."""
    file = commands.directory / "order.json"
    more = ("--headless", "--accept", "--json", "-o", str(file))
    done = commands.record("order", "--url", shop.web.url, *more, act=order)
    assert done.code == 0, done.err
    assert done.document["proof"] == {"state": "unproved", "step": 8, "reason": SENDING}
    assert done.document["parameters"] == {
        "search": "blue lamp",
        "mail": "ada@shop.test",
        "password": "secret:PASSWORD",
    }
    assert len(shop.orders) == 1, "the proof run ordered nothing"
    assert 'click link "Order Blue Lamp"' in done.err, "each step is printed while it is recorded"
    assert "hunter2" not in done.out + done.err + file.read_text()
    assert "correct horse" not in done.out + done.err
    return file


def test_a_recorded_task_runs_with_other_values(
    commands: Commands, shop: Shop, recording: Path
) -> None:
    """A flow that was recorded runs in a thread that `verify` proves, and says what of it was not
    proved; the same recording, sent again with a yes, is proved and orders once.
    """
    before = len(shop.orders)
    engine = Engine(commands.store)
    thread = engine.run("order", prompt="", params={"search": "red chair", "mail": "b@c.test"})
    assert finish(engine, thread)["success"]
    assert engine.verify(thread).ok
    [sent] = shop.orders[before:]
    assert (sent["item"], sent["mail"]) == ("Red Chair", "b@c.test")
    assert sent["password"] == "correct horse battery"
    assert "Unproved at step 8" in commands.run("show", "order").out
    again = commands.run("record", "again", "--import", str(recording), "--resend", "--accept")
    assert again.code == 0, again.err
    assert again.out.splitlines()[-1] == "proved: a second run did all steps"
    assert len(shop.orders) == before + 2


def test_a_flow_gives_its_recording_back(
    commands: Commands, shop: Shop, recording: Path, tmp_path: Path
) -> None:
    """Each form of an exported recording imports as the same steps; the script of Playwright runs
    as it is, and does the task.
    """
    kinds = [step["do"] for step in json.loads(recording.read_text())["steps"]]
    for form in ("recording", "recorder", "playwright"):
        chosen: Any = form
        printed = commands.run("export", "order", "--format", form).out
        file = tmp_path / f"{form}.txt"
        written = commands.run("export", "order", "--format", form, "-o", str(file))
        assert written.code == 0 and file.read_text() == printed
        known = import_recording(printed, chosen)
        assert [step.do for step in known.steps] == kinds, form
        again = EXPORTS[chosen](replace(known, name="order"))
        assert import_recording(again, chosen).steps == known.steps
    before = len(shop.orders)
    program = PATCHED.format(
        browser=find_browser(None, os.environ), file=tmp_path / "playwright.txt"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PASSWORD": "hunter22"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    [sent] = shop.orders[before:]
    assert (sent["item"], sent["password"]) == ("Blue Lamp", "hunter22")


def test_a_run_with_screenshots_becomes_a_film_strip(
    commands: Commands, recording: Path, tmp_path: Path
) -> None:
    """A page shows each step that acted with its picture, and nothing of the secret; it loads
    nothing, and a plain run has one without pictures.
    """
    assert recording.exists()
    assert commands.run("run", "order", "--screenshots").code == 0
    file = tmp_path / "strip.html"
    written = commands.run("thread", "latest", "--html", str(file))
    assert written.code == 0 and "8 pictures" in written.out, written.err
    page = file.read_text()
    steps = [step["do"] for step in json.loads(recording.read_text())["steps"]]
    shown = data_of(page)
    assert len(shown["pictures"]) == len(steps)
    assert all(one.startswith("data:image/png;base64,") for one in shown["pictures"].values())
    assert 'fill textbox "Mail": ada@shop.test' in [row["label"] for row in shown["rows"]]
    assert "default-src 'none'" in page and "correct horse" not in page
    commands.store.config_path.rename(tmp_path / "config.yaml")
    try:
        assert commands.run("run", "order").code != 0, "the secret is not known"
    finally:
        (tmp_path / "config.yaml").rename(commands.store.config_path)
    plain = commands.run("thread", "latest", "--html", str(file))
    assert plain.code == 0 and "0 pictures" in plain.out
    resumed = commands.run("resume", "latest", "--screenshots")
    assert resumed.code == 0, resumed.err
    assert "3 pictures" in commands.run("thread", "latest", "--html", str(file)).out


def test_a_person_names_the_parameters_and_allows_the_proof_to_send(
    commands: Commands, shop: Shop, recording: Path
) -> None:
    """On a terminal a parameter is renamed or dropped, and a proof sends once after a yes."""
    before = len(shop.orders)
    words = ["record", "asked", "--import", str(recording), "--accept"]
    with InteractiveCommand(words, commands.environment, commands.directory) as terminal:
        for answer in ("words\r", "-\r", "\r"):
            terminal.expect("is [")
            terminal.type(answer)
        terminal.expect("Send it again? [y/N]")
        assert len(shop.orders) == before
        terminal.type("y\r")
        terminal.expect("proved: a second run did all steps")
        assert terminal.end() == 0
    assert len(shop.orders) == before + 1
    shown = commands.run("show", "asked").out
    assert 'words (string, default "blue lamp")' in shown
    assert "mail" not in shown.partition("Parameters")[2]


def test_a_post_is_held_whatever_its_button_is_called(commands: Commands, recording: Path) -> None:
    """A request of a script that changes something is held in the proof, and is sent once after a
    yes.
    """
    with open_shop(1) as plain:
        kept = json.loads(recording.read_text())
        go = "<button onclick=\"fetch('/order', {method: 'POST', body: 'x=1'}).then(() => document.title = 'Done')\">Go</button>"
        plain.extra = f"<h1>Extra</h1><a href=/>Shop</a>{go}"
        address = f"{plain.web.url}/extra"
        click = {"do": "click", "target": [{"role": "button", "name": "Go"}]}
        steps = [
            {"do": "navigate", "url": f"{plain.web.url}/"},
            {"do": "navigate", "url": address},
            {**click, "expect": {"title": "Done"}},
        ]
        file = commands.directory / "script.json"
        file.write_text(json.dumps({**kept, "url": address, "steps": steps, "name": "script"}))
        words = ["record", "script", "--import", str(file), "--accept"]
        held = commands.run(*words, "--json").document["proof"]
        assert held == {
            "state": "unproved",
            "step": 3,
            "reason": f"it sends data: POST {plain.web.url}/order",
        }
        assert plain.orders == []
        with InteractiveCommand(words, commands.environment, commands.directory) as terminal:
            terminal.expect("Send it again? [y/N]")
            terminal.type("y\r")
            terminal.expect("proved: a second run did all steps")
            assert terminal.end() == 0
        assert len(plain.orders) == 1


def test_a_proof_that_fails_saves_nothing(
    commands: Commands, recording: Path, tmp_path: Path
) -> None:
    """A page that differs in the proof keeps the flow from being saved; the recording stays, and
    --unproved saves it with the reason.
    """
    text = recording.read_text().replace("Found: blue lamp", "Sorry")
    changed = tmp_path / "changed.json"
    changed.write_text(text)
    words = ("record", "sorry", "--import", str(changed), "--accept")
    done = commands.run(*words)
    assert done.code == 1
    assert "failed at step 3" in done.err and "expected 'Sorry'" in done.err
    assert "sorry" not in commands.run("list").out
    assert f"--import {changed}" in done.err
    assert commands.run(*words, "--unproved").code == 0
    assert "Unproved at step 3" in commands.run("show", "sorry").out


def test_a_recording_ends_with_its_tab_or_a_signal(commands: Commands, shop: Shop) -> None:
    """A closed tab and Ctrl-C end a recording; one with fewer than two actions is refused."""

    def short(client: SessionClient) -> None:
        do(client, "fill", target={"label": "Search"}, text="blue lamp")

    def search(client: SessionClient) -> None:
        short(client)
        do(client, "press", key="Enter", target={"label": "Search"})
        do(client, "wait", **{"for": "element"}, target={"text": "Order Blue Lamp"})

    url = ("--url", shop.web.url, "--headless", "--accept")
    done = commands.record("short", *url, act=short, stop=interrupt)
    assert done.code == 1 and "at least two" in done.err, done.err
    done = commands.record("search", *url, act=search, stop=interrupt)
    assert done.code == 0 and done.out.splitlines()[-1].startswith("proved"), done.err
    wrong = ("--param", "words=chair")
    lost = commands.record("lost", *url, *wrong, act=search, stop=interrupt)
    assert lost.code == 1 and "no step with the value of words" in lost.err
    kept = json.loads((commands.directory / "lost.recording.json").read_text())
    assert [step["do"] for step in kept["steps"]] == ["navigate", "fill", "press"]

    def and_close(client: SessionClient) -> None:
        search(client)
        do(client, "close")

    done = commands.record("closed", *url, act=and_close, stop=lambda _: None)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].startswith("proved"), done.err


def test_a_recording_has_a_session_for_itself(commands: Commands, shop: Shop) -> None:
    """A session that is recorded is not recorded twice; it is free again after its client was
    killed. Without a display, a window is refused with what to do.
    """
    url = ("--url", shop.web.url)
    refused: list[str] = []

    def second(_client: SessionClient) -> None:
        refused.append(commands.run("record", "second", *url, "--headless").err)

    done = commands.record("first", *url, "--headless", act=second, stop=lambda one: one.kill())
    assert done.code == -9
    assert "being recorded already" in refused[0]
    done = commands.record("third", *url, "--headless", act=lambda _: None, stop=interrupt)
    assert "at least two" in done.err
    assert "runs without a window" in commands.run("record", "shown", *url).err
    assert "no display" in commands.run("record", "shown", *url, "--session", "other").err
    with commands.client() as client:
        assert client.status()["threads"] == []
        assert client.perform(KEPT, {"do": "tabs"}, 10)
