"""Deliveries of notifications to a real command and a real server on loopback."""

from __future__ import annotations

import base64
import hmac
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testbed.webserver import Reply, Seen, WebServer, redirect, serving
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.notifications import Notification
from uncaged_engine.notify.delivery import MAX_OUTPUT_BYTES, NotDelivered, deliver, signature
from uncaged_engine.settings.config import Config, NotifySettings, SecretSource
from uncaged_engine.settings.config_file import parse_config

SECRET = "a secret of the webhook"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOOK": SECRET, "OTHER": "not carried"}
CONFIG = Config(secrets={"HOOK": SecretSource(env="HOOK")})
ASKED = Notification(
    event="waiting",
    subject="01HX5WBE00" + "0" * 16,
    flow="deploy",
    message="now? {flow}\x1b[2J",
    timestamp_ms=1_714_963_200_123,
)


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    """A receiver: its paths name what it does."""

    def script(seen: Seen) -> Reply:
        match seen.path:
            case "/moved":
                return redirect("/ok")
            case "/hang":
                web.ended.wait()
            case "/broken":
                return Reply(status=500, body=b"x" * 100_000)
            case "/cut":
                return Reply(raw=True)
            case _:
                pass
        return Reply(status=204)

    with serving(script) as web:
        yield web


def post(server: WebServer, path: str, **settings: Any) -> None:
    chosen = NotifySettings(url=server.url + path, secret="secret:HOOK", **settings)
    deliver(ASKED, chosen, CONFIG, ENVIRONMENT)


def run(code: str, *words: str, **settings: Any) -> None:
    command = (sys.executable, "-c", code, *words)
    deliver(ASKED, NotifySettings(command=command, **settings), CONFIG, ENVIRONMENT)


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of its specification has this signature; a secret that is no Base64 is taken as
    text.
    """
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    arguments = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature(secret, *arguments) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    plain = hmac.digest(b"whsec_!", b"a.1.b", "sha256")
    assert signature("whsec_!", "a", 1, b"b") == f"v1,{base64.b64encode(plain).decode()}"


def test_a_webhook_is_posted_once_with_its_signature(server: WebServer) -> None:
    """The receiver can check the signature over id, time and body."""
    before = len(server.seen)
    post(server, "/ok")
    [seen] = server.seen[before:]
    assert (seen.method, seen.headers["host"]) == ("POST", server.host)
    assert seen.json == {
        "id": ASKED.id,
        "event": "waiting",
        "subject": ASKED.subject,
        "flow": "deploy",
        "message": "now? {flow}",
        "nextStep": f"uncaged-workflow answer {ASKED.subject}",
        "parentThreadId": None,
        "timestampMs": ASKED.timestamp_ms,
    }
    moment = int(seen.headers["webhook-timestamp"])
    assert moment == ASKED.timestamp_ms // 1000
    assert seen.headers["webhook-signature"] == signature(
        SECRET, seen.headers["webhook-id"], moment, seen.body
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/broken", "status 500"),
        ("/moved", "status 302"),
        ("/cut", "gave no answer"),
        ("/hang", "the time for the request was over"),
    ],
)
def test_a_webhook_that_fails_is_not_repeated(server: WebServer, path: str, message: str) -> None:
    """An error, a redirect, a broken and a missing answer are reported, after one request each."""
    before = len(server.seen)
    with pytest.raises(NotDelivered, match=message):
        post(server, path, timeout_s=0.3 if path == "/hang" else 10.0)
    assert [seen.path for seen in server.seen[before:]] == [path]


def test_a_delivery_that_cannot_begin_is_reported(server: WebServer) -> None:
    """A secret without a value, a server that is not there, a program that is not: no secret is in
    the message.
    """
    with pytest.raises(EnvironmentLacks, match="HOOK"):
        deliver(ASKED, NotifySettings(url=server.url, secret="secret:HOOK"), CONFIG, {})
    hidden = Config(secrets={"HOOK": SecretSource(env="HOOK"), "URL": SecretSource(env="URL")})
    settings = NotifySettings(url="secret:URL", secret="secret:HOOK")
    secret_url = "http://127.0.0.1:1/token-of-a-hook"
    with pytest.raises(NotDelivered) as caught:
        deliver(ASKED, settings, hidden, {**ENVIRONMENT, "URL": secret_url})
    assert "token-of-a-hook" not in str(caught.value)
    with pytest.raises(NotDelivered, match="cannot be started"):
        deliver(ASKED, NotifySettings(command=("no-such-program",)), CONFIG, ENVIRONMENT)


def test_a_command_gets_the_notification(tmp_path: Path) -> None:
    """Its input is the JSON; places in its arguments are filled, and values are not read for
    further places. It has the variables of agents only.
    """
    code = "import json,os,sys; print(json.dumps([json.load(sys.stdin), sys.argv[2:], sorted(os.environ)]), file=open(sys.argv[1], 'w'))"
    run(code, str(tmp_path / "out"), "{title}", "-m {message}!", "{other}", "{flow}/{event}")
    document, words, variables = json.loads((tmp_path / "out").read_text())
    assert document == ASKED.document()
    assert words == ["deploy: waiting", "-m now? {flow}!", "{other}", "deploy/waiting"]
    assert {"HOOK", "OTHER"} & set(variables) == set()


def test_a_message_names_no_secret(tmp_path: Path) -> None:
    """A bundle writes the message, and a place in an argument takes it as it is; a word of the
    settings is replaced.
    """
    code = "import json,sys; json.dump(sys.argv[2:], open(sys.argv[1], 'w'))"
    command = (sys.executable, "-c", code, str(tmp_path / "out"), "{message}", "secret:HOOK")
    for message in ("secret:HOOK", "secret: santa?"):
        asked = replace(ASKED, message=message)
        deliver(asked, NotifySettings(command=command), CONFIG, ENVIRONMENT)
        [word, resolved] = json.loads((tmp_path / "out").read_text())
        assert word == message
        assert resolved == ENVIRONMENT["HOOK"]


def test_a_secret_address_is_not_reached_in_the_clear() -> None:
    """config.yaml shows only its name, so it is checked when it is used."""
    hidden = replace(CONFIG, secrets={**CONFIG.secrets, "URL": SecretSource(env="URL")})
    settings = NotifySettings(url="secret:URL", secret="secret:HOOK")
    with pytest.raises(NotDelivered, match="https://"):
        deliver(ASKED, settings, hidden, {**ENVIRONMENT, "URL": "http://192.0.2.1:9/hook"})


def test_a_secret_that_is_no_base64_signs_as_it_is() -> None:
    assert signature("whsec_\u00e9", "id", 1, b"").startswith("v1,")


def test_a_command_is_ended_at_its_limit_and_its_output_is_bounded() -> None:
    """One that hangs with its children, one that floods, one that fails, one that never reads."""
    with pytest.raises(NotDelivered, match=r"longer than 0\.3 s"):
        run("import subprocess; subprocess.run(['sleep', '600'])", timeout_s=0.3)
    with pytest.raises(NotDelivered) as caught:
        run("import sys; sys.stderr.write('x' * 1_000_000 + 'the end'); sys.exit(3)")
    assert str(caught.value).startswith("the command of notify ended with 3: xxx")
    assert str(caught.value).endswith("the end")
    assert len(str(caught.value)) < 2 * MAX_OUTPUT_BYTES
    large = replace(ASKED, message="y" * 10_000_000)
    deliver(large, NotifySettings(command=("true",)), CONFIG, ENVIRONMENT)
    assert len(json.dumps(large.document())) < 3_000


def test_a_cancelled_delivery_ends(server: WebServer) -> None:
    """A worker that ends takes its command and its request along."""
    cancel = Cancel()
    cancel.request()
    for settings in (
        NotifySettings(command=("sleep", "600"), timeout_s=60.0),
        NotifySettings(url=f"{server.url}/hang", secret="secret:HOOK", timeout_s=60.0),
    ):
        try:
            deliver(ASKED, settings, CONFIG, ENVIRONMENT, cancel)
        except NotDelivered:
            continue
        raise AssertionError(settings)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{}", "give either command"),
        ("{command: [a], webhook: {url: 'https://a.example', secret: 'secret:A'}}", "give either"),
        ("{command: []}", "a program and its arguments"),
        ("{webhook: {url: 'https://a.example'}}", "secret: is missing"),
        ("{webhook: {url: 'https://a.example', secret: plain}}", "a credential does not belong"),
        ("{webhook: {url: 'http://a.example', secret: 'secret:A'}}", "must begin with https://"),
        ("{webhook: {url: 'ftp://a.example', secret: 'secret:A'}}", "notify.webhook.url"),
        ("{command: [a], events: [finished]}", "events"),
        ("{command: [a], timeoutSeconds: 0}", "timeoutSeconds"),
        ("{command: [a], when: always}", "unknown key"),
    ],
)
def test_a_wrong_section_is_refused(section: str, message: str) -> None:
    """config.yaml with a `notify` that could not work says which key is wrong."""
    with pytest.raises(UsageError, match=message):
        parse_config(f"notify: {section}".encode(), Path("config.yaml"))


def test_the_section_has_all_events_by_default() -> None:
    """A command alone is enough; events can be chosen."""
    every = parse_config(b"notify: {command: [notify-send, '{title}']}", Path("config.yaml")).notify
    assert every == NotifySettings(command=("notify-send", "{title}"))
    assert set(every.events) > {"waiting", "failed", "unknown", "limit", "proposal"}
    some = parse_config(b"notify: {command: [a], events: [failed]}", Path("config.yaml")).notify
    assert some is not None
    assert some.events == ("failed",)
