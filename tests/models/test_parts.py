"""Parts around the tool loop: conversations on disk, settings, and the forms of data that are sent
to an endpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from testbed.modelserver import Turn, calls, says, serving
from testbed.tool_loops import RecordingTools, open_loop
from uncaged_bundles.errors import UsageError
from uncaged_models.anthropic import retry_after_s
from uncaged_models.client import Usage
from uncaged_models.conversation import (
    ChatTurn,
    Conversation,
    Raw,
    Text,
    ToolResult,
    ToolUse,
    user_turn,
)
from uncaged_models.errors import ModelFailed, TooLong
from uncaged_models.openai import OpenAIDraft
from uncaged_models.schemas import closed
from uncaged_models.settings import MODELS, read_settings, with_key


def test_a_conversation_is_taken_up_as_it_was_put_away(tmp_path: Path) -> None:
    """Every kind of part comes back; the file is its owner's alone; one that is torn or gone is
    none.
    """
    parts = (
        Raw(data={"type": "thinking", "signature": "s"}),
        Text(text="t \\ud800"),
        ToolUse(id="1", name="run", arguments="{bad"),
    )
    turns = [
        user_turn("Do it."),
        ChatTurn(by="assistant", parts=parts),
        ChatTurn(by="user", parts=(ToolResult(call="1", text="no", failed=True),)),
    ]
    path = tmp_path / "conversations" / "1.json"
    Conversation(system="s", turns=turns).save(path)
    assert Conversation.load(path) == Conversation(system="s", turns=turns)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_bytes(path.read_bytes()[:-9])
    assert Conversation.load(path) is None
    assert Conversation.load(tmp_path / "gone.json") is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"baseUrl": "ftp://x"}, "baseUrl"),
        ({"baseUrl": "https://"}, "baseUrl"),
        ({"key": 7}, "key: secret:NAME"),
        ({"model": ""}, "model"),
        ({"maxTokens": 0}, "maxTokens"),
        ({"maxTokens": True}, "maxTokens"),
        ({"structured": "yes"}, "structured"),
        ({"options": []}, "options"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], words: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError, match=words):
        read_settings("openai", settings)


def test_settings_leave_nothing_open() -> None:
    """The defaults are the public interface, its model, and the well-known key; a server of one's
    own needs none; the key is never shown.
    """
    assert with_key("anthropic", {}) == {"key": "secret:ANTHROPIC_API_KEY"}
    assert with_key("openai", {"model": "m"}) == {"model": "m", "key": "secret:OPENAI_API_KEY"}
    assert with_key("openai", {"baseUrl": "http://127.0.0.1:1/v1"}) == {
        "baseUrl": "http://127.0.0.1:1/v1"
    }
    assert with_key("anthropic", {"key": "secret:MINE"}) == {"key": "secret:MINE"}
    assert with_key("command", {}) == {}
    usual = read_settings("anthropic", {"key": "sk-1"})
    assert (usual.url, usual.model, usual.max_tokens) == (
        "https://api.anthropic.com",
        MODELS["anthropic"],
        32_000,
    )
    assert "sk-1" not in repr(usual)
    assert (
        read_settings("openai", {}, {"OPENAI_BASE_URL": "http://gateway/v1/"}).url
        == "http://gateway/v1"
    )
    assert (
        read_settings(
            "openai", {"baseUrl": "http://own/v1"}, {"OPENAI_BASE_URL": "http://gateway/v1"}
        ).url
        == "http://own/v1"
    )


def test_a_pause_is_in_seconds_or_in_thousandths() -> None:
    """The finer one wins; what is no number is nothing."""
    assert retry_after_s({"retry-after": "2"}) == 2
    assert retry_after_s({"retry-after": "2", "retry-after-ms": "50"}) == 0.05
    assert retry_after_s({"retry-after": "-3"}) == 0
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None
    assert retry_after_s({}) is None


@pytest.mark.parametrize(
    "pieces",
    [
        [
            {"index": 0, "id": "a", "function": {"name": "run", "arguments": '{"x"'}},
            {"index": 0, "function": {"arguments": ": 1}"}},
        ],
        [
            {"id": "a", "function": {"name": "run", "arguments": '{"x"'}},
            {"function": {"arguments": ": 1}"}},
        ],
        [{"index": 0, "id": "a", "function": {"name": "run", "arguments": {"x": 1}}}],
        [{"function": {"name": "run", "arguments": '{"x": 1}'}}],
    ],
    ids=["numbered", "by-id", "object", "bare"],
)
def test_calls_are_put_together_however_a_server_sends_them(pieces: list[dict[str, Any]]) -> None:
    """Servers send calls with numbers, with an id alone, as an object, or in one piece without
    either; two calls never become one.
    """
    draft = OpenAIDraft()
    for name in ("first", "second"):
        for piece in pieces:
            numbered = {
                **piece,
                **({"index": len(draft.calls) - ("id" not in piece)} if "index" in piece else {}),
            }
            if "id" in piece:
                numbered["id"] = name
            draft.take(
                {"choices": [{"delta": {"tool_calls": [numbered]}}]}, lambda _text, _shown: None
            )
    assert [(call.name, call.parsed()) for call in draft.reply().calls] == [("run", {"x": 1})] * 2
    assert len({call.id for call in draft.reply().calls}) == 2


OPEN = {"type": "object", "properties": {"meta": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, "x"]}}}},
            True,
        ),
        (OPEN, False),
        ({"type": "object"}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "minLength": 3}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}, False),
        ({"type": "object", "properties": {"a": True}}, False),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": True,
            },
            False,
        ),
        ({"type": "array"}, False),
    ],
)
def test_only_a_schema_that_loses_nothing_is_forced_on_a_model(
    schema: dict[str, Any], kept: bool
) -> None:
    """A free object could only be empty there, and a bound that is left out would not be kept."""
    assert (closed(schema) is not None) is kept


def test_a_closed_schema_says_so_at_every_level() -> None:
    """Endpoints require closed objects at every level."""
    inner = {
        "type": "object",
        "properties": {"b": {"type": "integer", "description": "n"}},
        "required": ["b"],
    }
    found = closed({"type": "object", "properties": {"a": inner}})
    assert found == {
        "type": "object",
        "properties": {"a": {**inner, "additionalProperties": False}},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.slow
def test_thoughts_go_back_as_they_came_and_three_places_are_marked_for_the_cache() -> None:
    """A signed thought precedes the call that it led to; tools, system and the last turn of the
    user are marked, nothing else.
    """
    script = [calls(("look", {}), thinking="Let me see."), says("Done.")]
    with (
        serving(script) as server,
        open_loop(server, "anthropic", tools=RecordingTools(), options={"temperature": 0}) as run,
    ):
        run.loop.answer()
        first, second = server.asked
    thought, call = second["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "Let me see.", "signature": "signed"}
    assert call["name"] == "look"
    for body in (first, second):
        marked = [
            *body["tools"],
            *body["system"],
            *(part for m in body["messages"] for part in m["content"]),
        ]
        assert [("cache_control" in block) for block in marked] == [
            False,
            True,
            True,
            *[False] * (len(marked) - 4),
            True,
        ]
        assert body["max_tokens"] == 32_000
        assert body["temperature"] == 0


@pytest.mark.slow
def test_only_its_own_maker_gets_the_new_name_of_the_bound() -> None:
    """All other servers know ``max_tokens``; without a setting no bound is sent at all."""
    with serving([says("a"), says("b")]) as server:
        with open_loop(server, "openai", maxTokens=99) as run:
            run.loop.answer()
        with open_loop(server, "openai") as run:
            run.loop.answer()
        assert server.asked[0]["max_tokens"] == 99
        assert not {"max_tokens", "max_completion_tokens"} & set(server.asked[1])


@pytest.mark.slow
@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_form_is_sent_where_the_endpoint_can_force_it(wire: Any) -> None:
    """A schema is sent only with ``structured``, and if the endpoint's subset can express it."""
    simple = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    with serving([Turn(text=("{}",)), Turn(text=("{}",)), Turn(text=("{}",))]) as server:
        for schema, structured in ((simple, True), (simple, False), (OPEN, True)):
            with open_loop(server, wire, schema=schema, structured=structured) as run:
                run.loop.answer()
        forms = [
            body.get("output_config", {}).get("format") or body.get("response_format")
            for body in server.asked
        ]
    assert [form is not None for form in forms] == [True, False, False]
    assert forms[0]["type"] == "json_schema"


@pytest.mark.slow
def test_a_context_that_is_full_names_the_setting() -> None:
    """The model stops in the middle of its turn; asking on would not help."""
    with serving([says("And th", stop="context")]) as server, open_loop(server, "anthropic") as run:
        with pytest.raises(TooLong, match=r"lower limits\.historyCharacters"):
            run.loop.answer()
        assert len(server.asked) == 1


@pytest.mark.slow
def test_a_turn_that_was_all_thought_is_no_answer() -> None:
    """A turn without text cannot be continued; the failure names the limit."""
    with (
        serving([Turn(thinking="Hm.", stop="length")]) as server,
        open_loop(server, "anthropic") as run,
    ):
        with pytest.raises(ModelFailed, match="used up maxTokens"):
            run.loop.answer()
        assert len(server.asked) == 1


def test_usage_in_a_record_has_the_names_that_prices_use() -> None:
    """Tokens that were read from a cache or written to it have prices of their own."""
    assert Usage(input=9, output=1, cached=4, stored=3).document() == {
        "inputTokens": 9,
        "outputTokens": 1,
        "cachedTokens": 4,
        "storedTokens": 3,
    }
