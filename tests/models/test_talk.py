"""Tool loop over the real clients, against a real server that speaks both wire formats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from testbed.modelserver import Turn, calls, fails, says, serving
from testbed.tool_loops import KEY, WIRES, Clock, OpenLoop, RecordingTools, open_loop
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_models.errors import ModelFailed, TooLong
from uncaged_models.loop import GO_ON, LAST_TURN
from uncaged_models.progress import MAX_REPLY_CHARACTERS
from uncaged_models.retries import ConversationCancelled
from uncaged_models.settings import Wire

# the SDK alone takes a second to import
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("wire", WIRES)]


def cancel_once(run: OpenLoop, reached: Callable[[], object]) -> None:
    """Cancel a loop from another thread of execution as soon as something is there."""

    def wait() -> None:
        while not reached():
            time.sleep(0.01)
        run.cancel.request()

    threading.Thread(target=wait, daemon=True).start()


def contents(message: Any) -> str:
    """Return the text of a message in either format."""
    content = message["content"]
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def test_an_answer_is_the_pieces_of_the_stream_and_costs_one_request(wire: Wire) -> None:
    """Text, tokens and turns are as the endpoint said; the key is in a header and nowhere else."""
    with (
        serving(
            [says("Two ", "words.", input_tokens=120, cached_tokens=20, output_tokens=7)]
        ) as server,
        open_loop(server, wire) as run,
    ):
        assert run.loop.answer() == "Two words."
        usage = run.loop.meter.document()
        assert usage.pop("seconds") is not None
        assert usage == {
            "model": "tiny",
            "inputTokens": 120,
            "outputTokens": 7,
            "cachedTokens": 20,
            "turns": 1,
        }
        [seen] = server.seen
        assert KEY in seen.headers["authorization"]
        assert KEY not in str(seen.body)
        assert seen.body["stream"] is True
        assert run.progress[-1]["usage"]


def test_calls_of_one_turn_are_answered_in_order_in_one_turn(wire: Wire) -> None:
    """A call has exactly one result under its own id, also one whose arguments are no JSON, and the
    loop goes on.
    """
    script = [
        calls(("note", {"text": "a"}), ("note", '{"text": '), ("note", "[1]"), ("look", "")),
        says("Done."),
    ]
    notebook = RecordingTools()
    with serving(script) as server, open_loop(server, wire, tools=notebook) as run:
        assert run.loop.answer() == "Done."
        assert notebook.used == [("note", {"text": "a"}), ("look", {})]
        messages = server.asked[1]["messages"]
        if wire == "anthropic":
            assert [part["tool_use_id"] for part in messages[-1]["content"]] == [
                f"toolu_{number}" for number in range(4)
            ]
            assert [part["is_error"] for part in messages[-1]["content"]] == [
                False,
                True,
                True,
                False,
            ]
            assert [part["input"] for part in messages[-2]["content"]] == [
                {"text": "a"},
                {},
                {},
                {},
            ]
            texts = [part["content"] for part in messages[-1]["content"]]
        else:
            assert [message["tool_call_id"] for message in messages[-4:]] == [
                f"call_{number}" for number in range(4)
            ]
            texts = [message["content"] for message in messages[-4:]]
        assert texts[0] == "noted 1"
        assert "not JSON" in texts[1]
        assert "must be a JSON object, not list" in texts[2]
        assert [event["tool"] for event in run.progress if "tool" in event] == [
            "note",
            "note",
            "note",
            "look",
        ]


def test_a_call_that_was_cut_off_gets_an_error_of_its_own(wire: Wire) -> None:
    """Half of a call is not done; the model hears that its turn was too long."""
    script = [
        calls(("note", {"text": "a"}), ("note", '{"text": "long'), stop="length"),
        says("Done."),
    ]
    with serving(script) as server, open_loop(server, wire, tools=RecordingTools()) as run:
        assert run.loop.answer() == "Done."
        assert "smaller pieces" in str(server.asked[1]["messages"])
        assert "noted 1" in str(server.asked[1]["messages"])


def test_a_text_that_was_cut_off_is_continued_where_it_ended(wire: Wire) -> None:
    """The parts are one answer; one that never ends fails and says which setting bounds it."""
    with (
        serving(
            [says("one, ", stop="length"), says("two, ", stop="length"), says("three")]
        ) as server,
        open_loop(server, wire) as run,
    ):
        assert run.loop.answer() == "one, two, three"
        assert contents(server.asked[1]["messages"][-1]) == GO_ON
    with (
        serving(lambda _: says("on and ", stop="length")) as endless,
        open_loop(endless, wire) as run,
    ):
        with pytest.raises(ModelFailed, match="maxTokens 5 times and did not finish"):
            run.loop.answer()
        assert len(endless.asked) == 5


def test_the_last_turn_has_no_tools_so_that_an_answer_comes(wire: Wire) -> None:
    """A model that goes on and on gets an instruction to answer in its last turn; else the loop
    fails and names the bound.
    """
    script = [calls(("look", {})), calls(("look", {})), says("Then this.")]
    with serving(script) as server, open_loop(server, wire, tools=RecordingTools(), turns=3) as run:
        assert run.loop.answer() == "Then this."
        assert "tool_choice" not in server.asked[1]
        assert server.asked[2]["tool_choice"] in ({"type": "none"}, "none")
        assert contents(server.asked[2]["messages"][-1]).endswith(LAST_TURN)
    with (
        serving(lambda _: calls(("look", {}))) as server,
        open_loop(server, wire, tools=RecordingTools(), turns=3) as run,
    ):
        with pytest.raises(ModelFailed, match="no final answer within 3 turns; raise maxTurns"):
            run.loop.answer()
        assert len(server.asked) == 3


def test_a_refusal_is_a_failure_of_its_own_kind(wire: Wire) -> None:
    """A refused request is not repeated."""
    with serving([says("I", stop="refusal")]) as server, open_loop(server, wire) as run:
        with pytest.raises(ModelFailed, match=r"refuses to answer: .*not this") as caught:
            run.loop.answer()
        assert caught.value.kind == "refusal"
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_endpoint_is_asked_again(wire: Wire, status: int) -> None:
    """A busy endpoint is asked again after the pause that it names."""
    with (
        serving([fails(status, retry_after_ms="150"), says("Now.")]) as server,
        open_loop(server, wire) as run,
        Clock() as clock,
    ):
        assert run.loop.answer() == "Now."
        assert len(server.asked) == 2
    assert clock.seconds >= 0.15


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_lasting_outage_is_a_lack_after_four_tries(wire: Wire, status: int) -> None:
    """An endpoint that stays away is asked four times, each shown as it happens, and never said to
    be out of reach.
    """
    with (
        serving(lambda _: fails(status, message="still broken")) as server,
        open_loop(server, wire) as run,
    ):
        with pytest.raises(
            EnvironmentLacks,
            match=rf"answered {status}: .*broken \(tried 4 times\); wait .*, then resume$",
        ) as caught:
            run.loop.answer()
        assert "cannot be reached" not in str(caught.value)
        assert len(server.asked) == 4
        assert [event["try"] for event in run.progress if "try" in event] == [2, 3, 4]
        assert "try 2 of 4 in 0.005 s" in str(run.progress)


@pytest.mark.parametrize(("after", "seconds"), [("3600", 7200.0), ("20", 10.0)])
def test_an_endpoint_that_asks_for_a_long_wait_is_not_waited_for(
    wire: Wire, after: str, seconds: float
) -> None:
    """A wait that is too long for us, or for the answer's own time, is an outage at once and no
    timeout.
    """
    later = Turn(
        status=429, headers={"retry-after": after}, body={"error": {"message": "slow down"}}
    )
    lack = pytest.raises(
        EnvironmentLacks,
        match=rf"cannot be asked again for {after} s \(tried 1 time\); wait until it answers again",
    )
    with serving([later]) as server, open_loop(server, wire, seconds=seconds) as run, lack:
        run.loop.answer()


@pytest.mark.parametrize("cut", ["hard", "soft"])
def test_a_stream_that_breaks_off_is_asked_for_again(wire: Wire, cut: str) -> None:
    """Half an answer is never taken for a whole one, however politely the connection ended; four of
    them are an outage.
    """
    with serving([says("Half", cut=cut), says("Whole.")]) as server, open_loop(server, wire) as run:
        assert run.loop.answer() == "Whole."
        assert [turn.text for turn in run.loop.conversation.turns] == ["Say it.", "Whole."]
    with serving(lambda _: says("Half", cut=cut)) as server, open_loop(server, wire) as run:
        with pytest.raises(
            EnvironmentLacks, match=r"(broke off|before it was whole).*\(tried 4 times\)"
        ):
            run.loop.answer()
        assert len(server.asked) == 4
        assert run.loop.meter.usage.output >= 4


def test_an_error_in_the_middle_of_a_stream_is_what_its_type_says(wire: Wire) -> None:
    """Overloaded while it answers: asked again."""
    with (
        serving([says("Half", error="overloaded_error"), says("Whole.")]) as server,
        open_loop(server, wire) as run,
    ):
        assert run.loop.answer() == "Whole."
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (
            fails(401, "authentication_error", "invalid key"),
            "does not accept the key .*invalid key.*then resume",
        ),
        (fails(402, "billing_error", "no money"), "asks for payment"),
        (fails(400, "invalid_request_error", "Your credit balance is too low"), "asks for payment"),
        (fails(429, "insufficient_quota", "You exceeded your quota"), "asks for payment"),
        (
            fails(403, "permission_error", "not yours"),
            "denies the key access to 'tiny' .*then resume",
        ),
        (
            fails(404, "not_found_error", "model: tiny"),
            "has no model 'tiny' .*fix model or baseUrl in config.yaml, then resume",
        ),
        (
            fails(400, "invalid_request_error", "The model `tiny` does not exist"),
            "has no model 'tiny'",
        ),
    ],
    ids=["key", "money", "credit", "quota", "access", "model", "model-400"],
)
def test_what_a_person_has_to_fix_is_a_lack_of_the_environment(
    wire: Wire, turn: Turn, words: str
) -> None:
    """The request is not retried; the error has the remedy and not the key."""
    with serving([turn]) as server, open_loop(server, wire) as run:
        with pytest.raises(EnvironmentLacks, match=words) as caught:
            run.loop.answer()
        assert KEY not in str(caught.value)
        assert len(server.asked) == 1


def test_a_server_that_wants_no_key_is_sent_none(wire: Wire) -> None:
    """A server at an address of the settings needs no key, and no placeholder is sent."""
    with serving([says("Hello.")]) as server, open_loop(server, wire, key="") as run:
        assert run.loop.answer() == "Hello."
        assert not {"authorization", "x-api-key"} & set(server.seen[0].headers)


def test_a_closed_address_is_a_lack_of_the_environment(wire: Wire) -> None:
    """A refused connection names the address and the setting; so does a page that is no model."""
    with serving([]) as server:
        base = server.base_url(wire)
    with (
        open_loop(server, wire, baseUrl=base) as run,
        pytest.raises(EnvironmentLacks, match=rf"{base} cannot be reached .*fix baseUrl"),
    ):
        run.loop.answer()
    wrong = pytest.raises(
        EnvironmentLacks,
        match=r"is no model's endpoint: .* text/html, which is no stream of events.*fix baseUrl",
    )
    with serving([Turn(body="<html>Welcome</html>")]) as page, open_loop(page, wire) as run, wrong:
        run.loop.answer()


def test_only_a_failed_connection_counts_as_unreachable(wire: Wire) -> None:
    """A server that does not speak TLS and a proxy that refuses were reached; the message names
    what to change.
    """
    with serving([]) as server:
        secure = server.base_url(wire).replace("http:", "https:")
        with (
            open_loop(server, wire, baseUrl=secure) as run,
            pytest.raises(EnvironmentLacks) as caught,
        ):
            run.loop.answer()
        assert f"there is no secure connection with {secure} (" in str(caught.value)
        refusing = {"HTTPS_PROXY": server.url}
        with (
            open_loop(server, wire, baseUrl="https://m.invalid/v1", environment=refusing) as run,
            pytest.raises(EnvironmentLacks) as by,
        ):
            run.loop.answer()
    assert "the proxy for https://m.invalid/v1 refuses it (501 " in str(by.value)
    assert "cannot be reached" not in f"{caught.value} {by.value}"


@pytest.mark.parametrize(
    "turn",
    [
        fails(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        fails(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens"),
        fails(500, "exceed_context_size_error", "the request exceeds the available context size"),
        fails(413, "request_too_large", "too large"),
    ],
    ids=["anthropic", "openai", "llama", "bytes"],
)
def test_a_prompt_larger_than_the_context_names_the_setting(wire: Wire, turn: Turn) -> None:
    """The request fails at once, and the message names the quota that makes the prompt smaller."""
    with (
        serving([turn]) as server,
        open_loop(server, wire) as run,
        pytest.raises(TooLong, match=r"lower limits\.historyCharacters"),
    ):
        run.loop.answer()
    assert len(server.asked) == 1


def test_any_other_refused_request_is_a_failure(wire: Wire) -> None:
    """The failure has the endpoint's words, and there is no second attempt."""
    with (
        serving([fails(400, "invalid_request_error", "temperature: unknown field")]) as server,
        open_loop(server, wire) as run,
    ):
        with pytest.raises(
            ModelFailed,
            match=r"refused the request to 'tiny' with 400: .*temperature: unknown field",
        ):
            run.loop.answer()
        assert len(server.asked) == 1


def test_a_kill_ends_a_slow_stream_at_once(wire: Wire) -> None:
    """A blocked read ends in a moment, and nothing more is sent."""
    gate = threading.Event()
    with (
        serving([says("Slowly", gate=gate), says("again")]) as server,
        open_loop(server, wire, seconds=600) as run,
    ):
        cancel_once(run, lambda: run.progress)
        with Clock() as clock, pytest.raises(ConversationCancelled):
            run.loop.answer()
        assert clock.seconds < 60
        assert len(server.asked) == 1


def test_a_turn_that_a_kill_cuts_off_is_counted(wire: Wire) -> None:
    """The last report has the billed usage: the input as far as the wire reported it, and the
    output that arrived.
    """
    with (
        serving([says("x" * 400, cached_tokens=40, gate=threading.Event())]) as server,
        open_loop(server, wire) as run,
    ):
        cancel_once(run, lambda: run.progress)
        with pytest.raises(ConversationCancelled):
            run.loop.answer()
    last: Any = run.progress[-1]["usage"]
    assert (last["inputTokens"], last["outputTokens"], last["turns"]) == (
        100 if wire == "anthropic" else 0,
        100,
        1,
    )


def test_a_kill_ends_the_wait_for_the_first_byte_and_for_a_busy_endpoint(wire: Wire) -> None:
    """A server that reads a long prompt says nothing yet; one that is busy wants to be left alone
    for a minute.
    """
    gate = threading.Event()

    def silent(_: object) -> Turn:
        gate.wait(200)
        return says("late")

    with serving(silent) as server, open_loop(server, wire, seconds=600) as run:
        cancel_once(run, lambda: server.asked)
        with Clock() as clock, pytest.raises(ConversationCancelled):
            run.loop.answer()
        gate.set()
    assert clock.seconds < 60
    with (
        serving(lambda _: fails(429, retry_after_ms="60000")) as server,
        open_loop(server, wire, seconds=600) as run,
    ):
        cancel_once(run, lambda: server.asked)
        with Clock() as clock, pytest.raises(ConversationCancelled):
            run.loop.answer()
    assert clock.seconds < 50


def test_an_answer_has_its_time(wire: Wire) -> None:
    """The stream is cut at the time limit, and the failure names the limit."""
    with (
        serving([says("Slowly", gate=threading.Event())]) as server,
        open_loop(server, wire, seconds=0.4) as run,
    ):
        with (
            Clock() as clock,
            pytest.raises(ModelFailed, match=r"no answer within 0\.4 s") as caught,
        ):
            run.loop.answer()
        assert caught.value.kind == "timeout"
        assert clock.seconds < 60


def test_an_answer_without_an_end_is_stopped(wire: Wire) -> None:
    """A turn of more characters than any model writes is no answer; a large one is."""
    large = "x" * (MAX_REPLY_CHARACTERS // 8)
    with serving([says(*[large] * 7)]) as server, open_loop(server, wire) as run:
        assert len(run.loop.answer()) == 7 * len(large)
    with (
        serving([says(*[large] * 12)]) as server,
        open_loop(server, wire) as run,
        pytest.raises(ModelFailed, match="more than 4194304 characters"),
    ):
        run.loop.answer()


def test_half_a_surrogate_pair_travels_no_further(wire: Wire) -> None:
    """JSON can name what UTF-8 cannot write; the next request and the journal get its name
    instead.
    """
    script = [calls(("note", '{"text": "\\ud800"}'), text=("bad \ud800",)), says("ok \udfff")]
    with serving(script) as server, open_loop(server, wire, tools=RecordingTools()) as run:
        assert run.loop.answer() == "ok \\udfff"
        assert len(server.asked) == 2


def test_followers_see_the_last_line_and_the_tokens(wire: Wire) -> None:
    """The last line of arriving text is reported now and then with the usage so far, never twice in
    the same moment.
    """
    gate = threading.Event()
    with (
        serving([says("first line\n", "second", gate=gate)]) as server,
        open_loop(server, wire) as run,
    ):
        release = threading.Timer(0.2, gate.set)
        release.start()
        run.loop.answer()
        texts = [event["text"] for event in run.progress if "text" in event]
        assert texts[0] == "first line"
        assert all(set(event) <= {"text", "tokens", "usage"} for event in run.progress)


def test_a_request_goes_through_the_callers_proxy(wire: Wire) -> None:
    """The caller's variables count, not this process's: through the proxy unless the host is
    excepted.
    """
    with serving([says("via proxy")]) as server:
        with open_loop(
            server,
            wire,
            environment={"HTTP_PROXY": server.url},
            baseUrl="http://model.invalid:9/v1",
        ) as run:
            assert run.loop.answer() == "via proxy"
            assert server.seen[0].path.startswith("http://model.invalid:9/")
        excepted = {"HTTP_PROXY": server.url, "NO_PROXY": "model.invalid"}
        with (
            open_loop(
                server, wire, environment=excepted, baseUrl="http://model.invalid:9/v1"
            ) as run,
            pytest.raises(EnvironmentLacks),
        ):
            run.loop.answer()


def test_a_proxy_that_is_no_http_proxy_is_a_lack(wire: Wire) -> None:
    """A SOCKS proxy in the caller's variables pauses the thread before anything is sent."""
    with (
        serving([says("past the proxy")]) as server,
        pytest.raises(EnvironmentLacks, match=r"cannot be reached .*none of http or https"),
        open_loop(server, wire, environment={"ALL_PROXY": "socks5://127.0.0.1:9"}),
    ):
        pass
    assert server.asked == []


def test_a_reply_in_a_broken_encoding_is_asked_for_again(wire: Wire) -> None:
    """A body that is not in the encoding of its header is a broken reply."""
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    broken = Turn(headers=headers, body="not gzip")
    with serving([broken, says("Whole.")]) as server, open_loop(server, wire) as run:
        assert run.loop.answer() == "Whole."
        assert len(server.asked) == 2
