"""Every shipped sample runs for real: scripts on this machine, tasks against a server of the API's
shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from testbed.cells import MECHANISMS
from testbed.sample_files import commit, fill
from testbed.steering import finish
from testbed.webserver import Reply, Seen, data, serving
from uncaged_bundles.builders.recipes.recipe import read_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.examples import Example
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_dispatcher.calls import Interpretation
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine, RunOptions
from uncaged_templates.recipes import CONFIRMED, SAMPLES, flows

pytestmark = pytest.mark.slow
SCRIPTS = tuple(
    path.name.removesuffix(".recipe.json")
    for path in sorted(SAMPLES.glob("*.recipe.json"))
    if "actionName" in json.loads(path.read_bytes())
)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A store with every sample in it."""
    engine = Engine(Store.open(tmp_path_factory.mktemp("samples") / "store"))
    for name, source, _ in flows():
        engine.add(name, source, accept=lambda _: True, origin="sample")
    return engine


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that all users may read."""
    place = tmp_path / "place"
    place.mkdir()
    tmp_path.chmod(0o755)
    (place / "small.txt").write_text("one\ntwo\nThree\n")
    (place / "large.bin").write_bytes(bytes(3 << 20))
    (place / "inner").mkdir()
    (place / "inner" / "deep.log").write_text("".join(f"line {number}\n" for number in range(100)))
    return place


def run(engine: Engine, flow: str, directory: Path, **params: object) -> Any:
    """The result of one thread, whose journal proves itself."""
    thread = engine.run(flow, prompt="", params=params, options=RunOptions(directory=directory))
    result = finish(engine, thread)
    assert engine.verify(thread).ok
    return result


def test_every_sample_is_whole() -> None:
    """Eight scripts and four tasks at least; each with sentences, examples that fit its parameters,
    and the name of its file.
    """
    counted: dict[str, int] = {}
    for path in sorted(SAMPLES.glob("*.recipe.json")):
        flow = read_recipe(path.read_bytes(), path.name)
        built = build_flow(flow)
        descriptor = read_bundle(built.source, check_schemas=True).descriptor
        assert f"{descriptor.name}.recipe.json" == path.name
        counted[descriptor.kind] = counted.get(descriptor.kind, 0) + 1
        if descriptor.kind in ("script", "task"):
            assert built.notes == ()
            assert descriptor.raw["patterns"]
            assert descriptor.raw["examples"]
    assert counted["script"] >= 8
    assert counted["task"] >= 4


def examples_of(name: str) -> list[Example]:
    flow = read_recipe((SAMPLES / f"{name}.recipe.json").read_bytes(), name)
    return [
        Example.read(raw, (name, "examples", number)) for number, raw in enumerate(flow.examples)
    ]


def test_every_sample_has_an_example_that_fails_on_wrong_content() -> None:
    """An answer that succeeds with other content differs from what the sample's examples expect."""
    for path in sorted(SAMPLES.glob("*.recipe.json")):
        examples = examples_of(path.name.removesuffix(".recipe.json"))
        for message in ("", "done; it printed nothing", "something else entirely"):
            wrong = {"success": True, "message": message, "data": message}
            assert all(example.difference(wrong) for example in examples if example.expect), (
                path.name
            )
        assert any(example.expect for example in examples), path.name


@pytest.fixture(scope="module", params=MECHANISMS)
def sandboxed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A store with every sample in it, whose scripts run under one mechanism."""
    engine = Engine(Store.open(tmp_path_factory.mktemp("sandboxed") / "store"))
    (engine.store.root / "config.yaml").write_text(f"sandbox: {request.param}\n")
    for name, source, _ in flows():
        engine.add(name, source, accept=lambda _: True, origin="sample")
    return engine


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_example_of_a_script_holds_on_this_machine(sandboxed: Engine, name: str) -> None:
    """A script sample prints what its examples expect, in a directory with what they name, and is
    refused nothing; neither is one that runs with its defaults.
    """
    examples = examples_of(name)
    required = read_recipe((SAMPLES / f"{name}.recipe.json").read_bytes(), name).parameters
    if "required" not in required and all(example.params for example in examples):
        examples.append(Example(sentence="the defaults"))
    with TemporaryDirectory() as directory:  # every user can walk to it, so that git can, too
        place = Path(directory)
        place.chmod(0o755)
        fill(place)
        for example in examples:
            result = run(sandboxed, name, place, **(example.params or {}))
            assert example.difference(result) is None, example.sentence
            assert result["data"].get("refused") is None, example.sentence


def test_the_example_of_a_sample_is_read_as_that_sample(tmp_path: Path) -> None:
    """Each example's sentence calls its own flow with its parameters, apart from those that it
    does not name, and no article becomes a filter.
    """
    fill(tmp_path)
    engine = Engine.open(tmp_path / "store")
    interpreter = Interpreter(engine)
    context = SentenceContext(directory=tmp_path)
    for name, _, _ in flows():
        for example in examples_of(name):
            found = interpreter.interpret(example.sentence, context=context)
            assert isinstance(found, Interpretation), (name, example.sentence, found)
            [call] = found.calls
            assert call.flow == name, example.sentence
            assert dict(call.params).items() <= dict(example.params or {}).items()
    interpreter.close()


def test_a_store_has_them_at_its_first_open(tmp_path: Path) -> None:
    """Once, granted, from the entry point; one that a person removed stays away."""
    engine = Engine.open(tmp_path / "store")
    flows_there = engine.registry.read().flows
    assert {name for name, _, _ in flows()} <= set(flows_there)
    assert {flows_there[name].source for name, _, _ in flows()} == {"sample"}
    assert {name for name, flow in flows_there.items() if flow.confirm} == {
        *CONFIRMED,
        "solve-issue",
    }
    engine.registry.remove("tail-log")
    assert "tail-log" not in Engine.open(tmp_path / "store").registry.read().flows


def test_files_are_listed(shipped: Engine, place: Path) -> None:
    """Files are listed by name, size and time, with a filter and a limit; directories are marked;
    `.` is the caller's directory.
    """
    result = run(shipped, "list-files", place)
    assert result["success"]
    assert {line.split()[3] for line in result["message"].splitlines()} == {
        "small.txt",
        "large.bin",
        "inner/",
    }
    filtered = run(shipped, "list-files", place, path=str(place), filter="*.txt")
    assert filtered["message"].split()[2:] == ["14", "small.txt"]
    assert len(run(shipped, "list-files", place, limit=1)["message"].splitlines()) == 1


def test_large_files_are_found(shipped: Engine, place: Path) -> None:
    """Files above the size are listed, largest first."""
    assert run(shipped, "find-large-files", place, minimum="1")["message"].split() == [
        "3.0",
        "MB",
        f"{place}/large.bin",
    ]
    assert (
        run(shipped, "find-large-files", place, minimum=100)["message"] == "no file is that large"
    )


def test_room_is_summed(shipped: Engine, place: Path) -> None:
    """The directory first, its parts after it."""
    lines = run(shipped, "disk-usage", place)["message"].splitlines()
    assert [line.split()[2] for line in lines] == [str(place), f"{place}/inner"]


def test_a_repository_is_summed_up(shipped: Engine, place: Path) -> None:
    """The output has branch, changes, commits and authors; for a path without a repository it has
    git's own words.
    """
    commit(place)
    message = run(shipped, "git-summary", place)["message"]
    assert "branch: trunk" in message
    assert "changed files: 2" in message
    assert "Ada: first words" in message
    none = run(shipped, "git-summary", place, path=str(place / "inner"))
    assert (none["success"], "not a git repository" in none["message"]) == (False, True)


def test_logs_are_searched_and_shown(shipped: Engine, place: Path) -> None:
    """Matches with their line, the last ones; no match is no failure; the end of a file."""
    log = str(place / "inner" / "deep.log")
    assert (
        run(shipped, "search-log", place, path=log, pattern="LINE 9[89]")["message"]
        == "99:line 98\n100:line 99"
    )
    assert (
        run(shipped, "search-log", place, path=log, pattern="LINE", ignoreCase="no")["message"]
        == "no line matches"
    )
    assert run(shipped, "search-log", place, path=log, pattern="-e|98")["message"] == "99:line 98"
    assert run(shipped, "tail-log", place, path=log, lines=2)["message"] == "line 98\nline 99"


def test_the_machine_is_looked_at(shipped: Engine, place: Path) -> None:
    """The processes and the ports are those of the machine, not of the sandbox."""
    with serving(lambda _: data({})) as server:
        ports = run(shipped, "port-listeners", place)["message"]
        assert str(server.port) in [line.split()[0] for line in ports.splitlines()]
        only = run(shipped, "port-listeners", place, port=server.port)["message"].splitlines()
        assert [line.split()[:2] for line in only[1:]] == [[str(server.port), "127.0.0.1"]]
    processes = run(shipped, "processes-by-memory", place, limit=3)["message"].splitlines()
    assert len(processes) == 4
    assert float(processes[1].split()[2]) >= float(processes[3].split()[2])


def opened_to(engine: Engine, name: str, host: str) -> None:
    """Let a task reach a loopback server: a new version, as a person would make one."""
    path = SAMPLES / f"{name}.recipe.json"
    flow = read_recipe(path.read_bytes(), path.name)
    policy = {"http": {"hosts": [host], "private": True}, "all": {}}
    engine.add(name, build_flow(replace(flow, policy=policy)).source, accept=lambda _: True)  # type: ignore[call-arg]  # it is a task


def query(seen: Seen) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(seen.path).query).items()}


def weather(seen: Seen) -> Reply:
    if urlsplit(seen.path).path == "/v1/search":
        found = (
            [{"name": "Lisbon", "latitude": 38.7, "longitude": -9.1}]
            if query(seen)["name"] == "lisboa"
            else None
        )
        return data({"results": found} if found else {})
    days = int(query(seen)["forecast_days"])
    series = {
        "temperature_2m_min": [1.5] * days,
        "temperature_2m_max": [9] * days,
        "precipitation_sum": [0] * days,
    }
    return data({"daily": {"time": [f"2026-01-0{day}" for day in range(1, days + 1)], **series}})


def github(seen: Seen) -> Reply:
    path = urlsplit(seen.path).path
    if path == "/repos/ada/engine":
        return data(
            {
                "full_name": "ada/engine",
                "description": None,
                "stargazers_count": 5,
                "open_issues_count": 1,
            }
        )
    if path == "/repos/ada/engine/issues":
        return data([{"number": 7, "title": "It does not run"}])
    return data({"message": "Not Found"}, status=404)


def news(seen: Seen) -> Reply:
    if seen.path == "/v0/topstories.json":
        return data([11, 12, 13, 14])
    number = int(seen.path.split("/")[-1].removesuffix(".json"))
    story = {
        "title": f"Story {number}",
        "score": number,
        **({"url": "https://a.example"} if number == 11 else {}),
    }
    return data(None if number == 12 else story)


def encyclopedia(seen: Seen) -> Reply:
    if seen.path.startswith("/w/rest.php"):
        pages = [{"key": "Ada_(name)/x", "title": "Ada"}, {"key": "B", "title": "Ada Lovelace"}]
        return data({"pages": pages if query(seen)["q"] == "ada" else []})
    assert seen.path == "/api/rest_v1/page/summary/Ada_%28name%29%2Fx"
    return data({"title": "Ada", "extract": "A name."})


Task = tuple[str, Any, tuple[str, ...], Mapping[str, object], str]
TASKS: list[Task] = [
    (
        "weather-report",
        weather,
        ("geocoder", "forecaster"),
        {"place": "lisboa", "days": "2"},
        "Lisbon\n2026-01-01: 1.5 to 9 °C, 0 mm\n2026-01-02: 1.5 to 9 °C, 0 mm",
    ),
    (
        "repository-report",
        github,
        ("base",),
        {"repository": "ada/engine"},
        "ada/engine: no description\n5 stars, 1 open issues, latest release none\n#7 It does not run",
    ),
    (
        "top-stories",
        news,
        ("base",),
        {"quantity": 3},
        "1. Story 11 (11 points)\n   https://a.example\n2. Story 13 (13 points)\n   https://news.ycombinator.com/item?id=13",
    ),
    ("encyclopedia-lookup", encyclopedia, ("base",), {"subject": "ada"}, "Ada: A name."),
]


@pytest.mark.parametrize("task", TASKS, ids=[task[0] for task in TASKS])
def test_a_task_does_its_work(shipped: Engine, place: Path, task: Task) -> None:
    """Against a server with the API's shape; as shipped, the same parameter is refused by the
    policy.
    """
    name, server, bases, params, message = task
    with serving(server) as web:
        there = dict.fromkeys(bases, f"http://127.0.0.1:{web.port}")
        refused = run(shipped, name, place, **params, **there)
        assert refused["success"] is False
        assert "the policy does not name the host" in refused["message"]
        opened_to(shipped, name, f"127.0.0.1:{web.port}")
        result = run(shipped, name, place, **params, **there)
    assert (result["success"], result["message"]) == (True, message)


def test_a_task_names_what_was_not_found(shipped: Engine, place: Path) -> None:
    """An unknown place, repository or subject is a failure in words."""
    for name, server, bases, _, _ in TASKS:
        unknown = {
            "weather-report": {"place": "x"},
            "repository-report": {"repository": "a/b"},
            "encyclopedia-lookup": {"subject": "x"},
        }.get(name)
        if unknown is None:
            continue
        with serving(server) as web:
            opened_to(shipped, name, f"127.0.0.1:{web.port}")
            result = run(
                shipped,
                name,
                place,
                **unknown,
                **dict.fromkeys(bases, f"http://127.0.0.1:{web.port}"),
            )
        assert (result["success"], bool(result["message"])) == (False, True)


PAGE = b"""<html><head><title>Boats</title></head><body><p>All about <a href="/oars">oars</a>
and <a href="https://sail.example/x">sails</a>, and <a href="/oars">oars again</a>.</p></body></html>"""
PAGES: list[tuple[str, str, tuple[str, ...]]] = [
    ("read-page", "fetch", ("All about [oars](", "and")),
    ("page-links", "fetch", ("/oars  oars", "https://sail.example/x  sails")),
    ("check-site", "http", ("is up: it answered with status 200",)),
]


@pytest.mark.parametrize(("name", "kind", "texts"), PAGES)
def test_a_page_of_any_public_host_is_read(
    shipped: Engine, place: Path, name: str, kind: str, texts: tuple[str, ...]
) -> None:
    """As shipped, this machine and its network stay closed; a version that opens them reads the
    page.
    """
    path = SAMPLES / f"{name}.recipe.json"
    flow = read_recipe(path.read_bytes(), path.name)
    policy = {kind: {"hosts": ["*"], "private": True}}
    page = Reply(body=PAGE, headers=(("Content-Type", "text/html"),), status=200)
    with serving(lambda _: page) as web:
        url = f"http://127.0.0.1:{web.port}/"
        closed = run(shipped, name, place, url=url)
        assert texts[0] not in closed["message"]
        assert "127.0.0.1" in closed["message"]
        shipped.add(name, build_flow(replace(flow, policy=policy)).source, accept=lambda _: True)  # type: ignore[call-arg]  # it is a task
        found = run(shipped, name, place, url=url)
    assert found["success"]
    assert all(text in found["message"] for text in texts)
