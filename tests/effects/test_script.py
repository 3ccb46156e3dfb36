"""The script effect with real programs, under both mechanisms: what runs, what is refused, and what
is said about it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h11
import pytest
from testbed.scripting import PATH, Perform, bundle, harness_for, refusal, told
from testbed.users import as_user
from testbed.webserver import Seen, serving, text
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_effects.script import ScriptHandler
from uncaged_engine.door.outcomes import Outcome, Void
from uncaged_engine.sandbox.mechanism import known_landlock_abi
from uncaged_engine.settings.config import Config, SecretSource

pytestmark = pytest.mark.slow


def test_a_script_is_told_about_in_full(perform: Perform) -> None:
    """Exit code, both outputs, duration; success is exit code 0 and nothing else."""
    good = told(perform("echo out; echo err >&2"))
    assert (good["success"], good["stdout"], good["stderr"], good["exitCode"]) == (
        True,
        "out\n",
        "err\n",
        0,
    )
    assert (good["truncated"], good["timedOut"], "refused" in good) == (False, False, False)
    assert good["durationMs"] >= 0
    bad = told(perform("exit 3"))
    assert (bad["success"], bad["exitCode"]) == (False, 3)


def test_parameters_are_never_code(perform: Perform) -> None:
    """Parameters arrive as variables and as arguments, to the letter, whatever they contain; None
    is left out, the rest is JSON.
    """
    evil = "$(touch /tmp/x); `id` \"' \\ \n ü"
    params = {"evil": evil, "a-b": True, "n": 2.5, "list": ["x"], "none": None}
    found = told(
        perform(
            'printf "%s|" "$PARAM_EVIL" "$PARAM_A_B" "$PARAM_N" "$PARAM_LIST" "${PARAM_NONE-unset}" "$@"',
            params=params,
            arguments=[evil, 7],
        )
    )
    assert found["stdout"].split("|") == [evil, "true", "2.5", '["x"]', "unset", evil, "7", ""]


def test_only_declared_commands_exist(perform: Perform) -> None:
    """Another command is not there, and the result says how to declare it."""
    found = told(perform("head -c 1 /dev/null; /usr/bin/id; id", {"executables": ["head"]}))
    assert found["exitCode"] in (126, 127)
    [sentence] = found["refused"]
    assert (
        sentence
        == 'the command \'id\' is not among the policy\'s executables; declare it in the policy: "script": {"executables": ["head", "id"]}'
    )


@pytest.mark.skipif(
    known_landlock_abi(os.uname().machine) == 0, reason="the kernel has no Landlock"
)
def test_programs_that_are_brought_along_do_not_start(perform: Perform, place: Path) -> None:
    """A copy that the script made does not start, nor one in a directory that it reads, nor one
    beside the libraries.
    """
    shutil.copy("/usr/bin/id", place / "data" / "id")
    policy = {"executables": ["cp"], "read": [str(place / "data")]}
    for body in (
        f"{place}/data/id",
        f"cp {place}/data/id mine; ./mine",
        "/usr/lib/git-core/git --version",
    ):
        found = told(perform(body, policy))
        assert (found["exitCode"], found["stdout"]) == (126, ""), found
    assert told(perform("cp --version", policy))["success"]


def test_paths_are_separate_names(perform: Perform, place: Path) -> None:
    """`/data` does not open `/data2`, nor does a link or `..` in it; a declared path is read and
    not written.
    """
    (place / "data" / "link").symlink_to(place / "data2" / "file.txt")
    policy = {"executables": ["cat"], "read": [str(place / "data")]}
    assert told(perform(f"cat {place}/data/file.txt", policy))["stdout"] == "inside"
    for name in ("data2/file.txt", "data/link", "data/../data2/file.txt"):
        found = told(perform(f"cat {place}/{name}", policy))
        assert (found["success"], found["stdout"]) == (False, "")
        assert any(
            "is outside what the policy allows" in sentence for sentence in found["refused"]
        ), found
    assert told(perform(f"echo more > {place}/data/new.txt", policy))["success"] is False
    assert sorted(path.name for path in (place / "data").iterdir()) == ["file.txt", "link"]


def test_a_path_parameter_stays_inside(perform: Perform, place: Path) -> None:
    """A path outside is refused before anything runs, with the line to declare it; links and `..`
    are resolved first.
    """
    policy = {"executables": ["cat"], "read": [str(place / "data")]}
    (place / "data" / "link").symlink_to(place / "data2")
    for named in (
        str(place / "data2"),
        str(place / "data" / ".." / "data2"),
        str(place / "data" / "link"),
    ):
        message = refusal(perform("cat $PARAM_PATH", policy, params={"path": named}))
        assert message.startswith(
            f"script: the path {named!r} (parameter 'path') is outside what the policy allows ({place}/data); declare it"
        )
    inside = {"path": str(place / "data" / "file.txt")}
    assert told(perform('cat "$PARAM_PATH"', policy, params=inside))["stdout"] == "inside"


def test_a_persons_parameter_can_open_a_path(perform: Perform, place: Path) -> None:
    """`param:NAME` is what the thread was given, not what the bundle passes on."""
    policy = {"executables": ["cat"], "read": ["param:path"]}
    given = {"path": str(place / "data2" / "file.txt")}
    assert told(perform('cat "$PARAM_PATH"', policy, params=given))["stdout"] == "outside"
    other = told(perform(f"cat {place}/data/file.txt", policy, params=given))
    assert other["stdout"] == ""


def test_a_policy_can_open_the_directory_that_holds_a_parameter(
    perform: Perform, place: Path
) -> None:
    """`param:NAME/..` lets a script remove the file that a person names; what lies beside that
    directory stays closed, and so does the whole file system.
    """
    policy = {"executables": ["rm", "cat"], "write": ["param:path/.."]}
    file = place / "data" / "file.txt"
    named = {"path": str(file)}
    assert told(perform(f"cat {place}/data2/file.txt", policy, params=named))["stdout"] == ""
    assert told(perform('rm "$PARAM_PATH"', policy, params=named))["success"]
    assert not file.exists()
    message = refusal(perform('rm "$PARAM_PATH"', policy, params={"path": "/something"}))
    assert "grants '/', the whole file system" in message
    only = {"executables": ["rm"], "write": ["param:path"]}
    beside = {"path": str(place / "data2" / "file.txt")}
    assert not told(perform('rm "$PARAM_PATH"', only, params=beside))["success"]
    assert (place / "data2" / "file.txt").exists()


def test_a_policy_may_name_a_link(perform: Perform, place: Path) -> None:
    """The target of a link can be read under both names."""
    (place / "link").symlink_to(place / "data")
    policy = {"executables": ["cat"], "read": [str(place / "link")]}
    assert (
        told(perform(f"cat {place}/link/file.txt {place}/data/file.txt", policy))["stdout"]
        == "insideinside"
    )


def test_writing_where_one_may_only_read_is_told(perform: Perform, place: Path) -> None:
    """A refused write is reported by absolute and by relative path, with the line to declare it; an
    allowed write is not.
    """
    policy = {"executables": ["touch"], "read": [str(place / "data")]}
    for body in (f"echo x > {place}/data/new", "echo x > new", "touch new"):
        found = told(perform(body, policy, directory=place / "data"))
        assert found["refused"] == [
            f'the path \'{place}/data/new\' may only be read; declare it in the policy: "script": {{"write": ["{place}/data/new"]}}'
        ]
    [outside] = told(perform(f"echo x > {place}/new", {**policy, "read": [str(place / "data")]}))[
        "refused"
    ]
    assert f"{place}/new' is outside what the policy allows" in outside
    assert '"write"' in outside
    assert "refused" not in told(
        perform("mkdir x/y; exit 1", {"executables": ["mkdir"], "write": [str(place / "data")]})
    )


def test_variables_in_paths_are_the_callers(
    perform: Perform, store: Store, mechanism: str, place: Path
) -> None:
    """`$NAME`, `~` and relative paths are expanded; an unset variable is refused by its name."""
    harness = harness_for(
        store,
        mechanism,
        {"executables": ["cat"], "read": ["$HOME/data", "data2"]},
        environment={**PATH, "HOME": str(place)},
    )
    found = told(perform(f"cat {place}/data/file.txt {place}/data2/file.txt", harness=harness))
    assert found["stdout"] == "insideoutside"
    assert "the variable NOWHERE is not set" in refusal(perform("true", {"read": ["$NOWHERE/x"]}))


def test_what_is_written_stays(perform: Perform, place: Path) -> None:
    """Into a declared directory, made if missing, and into one that exists; then all of it is the
    person's, no link followed.
    """
    target = place / "out"
    assert told(perform(f"echo a > {target}/a", {"write": [str(target)]}))["success"]
    assert (target / "a").read_text() == "a\n"
    policy = {"write": [str(place / "data")], "executables": ["ln", "chmod"]}
    body = f"cd {place}/data; echo more >> file.txt; ln -s /etc/passwd link; ln -s {place}/data2 away; chmod 4755 file.txt"
    found = told(perform(body, policy))
    assert found["success"] is False, "a set-uid bit cannot be set"
    assert (place / "data" / "file.txt").read_text() == "insidemore\n"
    owner = place.stat().st_uid
    assert {path.lstat().st_uid for path in ((place / "data"), *(place / "data").iterdir())} == {
        owner
    }
    assert (place / "data2" / "file.txt").stat().st_uid == owner
    assert (place / "data" / "file.txt").stat().st_mode & 0o6000 == 0
    assert "neither that nor" in refusal(perform("true", {"write": [str(place / "no" / "such")]}))


def test_a_script_starts_where_the_caller_is_if_it_may(perform: Perform, place: Path) -> None:
    """In the caller's directory when the policy opens it, else in an empty one of its own."""
    assert (
        told(perform("pwd", {"read": ["."]}, directory=place / "data"))["stdout"]
        == f"{place}/data\n"
    )
    found = told(perform('pwd; set -- *; echo "$1"; echo x > y', directory=place / "data"))
    assert found["stdout"].split("\n")[0] != f"{place}/data"
    assert found["stdout"].split("\n")[1] == "*"


def test_nothing_of_a_run_is_left(perform: Perform, store: Store) -> None:
    """The private directory is gone, and messages do not tell where it was."""
    found = told(perform('nosuchcommand; echo "$0"'))
    assert found["stderr"] == "script.sh: line 1: nosuchcommand: command not found\n"
    assert found["stdout"] == "script.sh\n"
    assert [path for path in store.work.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "body", ["while :; do :; done", "exec sleep 60", "sleep 60 & disown; trap '' TERM; sleep 60"]
)
def test_time_ends_everything(perform: Perform, body: str) -> None:
    """A busy loop, a wait and a stubborn daemon end with the time, and the result says so."""
    found = told(perform(body, {"executables": ["sleep"]}, timeout_s=0.5))
    assert (found["success"], found["timedOut"], found["exitCode"]) == (False, True, None)
    assert "60 seconds are more than the policy's 5" in refusal(
        perform("true", {"timeout_s": 5}, timeout_s=60)
    )


def test_output_is_cut_at_a_mebibyte(perform: Perform) -> None:
    """More is dropped and told; the policy can set less."""
    found = told(perform("head -c 3000000 /dev/zero", {"executables": ["head"]}))
    assert (len(found["stdout"]), found["truncated"], found["success"]) == (1 << 20, True, True)
    assert (
        len(
            told(perform("head -c 3000 /dev/zero", {"executables": ["head"], "maxBytes": 100}))[
                "stdout"
            ]
        )
        == 100
    )


def test_the_environment_is_chosen(perform: Perform, store: Store, mechanism: str) -> None:
    """Nothing of the caller's comes along but what the policy names and config carries."""
    environment = {**PATH, "LANG": "de_DE", "EDITOR": "vi", "API_KEY": "planted"}
    harness = harness_for(
        store,
        mechanism,
        {"environment": ["EDITOR", "API_KEY"], "executables": ["env"]},
        environment=environment,
    )
    harness = replace(harness, config=replace(harness.config, environment=("EDITOR",)))
    names = {
        line.partition("=")[0]
        for line in told(perform("env", harness=harness))["stdout"].splitlines()
    }
    assert names - {"_", "PWD", "SHLVL", "OLDPWD"} == {"PATH", "LANG", "HOME", "TMPDIR", "EDITOR"}


def test_a_secret_goes_only_to_bound_commands(
    perform: Perform, store: Store, mechanism: str
) -> None:
    """A secret must be bound to every command that could read it, and is redacted from the script's
    output.
    """
    environment = {**PATH, "TOKEN": "planted-secret"}
    config = Config(sandbox=mechanism, secrets={"KEY": SecretSource(env="TOKEN")})  # type: ignore[arg-type]  # one of its words

    def attempt(policy: Mapping[str, object]) -> Outcome:
        harness = harness_for(
            store, mechanism, policy, {"key": "secret:KEY"}, environment=environment, config=config
        )
        return perform('echo "$PARAM_KEY"', harness=harness, parameters={"key": "secret:KEY"})

    assert "which the policy does not name" in refusal(attempt({}))
    assert "may also start head" in refusal(
        attempt({"secrets": {"KEY": ["curl"]}, "executables": ["curl", "head"]})
    )
    assert told(attempt({"secrets": {"KEY": ["bash"]}}))["stdout"] == "secret:KEY\n"


def test_python_scripts_import_what_is_declared(perform: Perform) -> None:
    """The standard library is free; another module is refused with line and column; `-I` keeps the
    caller's paths out.
    """
    body = "import sys, os.path\nprint(sys.flags.isolated, sys.argv[1:])"
    assert told(perform(body, language="python", arguments=["a b"]))["stdout"] == "1 ['a b']\n"
    message = refusal(perform("import os\nfrom requests.api import get", language="python"))
    assert message.startswith(
        "script: line 2, column 1: the module 'requests.api' is not among the policy's modules; declare it"
    )
    assert '"script": {"modules": ["requests"]}' in message
    assert "line 1, column 5: not Python" in refusal(perform("if x", language="python"), "effect")


def test_a_lack_of_the_machine_pauses(perform: Perform) -> None:
    """A command or an interpreter that is not installed is no answer to the bundle."""
    with pytest.raises(EnvironmentLacks, match="needs 'no-such-program', which is not on the PATH"):
        perform("true", {"executables": ["no-such-program"]})
    with pytest.raises(EnvironmentLacks, match="needs 'pwsh'"):
        perform("Get-Item x", {"executables": ["Get-Item"]}, language="powershell")


def test_powershell_cmdlets_are_looked_for_in_the_text(perform: Perform) -> None:
    """A cmdlet that the policy does not list is named with its place; some never run."""
    assert "line 2, column 1: the cmdlet 'Remove-Item' is not among" in refusal(
        perform("$x = 1\nRemove-Item y", language="powershell")
    )
    never = perform(
        "Invoke-Expression y", {"executables": ["Invoke-Expression"]}, language="powershell"
    )
    assert "'Invoke-Expression' is never run here" in refusal(never)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"body": " "}, "script.body: is empty"),
        ({"body": "a\0b"}, "NUL"),
        ({"language": "perl"}, "script.language: 'perl' is not one of bash, python, powershell"),
        ({"arguments": "x"}, "script.arguments: must be a list"),
        ({"arguments": ["x" * 200_000]}, "argument 1 has 200,001 bytes"),
        ({"parameters": {"a-b": 1, "a_b": 2}}, "two parameters give the variable PARAM_A_B"),
        ({"timeout_s": True}, "script.timeout_s: must be a positive number"),
        ({"surprise": 1}, "unknown key 'surprise'"),
    ],
)
def test_a_wrong_body_is_an_answer(perform: Perform, change: dict[str, object], words: str) -> None:
    """A bundle that yields a wrong body gets a failure that names the error."""
    assert words in refusal(perform(**{"body": "true", **change}), "effect")


def test_a_kill_ends_the_script(store: Store, mechanism: str, place: Path) -> None:
    """A kill does not wait for the script's own end."""
    harness = harness_for(
        store, mechanism, {"executables": ["sleep"], "write": [str(place / "data")]}
    )
    context = harness.context(1, directory=place)
    ready = place / "data" / "ready"
    os.mkfifo(ready)
    ready.chmod(0o666)
    outcomes: list[Outcome] = []
    body = {"language": "bash", "body": f"echo started > {ready}; sleep 600"}
    thread = threading.Thread(
        target=lambda: outcomes.append(ScriptHandler().perform(body, context))
    )
    thread.start()
    assert ready.read_text() == "started\n"
    harness.cancel.request()
    thread.join(60)
    [outcome] = outcomes
    assert isinstance(outcome, Void)
    assert outcome.word == "killed"


def test_what_may_run_twice_says_so(mechanism: str) -> None:
    """A script that can write or use the network is asked about after a crash, unless its author
    says that it does no harm.
    """
    rule = ScriptHandler().rule
    body = {"language": "bash", "body": f"# {mechanism}"}
    assert rule(body, bundle({"read": ["/"]})) == "repeat"
    assert rule(body, bundle({"write": ["/tmp"]})) == "ask"
    assert rule(body, bundle({"network": ["*"]})) == "ask"
    assert rule({**body, "repeat": True}, bundle({"network": ["*"]})) == "repeat"


def page(seen: Seen) -> Any:
    return text(
        f"{seen.method} {seen.path} {seen.headers.get('host')} {seen.headers.get('proxy-connection')}"
    )


def test_named_hosts_alone_can_be_reached(perform: Perform, mechanism: str) -> None:
    """A named host is reached through the proxy, by http and by tunnel; another port, another host,
    and the way around the proxy are closed and reported.
    """
    with serving(page) as server:
        host = f"127.0.0.1:{server.port}"
        policy = {"executables": ["curl"], "network": [host], "private": True}
        if mechanism == "landlock":
            for hosts in ([host], ["*"]):
                with pytest.raises(
                    EnvironmentLacks, match="cannot keep a script to the network of its policy"
                ):
                    perform("true", {**policy, "network": hosts})
            return
        assert (
            told(perform(f"curl -sS http://{host}/a?b=c", policy))["stdout"]
            == f"GET /a?b=c {host} None"
        )
        assert told(perform(f"curl -sSp http://{host}/tunnel", policy))["stdout"].startswith(
            "GET /tunnel"
        )
        around = told(perform(f"curl -sS --noproxy '*' http://{host}/", policy))
        assert (around["success"], around["stdout"]) == (False, "")
        other = told(perform("curl -sSf http://127.0.0.1:1/; curl -sSf http://localhost/", policy))
        assert [sentence.partition(";")[0] for sentence in other["refused"]][:2] == [
            "the policy does not name the host 127.0.0.1:1",
            "the policy does not name the host localhost",
        ]


def test_the_network_is_off_or_on(perform: Perform, mechanism: str) -> None:
    """Off unless declared; with ``host`` the machine's own."""
    with serving(page) as server:
        url = f"http://127.0.0.1:{server.port}/"
        off = told(
            perform(
                f"curl -sS {url}; exec 3<>/dev/tcp/127.0.0.1/{server.port}",
                {"executables": ["curl"]},
            )
        )
        assert off["success"] is False
        assert off["refused"][0].startswith("the network is off, and the script tried to reach ")
        ignored = told(perform(f"exec 3<>/dev/tcp/127.0.0.1/{server.port} || true"))
        assert (ignored["exitCode"], ignored["success"]) == (0, False)
        if mechanism == "bubblewrap":
            assert f"127.0.0.1:{server.port}; declare it" in ignored["refused"][0]
        assert told(perform(f"curl -sS {url}", {"executables": ["curl"], "network": "host"}))[
            "success"
        ]


def test_any_host_is_reached_through_the_proxy_alone(perform: Perform, mechanism: str) -> None:
    """The network ``["*"]`` leads to no loopback service, metadata address or abstract socket of
    others; ``private`` to the first.
    """
    if mechanism == "landlock":
        pytest.skip("Landlock cannot hold this; such a script is refused")
    name = f"uncaged-test-{os.getpid()}"
    with serving(page) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        url = f"http://127.0.0.1:{server.port}/"
        policy = {"executables": ["curl"], "network": ["*"]}
        for address in (url, "http://169.254.169.254/", f"http://localhost:{server.port}/"):
            closed = told(perform(f"curl -sSf {address} || true", policy))
            assert (closed["exitCode"], closed["success"], closed["stdout"]) == (0, False, ""), (
                closed
            )
            assert '"private": true' in closed["refused"][0]
        around = told(perform(f"curl -sS --noproxy '*' {url} || true", {**policy, "private": True}))
        assert (around["success"], around["stdout"]) == (False, "")
        assert "past its proxy" in around["refused"][0]
        program = f"import socket\nprint(socket.socket(socket.AF_UNIX).connect_ex('\\0{name}'))\n"
        assert told(perform(program, {"network": ["*"]}, language="python"))["stdout"] == "111\n"
        opened = told(perform(f"curl -sS {url}a", {**policy, "private": True}))
        assert (opened["success"], opened["stdout"].startswith("GET /a")) == (True, True)


ORDINARY = """
import json, sys
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, run_script
from uncaged_engine.sandbox.ownership import temporary_owner, user_for
from uncaged_effects.scripting.network import opened
from uncaged_effects.scripting.paths import resolve_paths
from types import SimpleNamespace
place, host = Path(sys.argv[1]), sys.argv[2]
places = resolve_paths(["$HOME/data"], ["mine/out"], params={}, environment={"HOME": str(place)}, directory=place, written={})
user = user_for(places, place / "mine")
mechanism = choose("bubblewrap")
limits = SimpleNamespace(host_network=False, hosts=(host,), private=True)
with temporary_owner(places.writable, user, place / "store" / "lent"), opened(limits, mechanism) as network:
    bounds = ScriptBounds(read=places.read, write=places.write, executables=tuple(map(Path, ("/bin/sh", "/bin/cat", "/usr/bin/curl"))))
    body = f"cat {place}/data/file.txt; cat {place}/data2/file.txt; curl -sS http://{host}/ | cat > {place}/mine/out/page"
    done = run_script(["/bin/sh", "-c", body], bounds, mechanism=mechanism, cwd=place / "mine" / "out", prepare=network.enter,
                      environment={"PATH": "/usr/bin:/bin", **network.variables})
print(json.dumps([done.stdout.decode(), done.stderr.decode(), (place / "mine" / "out" / "page").read_text()]))
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user can enter (pytest closes its own)."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        for part in ("data", "data2", "mine"):
            (place / part).mkdir()
            (place / part / "file.txt").write_text(part)
        os.chown(place / "mine", 65534, 65534)
        yield place


@pytest.mark.needs("bubblewrap")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_needs_no_rights(open_place: Path) -> None:
    """An ordinary user with the system's own Python needs no privilege for paths, writing, and the
    way into the script's network.
    """
    # the only dependency that the proxy has
    shutil.copytree(Path(h11.__file__).parent, open_place / "lib" / "h11")
    with serving(page) as server:
        host = f"127.0.0.1:{server.port}"
        stdout, stderr, fetched = as_user(
            ORDINARY, str(open_place), host, paths=[open_place / "lib"]
        )
    assert stdout == "data", stderr
    assert fetched.startswith(f"GET / {host}")


CLOSED_PATH = """
import json, sys
from uncaged_effects.scripting.programs import find_binary
print(json.dumps(str(find_binary("cat", f"{sys.argv[1]}:/usr/bin:/bin"))))
"""


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make what an ordinary user cannot look into"
)
def test_a_closed_directory_on_the_path_is_passed_over(open_place: Path) -> None:
    """A PATH that was root's, kept by setpriv or sudo, still leads an ordinary user to the programs
    further on.
    """
    (open_place / "data").chmod(0o700)
    assert as_user(CLOSED_PATH, str(open_place / "data" / "bin")) == "/usr/bin/cat"


def test_git_commits_with_git_alone(perform: Perform, place: Path) -> None:
    """A declared git may start the second copy of itself that some distributions install, and
    nothing is refused.
    """
    subprocess.run(["git", "init", "-q", str(place / "data")], check=True)
    body = f"cd {place}/data && git add . && git -c user.name=n -c user.email=e commit -qm one && git log --format=%s"
    found = told(perform(body, {"executables": ["git"], "write": [str(place / "data")]}))
    assert (found["stdout"], found["success"]) == ("one\n", True), found
