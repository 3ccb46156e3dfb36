"""Kinds of failures that are fixed without a model: what each changes, and where it does not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from uncaged_capture.fixing.candidates import FoundFixes, find_candidates
from uncaged_capture.fixing.case import FixCase, read_case
from uncaged_capture.fixing.likeness import likely, likeness
from uncaged_capture.fixing.machine import Machine

Step = tuple[str, object, object]
"""Kind, body and outcome of a step."""
URL = "http://api.example/v1/items"


def case(
    recipe: Mapping[str, Any],
    *steps: Step,
    cause: str = "",
    before: object = None,
    **params: object,
) -> FixCase:
    """Return the case of a thread whose steps are (kind, body, outcome). before: the outcome of the
    first step in the last thread with success.
    """
    start = {"parameters": {"prompt": "", "params": params}}
    records: list[dict[str, Any]] = [start]
    for seq, (kind, body, outcome) in enumerate(steps, 1):
        records += [{"seq": seq, "intent": {kind: body}}, {"seq": seq, "outcome": outcome}]
    end = {"end": "completed", "result": {"success": False, "message": "", "error": cause}}
    kind, body, _ = steps[0] if steps else ("", None, None)
    old: list[dict[str, Any]] = [
        start,
        {"seq": 1, "intent": {kind: body}},
        {"seq": 1, "outcome": before},
    ]
    return read_case(recipe, [*records, end], old if before is not None else ())


def found(one: FixCase, *path: Path, directory: Path = Path("/nowhere")) -> FoundFixes:
    """Return the candidates on a machine with these directories on PATH."""
    environment = {"PATH": ":".join(map(str, path))}
    return find_candidates(one, Machine(environment=environment, directory=directory))


def task(script: str, *parameters: Mapping[str, object]) -> dict[str, Any]:
    policy = {"http": {"hosts": ["api.example"]}}
    return {"name": "t", "parameters": list(parameters), "script": script, "policy": policy}


def bash(body: str, *parameters: Mapping[str, object], **policy: object) -> dict[str, Any]:
    script = {"language": "bash", "body": body}
    return {
        "actionName": "t",
        "parameters": list(parameters),
        "script": script,
        "policy": {"script": policy},
    }


def ran(stderr: str, code: int = 1, **more: object) -> dict[str, object]:
    return {"success": False, "stdout": "", "stderr": stderr, "exitCode": code, **more}


def got(json: object, status: int = 200) -> Step:
    return "http", {"method": "GET", "url": URL}, {"status": status, "json": json}


def script_of(fixes: FoundFixes) -> str:
    """Return the script of the one candidate."""
    [one] = fixes.candidates
    script = one.recipe["script"]
    return str(script["body"] if isinstance(script, Mapping) else script)


READ = "async def execute(api, params):\n    return {}\n"
MISSING = "t: KeyError: 'user_name' (after step 1 (http)); change it"


@pytest.mark.parametrize(
    ("old", "new", "is_like"),
    [
        ("user_name", "userName", True),
        ("temp", "temperature", True),
        ("amt", "amount", True),
        ("qty", "quantity", True),
        ("id", "identifier", False),
        ("name", "title", False),
        ("price", "priority", False),
        ("colour", "color", True),
        ("total", "total_amount", True),
        ("price", "unit_price", True),
        ("price", "price_unit", False),
        ("price", "old_price", False),
        ("user", "user_id", False),
        ("user_id", "userId", True),
        ("temp", "max_temp", False),
    ],
)
def test_names_are_alike_by_their_words(old: str, new: str, *, is_like: bool) -> None:
    """Spelling, abbreviations and added words; never other meanings."""
    assert (likely(old, [new]) == (new,)) is is_like, likeness(old, new)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x['user_name']", "x['userName']"),
        ("f\"{x.get('user_name')} {x['age']}\"", "f\"{x.get('userName')} {x['age']}\""),
        ("x.user_name + x.user_name_2", "x.userName + x.user_name_2"),
        ('{"user_name": x["user_name"]}', '{"user_name": x["userName"]}'),
        ("out['user_name'] = x['user_name']", "out['user_name'] = x['userName']"),
    ],
)
def test_only_reads_of_a_field_are_renamed(text: str, changed: str) -> None:
    """What the flow writes keeps its names."""
    script = f"async def execute(api, params):\n    {text}\n"
    one = case(task(script), got({"userName": "Ada", "age": 3}), cause=MISSING)
    assert script_of(found(one)) == script.replace(text, changed)


def test_the_last_success_excludes_fields_that_were_there_before() -> None:
    """Of two like names, the one that was in the old answer is not the new name."""
    text = 'async def execute(api, params):\n    return x["temp"]\n'
    cause = "t: KeyError: 'temp' (after step 1 (http))"
    now = got({"temperature": 5, "temp_outside": 7})
    assert len(found(case(task(text), now, cause=cause)).candidates) == 2
    old = {"status": 200, "json": {"temp": 4, "temp_outside": 6}}
    assert 'x["temperature"]' in script_of(found(case(task(text), now, cause=cause, before=old)))


def test_a_field_that_another_answer_has_is_left_alone() -> None:
    """A rename would break the place that still reads it."""
    text = 'async def execute(api, params):\n    return x["temp"]\n'
    fixes = found(
        case(task(text), got({"temp": 1}), got({"temperature": 2}), cause="t: KeyError: 'temp' (x)")
    )
    assert fixes.candidates == ()
    assert "in one place" in fixes.looked[0]


def test_a_column_is_found_in_the_file_of_a_parameter(tmp_path: Path) -> None:
    """The header of the file has the new name."""
    (tmp_path / "x.csv").write_text("name;amount\na;3\n")
    failure: tuple[str, object, object] = ("script", {}, ran("KeyError: 'amt'"))
    for read in (["param:file"], [str(tmp_path)], []):
        recipe = bash("", read=read)
        recipe["script"] = {"language": "python", "body": 'print(row["amt"])\n'}
        fixes = found(case(recipe, failure, file=str(tmp_path / "x.csv")))
        if read:
            assert script_of(fixes) == 'print(row["amount"])\n'
        else:
            assert fixes.candidates == (), "the flow itself may not read the file"


def test_a_refused_entry_is_added_to_the_policy() -> None:
    """Commands and paths of refusals, the path of a parameter by its name; no whole network."""
    refused = [
        'the command \'date\' is not among the policy\'s executables; declare it in the policy: "script": {"executables": ["wc", "date"]}',
        'the path \'/d/x\' is outside what the policy allows; declare it in the policy: "script": {"read": ["/d/x"]}',
        'the network is off, and the script tried to reach a host; declare it in the policy: "script": {"network": ["the.host.it.needs"]}',
    ]
    recipe = bash("wc; date", {"name": "file", "type": "path"}, executables=["wc"])
    one = case(recipe, ("script", {}, ran("", 127, refused=refused)), file="/d/x")
    [fix] = found(one).candidates
    assert fix.recipe["policy"] == {
        "script": {"executables": ["wc", "date"], "read": ["param:file"]}
    }


def test_a_missing_command_is_replaced_by_one_of_its_family(tmp_path: Path) -> None:
    """Only by one that is on PATH; words inside other words stay."""
    (tmp_path / "python3").touch(mode=0o755)
    recipe = bash("python -c 1; ls ./python python.txt", executables=["python", "ls"])
    records: list[dict[str, Any]] = [
        {"parameters": {"prompt": "", "params": {}}},
        {"seq": 1, "intent": {"script": {}}},
        {
            "seq": 1,
            "void": "environment",
            "message": "the script needs 'python', which is not on the PATH of this machine",
        },
    ]
    one = read_case(recipe, records)
    [fix] = found(one, tmp_path).candidates
    assert fix.recipe["script"]["body"] == "python3 -c 1; ls ./python python.txt"
    assert fix.recipe["policy"]["script"]["executables"] == ["ls", "python3"]
    assert found(one).candidates == ()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sort") is None, reason="needs sort")
def test_a_renamed_option_is_found_in_the_help() -> None:
    """The program's own help has the new name."""
    path = Path(str(shutil.which("sort"))).parent
    one = case(
        bash("sort --reversed x", executables=["sort"]),
        ("script", {}, ran("sort: unrecognized option '--reversed'", 2)),
    )
    assert script_of(found(one, path)) == "sort --reverse x"
    other = case(
        bash("sort --zebra x", executables=["sort"]),
        ("script", {}, ran("sort: unrecognized option '--zebra'", 2)),
    )
    assert found(other, path).candidates == ()


@pytest.mark.parametrize(
    ("old", "error", "new"),
    [
        ("--colour", "unknown option --colour; see tally --help", "--color"),
        ("--max", "unknown option --max; see tally --help", "--max-count"),
        ("--label", "unknown option --label; it is called --tag now", "--tag"),
    ],
)
def test_the_help_of_a_shell_script_is_read(tmp_path: Path, old: str, error: str, new: str) -> None:
    """It may need programs of the system. An option that the error names may be called
    otherwise.
    """
    program = tmp_path / "tally"
    options = "[--color WORD] [--max-count N] [--tag T]"
    program.write_text(f"#!/bin/sh\ncat <<END\nusage: tally {options}\nEND\n", "utf-8")
    program.chmod(0o755)
    tmp_path.chmod(0o755)
    one = case(
        bash(f"tally {old} red", executables=["tally"]),
        ("script", {}, ran(f"tally: {error}", 2)),
    )
    path = (tmp_path, *map(Path, os.defpath.strip(":").split(":")))
    assert script_of(found(one, *path)) == f"tally {new} red"


@pytest.mark.parametrize(
    "error",
    [
        "awk: cannot open data/prices.txt (No such file or directory)",
        "cat: data/prices.txt: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/prices.txt'",
    ],
)
def test_a_relative_path_belongs_to_the_directory_of_the_caller(tmp_path: Path, error: str) -> None:
    """The new one is relative, too; where the old one still exists, another thing is wrong."""
    (tmp_path / "data" / "archive").mkdir(parents=True)
    moved = tmp_path / "data" / "archive" / "prices.txt"
    moved.touch()
    one = case(bash("cat data/prices.txt", read=["data"]), ("script", {}, ran(error, 2)))
    [fix] = found(one, directory=tmp_path).candidates
    assert fix.recipe["script"]["body"] == "cat data/archive/prices.txt"
    assert fix.recipe["policy"]["script"]["read"] == ["data"]
    moved.rename(tmp_path / "data" / "prices.txt")
    assert found(one, directory=tmp_path).candidates == ()


def test_a_default_path_is_the_flow_s_although_a_run_makes_it_absolute(tmp_path: Path) -> None:
    """A path that the caller gave is not."""
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "main-list.txt").touch()
    parameter = {"name": "file", "type": "path", "default": "lists/main.txt"}
    recipe = bash('cat "$PARAM_FILE"', parameter, read=["param:file"])
    given = str(tmp_path / "lists" / "main.txt")
    failure: Step = ("script", {}, ran(f"cat: {given}: No such file or directory"))
    [fix] = found(case(recipe, failure, file=given), directory=tmp_path).candidates
    assert fix.recipe["parameters"][0]["default"] == "lists/main-list.txt"
    assert fix.recipe["policy"]["script"]["read"] == ["param:file"]
    stated = bash('cat "$PARAM_FILE" || cat lists/main.txt', {**parameter, "default": "x"})
    assert found(case(stated, failure, file=given), directory=tmp_path).candidates != ()
    assert found(case(stated, failure, file="lists/main.txt"), directory=tmp_path).candidates == ()
    other = tmp_path / "other"
    other.mkdir()
    assert found(case(recipe, failure, file=given), directory=other).candidates == ()


def test_a_moved_path_is_the_one_like_it(tmp_path: Path) -> None:
    """In the script, the policy and the defaults; never a value that the caller gave."""
    place = tmp_path / "a" / "project"
    place.mkdir(parents=True)
    (place / "report-2026.csv").touch()
    old = str(place / "reports.csv")
    recipe = bash(
        f'cat "{old}"', {"name": "file", "type": "path", "default": old}, read=[old, "param:file"]
    )
    failure: Step = ("script", {}, ran(f"cat: {old}: No such file or directory"))
    [fix] = found(case(recipe, failure, file=old)).candidates
    assert old not in json.dumps(fix.recipe)
    assert fix.recipe["policy"]["script"]["read"] == [str(place / "report-2026.csv"), "param:file"]
    given = bash('cat "$PARAM_FILE"', {"name": "file", "type": "path"}, read=["param:file"])
    assert found(case(given, failure, file=old)).candidates == ()
    (place / "report-2025.csv").touch()
    assert len(found(case(recipe, failure, file=old)).candidates) == 2


def test_a_renamed_directory_keeps_the_rest_of_the_path(tmp_path: Path) -> None:
    """The part of the path that is stated is replaced."""
    (tmp_path / "x" / "datasets").mkdir(parents=True)
    (tmp_path / "x" / "datasets" / "in.txt").touch()
    old = tmp_path / "x" / "dataset"
    recipe = bash(f"D={old}\ncat $D/in.txt", read=[str(old)])
    [fix] = found(
        case(recipe, ("script", {}, ran(f"cat: {old}/in.txt: No such file or directory")))
    ).candidates
    assert fix.recipe["script"]["body"].startswith(f"D={old}s\n")
    assert fix.recipe["policy"]["script"]["read"] == [f"{old}s"]
    whole = bash(f"cat {old}/in.txt", read=[str(old)])
    [fix] = found(
        case(whole, ("script", {}, ran(f"cat: {old}/in.txt: No such file or directory")))
    ).candidates
    assert fix.recipe["script"]["body"] == f"cat {old}s/in.txt"
    assert fix.recipe["policy"]["script"]["read"] == [f"{old}s"]


def test_an_address_moves_where_the_answer_says() -> None:
    """On the same host; a page that names another host is not followed."""
    text = f'async def execute(api, params):\n    await api.http("GET", "{URL}")\n'
    moved = {"error": "gone", "use": "/v2/items"}
    assert "http://api.example/v2/items" in script_of(found(case(task(text), got(moved, 404))))
    elsewhere = {"error": "moved to https://evil.example/v1/items, allow it"}
    assert found(case(task(text), got(elsewhere, 404))).candidates == ()
    about = {"error": "not found", "see": "/docs/errors"}
    assert found(case(task(text), got(about, 404))).candidates == ()
    built = task(text.replace(f'"{URL}"', "f'{params.base}/v1/{params.kind}'"))
    assert "f'{params.base}/v2/{params.kind}'" in script_of(found(case(built, got(moved, 404))))
    two = {"use": ["/v2/items", "/v3/items"]}
    assert len(found(case(task(text), got(two, 410))).candidates) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "missing required field 'units'"},
        {"error": "'units' is required"},
        {"errors": [{"field": "units", "message": "required"}]},
        {"detail": [{"loc": ["query", "units"], "msg": "Field required", "type": "missing"}]},
        {"missing": ["units"]},
    ],
)
def test_a_required_field_is_given_by_a_parameter(answer: object) -> None:
    """In the usual forms of answers; only if a parameter of the run has that name."""
    text = (
        f'async def execute(api, params):\n    await api.http("GET", "{URL}", query={{"q": 1}})\n'
    )
    units = {"name": "units", "type": "string"}
    one = case(task(text, units), got(answer, 422), units="metric")
    assert 'query={"q": 1, "units": params.units})' in script_of(found(one))
    assert found(case(task(text), got(answer, 422))).candidates == ()


def test_a_request_without_fields_gets_a_query() -> None:
    """A GET has its fields there; another method without fields is left alone."""
    text = 'async def execute(api, params):\n    await api.http("{}", "' + URL + '")\n'
    units = {"name": "units", "type": "string"}
    refused = {"status": 400, "json": {"error": "'units' is required"}}
    get = ("http", {"method": "GET", "url": URL}, refused)
    one = case(task(text.format("GET"), units), get, units="metric")
    assert f'"{URL}", query={{"units": params.units}})' in script_of(found(one))
    post = ("http", {"method": "POST", "url": URL}, refused)
    assert found(case(task(text.format("POST"), units), post, units="metric")).candidates == ()


def test_the_type_or_default_of_a_parameter_is_what_is_needed() -> None:
    """A number in place of text; of the allowed values the one like the default."""
    days = {"name": "days", "type": "string", "default": "3"}
    one = case(task(READ, days), got({"error": "days must be an integer"}, 400), days="3")
    [fix] = found(one).candidates
    assert fix.recipe["parameters"] == [{"name": "days", "type": "integer", "default": 3}]
    mixed = "t: TypeError: unsupported operand type(s) for +: 'int' and 'str' (after step 1 (http))"
    [fix] = found(case(task(READ, days), got({}), cause=mixed, days="3")).candidates
    assert fix.recipe["parameters"][0]["type"] == "integer"
    unit = {"name": "unit", "type": "string", "default": "celcius"}
    refused = got({"error": "unit must be one of celsius, fahrenheit"}, 400)
    [fix] = found(case(task(READ, unit), refused, unit="celcius")).candidates
    assert fix.recipe["parameters"][0]["default"] == "celsius"
    assert found(case(task(READ, unit), refused, unit="centigrade")).candidates == ()


def test_a_limit_grows_if_something_shows_that_the_step_ends() -> None:
    """A duration of a success or a stated wait; a script that may never end is left alone."""
    recipe = bash("work", executables=["work"], timeout_s=1)
    late: tuple[str, object, object] = ("script", {}, ran("", timedOut=True))
    assert found(case(recipe, late)).candidates == ()
    before = {"success": True, "durationMs": 3000, "stdout": "", "stderr": "", "exitCode": 0}
    [fix] = found(case(recipe, late, before=before)).candidates
    assert fix.recipe["policy"]["script"]["timeout_s"] == 12.0
    [fix] = found(case(bash("sleep 5; work", timeout_s=2), late)).candidates
    assert fix.recipe["policy"]["script"]["timeout_s"] == 20.0
    at_most = found(case(bash("sleep 4000; work", timeout_s=3600), late))
    assert at_most.candidates == ()
    assert any("no fix sets a longer limit" in line for line in at_most.looked)


def test_a_request_gets_more_time_where_the_script_states_one_limit() -> None:
    """The failed request's own limit, stated once."""
    text = f'async def execute(api, params):\n    await api.http("GET", "{URL}", timeout_s=0.5)\n'
    records: list[dict[str, Any]] = [
        {"parameters": {"prompt": "", "params": {}}},
        {"seq": 1, "intent": {"http": {"url": URL, "timeout_s": 0.5}}},
        {"seq": 1, "error": {"kind": "timeout", "message": "no answer"}},
    ]
    assert "timeout_s=10)" in script_of(found(read_case(task(text), records)))
    twice = task(text + text.partition("\n")[2])
    assert found(read_case(twice, records)).candidates == ()


def wrong(recipe: Mapping[str, Any], message: str) -> FoundFixes:
    """Return what is found for a thread of the first example with this result."""
    first = recipe["examples"][0]
    records: list[dict[str, Any]] = [
        {"parameters": {"prompt": first["sentence"], "params": first["params"]}},
        {"end": "completed", "result": {"success": True, "message": message}},
    ]
    return found(read_case(recipe, records))


SUM = """\
import os
total = 0
for number in range(int(os.environ["PARAM_N"])):
    total += number
print(total)
"""


def test_a_script_is_off_by_one() -> None:
    """The edit that meets all examples; with one example too many edits do."""
    examples = [
        {"sentence": f"sum {n}", "params": {"n": n}, "expect": {"equals": str(total)}}
        for n, total in ((3, 6), (4, 10), (1, 1))
    ]
    recipe = bash("", {"name": "n", "type": "integer"})
    recipe["script"] = {"language": "python", "body": SUM}
    fixed = wrong({**recipe, "examples": examples}, "3")
    assert 'range(int(os.environ["PARAM_N"]) + 1)' in script_of(fixed)
    fewer = wrong({**recipe, "examples": examples[:1]}, "3")
    assert fewer.candidates == ()
    assert "at least 2" in fewer.looked[0]
    writing = {**recipe, "policy": {"script": {"write": ["/tmp/x"]}}, "examples": examples}
    assert wrong(writing, "3").candidates == ()


def test_a_script_that_ends_with_an_error_is_off_by_one() -> None:
    """Its examples show it; without one that fails, the cause is another one."""
    script = "import os\nwords = ['a', 'b', 'c']\nprint(words[int(os.environ['PARAM_N'])])\n"
    examples = [
        {"sentence": f"word {n}", "params": {"n": n}, "expect": {"equals": word}}
        for n, word in ((3, "c"), (2, "b"), (1, "a"))
    ]
    recipe = bash("", {"name": "n", "type": "integer"})
    recipe["script"] = {"language": "python", "body": script}
    failure: Step = ("script", {}, ran("IndexError: list index out of range"))
    fixed = found(case({**recipe, "examples": examples}, failure, n=3))
    assert "words[int(os.environ['PARAM_N']) - 1]" in script_of(fixed)
    passing = [{**examples[0], "params": {"n": 2}}, {**examples[1], "params": {"n": 1}}]
    none = found(case({**recipe, "examples": passing}, failure, n=3))
    assert (none.candidates, none.looked) == ((), ())


def test_a_task_is_off_by_one() -> None:
    """Its bundle runs in the sandbox; edits that agree on varied values count as one."""
    script = "async def execute(api, params):\n    return ','.join(params['items'][1:-1])\n"
    examples = [
        {"sentence": "a", "params": {"items": ["a", "b", "c"]}, "expect": {"equals": "b,c"}},
        {"sentence": "b", "params": {"items": ["x", "y"]}, "expect": {"equals": "y"}},
    ]
    recipe = task(script, {"name": "items", "type": "array"})
    fixed = wrong({**recipe, "description": "x", "policy": {}, "examples": examples}, "b")
    assert "params['items'][1:])" in script_of(fixed)


def test_a_service_that_is_down_is_no_fault_of_the_flow() -> None:
    """The report says so; neither does a redirect to another host widen the policy."""
    down = found(case(task(READ), got({}, 503)))
    assert (down.candidates, "no change of the flow" in down.looked[0]) == ((), True)
    message = 'the policy does not name the host ads.example; add "ads.example" to "http": {"hosts": [...]}'
    records: list[dict[str, Any]] = [
        {"parameters": {"prompt": "", "params": {}}},
        {"seq": 1, "intent": {"http": {"url": URL}}},
        {"seq": 1, "error": {"kind": "policy", "message": message}},
    ]
    assert found(read_case(task(READ), records)).candidates == ()
    own = json.loads(json.dumps(records).replace("api.example", "ads.example"))
    [fix] = found(read_case(task(READ), own)).candidates
    assert fix.recipe["policy"]["http"]["hosts"] == ["api.example", "ads.example"]


def test_a_field_that_became_none_is_found_by_the_last_success() -> None:
    """A script that reads with `get` fails later, or not at all."""
    text = 'async def execute(api, params):\n    return 2 * x.get("temp")\n'
    cause = "t: TypeError: unsupported operand (after step 1 (http))"
    old = {"status": 200, "json": {"temp": 4, "wind": 1}}
    one = case(task(text), got({"temperature": 5, "wind": 1}), cause=cause, before=old)
    assert 'x.get("temperature")' in script_of(found(one))


def test_a_field_of_another_name_is_known_by_its_value() -> None:
    """One field went and one came in the same object, with an uncommon value or the same fields."""
    cause = "t: KeyError: 'items' (after step 1 (http))"
    text = 'async def execute(api, params):\n    return x["items"]\n'
    row = {"id": 1, "price": 3}
    old = {"status": 200, "json": {"items": [row], "page": 1}}
    one = case(task(text), got({"results": [row, row], "page": 1}), cause=cause, before=old)
    assert 'x["results"]' in script_of(found(one))
    two = {"results": [row], "other": [row], "page": 1}
    assert found(case(task(text), got(two), cause=cause, before=old)).candidates == ()
    no = {"status": 200, "json": {"items": 1, "page": 1}}
    assert (
        found(case(task(text), got({"rank": 1, "page": 1}), cause=cause, before=no)).candidates
        == ()
    )


def test_what_the_flow_writes_under_the_new_name_is_no_read() -> None:
    """A result may have had the better name before."""
    text = 'async def execute(api, params):\n    return {"temperature": x["temp"]}\n'
    one = case(task(text), got({"temperature": 5}), cause="t: KeyError: 'temp' (after step 1)")
    assert '{"temperature": x["temperature"]}' in script_of(found(one))
