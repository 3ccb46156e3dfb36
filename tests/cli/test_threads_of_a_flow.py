"""The verbs about threads, through the real command on real workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import FLOWS, bundle_text

pytestmark = pytest.mark.slow

DRAFT = """
from uncaged_bundles.authoring import END, START, Role, Workflow

schema = {
    "type": "object",
    "properties": {"status": {"enum": ["drafted"]}, "text": {"type": "string"}},
    "required": ["status", "text"],
}
writer = Role(name="writer", description="Drafts the text.", system_prompt="Write.", extract_prompt="The text.", schema=schema)
workflow = Workflow(
    name="draft", description="d", roles=[writer], moderator={START: "writer", "writer": {"drafted": END}}, policy={"role": {}}
)
"""
Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]


@contextmanager
def following(words: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A command that is still at work."""
    with subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_run_follows_and_exits_by_the_result(command: Command, flow: AddFlow) -> None:
    """First line, steps, last words and branch on stdout; the next command on stderr."""
    bundle = flow("echo")
    done = command("run", "echo", "--prompt", "-", "--param", "times=1", stdin="hello\n")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("thread 01")
    assert f"echo@{bundle}, sandbox " in lines[0]
    assert lines[1].split() == ["1", "speaker", "said:", "number", "0"]
    assert lines[2].startswith("completed after ")
    assert lines[2].endswith(": said hello")
    assert lines[3:] == ["branch: uncaged/echo/1"]
    assert done.stderr == "next: git merge uncaged/echo/1\n"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("sulk", 3, "unsuccessful"),
        ("boom", 3, "uncaged-workflow fork 01"),
        ("lack", 4, "no key for the model"),
        ("ask", 8, "which one?"),
    ],
)
def test_each_way_to_stop_has_its_exit_code_and_next_step(
    command: Command, flow: AddFlow, name: str, code: int, words: str
) -> None:
    """`success: false` and a failure are 3, a lack of the environment 4, waiting 8."""
    flow(name)
    done = command("run", name)
    assert done.returncode == code, done
    assert words in done.stdout + done.stderr
    assert command("thread", "latest").returncode == 0


def test_a_status_that_is_shown_can_be_asked_for(command: Command, flow: AddFlow) -> None:
    """A word of the status column is a value of `--status`; where none has it, the status is
    named.
    """
    flow("sulk")
    flow("echo")
    assert [command("run", name).returncode for name in ("sulk", "echo")] == [3, 0]
    [found] = json.loads(command("threads", "--status", "unsuccessful", "--json").stdout)
    assert (found["flow"], found["status"]) == ("sulk", "completed")
    assert "no threads with status failed" in command("threads", "--status", "failed").stderr


def test_a_failed_bundle_shows_type_trace_and_failing_line(command: Command, flow: AddFlow) -> None:
    """The reason why a bundle failed is in `run`, `thread show` and `--json`, with the failing line
    of its source.
    """
    text = (
        bundle_text("boom").replace('    raise ValueError("boom")', "    deeper()")
        + "\n\ndef deeper():\n    raise ValueError('boom')\n"
    )
    bundle = flow("boom", text)
    line = text.splitlines().index("    raise ValueError('boom')") + 1
    for words in (["run", "boom"], ["thread", "show", "latest"]):
        shown = command(*words).stdout
        assert (
            f"ValueError at line {line} of the bundle, in deeper\n{line:>6} | raise ValueError('boom')\n"
            in shown
        )
        assert (
            f"  {bundle}.py:{line - 4} in run: deeper()\n  {bundle}.py:{line} in deeper: raise"
            in shown
        )
    failure = json.loads(command("run", "boom", "--json").stdout.splitlines()[-1])["thread"][
        "failure"
    ]
    assert json.loads(command("thread", "latest", "--json").stdout)["failure"] == failure
    assert (failure["type"], failure["line"], failure["source"]) == (
        "ValueError",
        line,
        "    raise ValueError('boom')",
    )
    assert len(failure["trace"]) == 2


def test_a_limit_is_raised_and_the_past_is_not_told_again(command: Command, flow: AddFlow) -> None:
    """Exit 6 names the option; `resume` goes on, says how much was before, and shows what is
    new.
    """
    flow("echo")
    limited = command("run", "echo", "--max-rounds", "1")
    assert limited.returncode == 6
    assert "--max-rounds 11" in limited.stderr
    resumed = command("resume", "latest", "--max-rounds", "11")
    assert resumed.returncode == 0
    assert "1 step before this" in resumed.stdout
    assert resumed.stdout.count("said: number 0") == 0
    assert resumed.stdout.count("said: number 1") == 1
    refused = command("resume", "latest")
    assert refused.returncode == 1
    assert "completed" in refused.stderr


def test_a_lack_is_fixed_and_the_thread_continues(command: Command, flow: AddFlow) -> None:
    """After exit 4, `resume` asks again."""
    flow("lack")
    assert command("run", "lack").returncode == 4
    assert command("resume", "latest").returncode == 0


def test_a_question_is_answered(command: Command, flow: AddFlow) -> None:
    """A waiting thread shows its question, takes what fits, and goes on; one that does not wait
    refuses.
    """
    flow("ask")
    waiting = command("run", "ask")
    assert waiting.returncode == 8
    assert "uncaged-workflow answer 01" in waiting.stderr
    assert "which one?" in command("answer", "latest").stderr
    assert command("answer", "latest", "many").returncode == 2
    answered = command("answer", "latest", "7")
    assert (answered.returncode, "thanks for 7" in answered.stdout) == (0, True)
    assert command("answer", "latest", "7").returncode == 1


def test_detach_prints_the_id_alone(command: Command, flow: AddFlow) -> None:
    """`run --detach` prints one word on stdout and nothing on stderr; `--follow` attaches to a
    finished thread and exits by its result.
    """
    flow("sulk")
    done = command("run", "sulk", "--detach")
    assert (done.returncode, done.stderr, len(done.stdout.strip())) == (0, "", 26)
    followed = command("thread", done.stdout.strip().lower()[:20], "--follow")
    assert followed.returncode == 3
    assert "not today" in followed.stdout


def test_an_interrupt_leaves_the_thread_running(
    command: Command, flow: AddFlow, environment: dict[str, str]
) -> None:
    """Ctrl-C: exit 130, how to follow and how to kill; the thread is still there to be paused or
    killed.
    """
    flow("slow")
    with following(["run", "slow"], environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()  # the first step: the thread runs and is followed
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--follow" in err
    assert "uncaged-workflow kill" in err
    assert "Traceback" not in err
    running = command("ps").stdout
    assert "null" in running
    assert command("thread", "rm", "latest").returncode == 1
    assert "will pause when its current step has ended" in command("pause", "latest").stdout
    assert command("kill", "latest").returncode == 0
    killed = command("kill", "latest")
    assert killed.returncode == 1
    assert "killed" in killed.stderr
    assert command("thread", "rm", "latest").returncode == 0
    assert command("thread", "latest").returncode == 5


def test_followers_see_the_end_that_another_command_makes(
    flow: AddFlow, command: Command, environment: dict[str, str]
) -> None:
    """A kill from elsewhere ends the follower with exit 3 and the command to go on."""
    flow("slow")
    thread = command("run", "slow", "--detach").stdout.strip()
    with following(["thread", thread, "--follow"], environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        assert command("kill", thread).returncode == 0
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "killed" in out
    assert f"uncaged-workflow resume {thread}" in err


def test_forks_keep_what_they_are_told(command: Command, flow: AddFlow) -> None:
    """Plain, by number, by role; an unknown role lists those there are; the source stays."""
    flow("echo")
    source = json.loads(command("run", "echo", "--param", "times=3", "--detach", "--json").stdout)[
        "threadId"
    ]
    assert command("thread", source, "-f").returncode == 0
    for words, kept in (
        ([], 2),
        (["--at", "1"], 1),
        (["--from-role", "speaker"], 1),
        (["--from-role", "speaker", "--last"], 3),
    ):
        done = command("fork", source, *words)
        assert done.returncode == 0, done.stderr
        assert f"fork of {source} at step {kept}" in done.stdout
    unknown = command("fork", source, "--from-role", "nobody")
    assert unknown.returncode == 5
    assert "speaker" in unknown.stderr
    assert command("fork", source, "--at", "1", "--from-role", "speaker").returncode == 2
    assert command("fork", source, "--last").returncode == 2
    assert len(json.loads(command("threads", "--json").stdout)) == 5


def test_verify_proves_or_says_why_not(command: Command, flow: AddFlow, tmp_path: Path) -> None:
    """A journal as it was written is proved; after an edit it is not, exit 1, and the thread is
    listed all the same.
    """
    bundle = flow("echo")
    for _ in range(2):
        assert command("run", "echo", "--prompt", "hello").returncode == 0
    assert "proved" in command("verify", "latest").stdout
    [journal] = (tmp_path / "store" / "logs" / bundle).glob(f"{newest(command)}.data.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b'"number":0', b'"number":7', 1))
    edited = command("verify", "latest")
    assert edited.returncode == 1
    assert edited.stdout.startswith(f"{journal.name[:26]}: not proved")
    listed = command("threads")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == 3
    shown = command("thread", "latest")
    assert shown.returncode == 0


def test_a_thread_that_cannot_be_read_hides_no_other(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """Rubbish in place of a journal is listed as corrupt; exit 0."""
    bundle = flow("echo")
    assert command("run", "echo").returncode == 0
    (tmp_path / "store" / "logs" / bundle / "01HX5WBE00AAAAAAAAAAAAAAAA.data.jsonl").write_bytes(
        b"rubbish\n"
    )
    done = command("threads")
    assert done.returncode == 0
    assert "01HX5WBE00AAAAAAAAAAAAAAAA" in done.stdout
    assert "corrupt" in done.stdout
    assert "completed" in done.stdout


def test_paths_are_drawn(command: Command, flow: AddFlow) -> None:
    """Where a function decides, the edges that threads took are drawn; --thread shows the path."""
    flow("echo")
    assert "no edges" in command("graph", "echo").stderr
    drawn = command("graph", "echo", "--format", "svg")
    assert (drawn.returncode, drawn.stdout, "no edges" in drawn.stderr) == (1, "", True)
    assert command("run", "echo").returncode == 0
    assert "├─ said → speaker  (taken 1×)" in command("graph", "echo").stdout
    path = command("graph", "--thread", "latest").stdout.splitlines()[0]
    assert path == "start → speaker (said) → speaker (said) → end"


def test_words_that_make_no_sense_are_exit_code_2_or_5(command: Command, flow: AddFlow) -> None:
    """Usage is 2, what is not there 5; each names the closest or the form."""
    flow("echo")
    cases = {
        ("run", "ecko"): (5, "echo"),
        ("run", "echo", "--param", "tmies=2"): (2, "times"),
        ("run", "echo", "--param", "times=often"): (2, "integer"),
        ("run", "echo", "--agent", "="): (2, "ROLE=NAME"),
        ("run", "echo", "--agent", "coder=x"): (5, "coder"),
        ("thread", "01ZZ"): (5, "threads"),
        ("thread", "echo"): (5, "no thread 'echo'"),
        ("verify", "echo"): (5, "uncaged-workflow verify echo --on head"),
        ("verify", "ecko"): (5, "no thread 'ecko'"),
        ("threads", "ecko"): (5, "echo"),
        ("threads", "--status", "done"): (2, "'completed'"),
        ("run", "echo", "--max-cost", "much"): (2, "'much' is not a number"),
        ("run", "echo", "--max-time", "90"): (2, "as in 90s"),
        ("completion",): (2, "Choose from: bash, zsh, fish"),
        ("resume", "latest", "--redo", "--skip"): (2, "--redo"),
        ("lsit",): (2, "list"),
        ("prune", "--older-than", "soon"): (2, "30d"),
        ("run",): (2, "--help"),
        ("thread", "latest"): (5, "run FLOW"),
    }
    for words, (code, hint) in cases.items():
        done = command(*words)
        assert (done.returncode, done.stdout) == (code, ""), (words, done)
        assert done.stderr.startswith("error: "), words
        assert hint in done.stderr, words


@pytest.mark.parametrize("words", ["threads", "build echo.py", "thread latest --follow"])
def test_a_reader_that_goes_away_is_no_bug(
    command: Command, flow: AddFlow, environment: dict[str, str], tmp_path: Path, words: str
) -> None:
    """`threads | head -1` ends quietly."""
    flow("echo")
    assert command("run", "echo").returncode == 0
    with subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", *words.split()],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 1
    assert "Error" not in errors
    assert "error" not in errors


def test_following_as_json_is_one_object_a_line(command: Command, flow: AddFlow) -> None:
    """Start, every record, and the end with its exit code."""
    flow("sulk")
    done = command("run", "sulk", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["start", "record", "record", "record", "end"]
    assert (events[-1]["exitCode"], events[-1]["thread"]["status"], done.returncode) == (
        3,
        "completed",
        3,
    )


def newest(command: Command) -> str:
    return str(json.loads(command("threads", "--json").stdout)[0]["threadId"])


def test_a_group_without_a_word_shows_its_help(command: Command) -> None:
    """A group without a verb is a usage error, and prints its help without the word error."""
    done = command("thread")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: uncaged-workflow thread")


def test_a_role_that_a_person_plays_is_asked_for_by_its_fields(
    command: Command, tmp_path: Path
) -> None:
    """In a pipe, where no form can be shown, the command line that answers has the fields in it; a
    listing has the question.
    """
    (tmp_path / "draft.py").write_text(DRAFT)
    assert (
        "next: uncaged-workflow run draft --prompt TEXT\n"
        in command("add", "draft", "draft.py", "--accept").stderr
    )
    waiting = command("run", "draft", "--prompt", "x", "--agent", "person")
    assert waiting.returncode == 8
    thread = command("threads", "--json")
    assert json.loads(thread.stdout)[0]["message"] == "writer: Drafts the text."
    assert waiting.stderr.endswith(
        f"next: uncaged-workflow answer {json.loads(thread.stdout)[0]['threadId']}\n"
    )
    asked = command("answer", "latest")
    assert asked.returncode == 2
    suggested = asked.stderr.rstrip().rpartition(" answer ")[2].partition(" ")[2].strip("'")
    assert json.loads(suggested) == {"status": "drafted", "text": "…"}
    answered = command("answer", "latest", suggested.replace("…", "drafted"))
    assert answered.returncode == 0, answered


def test_threads_of_a_removed_flow_are_found_by_its_name(command: Command, flow: AddFlow) -> None:
    """`remove` says that they stay, and names the command that lists them."""
    flow("sulk")
    command("run", "sulk")
    removed = command("remove", "sulk")
    assert removed.stderr == "next: uncaged-workflow threads sulk\n"
    assert "not today" in command("threads", "sulk").stdout


def test_a_flows_threads_are_replayed_against_its_head(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """`verify FLOW --on head` after a change tells which threads it would have taken elsewhere."""
    flow("echo")
    command("run", "echo", "--prompt", "x")
    same = command("verify", "echo", "--on", "head")
    assert (same.returncode, "1 identical, 0 diverge" in same.stdout) == (0, True)
    text = (tmp_path / "echo.py").read_text()
    flow("echo", text.replace('"said"', '"sung"'))
    changed = command("verify", "echo", "--on", "head")
    assert (changed.returncode, "0 identical, 1 diverge" in changed.stdout) == (1, True)


def test_past_threads_are_tests_of_their_flow(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """`regress` says in one line what a group of threads would do now; a pinned thread stays until
    it is released.
    """
    flow("echo")
    assert "no past threads of echo to replay" in command("regress", "echo").stderr
    for _ in range(3):
        command("run", "echo", "--prompt", "x", "--param", "times=1")
    assert command("regress", "echo").stdout == "3 threads identical\n"
    text = (tmp_path / "echo.py").read_text()
    flow("echo", text.replace('"said"', '"sung"'))
    changed = command("regress", "echo")
    assert changed.returncode == 3
    assert changed.stdout.startswith(
        "3 threads different at step 1 in output.meta.status: recorded {"
    )
    [group] = json.loads(command("regress", "echo", "--json").stdout)["groups"]
    assert (group["step"], group["places"]) == (1, ["output.meta.status"])
    newest, *others = group["threadIds"]
    assert command("thread", "pin", newest).stdout == f"pinned {newest}\n"
    refused = command("thread", "rm", newest)
    assert (refused.returncode, f"thread pin --off {newest}" in refused.stderr) == (1, True)
    pruned = json.loads(command("prune", "--older-than", "0s", "--json").stdout)
    assert (sorted(pruned["threadIds"]), pruned["pinned"]) == (sorted(others), [newest])
    assert command("thread", "pin").stdout == f"{newest}\n"
    assert json.loads(command("thread", "pin", "--off", newest, "--json").stdout) == {"pinned": []}
    assert json.loads(command("prune", "--older-than", "0s", "--json").stdout)["threadIds"] == [
        newest
    ]


def test_a_thread_that_succeeds_now_is_no_regression(command: Command, flow: AddFlow) -> None:
    """A failed thread that the current version ends with success is named, with exit 0."""
    flow("sulk")
    command("run", "sulk", "--prompt", "x")
    flow("sulk", bundle_text("sulk").replace('"success": False', '"success": True'))
    found = command("regress", "sulk")
    assert (found.returncode, found.stdout.partition(";")[0]) == (
        0,
        "1 thread failed before, succeeds now",
    )
    assert "0 identical, 0 different, 1 failed before and succeed now" in found.stderr
    document = json.loads(command("regress", "sulk", "--json").stdout)
    [group] = document["groups"]
    assert (document["succeedNow"], document["different"], group["succeedsNow"]) == (1, 0, True)


def test_an_outcome_can_be_made_up_and_both_futures_be_seen(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """`fork --set` keeps the steps before it for free; `diff --threads` shows where the two part
    and how each ended.
    """
    text = bundle_text("sulk").replace(
        FLOWS["sulk"],
        """
    first = yield {"null": {"value": 1, "mark": True}}
    second = yield {"null": {"value": first + 1}}
    return {"success": True, "message": f"came to {second}"}
""",
    )
    flow("sulk", text)
    command("run", "sulk")
    source = json.loads(command("threads", "--json").stdout)[0]["threadId"]
    (tmp_path / "set.json").write_text("41")
    forked = command("fork", source, "--at", "1", "--set", "set.json")
    assert (forked.returncode, "came to 42" in forked.stdout) == (0, True), forked
    fork = json.loads(command("threads", "--json").stdout)[0]["threadId"]
    assert command("verify", fork).returncode == 0
    assert not (tmp_path / "store" / "work" / f"{fork}.null").exists(), (
        "nothing of the prefix was performed again"
    )
    shown = command("diff", "--threads", source, fork).stdout
    assert "41" in shown
    assert "came to 2" in shown
    assert "came to 42" in shown
    (tmp_path / "set.json").write_text("{")
    wrong = command("fork", source, "--at", "1", "--set", "set.json")
    assert (wrong.returncode, "set.json" in wrong.stderr) == (2, True)


def test_two_threads_that_went_the_same_way_are_alike(command: Command, flow: AddFlow) -> None:
    """Threads without a differing step have no line 'then', and unfinished ones no line 'end'."""
    flow("sulk")
    command("run", "sulk")
    lines = command("diff", "--threads", "latest", "latest").stdout.splitlines()
    assert lines[0] == "1 step alike"
    assert [line.split()[0] for line in lines[1:]] == ["end", "end"]
    flow("ask")
    command("run", "ask")
    lines = command("diff", "--threads", "latest", "latest").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["now", "now"]


def test_what_is_shown_whole_names_no_way_to_show_it_whole(command: Command, flow: AddFlow) -> None:
    """An unsuccessful thread suggests `--full`, except where it is already shown."""
    flow("sulk")
    assert command("run", "sulk").stderr.splitlines()[0].endswith(" --full")
    assert command("thread", "latest").stderr.splitlines()[0].endswith(" --full")
    for option in ("--full", "--verbose"):
        assert " --full" not in command("thread", "latest", option).stderr


TALK = """descriptor = {
    "contract": 1,
    "name": "talk",
    "description": "One role.",
    "kind": "workflow",
    "roles": {"coder": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object", "required": ["n"]}}},
    "policy": {"role": {}},
}


def run(input, options):
    for number in range(3):
        yield {"role": {"name": "coder"}}
"""


def test_a_limit_of_money_that_cannot_count_says_so(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """A cost limit that cannot count a model is reported; a thread without a cost limit reports
    nothing.
    """
    flow("talk", TALK)
    entry = "- {role: coder, answer: I looked., meta: {n: 1}, usage: {inputTokens: 900, outputTokens: 100}}\n"
    (tmp_path / "script.yaml").write_text(entry * 3)
    limited = command("run", "talk", "--agent", "scripted:script.yaml", "--max-cost", "0.5")
    assert (
        limited.returncode,
        "does not count models without a known price; add them under `prices`" in limited.stderr,
    ) == (0, True)
    assert "known price" not in command("run", "talk", "--agent", "scripted:script.yaml").stderr


def test_cost_is_seen_limited_and_estimated(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """Step by step with --verbose, in sum at the end and in listings; a limit of money stops and
    goes on; `--estimate` starts nothing.
    """
    flow("talk", TALK)
    entry = "- {role: coder, answer: I looked., meta: {n: 1}, usage: {inputTokens: 900, outputTokens: 100, cost: 0.4}}\n"
    (tmp_path / "script.yaml").write_text(entry * 3)
    nothing = command("run", "talk", "--estimate")
    assert (
        nothing.returncode,
        "no thread of this version has ended yet, so there is no estimate" in nothing.stdout,
    ) == (0, True)
    limited = command(
        "run", "talk", "--agent", "scripted:script.yaml", "--max-cost", "0.5", "--verbose"
    )
    assert limited.returncode == 6
    assert "        I looked.\n" in limited.stdout
    assert "        used: 1,000 tokens, $0.40\n" in limited.stdout
    assert "\nused: 2,000 tokens, $0.80\n" in limited.stdout
    assert "next: uncaged-workflow resume 01" in limited.stderr
    assert command("resume", "latest", "--max-cost", "0.5").returncode == 1
    assert command("resume", "latest", "--max-cost", "5").returncode == 0
    assert "3,000 tokens, $1.20" in command("threads").stdout
    assert "used: 3,000 tokens, $1.20" in command("thread", "latest").stdout
    fork = command("fork", "latest", "--at", "2", "--verbose")
    assert "\nused: 1,000 tokens, $0.40\n" in fork.stdout
    assert "inherited from its source: 2,000 tokens, $0.80" in command("thread", "latest").stdout
    estimate = command("run", "talk", "--estimate").stdout
    assert "2 past threads (median, worst)" in estimate
    assert "$0.80, $1.20" in estimate
    assert json.loads(command("run", "talk", "--estimate", "--json").stdout)["threads"] == 2
    assert len(json.loads(command("threads", "--json").stdout)) == 2
