"""Role effects from body to outcome, with real agents in real worktrees."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from testbed.repositories import contents, git, make_repository, write
from testbed.roles import THREAD, EffectHarness, role_bundle
from uncaged_agents.choose import choose_agents
from uncaged_agents.role import RoleHandler
from uncaged_agents.workspace import Workspace, carry, inspect
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void
from uncaged_engine.processes.leftovers import MARK
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.settings.config import AgentSettings, Config, LimitSettings, SecretSource

pytestmark = pytest.mark.slow  # worktrees and processes

DONE = 'printf \'Done.\\n```json\\n{"status": "done"}\\n```\\n\''
BAD = 'printf \'```json\\n{"status": "finished"}\\n```\\n\''
NO_WORKSPACE: dict[str, Any] = {"role": {}}
MakeHarness = Callable[..., EffectHarness]


def shell(script: str, **settings: object) -> AgentSettings:
    return AgentSettings(
        use="command", settings={"argv": ["sh", "-c", script], "graceSeconds": 0.2, **settings}
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "r", {"add.py": "1\n", "sub/x": "", ".gitignore": "*.log\n"})


@pytest.fixture
def make_harness(store: Store, repository: Path) -> MakeHarness:
    """A thread whose agents are shell scripts by role ("" for all), with or without a workspace."""

    def make(
        bundle: Bundle | None = None,
        directory: Path = repository,
        config: Config | None = None,
        **scripts: str,
    ) -> EffectHarness:
        chosen = bundle or role_bundle()
        default = scripts.pop("default", DONE)
        agents = {
            "default": shell(default),
            **{name: shell(script) for name, script in scripts.items()},
        }
        settings = config or Config(
            agents=agents, agent="default", roles={role: role for role in scripts}
        )
        start: dict[str, object] = {
            "parameters": {"prompt": "Fix add().", "params": {"depth": 1}, "options": {}},
            "agents": choose_agents(
                settings,
                flow="demo",
                roles=chosen.descriptor.roles,
                asked={},
                environment=os.environ,
                directory=repository,
            ),
            "testCommand": "make check",
        }
        if "workspace" in chosen.descriptor.policy.limits.get("role", {}):
            start["workspace"] = inspect(
                directory,
                flow="demo",
                thread_id=THREAD,
                include_changes=False,
                environment=os.environ,
                now_ms=1000,
            )
        return EffectHarness(
            store=store, bundle=chosen, start=start, environment=dict(os.environ), config=settings
        )

    return make


def perform(harness: EffectHarness, seq: int = 1, body: object = None, **more: Any) -> Outcome:
    return RoleHandler().perform(
        {"name": "coder"} if body is None else body, harness.context(seq, **more)
    )


def answer(
    harness: EffectHarness, seq: int = 1, body: object = None, **more: Any
) -> dict[str, Any]:
    """Perform, expect an answer, and keep it as the journal would."""
    outcome = perform(harness, seq, body, **more)
    assert isinstance(outcome, Answer), outcome
    harness.steps.append({"seq": seq, **outcome.fields, "timestamp": 0})
    return dict(outcome.fields)


def failure(
    harness: EffectHarness, seq: int = 1, body: object = None, **more: Any
) -> dict[str, Any]:
    outcome = perform(harness, seq, body, **more)
    assert isinstance(outcome, Failure), outcome
    return dict(outcome.error)


def worktree(harness: EffectHarness) -> Workspace:
    workspace = Workspace.of(harness.start, harness.store, THREAD, environment=os.environ)
    assert workspace is not None
    return workspace


def test_an_answer_is_a_step_with_its_snapshot(make_harness: MakeHarness, repository: Path) -> None:
    """Role first, content without the block, data, the agent's name, and a commit of what it
    changed; the checkout is untouched.
    """
    harness = make_harness(default=f"cat > prompt.log; echo changed > add.py; {DONE}")
    fields = answer(harness)
    snapshot = fields.pop("snapshot")
    assert list(fields.items()) == [
        ("role", "coder"),
        ("content", "Done."),
        ("meta", {"status": "done"}),
        ("by", "default"),
    ]
    assert git(repository, "show", f"{snapshot}:add.py") == "changed\n"
    assert git(repository, "status", "--porcelain") == ""
    prompt = (worktree(harness).tree / "prompt.log").read_text("utf-8")
    assert "Fix add()." in prompt
    assert "- `status`" in prompt
    assert harness.progress == [{"role": "coder", "agent": "default"}]


def test_a_role_without_workspace_gets_none(make_harness: MakeHarness, store: Store) -> None:
    """No git is needed, nothing is snapshotted, and the agent runs in an empty directory."""
    harness = make_harness(
        role_bundle(policy=NO_WORKSPACE), default=f'test -z "$(ls -A)" || exit 9; {DONE}'
    )
    assert answer(harness) == {
        "role": "coder",
        "content": "Done.",
        "meta": {"status": "done"},
        "by": "default",
    }
    assert not (store.work / THREAD).exists()


def test_a_role_that_only_reads_gets_a_worktree_without_snapshots(
    make_harness: MakeHarness,
) -> None:
    """A role that reads has no changes to keep."""
    harness = make_harness(
        role_bundle(policy={"role": {"workspace": "read"}}), default=f"cat add.py; {DONE}"
    )
    fields = answer(harness)
    assert fields["content"] == "1\nDone."
    assert "snapshot" not in fields


def test_the_agent_works_where_the_person_was(make_harness: MakeHarness, repository: Path) -> None:
    """The agent works in the same subdirectory of the worktree, with the thread's test command at
    hand.
    """
    harness = make_harness(directory=repository / "sub", default=f"pwd; {DONE}")
    assert answer(harness)["content"] == f"{harness.store.work}/{THREAD}/sub\nDone."


SPEAKS = r"""#!/bin/sh
cat > /dev/null
printf '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit",'
printf '"input":{"file_path":"%s/sub/x"}}]}}\n' "$PWD"
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s",'
printf '%s\n' '"result":"Done.\n```json\n{\"status\": \"done\"}\n```"}'
"""


def test_followers_see_files_as_the_worktree_names_them(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """Agents name files from the root of the machine; the place of a worktree means nothing to
    followers.
    """
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(SPEAKS)
    program.chmod(0o755)
    agents = {"writer": AgentSettings(use="program", settings={"row": "claude"})}
    harness = make_harness(config=Config(agents=agents, agent="writer"))
    harness.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    answer(harness)
    assert [report["file"] for report in harness.progress if report.get("tool") == "Edit"] == [
        "sub/x"
    ]


def test_the_override_is_called_and_the_default_is_not(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """An agent for one role; the others have the default."""
    harness = make_harness(
        default=f"touch {tmp_path}/default; {DONE}", coder=f"touch {tmp_path}/coder; {DONE}"
    )
    assert answer(harness)["by"] == "coder"
    assert (tmp_path / "coder").exists()
    assert not (tmp_path / "default").exists()
    assert answer(harness, 2, {"name": "planner"})["by"] == "default"


def test_a_first_reply_that_breaks_the_schema_is_repaired(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """Success with two calls: the first answer is in an attempt, the step says how many answers it
    took.
    """
    harness = make_harness(
        default=f"if test -e {tmp_path}/once; then {DONE}; else touch {tmp_path}/once; {BAD}; fi"
    )
    fields = answer(harness)
    assert (fields["meta"], fields["usage"]) == ({"status": "done"}, {"calls": 2})
    assert [attempt["problem"] for attempt in harness.attempts] == [
        "status: 'finished' is not one of ['done', 'stuck']"
    ]


def test_three_unusable_answers_fail_the_step(make_harness: MakeHarness, repository: Path) -> None:
    """The failure has the problems, the attempts have the answers, and the files are snapshotted
    all the same.
    """
    harness = make_harness(default=f"echo more >> add.py; {BAD}")
    error = failure(harness)
    assert (error["kind"], error["role"], error["by"], error["calls"]) == (
        "extraction",
        "coder",
        "default",
        3,
    )
    assert len(error["attempts"]) == len(harness.attempts) == 3
    assert "none could be used; the last one: status:" in error["message"]
    assert git(repository, "show", f"{error['snapshot']}:add.py") == "1\nmore\nmore\nmore\n"


def test_a_failing_agent_fails_the_step_with_one_call(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """Exit code and streams are in the record; the agent is not asked twice."""
    harness = make_harness(default=f"echo x >> {tmp_path}/calls; echo broken >&2; exit 7")
    error = failure(harness)
    assert (error["kind"], error["message"], error["exitCode"]) == (
        "agent",
        "default: sh failed with exit code 7: broken",
        7,
    )
    assert (error["calls"], harness.attempts, (tmp_path / "calls").read_text("utf-8")) == (
        1,
        [],
        "x\n",
    )


@pytest.mark.parametrize("where", ["body", "policy", "config"])
def test_the_shortest_time_limit_counts(make_harness: MakeHarness, where: str) -> None:
    """The limits are those of the effect, the granted policy and the person's config; a timeout is
    a failure of its own kind.
    """
    policy = {"role": {"timeout_s": 0.1 if where == "policy" else 600}}
    agents = {"default": shell("sleep 600")}
    config = Config(
        agents=agents,
        agent="default",
        limits=LimitSettings(agent_s=0.1 if where == "config" else 600),
    )
    harness = make_harness(role_bundle(policy=policy), config=config)
    error = failure(harness, body={"name": "coder", "timeout_s": 0.1 if where == "body" else 600})
    assert (error["kind"], error["message"]) == (
        "timeout",
        "default: sh gave no answer within 0.1 s and was stopped",
    )


def test_a_kill_is_a_void(make_harness: MakeHarness, tmp_path: Path) -> None:
    """The bundle sees nothing of it, and no snapshot is made of half an answer."""
    os.mkfifo(tmp_path / "up")
    harness = make_harness(default=f"echo half > add.py; echo up > {tmp_path}/up; sleep 600")

    def stop() -> None:
        (tmp_path / "up").read_bytes()  # blocks until the agent runs
        harness.cancel.request()

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    outcome = perform(harness)
    stopper.join()
    assert outcome == Void(word="killed", message="killed while default answered for 'coder'")


def test_a_further_attempt_starts_from_the_last_snapshot(
    make_harness: MakeHarness, repository: Path
) -> None:
    """Changes of a killed attempt in files, index and branch are reverted, ignored files stay, and
    its processes are ended.
    """
    harness = make_harness(default=f"cat add.py; {DONE}", planner=f"echo planned > add.py; {DONE}")
    answer(harness, 1, {"name": "planner"})
    tree = worktree(harness).tree
    before = contents(tree)
    write(tree, {"add.py": "half", "new": "", "kept.log": ""})
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message=half")
    left = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, MARK: f"{THREAD}/2"}, start_new_session=True
    )
    try:
        assert answer(harness, 2, attempt=2)["content"] == "planned\nDone."
        assert left.wait(60) in {-signal.SIGTERM, 0}
    finally:
        left.kill()
    assert contents(tree) == {**before, "kept.log": b""}
    assert git(repository, "log", "--format=%s", worktree(harness).branch) == "one\n"


def test_a_retry_of_the_same_step_starts_from_the_last_snapshot_too(
    make_harness: MakeHarness,
) -> None:
    """A bundle may say ``retry``; the second try must not build on the ruins of the first."""
    harness = make_harness(default="cat add.py; echo ruin > add.py; exit 1")
    assert failure(harness)["stdout"] == "1\n"
    assert failure(harness)["stdout"] == "1\n"


def test_the_next_step_goes_on_with_the_files_of_a_failed_one(make_harness: MakeHarness) -> None:
    """The bundle saw the failure and went on; so do the files, and a restore of the next step leads
    back to them.
    """
    harness = make_harness(default="cat add.py; echo left > add.py; exit 1")
    error = failure(harness, 1)
    harness.steps.append({"seq": 1, "error": error, "timestamp": 0})
    assert failure(harness, 2)["stdout"] == "left\n"
    assert failure(harness, 2, attempt=2)["stdout"] == "left\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("coder", "role: must be a mapping, not 'coder'"),
        ({}, "role.name: is missing"),
        ({"name": "codr"}, "role: the descriptor has no role 'codr' (its roles: coder, planner)"),
        ({"name": ["coder"]}, "role.name: must be text, not ['coder']"),
        (
            {"name": "coder", "agent": "x"},
            "role.agent: unknown key 'agent'; known here: name, prompt, timeout_s, within",
        ),
        ({"name": "coder", "prompt": 3}, "role.prompt: must be text, not 3"),
        ({"name": "coder", "timeout_s": 0}, "role.timeout_s: must be a positive number, not 0"),
        (
            {"name": "coder", "timeout_s": True},
            "role.timeout_s: must be a positive number, not True",
        ),
    ],
)
def test_a_bad_body_is_a_failure(make_harness: MakeHarness, body: object, words: str) -> None:
    """The bundle's author reads it; no agent is asked."""
    error = failure(make_harness(default="exit 9"), body=body)
    assert error == {"kind": "effect", "message": words}


@pytest.mark.parametrize(
    ("within", "browser", "words"),
    [
        ({"browser": 3}, {}, "role.within.browser: must be a mapping, not 3"),
        ({"sleep": {}}, {}, "role: within: effect:sleep is none of its tools"),
        ({}, None, "role: the policy has no 'browser' beside the tool effect:browser"),
        ({"browser": {"steps": "x"}}, {}, "role: within: browser.steps: must be a whole number"),
        ({"browser": {"steps": 501}}, {}, "role: within: browser.steps: "),
        ({"browser": {"tabs": 1}}, {}, "role: within: browser.tabs: unknown key"),
        (
            {"browser": {"hosts": ["evil.test"]}},
            {"hosts": ["good.test"]},
            "role: within: browser.hosts: 'evil.test' is not among those of the policy",
        ),
    ],
)
def test_wrong_limits_of_tools_are_a_failure(
    make_harness: MakeHarness,
    within: Mapping[str, object],
    browser: Mapping[str, object] | None,
    words: str,
) -> None:
    """The bundle's author reads it; no agent is asked, and nothing waits for a person."""
    more = {} if browser is None else {"browser": browser}
    policy = {"role": {"tools": ["effect:browser"]}, **more}
    harness = make_harness(role_bundle(policy=policy), default="exit 9")
    error = failure(harness, body={"name": "coder", "within": within})
    assert error["kind"] == "effect"
    assert error["message"].startswith(words)


def test_writing_roles_do_not_run_side_by_side(make_harness: MakeHarness) -> None:
    """Two agents in one worktree would be in each other's snapshots; reading ones may."""
    error = failure(make_harness(), key=f"{THREAD}/1.0")
    assert "cannot run side by side" in error["message"]
    reading = make_harness(role_bundle(policy={"role": {"workspace": "read"}}))
    assert answer(reading, key=f"{THREAD}/1.1")["content"] == "Done."


def test_a_resumed_threads_agent_has_the_settings_of_now(make_harness: MakeHarness) -> None:
    """A person fixes a wrong path in the config and resumes; the name stays bound to the same kind
    of agent.
    """
    harness = make_harness(
        config=Config(
            agents={"a": AgentSettings(use="command", settings={"argv": ["no-such-agent"]})},
            agent="a",
        )
    )
    with pytest.raises(EnvironmentLacks, match="'no-such-agent' is not on PATH"):
        perform(harness)
    harness.config = Config(agents={"a": shell(DONE)}, agent="a")
    assert answer(harness, attempt=2)["by"] == "a"
    harness.config = Config()
    with pytest.raises(EnvironmentLacks, match="no-such-agent"):
        perform(harness)


def test_settings_that_are_wrong_by_now_pause_the_thread(make_harness: MakeHarness) -> None:
    """Settings that were right when the thread started are fixed by a person, who resumes."""
    harness = make_harness()
    harness.config = Config(
        agents={"default": AgentSettings(use="command", settings={"argv": "x"})}
    )
    with pytest.raises(EnvironmentLacks, match="needs argv"):
        perform(harness)


def test_a_secret_reaches_the_agent_and_nothing_else(make_harness: MakeHarness) -> None:
    """A secret is itself in the agent's environment, and a name again in answers, attempts and
    failures. An unset one pauses the thread.
    """
    leaking = 'test "${#MY_KEY}" = 14 || exit 9; echo "key $MY_KEY" >&2; echo "key $MY_KEY"'
    secrets = {"K": SecretSource(env="KEY_HERE")}
    for tail, expected in ((DONE, Answer), (BAD, Failure), ("exit 3", Failure)):
        agents = {"a": shell(f"{leaking}; {tail}", env={"MY_KEY": "secret:K"})}
        harness = make_harness(
            role_bundle(policy=NO_WORKSPACE),
            config=Config(agents=agents, agent="a", secrets=secrets),
        )
        harness.environment = {**os.environ, "KEY_HERE": "hunter22-value"}
        outcome = perform(harness)
        assert isinstance(outcome, expected)
        assert "hunter22" not in repr((outcome, harness.attempts, harness.progress, harness.start))
        assert "secret:K" in repr((outcome, harness.attempts))
    harness.config = Config(
        agents={"a": AgentSettings(use="command", settings={"argv": ["secret:K"]})}, secrets=secrets
    )
    with pytest.raises(EnvironmentLacks, match="'secret:K' is not on PATH"):
        perform(harness)
    harness.environment = {"PATH": os.environ["PATH"]}
    with pytest.raises(
        EnvironmentLacks, match="secret:K comes from the variable KEY_HERE, which is not set"
    ):
        perform(harness)


def test_a_secret_in_a_setting_that_is_wrong_is_not_shown(make_harness: MakeHarness) -> None:
    """A message about a wrong setting has its value, which may be a secret that was put there by
    mistake.
    """
    harness = make_harness(role_bundle(policy=NO_WORKSPACE))
    wrong = AgentSettings(use="command", settings={"argv": ["true"], "timeoutSeconds": "secret:K"})
    harness.config = Config(agents={"default": wrong}, secrets={"K": SecretSource(env="KEY_HERE")})
    harness.environment = {**os.environ, "KEY_HERE": "hunter22-value"}
    with pytest.raises(
        EnvironmentLacks, match="needs timeoutSeconds in seconds above 0, not 'secret:K'"
    ) as caught:
        perform(harness)
    assert "hunter22" not in repr((caught.value.__cause__, caught.value))


def test_a_program_s_path_starts_at_the_config(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Wherever the role works, and wherever the thread was started."""
    (tmp_path / "agent.sh").write_text(f"#!/bin/sh\n{DONE}\n")
    (tmp_path / "agent.sh").chmod(0o755)
    agents = {"mine": AgentSettings(use="command", settings={"argv": ["./agent.sh"]})}
    harness = make_harness(
        config=Config(path=tmp_path / "config.yaml", agents=agents, agent="mine")
    )
    assert answer(harness)["by"] == "mine"


def test_the_agents_environment_is_the_callers_harmless_part(make_harness: MakeHarness) -> None:
    """PATH and the like, what config names, and the mark; no credential of the caller, nothing of
    the worker.
    """
    config = Config(agents={"a": shell(f"env; {DONE}")}, agent="a", environment=("EDITOR",))
    harness = make_harness(role_bundle(policy=NO_WORKSPACE), config=config)
    harness.environment = {
        "PATH": os.environ["PATH"],
        "EDITOR": "vi",
        "AWS_SECRET_ACCESS_KEY": "x",
        "GIT_DIR": "/x",
    }
    lines = answer(harness)["content"].splitlines()
    assert {"EDITOR=vi", f"{MARK}={THREAD}/1"} <= set(lines)
    assert not any(line.startswith(("AWS_", "GIT_")) for line in lines)


def test_a_scripted_agent_keeps_its_place_over_repairs_and_restarts(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """Two answers for the first step, then the next one; a second attempt of a step gets the same
    answer again.
    """
    script = tmp_path / "script.yaml"
    script.write_text(
        "- {role: planner, meta: {status: finished}}\n"
        "- {role: planner, meta: {status: done}}\n"
        "- {role: coder, answer: third, meta: {status: done}}\n"
        "- {role: coder, answer: fourth, meta: {status: done}}\n",
        "utf-8",
    )
    config = Config(
        agents={"s": AgentSettings(use="scripted", settings={"file": str(script)})}, agent="s"
    )
    harness = make_harness(role_bundle(policy=NO_WORKSPACE), config=config)
    assert answer(harness, 1, {"name": "planner"})["usage"] == {"calls": 2}
    for seq in (2, 3, 4):
        harness.steps.append(
            {
                "seq": seq,
                "role": "report",
                "content": "",
                "meta": {},
                "by": "bundle",
                "timestamp": 0,
            }
        )
    harness.steps.append({"seq": 5, "outcome": None, "timestamp": 0})
    first_try = perform(harness, 6)
    assert isinstance(first_try, Answer)
    assert first_try.fields["content"] == "third"
    assert answer(harness, 6, attempt=2)["content"] == "third"
    assert answer(harness, 7)["content"] == "fourth"


def test_history_note_and_extra_words_are_in_the_prompt(make_harness: MakeHarness) -> None:
    """Every agent gets the history; the bundle's words for this step and the person's note are
    there, too.
    """
    harness = make_harness(
        role_bundle(policy=NO_WORKSPACE),
        coder=f"cat > /dev/stderr; {DONE}",
        planner=f"echo 'The plan.'; {DONE}",
    )
    answer(harness, 1, {"name": "planner"})
    harness.config = Config(agents={"coder": shell("cat >&2; exit 1")})
    error = failure(
        harness, 2, {"name": "coder", "prompt": "Only phase 1."}, note="Mind the tests."
    )
    for words in ("The plan.", "Only phase 1.", "Mind the tests.", 'Parameters: {"depth": 1}'):
        assert words in error["stderr"]


def test_a_thread_without_its_workspace_says_so(make_harness: MakeHarness) -> None:
    """A start record from elsewhere; no agent runs in a directory that was not chosen."""
    harness = make_harness()
    harness.start = {key: value for key, value in harness.start.items() if key != "workspace"}
    with pytest.raises(EnvironmentLacks, match="was started without a workspace"):
        perform(harness)


def test_each_step_of_a_carried_thread_names_its_pack(
    make_harness: MakeHarness, store: Store
) -> None:
    """A failed one in its error. Without one of them the thread pauses; no agent is asked."""
    harness = make_harness(planner="echo half > half.txt; exit 1")
    found = cast("dict[str, object]", harness.start["workspace"])
    blobs = BlobDirectory(store.blobs)
    carried = carry(found, blobs, links=(), environment=os.environ)
    harness.start = {**harness.start, "workspace": carried}
    error = failure(harness, 1, {"name": "planner"})
    harness.steps.append({"seq": 1, "error": error})
    fields = answer(harness, 2)
    names = {carried["gitPack"], error["gitPack"], fields["gitPack"]}
    assert len(names) == 3 and all(blobs.get(str(name)) for name in names)
    shutil.rmtree(store.private(THREAD))
    shutil.rmtree(store.work / THREAD)
    (store.blobs / str(error["gitPack"])).unlink()
    with pytest.raises(EnvironmentLacks, match=f"blob {error['gitPack']} is missing"):
        perform(harness, 3)


@pytest.mark.parametrize(
    ("policy", "rule"), [(NO_WORKSPACE, "repeat"), ({"role": {"workspace": "write"}}, "restore")]
)
def test_the_rule_follows_from_the_workspace(policy: dict[str, Any], rule: str) -> None:
    """Files can be put back; without files, asking again is all there is."""
    assert RoleHandler().rule({"name": "coder"}, role_bundle(policy=policy)) == rule


def test_a_role_with_tools_that_act_is_not_repeated_unasked() -> None:
    """After a crash a person decides about a role whose agent had effects as tools."""
    handler = RoleHandler()
    tools = {"role": {"tools": ["effect:browser"]}}
    assert handler.rule({"name": "planner"}, role_bundle(policy=tools)) == "ask"
    assert handler.rule({"name": "planner"}, role_bundle(policy={"role": {}})) == "repeat"
