"""Conversations with a real agent of the protocol: what it says, asks for, is refused, and leaves
behind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from testbed.processes import await_end
from testbed.roles import request
from testbed.turns import TurnHarness, argv
from uncaged_agents.acp.agent import AcpAgent
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentAway, AgentWaits, Repair
from uncaged_engine.door.effects import Cancel
from uncaged_engine.sandbox.mechanism import choose

AGENT = Path(sys.executable).name

ASK = Rights(ask=True)

pytestmark = pytest.mark.slow


@pytest.fixture
def harness(tmp_path: Path) -> TurnHarness:
    return TurnHarness.make(tmp_path)


def sleepers(harness: TurnHarness) -> list[int]:
    """Return the processes of a turn that still run, the agent's own children included."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if (
                process.environ().get("MARKS") == str(harness.marks)
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process.pid)
    return found


def left_by(text: str) -> int:
    return int(text.partition("[left ")[2].partition("]")[0])


def test_what_it_says_after_its_last_work_is_the_answer(harness: TurnHarness) -> None:
    """Words on the way and thoughts are no part of it; usage and cost are; the view shows tool,
    file, text and tokens as they come.
    """
    answer = harness.ask(
        "say:First I look.",
        "think:hm",
        "write:src/a.py=x = 1\\n",
        "say:It is done.",
        'block:{"status": "done"}',
        "cost:500=0.25",
    )
    assert answer.text == 'It is done.\n```json\n{"status": "done"}\n```'
    assert answer.usage == {
        "inputTokens": 130,
        "outputTokens": 50,
        "cachedTokens": 30,
        "cost": 0.25,
    }
    assert answer.session == "session-1"
    assert (harness.worktree / "src" / "a.py").read_text() == "x = 1\n"
    last = harness.told[-1]
    assert (last["tool"], last["file"], last["text"], last["tokens"]) == (
        "Write src/a.py",
        "src/a.py",
        "```",
        500,
    )
    assert last["usage"] == {"cost": 0.25}
    assert harness.remarks == ["agent test-agent 7", "edit: Write src/a.py"]


def test_paths_outside_are_refused_however_they_are_spelled(harness: TurnHarness) -> None:
    """Dots, absolute paths and links that lead out; git's own files; asked for politely or not. The
    agent hears why and goes on.
    """
    (harness.root / "outside").write_text("secret")
    (harness.worktree / "link").symlink_to(harness.root / "outside")
    (harness.worktree / "way").symlink_to(harness.root)
    (harness.worktree / "inside").write_text("1\n2\n3\n4\n")
    text = harness.text(
        *(f"force:{path}=x" for path in ("../outside", "link", "way/new", ".git/hooks/pre-commit")),
        *(f"read:{path}" for path in ("../outside", "link", "inside=2+2")),
        *(
            f"ask:{request}"
            for request in (
                "edit=../outside",
                "read=link",
                "edit=.git/config",
                "edit=inside",
                "execute=",
                "delete=way/x",
            )
        ),
        "force:new/deep.txt=y",
    )
    assert text.count("leads out of the working tree") == 5
    assert text.count("belongs to git") == 1
    assert "[2\n3\n]" in text
    assert "[wrote new/deep.txt]" in text
    asked = [
        line.partition("]")[0]
        for line in text.split("[")[1:]
        if ": " in line and line.startswith(("edit", "read", "execute", "delete"))
    ]
    assert asked == [
        "edit ../outside: ",
        "read link: ",
        "edit .git/config: ",
        "edit inside: yes",
        "execute : yes",
        "delete way/x: ",
    ]
    assert (harness.root / "outside").read_text() == "secret"
    assert not (harness.root / "new").exists()
    assert sum(remark.startswith("refused edit") for remark in harness.remarks) == 2


def test_the_policy_says_what_a_role_may_do(harness: TurnHarness) -> None:
    """A role that reads the workspace changes nothing through us; one with a list of tools gets no
    others.
    """
    (harness.worktree / "a").write_text("a")
    words = ("ask:edit=a", "ask:read=a", "force:a=b", "read:a", "run:echo ran")
    text = harness.text(
        *words, writable=False, rights=Rights(tools=frozenset({"read", "search"}), ask=True)
    )
    allowed = "the flow's policy allows read, search"
    assert (
        text == f"[edit a: ]\n\n[read a: yes][{allowed}, not 'edit'][a][{allowed}, not 'execute']"
    )
    assert "[edit a: ]\n\n[read a: yes][the flow's policy lets this role read" in harness.text(
        *words[:3], writable=False
    )


def test_what_a_role_needs_for_each_kind_of_call(harness: TurnHarness) -> None:
    """Deleting takes write, committing a command, fetching the network; thinking is free, and of
    what is unknown nothing is allowed.
    """
    asked = ("delete=a", "execute=", "fetch=", "think=", "other=", "edit=a")
    words = [f"ask:{request}" for request in asked]
    yes = [
        text.partition(":")[0]
        for text in harness.text(*words, rights=Rights(tools=frozenset({"write", "commit"}))).split(
            "["
        )
        if ": yes" in text
    ]
    assert yes == ["delete a", "execute ", "think ", "edit a"]
    only = harness.text(*words, rights=Rights(tools=frozenset({"edit"}), network=True))
    assert [text.partition(":")[0] for text in only.split("[") if ": yes" in text] == [
        "fetch ",
        "think ",
        "edit a",
    ]
    every = harness.text(*words)
    assert [text.partition(":")[0] for text in every.split("[") if ": yes" in text] == [
        "delete a",
        "execute ",
        "think ",
        "other ",
        "edit a",
    ]


def test_a_command_of_a_role_that_reads_cannot_write(harness: TurnHarness) -> None:
    """A role that only reads has its commands in the sandbox, whatever the policy says of one."""
    choose()
    (harness.worktree / ".git").rmdir()
    subprocess.run(["git", "init", "--quiet", str(harness.worktree)], check=True)
    text = harness.text("run:ls -A; touch new", writable=False)
    assert text.startswith("[1: .git\n")
    assert "Read-only file system" in text or "Permission denied" in text
    assert not (harness.worktree / "new").exists()


def test_a_person_is_asked_where_the_policy_says_so(harness: TurnHarness) -> None:
    """The turn ends, the thread can wait; a yes and a no are sent in the same session, and neither
    is asked about twice.
    """
    outside = str(harness.root / "outside")
    with pytest.raises(AgentWaits) as caught:
        harness.ask("ask:edit=inside", f"ask:read={outside}", "say:never", rights=ASK)
    name = Path(sys.executable).name
    assert caught.value.details == {
        "question": f"{name} asks, as coder: read {outside} ({outside} is outside). Allow it?",
        "schema": {"type": "string", "enum": ["yes", "no"]},
    }
    with pytest.raises(AgentWaits) as caught:
        harness.ask("heard", f"ask:read={outside}", "ask:read=../other", rights=ASK, reply="yes")
    assert "../other" in str(caught.value.details["question"])
    words = (
        "heard",
        f"ask:read={outside}",
        "ask:read=../other",
        "ask:read=../other",
        "ask:edit=.git/config",
        "say:end",
    )
    with pytest.raises(AgentWaits):
        harness.ask(*words, rights=ASK, reply="no")
    text = harness.text(*words, rights=ASK, reply="no")
    assert text.startswith(
        "heard The person did not allow what you asked for: edit .git/config. Go on with your task"
    )
    assert "in session-1, which has 4 prompts" in text
    assert f"[read {outside}: yes]" in text
    assert text.count("[read ../other: ]") == 2
    assert "[edit .git/config: ]" in text
    # another try knows nothing of it
    assert harness.text(f"ask:read={outside}") == f"[read {outside}: ]"


def test_terminals_run_in_the_worktree_and_end_with_the_turn(harness: TurnHarness) -> None:
    """A line for the shell or a list of words, with the agent's own variables; the last part of
    long output; all of it is ended.
    """
    text = harness.text(
        "run:echo $MINE; pwd; echo oops >&2; exit 3",
        'argv:["printf", "%s", "$HOME 0123456789012345678901234"]',
        "killed:sleep 600",
        "endless:sleep 601",
        "run:exec no-such-program",
        'run:sleep 602 & echo "$!"',
    )
    first, second, third, fourth, fifth, sixth = (
        part.removesuffix("]") for part in text.split("[")[1:]
    )
    assert first == f"3: m\n{harness.worktree}\noops"
    assert second == "56789012345678901234|True"
    assert (third, fourth) == ("SIGKILL", "terminal-4")
    assert fifth.startswith("127: ")
    assert await_end(int(sixth.partition(" ")[2]))
    assert not sleepers(harness)


def test_a_terminal_of_a_role_with_sandbox_is_locked_in(harness: TurnHarness) -> None:
    """A terminal writes to the worktree and nowhere else; the agent itself runs as the person,
    which the documentation says.
    """
    choose()
    (harness.worktree / ".git").rmdir()
    subprocess.run(["git", "init", "--quiet", str(harness.worktree)], check=True)
    outside = harness.root / "outside"
    text = harness.text(
        "run:echo in > inside; cat inside; echo $MINE",
        f"run:echo out > {outside}",
        "killed:sleep 600",
        rights=Rights(sandbox=True),
    )
    assert text.startswith("[0: in\nm]")
    assert re.search(r"\[SIG(KILL|TERM)\]$", text)
    assert not outside.exists()
    assert (harness.worktree / "inside").read_text() == "in\n"


def test_a_session_goes_on(harness: TurnHarness) -> None:
    """A later turn and a repair continue the session; text that the agent repeats from it is no
    answer; a lost session is replaced by a new one.
    """
    assert harness.text("heard") == "heard Do it. in session-1, which has 1 prompts"
    again = harness.ask("heard", prompt="More.", session="session-1")
    assert (again.text, again.session) == (
        "heard More. in session-1, which has 2 prompts",
        "session-1",
    )
    # the earlier cost of the session is not known
    assert again.usage == {"inputTokens": 130, "outputTokens": 50, "cachedTokens": 30}
    repair = Repair(answer="", problem="no block", wording="Put it right.")
    assert (
        harness.text("heard", session="session-1", repair=repair)
        == "heard Put it right. in session-1, which has 3 prompts"
    )
    assert (
        harness.text("heard", session="session-9", repair=repair)
        == "heard Do it. in session-2, which has 1 prompts"
    )
    assert "session session-9 is gone (Resource not found); a new one begins" in harness.remarks
    assert (
        harness.text("heard", "forgetful", session="session-1", repair=repair)
        == "heard Do it. in session-3, which has 1 prompts"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["old"],
            f"{AGENT} speaks version 0 of the Agent Client Protocol, but version 1 is needed; bring it up to date, then resume",
        ),
        (
            ["locked"],
            f"{AGENT} is not logged in (Authentication required: no key); log in with its own command, then resume",
        ),
        (
            ["unlocked"],
            f"{AGENT} is not logged in (Authentication required); log in with its own command, then resume",
        ),
        (
            ["broken"],
            f"{AGENT} cannot begin: Internal error: no model is configured; if it is too old",
        ),
    ],
)
def test_what_a_person_can_fix_is_a_lack_of_the_environment(
    harness: TurnHarness, words: list[str], expected: str
) -> None:
    """Too old, not logged in, not set up: the thread waits for it, and the step has not failed."""
    assert harness.lack(*words).startswith(expected)


def test_what_is_no_agent_is_a_lack_of_the_machine(tmp_path: Path) -> None:
    """Not there, cannot run, does not know the protocol, or waits for a person at its own
    prompt.
    """
    (tmp_path / "scratch").mkdir()
    for settings, expected in (
        ({"argv": ["no-such-agent"]}, "'no-such-agent' is not on PATH"),
        ({"argv": [str(tmp_path)]}, "cannot be started|not at that path"),
        (
            {"argv": ["sh", "-c", "echo unknown option --acp >&2; exit 2"]},
            "sh cannot begin: it ended with exit code 2; it said last: unknown option",
        ),
        (
            {"argv": ["sleep", "600"], "startSeconds": 0.2},
            "sleep did not take part in the Agent Client Protocol within 0.2 s",
        ),
        (
            {
                "argv": [
                    "sh",
                    "-c",
                    'read x; echo \'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":{}}}\'; sleep 600',
                ]
            },
            "protocolVersion",
        ),
    ):
        asked = request(
            tmp_path,
            key=f"{tmp_path.name}/1",
            scratch=tmp_path / "scratch",
            environment={"PATH": os.environ["PATH"]},
        )
        with pytest.raises(EnvironmentLacks, match=expected):
            AcpAgent(settings).answer(asked)


def test_an_agent_that_can_log_in_by_itself_is_asked_to(harness: TurnHarness) -> None:
    """The table can name a way to log in that needs no person."""
    agent = AcpAgent({"row": "cursor-agent", "arguments": ["locked", "say:in"]})
    program = harness.root / "cursor-agent"
    program.write_text(f'#!/bin/sh\nexec {" ".join(argv())} "$@"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{harness.root}:{os.environ['PATH']}", "HOME": str(harness.root)}
    asked = request(
        harness.root,
        key=f"{harness.thread}/1",
        scratch=harness.root / "scratch",
        worktree=harness.worktree,
        environment=environment,
    )
    with pytest.raises(
        EnvironmentLacks, match="Cursor cannot begin: Invalid params: cursor_login"
    ) as caught:
        agent.answer(asked)
    assert "run `cursor-agent login`, or set CURSOR_API_KEY and name it under environment" in str(
        caught.value
    )
    program.write_text(f'#!/bin/sh\nexec {" ".join(argv())} "$@" method:cursor_login\n')
    assert agent.answer(asked).text == "in"


@pytest.mark.parametrize(
    ("word", "message", "more"),
    [
        (
            "die:3",
            f"{AGENT} gave no answer: it ended with exit code 3; it said last: my last words",
            {"exitCode": 3},
        ),
        (
            "die:kill",
            f"{AGENT} gave no answer: it was ended by signal 9; it said last: my last words",
            {"signal": 9},
        ),
        ("stop:refusal", f"{AGENT} gave no answer: it refused to go on", {"stopReason": "refusal"}),
        (
            "stop:max_tokens",
            f"{AGENT} gave no answer: its answer reached the limit of tokens",
            {"stopReason": "max_tokens"},
        ),
        (
            "error:the model is gone",
            f"{AGENT} gave no answer: Internal error: the model is gone",
            {},
        ),
    ],
)
def test_an_agent_that_gives_up_has_failed(
    harness: TurnHarness, word: str, message: str, more: dict[str, object]
) -> None:
    """The step fails with the reason, the end of its standard error, and what it had cost."""
    failed = harness.failure("cost:10=0.5", word)
    assert (str(failed), failed.kind) == (message, "agent")
    assert more.items() <= failed.more.items()
    assert failed.more["usage"] == {"cost": 0.5}
    assert failed.more.get("stderr") == ("my last words\n" if word.startswith("die") else None)


def test_an_outage_of_the_service_differs_from_a_failure_of_the_agent(
    harness: TurnHarness,
) -> None:
    """An agent's error that reports an outage is asked again by its caller."""
    assert isinstance(harness.failure("error:API Error: 529 Overloaded"), AgentAway)
    assert not isinstance(harness.failure("error:the tests failed with 503 lines"), AgentAway)


def test_an_agent_that_closes_its_output_or_lets_others_hold_it_has_failed(
    harness: TurnHarness,
) -> None:
    """A turn does not wait for a pipe that only a leftover process keeps open."""
    assert str(harness.failure("deaf")) == f"{AGENT} gave no answer: it closed its output"
    assert str(harness.failure("hold", "die:0")).startswith(
        f"{AGENT} gave no answer: it ended with exit code 0"
    )


def test_an_agent_that_hangs_is_over_time(harness: TurnHarness) -> None:
    """The step's time limit holds, whatever the agent does about it."""
    failed = harness.failure("endless:sleep 604", "hang", timeout_s=5.0)
    assert (failed.kind, str(failed)) == (
        "timeout",
        f"{AGENT} gave no answer within 5 s and was stopped",
    )
    assert not sleepers(harness)


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_kill_cancels_the_turn_and_then_ends_the_agent(
    harness: TurnHarness, stubborn: bool
) -> None:
    """The agent gets the cancellation of its turn; one that ignores it is ended with its terminals
    and children.
    """
    cancel, heard = Cancel(), []

    def stop() -> None:
        # blocks until the agent says that it hangs
        with os.fdopen(os.open(harness.marks, os.O_RDWR)) as marks:
            heard.append(marks.readline())
            cancel.request()
            heard.append(marks.readline())

    stopper = threading.Thread(target=stop)
    stopper.start()
    words = ["endless:sleep 605", "leave:far", "hang", *(["stubborn"] if stubborn else [])]
    failed = harness.failure(*words, cancel=cancel, settings={"graceSeconds": 0.5})
    stopper.join()
    assert str(failed) == f"{AGENT} was stopped"
    assert heard == ["hangs\n", "cancelled session-1\n"]
    assert not sleepers(harness)


def test_a_turn_that_ended_before_it_heard_of_the_stop_is_whole(harness: TurnHarness) -> None:
    """A thread that the cost of a finished turn stops keeps the answer, which was paid for."""
    cancel = Cancel()

    def progress(fields: Mapping[str, object]) -> None:
        if "usage" in fields:
            cancel.request()

    assert (
        harness.text("say:It is done.", "cost:500=0.25", "late", cancel=cancel, progress=progress)
        == "It is done."
    )
    assert cancel.requested


def test_a_kill_before_it_has_begun_ends_it(harness: TurnHarness) -> None:
    """A kill during the handshake ends the agent before any time limit."""
    cancel = Cancel()
    cancel.request()
    assert str(harness.failure("mute", cancel=cancel)) == f"{AGENT} was stopped"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["flood:line"], "it wrote a line of more than 8388608 bytes, and was stopped"),
        (
            ["flood:noise"],
            "it wrote more than 1048576 bytes that are no messages of the protocol, and was stopped",
        ),
        (["flood:text"], "its answer is longer than 1048576 characters, and was stopped"),
        (
            ["flood:requests"],
            "it (left more than 16777216 bytes of answers unread|asked more than 256 things at once), and was stopped",
        ),
    ],
)
def test_an_agent_that_floods_us_is_ended_within_bounds(
    harness: TurnHarness, words: list[str], problem: str
) -> None:
    """A flood is ended soon, and little of it is kept."""
    (harness.worktree / "big").write_text("x" * 200_000)
    before = psutil.Process().memory_info().rss
    failed = harness.failure(*words)
    assert re.search(problem, str(failed))
    assert psutil.Process().memory_info().rss - before < 120 << 20


def test_what_it_leaves_running_is_ended(harness: TurnHarness) -> None:
    """Processes that an agent leaves in its own group or in a session of their own are gone after
    the answer.
    """
    for way in ("near", "far"):
        assert await_end(left_by(harness.text(f"leave:{way}", "say:done")))


def test_unknown_messages_do_no_harm(
    harness: TurnHarness, capfd: pytest.CaptureFixture[str]
) -> None:
    """Newer kinds of updates, nonsense and wrong requests: the turn goes on, and our log does not
    fill with traces.
    """
    text = harness.text("strange", "wrong", "say:ok")
    assert (
        text == "[Invalid params; Invalid params; Method not found; there is no terminal 'none']ok"
    )
    assert "Traceback" not in capfd.readouterr().err


def test_settings_are_checked_before_anything_runs() -> None:
    """A row that there is, or a command; not both, not neither."""
    for settings, words in (
        ({}, "needs one of row"),
        ({"row": "gemini", "argv": ["x"]}, "needs one of row"),
        ({"row": "claude"}, "no row 'claude'"),
        ({"argv": ["x"], "timeout": 3}, "did you mean 'timeoutSeconds'"),
    ):
        with pytest.raises(UsageError, match=words):
            AcpAgent(settings)
    assert json.dumps(AcpAgent({"row": "gemini"}).name) == '"acp"'
