"""`do` and `conversation` through the real command, over flows with patterns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.documents import check_document
from testbed.sentences import flow_source, parameters
from testbed.terminal import on_terminal

from .conftest import register_flow

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
NUMBER = parameters("n", n={"type": "integer"})


@pytest.fixture
def prepared(command: Command, environment: dict[str, str]) -> Command:
    """The command on a store with `repeat`, which returns its number, `paint`, which asks for a
    colour, and `slow`, which sleeps.
    """
    bodies = {
        "paint": (["paint it"], '    yield {"ask": {"question": "which colour?"}}\n'),
        "slow": (["be slow"], '    yield {"null": {"sleep_s": 600}}\n'),
    }
    for name, (patterns, body) in bodies.items():
        text = source(name, body, patterns=patterns, policy={"ask": {}, "null": {}})
        register_flow(environment, name, text)
    text = flow_source("repeat", "repeat $(n:number) (please)?", schema=NUMBER)
    register_flow(environment, "repeat", text)
    return command


def test_a_sentence_runs_its_flow(prepared: Command) -> None:
    """One line says what was understood, on standard error; the thread is followed as by `run`."""
    done = prepared("do", "please", "repeat", "7")
    assert done.returncode == 5, "no pattern begins with please"
    done = prepared("do", "repeat 7")
    assert done.returncode == 0
    assert (
        done.stderr.splitlines()[0]
        == "understood: repeat n=7  (grammar: repeat $(n:number) (please)?)"
    )
    assert done.stdout.splitlines()[0].startswith("thread ")
    assert "{'n': 7}" in done.stdout
    assert len(json.loads(prepared("threads", "--json").stdout)) == 1


def test_a_miss_names_the_nearest_patterns(prepared: Command) -> None:
    """Nothing is started, the exit code is that of a thing not found, and a person sees what would
    be understood.
    """
    done = prepared("do", "repeated 7")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: ")
    assert "repeat $(n:number)" in done.stderr
    assert json.loads(prepared("threads", "--json").stdout) == []


def test_a_refused_parameter_starts_nothing(prepared: Command) -> None:
    """A sentence whose parameter the flow refuses is a miss that says why."""
    done = prepared("do", "repeat 7.5")
    assert done.returncode == 5
    assert "7.5" in done.stderr


def test_exit_codes_are_those_of_run(prepared: Command) -> None:
    """A thread that waits for an answer ends the command with 8, and names the next step."""
    done = prepared("do", "paint it")
    assert done.returncode == 8
    assert "uncaged-workflow answer" in done.stderr


def test_a_waiting_request_says_how_to_go_on(prepared: Command) -> None:
    """A detached request whose thread waits is shown by `status`, `list` and `show`; the next
    request without a terminal is refused with both ways on; answered, both run.
    """
    thread = prepared("do", "paint it", "--detach").stdout.strip()
    refused = prepared("do", "repeat 7")
    assert refused.returncode == 1
    assert "waits for an answer: which colour?" in refused.stderr
    assert f"uncaged-workflow answer {thread} TEXT" in refused.stderr
    [waiting] = json.loads(prepared("conversation", "status", "--json").stdout)["requests"]
    assert (waiting["state"], waiting["threadId"]) == ("waiting", thread)
    assert f"uncaged-workflow conversation cancel {waiting['requestId']}" in refused.stderr
    for words in (["status"], ["show"]):
        assert f"answer {thread} TEXT" in prepared("conversation", *words).stderr
    assert "waits for an answer" in prepared("conversation", "list").stdout
    assert prepared("answer", thread, "blue").returncode == 0
    done = prepared("do", "repeat 7")
    assert done.returncode == 0
    assert json.loads(prepared("conversation", "status", "--json").stdout)["requests"] == []
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    results = [one["result"]["status"] for one in records if "result" in one]
    assert results == ["cancelled", "completed", "completed"]
    assert [one["answer"] for one in records if "answer" in one] == [{"value": "blue"}]


def test_a_waiting_request_is_cancelled_by_a_command(prepared: Command) -> None:
    """The thread is killed, and the conversation goes on; a request that has ended is not found."""
    thread = prepared("do", "paint it", "--detach").stdout.strip()
    assert prepared("do", "repeat 7").returncode == 1
    cancelled = json.loads(prepared("conversation", "cancel", "--json").stdout)
    assert cancelled["cancelled"] == "cancelled_running"
    [killed] = json.loads(prepared("threads", "--json").stdout)
    assert (killed["threadId"], killed["status"]) == (thread, "killed")
    absent = prepared("conversation", "cancel", cancelled["requestId"])
    assert absent.returncode == 5
    assert prepared("do", "repeat 7").returncode == 0


def test_a_terminal_answers_the_question_of_a_thread(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """The question is asked where the request was typed, and the thread is followed to its end; one
    that an earlier request left open is asked first.
    """
    assert prepared("do", "paint it", "--detach").returncode == 0
    code, seen = on_terminal(["do", "paint it"], environment, tmp_path, typed=b"red\nblue\n")
    assert code == 0, seen
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    assert [one["answer"] for one in records if "answer" in one] == [
        {"value": "red"},
        {"value": "blue"},
    ]
    results = [one["result"]["status"] for one in records if "result" in one]
    assert results == ["completed", "completed"]


def test_a_name_with_two_meanings_needs_a_terminal(
    prepared: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    """Without a terminal the error has the choices and a command that runs one; on a terminal the
    answer continues the call.
    """
    entities = [{"name": f"Blue Tra{end}", "type": "Song"} for end in ("in", "ne")]
    body = f'    return {{"success": True, "entities": {entities!r}}}\n    yield\n'
    album = source("album", body, patterns=["show the album"], policy={})
    (tmp_path / "album.py").write_bytes(album)
    play = flow_source("play", "play $(song:Song)", schema=parameters("song", song={}))
    (tmp_path / "play.py").write_bytes(play)
    for name in ("album", "play"):
        assert prepared("add", name, f"{name}.py").returncode == 0
    assert prepared("do", "show the album").returncode == 0
    refused = prepared("do", "play blue tran")
    assert refused.returncode == 1
    assert "(1: Blue Train; 2: Blue Trane) There is no terminal" in refused.stderr
    assert "`uncaged-workflow action play --param 'song=Blue Train'`" in refused.stderr
    code, seen = on_terminal(["do", "play blue tran"], environment, tmp_path, typed=b"2\n")
    assert code == 0
    assert "{'song': 'Blue Trane'}" in seen
    misspelt = prepared("do", "plya blue train")
    assert (misspelt.returncode, misspelt.stdout) == (5, "")
    assert "do 'play blue train'" in misspelt.stderr
    assert len(json.loads(prepared("threads", "--json").stdout)) == 2


def test_a_marked_flow_runs_after_a_yes(prepared: Command) -> None:
    """Without a terminal a marked flow needs --yes."""
    assert prepared("enable", "repeat", "--confirm").returncode == 0
    refused = prepared("do", "repeat 7")
    assert refused.returncode == 1
    assert "--yes" in refused.stderr
    assert json.loads(prepared("threads", "--json").stdout) == []
    assert prepared("do", "repeat 7", "--yes").returncode == 0
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    results = [record["result"]["status"] for record in records if "result" in record]
    assert results == ["cancelled", "completed"]


def test_json_has_the_reading_the_thread_and_the_result(prepared: Command) -> None:
    """Each line is an event; the first is the reading, the last the result."""
    lines = [json.loads(line) for line in prepared("do", "repeat 7", "--json").stdout.splitlines()]
    assert [line["event"] for line in lines] == [
        "understood",
        "start",
        "record",
        "end",
        "result",
    ]
    assert lines[0]["reading"]["calls"] == [{"flow": "repeat", "params": {"n": 7}}]
    assert lines[-1]["result"]["data"] == {"n": 7}
    with pytest.raises(AssertionError, match="does not fit"):
        check_document(["do", "--json"], '{"event": "other"}')


def test_a_detached_request_prints_its_thread(prepared: Command) -> None:
    """The id is the only output; the thread's result is recorded by the next request."""
    thread = prepared("do", "repeat 7", "--detach").stdout.strip()
    assert len(thread) == 26
    detached = json.loads(prepared("do", "repeat 8", "--detach", "--json").stdout)
    assert detached["threadId"] != thread
    assert detached["reading"]["calls"] == [{"flow": "repeat", "params": {"n": 8}}]
    missed = json.loads(prepared("do", "nonsense", "--detach", "--json").stdout)
    assert missed["result"]["status"] == "missed"
    prepared("do", "repeat 9")
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    assert [one["result"]["data"]["n"] for one in records if "data" in one.get("result", {})] == [
        7,
        8,
        9,
    ]


def test_explain_starts_nothing(prepared: Command) -> None:
    """The output is that of the verb `explain`; no conversation is made."""
    done = prepared("do", "repeat 7", "--explain")
    assert done.returncode == 0
    assert done.stdout == prepared("explain", "repeat 7").stdout
    assert json.loads(prepared("threads", "--json").stdout) == []
    assert json.loads(prepared("conversation", "list", "--json").stdout) == []


def test_a_verb_is_run_by_its_name(prepared: Command) -> None:
    """`@verb` is the verb of the command line with its arguments and its exit code."""
    assert "repeat" in prepared("do", "@list").stdout
    assert prepared("do", "@run repeat --param n=3").returncode == 0
    assert prepared("do", "@show", "repeat").returncode == 0
    wrong = prepared("do", "@lst")
    assert wrong.returncode == 2
    assert "'list'" in wrong.stderr
    assert prepared("do", "@").returncode == 2
    assert prepared("do", "--json", "@conversation list -- ").stdout == "[]\n"
    assert "--param NAME=VALUE" in prepared("do", "@help run").stdout
    refused = prepared("do", "--yes", "@run repeat --param n=3")
    assert (refused.returncode, "--yes belongs to sentences" in refused.stderr) == (2, True)
    hidden = prepared("do", "@show \x1b[2Jrepeat")
    assert (hidden.returncode, "U+001B" in hidden.stderr) == (2, True)


def test_a_pack_by_its_name_shows_its_flows(prepared: Command, tmp_path: Path) -> None:
    """`@PACK` shows a sentence of each flow; a slip finds the pack, and arguments are refused."""
    (tmp_path / "games.yaml").write_text("name: games\nflows: [repeat, paint]\n")
    assert prepared("pack", "add", "games.yaml").returncode == 0
    assert prepared("disable", "paint").returncode == 0
    shown = prepared("do", "@games")
    assert shown.stdout.splitlines()[1:] == ["  repeat: repeat $(n:number) (please)?"]
    document = json.loads(prepared("do", "@games", "--json").stdout)
    assert document == json.loads(prepared("pack", "show", "games", "--json").stdout)
    slip = prepared("do", "@gamse")
    assert (slip.returncode, "did you mean 'games'" in slip.stderr) == (2, True)
    assert prepared("do", "@games repeat 7").returncode == 2
    assert "what can you do" in prepared("do", "@product").stdout


def test_an_action_is_a_request_of_the_conversation(prepared: Command) -> None:
    """A call has the parameters of `run`, is in the log, runs in turn, and asks for consent."""
    done = prepared("action", "repeat", "--param", "N=3")
    assert (done.returncode, "{'n': 3}" in done.stdout) == (0, True), done.stderr
    assert "understood: repeat n=3  (call)" in done.stderr
    [thread] = json.loads(prepared("threads", "--json").stdout)
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    assert records[0]["request"]["call"] == {"flow": "repeat", "params": {"n": 3}}
    assert records[-1]["result"]["threadId"] == thread["threadId"]
    for words, code in (
        (["repeat", "--param", "n=x"], 2),
        (["repeat", "--param", "m=1"], 2),
        (["absent"], 5),
        (["repeat", "--conversation", "absent"], 5),
    ):
        assert prepared("action", *words).returncode == code, words
    assert prepared("disable", "repeat").returncode == 0
    assert prepared("do", "--json", "@action repeat --param n=4").returncode == 1
    assert prepared("enable", "repeat", "--confirm").returncode == 0
    refused = prepared("action", "repeat", "--param", "n=4")
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert prepared("action", "repeat", "--param", "n=4", "--yes").returncode == 0
    detached = json.loads(prepared("action", "repeat", "--yes", "--detach", "--json").stdout)
    assert detached["reading"]["by"] == "call"


def test_a_sentence_can_mean_a_verb(prepared: Command) -> None:
    """A sentence of a built-in pack runs its verb, after it was recorded; it starts no thread."""
    done = prepared("do", "list my conversations")
    assert done.returncode == 0, done.stderr
    assert "default" in done.stdout
    assert json.loads(prepared("threads", "--json").stdout) == []
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    assert records[-1]["result"]["details"] == {
        "verb": ["conversation", "list"],
        "arguments": [],
    }


def test_patterns_can_be_excluded(prepared: Command, tmp_path: Path) -> None:
    """With --no-grammar, or a file for the model, no pattern reads the sentence."""
    (tmp_path / "note.txt").write_text("x")
    for words in (["--no-grammar"], ["--attach", "note.txt"]):
        done = prepared("do", "repeat 7", "--no-model", *words)
        assert done.returncode == 5, words
    assert prepared("do", "repeat 7", "--attach", "none.txt").returncode == 2


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("a\x07b", "U+0007"),
        ("repeat \u202e7", "U+202E"),
        ("x" * 70_000, "longer than 64 KiB"),
        ("   ", "neither"),
        (b"repeat \xff".decode("utf-8", "surrogateescape"), "not UTF-8"),
    ],
)
def test_a_sentence_with_hidden_or_too_many_characters_is_refused(
    command: Command, sentence: str, problem: str
) -> None:
    """The message says what is wrong with it, and nothing is recorded."""
    done = command("do", sentence)
    assert done.returncode == 2
    assert problem in done.stderr


def test_ctrl_c_cancels_a_request_that_waits(
    prepared: Command, environment: dict[str, str]
) -> None:
    """A request that has not started is cancelled; the one that runs goes on."""
    thread = prepared("do", "be slow", "--detach").stdout.strip()
    with subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", "do", "repeat 7"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "waiting for 1 request before this one\n"
        os.kill(waiting.pid, signal.SIGINT)
        assert waiting.wait(timeout=60) == 130
    records = json.loads(prepared("conversation", "show", "--json").stdout)["records"]
    assert [one["result"]["status"] for one in records if "result" in one] == ["cancelled"]
    assert prepared("kill", thread).returncode == 0


# Conversations


def test_conversations_are_made_listed_renamed_switched_and_deleted(prepared: Command) -> None:
    """Each verb acts on a name, an id or the start of an id; the current one is used by `do`."""
    assert json.loads(prepared("conversation", "list", "--json").stdout) == []
    assert prepared("do", "repeat 1").returncode == 0
    work = json.loads(prepared("conversation", "new", "work", "--json").stdout)["conversationId"]
    assert prepared("do", "repeat 2").returncode == 0
    assert prepared("do", "repeat 3", "--conversation", "default").returncode == 0
    listed = json.loads(prepared("conversation", "list", "--json").stdout)
    assert [(one["name"], one["requests"], one["current"]) for one in listed] == [
        ("default", 2, False),
        ("work", 1, True),
    ]
    assert prepared("conversation", "rename", "office").returncode == 0
    assert prepared("conversation", "rename", "default", "home").returncode == 0
    assert prepared("conversation", "rename", "OFFICE", "home").returncode == 1
    assert prepared("conversation", "switch", "home").returncode == 0
    shown = prepared("conversation", "show", work).stdout
    assert "repeat 2" in shown
    assert "completed: {'n': 2}" in shown
    assert prepared("conversation", "delete", "office").returncode == 1, "without a terminal"
    assert prepared("conversation", "delete", "office", "--yes").returncode == 0
    assert prepared("conversation", "show", "office").returncode == 5
    assert len(json.loads(prepared("threads", "--json").stdout)) == 3


def test_a_replay_shows_the_same_output(prepared: Command) -> None:
    """`show` prints each record as it was shown; `--after` those that came later."""
    prepared("do", "repeat 4")
    whole = prepared("conversation", "show").stdout
    assert whole == prepared("conversation", "show").stdout
    assert "understood: repeat n=4" in whole
    assert prepared("conversation", "show", "--after", "3").stdout == whole.splitlines(True)[-1]


def test_a_damaged_conversation_hides_no_other(prepared: Command, tmp_path: Path) -> None:
    """It is listed with its problem and refused by `do`; a new one works, and it can be deleted."""
    prepared("do", "repeat 4")
    [path] = (tmp_path / "store" / "conversations").glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"repeat 4", b"repeat 5", 1))
    refused = prepared("do", "repeat 4")
    assert refused.returncode == 1
    assert f"{path.name}:2" in refused.stderr
    assert "conversation new" in refused.stderr
    prepared("conversation", "new", "other")
    assert prepared("do", "repeat 4").returncode == 0
    listed = json.loads(prepared("conversation", "list", "--json").stdout)
    assert [(one["name"], one["problem"] is None) for one in listed] == [
        ("other", True),
        ("", False),
    ]
    assert prepared("conversation", "delete", path.stem, "--yes").returncode == 0
    assert not path.exists()
