"""Packs in a store: their rules, entity types, states and collisions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from testbed.sentences import add_flow, called, parameters
from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError, UsageError
from uncaged_dispatcher.calls import Interpretation, Miss, Question
from uncaged_dispatcher.grammar.requirements import MAX_WORDS
from uncaged_dispatcher.index.compiling import compile_pack
from uncaged_dispatcher.index.fitting import GAP
from uncaged_dispatcher.index.shapes import MOST_STEPS
from uncaged_dispatcher.packs.pack import read_pack
from uncaged_dispatcher.packs.registered import RegisteredPacks
from uncaged_dispatcher.readings.collision_scan import similar_flows, static_collisions
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.explanation import explain
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_dispatcher.readings.overview import overview
from uncaged_dispatcher.readings.pack_management import PackManager
from uncaged_engine.api import Engine

MUSIC = b"""
name: music
description: Play and stop music.
flows: [play-genre, stop-music]
entities:
  Genre:
    values: {rock: rock, "rhythm and blues": blues}
  Code:
    pattern: "[A-Z]{2}[0-9]+"
rules: |
  <Start> = put on $(genre:Genre) -> { flow: "play-genre", params: { genre } }
    | play $(code:Code) -> { flow: "play-genre", params: { genre: code } }
    | rock and silence -> [{ flow: "play-genre", params: { genre: "rock" } }, { flow: "stop-music" }];
"""


@pytest.fixture
def interpreter(engine: Engine) -> Iterator[Interpreter]:
    found = Interpreter(engine)
    yield found
    found.close()


@pytest.fixture
def music(engine: Engine) -> PackManager:
    """A store with the pack and its flows."""
    add_flow(engine, "play-genre", schema=parameters("genre", genre={}))
    add_flow(engine, "stop-music", "stop the music")
    manager = PackManager(engine)
    manager.add(MUSIC, "music.yaml")
    return manager


def test_the_rules_of_a_pack_read_sentences(interpreter: Interpreter, music: PackManager) -> None:
    """A pack's rule calls its flows, several in order; a value of an entity type is the declared
    one, and another text is no value of it.
    """
    assert music.report("music").problems == ()
    assert called(interpreter, "put on rhythm and blues") == [("play-genre", {"genre": "blues"})]
    assert called(interpreter, "play AB12") == [("play-genre", {"genre": "AB12"})]
    assert called(interpreter, "rock and silence") == [
        ("play-genre", {"genre": "rock"}),
        ("stop-music", {}),
    ]
    assert isinstance(interpreter.interpret("put on trousers"), Miss)


def test_a_disabled_pack_reads_nothing_and_says_how_to_enable_it(
    interpreter: Interpreter, music: PackManager
) -> None:
    """Disabling a pack silences its rules and its flows' patterns at the next sentence."""
    music.set_enabled("music", False)
    for sentence in ("put on rock", "stop the music"):
        miss = interpreter.interpret(sentence)
        assert isinstance(miss, Miss)
        assert miss.enable == "uncaged-workflow pack enable music"
    music.set_enabled("music", True)
    assert called(interpreter, "stop the music") == [("stop-music", {})]


def test_a_pack_that_only_descriptors_name_can_be_disabled(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A flow's descriptor makes a pack without a file, which has a state, too."""
    add_flow(engine, "toss", "toss a coin", pack="games")
    manager = PackManager(engine)
    assert manager.report("games").flows == ("toss",)
    manager.set_enabled("games", False)
    miss = interpreter.interpret("toss a coin")
    assert isinstance(miss, Miss)
    assert miss.enable == "uncaged-workflow pack enable games"


def test_a_removed_pack_leaves_its_flows(interpreter: Interpreter, music: PackManager) -> None:
    """Removing a pack takes its rules away; patterns of its flows are read on."""
    music.remove("music")
    assert isinstance(interpreter.interpret("put on rock"), Miss)
    assert called(interpreter, "stop the music") == [("stop-music", {})]
    with pytest.raises(NotFoundError):
        music.remove("music")


def test_a_pack_of_the_product_can_be_neither_removed_nor_disabled(engine: Engine) -> None:
    """The sentences for the command itself stay; another shipped pack can be disabled."""
    manager = PackManager(engine)
    with pytest.raises(RefusedError):
        manager.set_enabled("product", False)
    with pytest.raises(RefusedError):
        manager.remove("product")
    manager.set_enabled("files", False)
    assert not manager.report("files").pack.enabled


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ('<Start> = wipe -> { flow: "delete-all" };', "does not list"),
        ('<Start> = wipe -> { flow: "@keys rm KEY" };', "does not list"),
        ('<Start> = wipe -> { flow: "play", policy: {} };', "a call is"),
        ('<Start> = wipe -> "play";', "a call is"),
    ],
)
def test_a_pack_calls_only_its_own_flows(
    engine: Engine, interpreter: Interpreter, rules: str, problem: str
) -> None:
    """A rule that calls a flow of another pack, a verb, or something that is no call is refused
    when a sentence is read by it.
    """
    add_flow(engine, "delete-all")
    add_flow(engine, "play")
    text = f"name: hostile\nflows: [play]\nrules: |\n  {rules}\n"
    PackManager(engine).add(text.encode(), "hostile.yaml")
    miss = interpreter.interpret("wipe")
    assert isinstance(miss, Miss)
    assert any(problem in reason for reason in miss.refused), miss.refused


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: music\ncolour: red\n", "colour"),
        ("name: Not A Name\n", "name"),
        ("- music\n", "pack"),
        ("name: music\nenabled: perhaps\n", "enabled"),
        ("name: music\nentities: {Genre: {values: {}}}\n", "Genre"),
        ("name: music\nentities: {Genre: {pattern: '['}}\n", "regular expression"),
        ("name: music\nrules: '<Start> = ('\n", r"music\.agr\(1,"),
        ("name: music\nrules: '<Start> = <a> ; <a> = <a> x -> 1;'\n", "music.agr"),
        ("name: [\n", "YAML"),
        ("name: music\ndescription: " + "x" * (1 << 20), "bytes"),
    ],
)
def test_a_pack_file_that_is_not_valid_is_refused(engine: Engine, text: str, problem: str) -> None:
    """A wrong pack file is an error with the place, and nothing is registered."""
    with pytest.raises(UsageError, match=problem):
        PackManager(engine).add(text.encode(), "music.yaml")
    assert not (engine.store.root / "packs" / "music.yaml").exists()


def test_a_broken_registered_file_hides_no_other_pack(
    engine: Engine, interpreter: Interpreter, music: PackManager
) -> None:
    """A pack file that was damaged in the store is reported, and the other packs are read."""
    (engine.store.root / "packs" / "broken.yaml").write_text("name: [")
    reports, problems = music.reports()
    assert "music" in [report.pack.name for report in reports]
    assert any("broken.yaml" in problem for problem in problems)
    assert called(interpreter, "put on rock") == [("play-genre", {"genre": "rock"})]


def test_dates_and_quantities_are_resolved(engine: Engine, interpreter: Interpreter) -> None:
    """A capture of an entity type becomes its value, relative to the present; a text that is no
    such value is no reading.
    """
    text = parameters(when={}, size={"type": "number"}, time={"type": "number"}, from_={})
    add_flow(
        engine,
        "remind",
        "remind me on $(when:CalendarDate)",
        "remind me in $(time:Duration)",
        "find files over $(size:Size)",
        schema=text,
    )
    context = SentenceContext(directory=Path("/"), now=lambda: datetime(2026, 11, 22, 12, 0))
    for sentence, params in (
        ("remind me on monday", {"when": "2026-11-23"}),
        ("remind me on the 5th", {"when": "2026-12-05"}),
        ("remind me on 3rd of march", {"when": "2027-03-03"}),
        ("remind me in an hour and 30 minutes", {"time": 5400}),
        ("find files over 1.5 GB", {"size": 1_500_000_000}),
        ("find files over 64 KiB", {"size": 65_536}),
    ):
        found = interpreter.interpret(sentence, context=context)
        assert isinstance(found, Interpretation), sentence
        assert found.calls[0].params == params, sentence
    for sentence in ("remind me on blue", "remind me in a box", "find files over there"):
        assert isinstance(interpreter.interpret(sentence, context=context), Miss), sentence


def test_a_scan_finds_a_sentence_that_two_packs_read(
    engine: Engine, interpreter: Interpreter
) -> None:
    """Flows of different packs with a common sentence are listed with it; flows of one pack and
    disabled flows are not.
    """
    add_flow(engine, "toss", "(toss | flip) (a)? coin", pack="games")
    add_flow(engine, "flip", "flip (the)? coin", pack="money")
    add_flow(engine, "again", "flip coin", pack="games")
    found = static_collisions(interpreter)
    assert any({"toss", "flip"} <= set(one.flows) for one in found)
    for one in found:
        question = interpreter.interpret(one.sentence)
        assert isinstance(question, Question)
    engine.registry.set_enabled("flip", False)
    assert static_collisions(interpreter) == []


def test_flows_of_two_packs_with_like_descriptions_are_found(
    engine: Engine, interpreter: Interpreter
) -> None:
    """The fuzzy scan lists flows whose descriptions are alike, across packs only."""
    add_flow(engine, "weather", pack="one", description="Show the weather of a city.")
    add_flow(engine, "forecast", pack="two", description="Show the weather of the city.")
    add_flow(engine, "stocks", pack="two", description="Prices of shares.")
    assert [one.flows for one in similar_flows(interpreter)] == [("forecast", "weather")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{}", "rock"),
        ("{several: abort}", None),
        ("{several: ask}", ["rock", "silence"]),
        ("{several: ask, strategy: ask}", ["rock", "silence"]),
        ("{several: abort, strategy: priority, order: [silence]}", "silence"),
    ],
)
def test_a_collision_in_a_sentence_of_several_calls_is_decided_by_its_own_setting(
    engine: Engine, interpreter: Interpreter, settings: str, expected: str | list[str] | None
) -> None:
    """Where the strategy would ask, the pack with the higher priority is taken, or nothing runs, or
    the question offers all calls of each reading.
    """
    for number, name in enumerate(("rock", "silence")):
        for part in ("first", "second"):
            add_flow(engine, f"{name}-{part}")
        calls = ", ".join(f'{{ flow: "{name}-{part}" }}' for part in ("first", "second"))
        text = f"""
name: {name}
description: Plays {name}.
priority: {1 - number}
flows: [{name}-first, {name}-second]
rules: |
  <Start> = party and sleep -> [{calls}];
"""
        PackManager(engine).add(text.encode(), f"{name}.yaml")
    engine.store.config_path.write_text(f"collisions: {settings}\n")
    found = interpreter.interpret("party and sleep")
    if expected is None:
        assert isinstance(found, Miss)
        assert "2 meanings" in found.why
    elif isinstance(expected, str):
        assert isinstance(found, Interpretation)
        assert [call.flow for call in found.calls] == [f"{expected}-first", f"{expected}-second"]
    else:
        assert isinstance(found, Question)
        chosen = [interpreter.choose(found, choice.id).calls for choice in found.choices]
        assert sorted([call.flow for call in calls] for calls in chosen) == [
            [f"{name}-first", f"{name}-second"] for name in expected
        ]


def test_an_explanation_has_every_reading_and_starts_nothing(
    engine: Engine, interpreter: Interpreter
) -> None:
    """All readings are listed with their scores, the refused ones with the reason; no thread, no
    collision record and no question is left behind.
    """
    add_flow(engine, "echo", "say $(text:wildcard)", schema=parameters("text", text={}))
    add_flow(engine, "greet", "say hello")
    add_flow(
        engine, "pick", "say $(n:wildcard)", schema=parameters("n", n={"enum": ["one", "two"]})
    )
    found = explain(interpreter, "say hello")
    assert found.readings[0].flows == ("greet",)
    assert {one.flows[0] for one in found.readings} == {"greet", "echo", "pick"}
    assert found.why == "it has no free text"
    refused = next(one for one in found.readings if one.flows == ("pick",))
    assert refused.refused is not None and "allowed values" in refused.refused
    shown: Any = found.document()["readings"]
    assert [one["by"] for one in shown] == ["grammar"] * 3
    add_flow(engine, "other", "say hello")
    assert explain(interpreter, "say hello").document()["result"] == "question"
    assert interpreter.collisions.read() == []
    assert engine.threads() == []


def test_the_packs_of_an_activity_come_first(engine: Engine, interpreter: Interpreter) -> None:
    """A reading of the activity's pack is preferred; an exclusive activity hides the others."""
    add_flow(engine, "next-song", "next $(what:wildcard)", pack="music", schema=parameters(what={}))
    add_flow(engine, "next-page", "next page", pack="reader")
    activity = SentenceContext(packs=("music",))
    found = interpreter.interpret("next page", context=activity)
    assert isinstance(found, Interpretation)
    assert found.calls[0].flow == "next-song"
    found = interpreter.interpret("next page")
    assert isinstance(found, Interpretation)
    assert found.calls[0].flow == "next-page"
    for pack in ("music", "reader"):
        add_flow(engine, f"{pack}-help", "help me out", pack=pack)
    found = interpreter.interpret("help me out", context=activity)
    assert isinstance(found, Interpretation), "a reading outside is no collision"
    assert found.calls[0].flow == "music-help"
    assert isinstance(interpreter.interpret("help me out"), Question)
    add_flow(engine, "turn", "turn the page", pack="reader")
    alone = SentenceContext(packs=("music",), exclusive=True)
    assert isinstance(interpreter.interpret("turn the page", context=alone), Miss)


def test_a_pack_of_a_site_is_not_read_without_a_page(
    interpreter: Interpreter, engine: Engine, music: PackManager
) -> None:
    """Where no browser session runs, its sentences, its flows' own sentences and its examples are
    left out with the reason; without hosts they are there.
    """
    examples = [{"sentence": "quiet please", "params": {}}]
    add_flow(engine, "be-quiet", "quiet please", examples=examples)
    listed = MUSIC.replace(b"stop-music]", b"stop-music, be-quiet]")
    music.add(listed, "music.yaml")
    assert "quiet please" in overview(engine)
    assert called(interpreter, "quiet please") == [("be-quiet", {})]
    music.add(listed + b'hosts: ["music.test"]\nurlPatterns: ["*/play/*"]\n', "music.yaml")
    assert "quiet please" not in overview(engine)
    for sentence in ("quiet please", "put on rock"):
        found = explain(interpreter, sentence)
        assert isinstance(found.result, Miss)
        assert found.why == ("the pack music is for pages of music.test, */play/*; no page is open")
        assert [one.away for one in found.readings] == [found.why]
    for wrong in (b"urlPatterns: [x]\n", b'hosts: ["https://music.test/"]\n', b"hosts: music\n"):
        with pytest.raises(UsageError, match=r"hosts|urlPatterns"):
            music.add(MUSIC + wrong, "music.yaml")


@pytest.mark.parametrize("name", ["no", "on", "null", "true"])
def test_a_pack_may_have_a_name_that_is_a_value_in_yaml(
    music: PackManager, interpreter: Interpreter, name: str
) -> None:
    """A disabled pack of such a name is disabled, and no other pack appears."""
    music.add(MUSIC.replace(b"name: music", f'name: "{name}"'.encode()), "named.yaml")
    music.remove("music")
    before = {report.pack.name for report in music.reports()[0]}
    music.set_enabled(name, False)
    missed = interpreter.interpret("put on rock")
    assert isinstance(missed, Miss)
    assert missed.enable == f"uncaged-workflow pack enable {name}"
    assert {report.pack.name for report in music.reports()[0]} == before
    music.set_enabled(name, True)
    assert called(interpreter, "put on rock") == [("play-genre", {"genre": "rock"})]


def test_a_link_that_leads_nowhere_hides_no_change(
    engine: Engine, music: PackManager, interpreter: Interpreter
) -> None:
    """An editor's lock, a link to nothing and a pipe among the pack files: a later pack is read at
    the next sentence, and what is no file is named.
    """
    music.remove("music")
    directory = engine.store.root / "packs"
    packs = RegisteredPacks(engine.store)
    before = packs.stamp()
    (directory / ".#music.yaml").symlink_to("person@machine.1")
    assert packs.stamp() == before, "a hidden name is no change"
    (directory / "gone.yaml").symlink_to("nowhere")
    os.mkfifo(directory / "pipe.yaml")
    assert isinstance(interpreter.interpret("put on rock"), Miss)
    (directory / "music.yaml").write_bytes(MUSIC)
    assert called(interpreter, "put on rock") == [("play-genre", {"genre": "rock"})]
    problems = music.reports()[1]
    assert [Path(problem.split()[0]).name for problem in problems] == ["gone.yaml", "pipe.yaml"]


@pytest.mark.parametrize("states", ["[", "- music", "music: 'no'"])
def test_states_that_cannot_be_read_have_a_next_step(
    engine: Engine, music: PackManager, states: str
) -> None:
    """No pack is enabled against a person's choice; the message says how to go on."""
    (engine.store.root / "packs" / "states").write_text(states)
    with pytest.raises(UncagedError, match=r"packs/states.*; correct it, or remove it"):
        music.reports()


def test_the_index_of_a_long_pattern_is_short(music: PackManager, interpreter: Interpreter) -> None:
    """The index takes the first words and steps of a rule: otherwise a rule of 200,000 characters
    would take minutes. Its sentence is read, and one that lacks the last word is not.
    """
    words = [f"w{number}" for number in range(250)]
    steps = "(please)? " + " (please)? ".join(words)
    rules = f'<Start> = {steps} -> {{ flow: "stop-music", params: {{}} }};'
    pack = read_pack(f"name: long\nflows: [stop-music]\nrules: '{rules}'".encode(), "long.yaml")
    [row] = compile_pack("pack:long", pack).rules
    for required in row.required:
        assert len(required.words) <= MAX_WORDS
        assert required.shape.count(GAP) <= MOST_STEPS
    music.add(f"name: long\nflows: [stop-music]\nrules: '{rules}'".encode(), "long.yaml")
    assert called(interpreter, " ".join(words)) == [("stop-music", {})]
    assert isinstance(interpreter.interpret(" ".join(words[:-1])), Miss)
