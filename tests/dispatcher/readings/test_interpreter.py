"""Sentences over real stores: hits, changes, refusals, collisions and misses."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from testbed.sentences import add_flow, called, parameters
from uncaged_bundles.errors import StorageError, UsageError
from uncaged_dispatcher.calls import Interpretation, Miss, Question
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

PATH = parameters("path", path={"type": "string", "format": "path"})
SONG = parameters("song", "artist", song={}, artist={})


@pytest.fixture
def interpreter(engine: Engine) -> Iterator[Interpreter]:
    found = Interpreter(engine)
    yield found
    found.close()


def test_a_sentence_becomes_the_call_of_its_flow(engine: Engine, interpreter: Interpreter) -> None:
    """A hit names the flow, the parameters, the tier and the pattern; space around the sentence
    does not matter.
    """
    add_flow(engine, "list-files", "(list | show) (the)? files in $(path:wildcard)", schema=PATH)
    found = interpreter.interpret("  Show the FILES in downloads \n")
    assert isinstance(found, Interpretation)
    assert [call.document() for call in found.calls] == [
        {"flow": "list-files", "params": {"path": "downloads"}}
    ]
    assert (found.by, found.rule, found.confirm) == (
        "grammar",
        "(list | show) (the)? files in $(path:wildcard)",
        (),
    )
    assert found.elapsed_ms > 0


def test_each_pattern_and_alias_reads_sentences(engine: Engine, interpreter: Interpreter) -> None:
    """Every pattern of a flow is a rule, aliases and choices at the top level included; a name with
    a hyphen and another case is the declared parameter.
    """
    schema = parameters(**{"max-count": {"type": "integer"}})
    patterns = ("list $(MAX-count:number) commits", "commits | recent changes", "glog")
    add_flow(engine, "git-log", *patterns, schema=schema, aliases=["glog"])
    assert called(interpreter, "list 5 commits") == [("git-log", {"max-count": 5})]
    for sentence in ("commits", "recent changes", "glog"):
        assert called(interpreter, sentence) == [("git-log", {})]


def test_a_flow_without_patterns_is_read_by_its_name(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A flow without patterns is run by a verb, its name and its parameters."""
    schema = parameters("city", city={}, days={"type": "integer"})
    add_flow(engine, "weather-report", schema=schema)
    assert called(interpreter, "run weather report Bern") == [("weather-report", {"city": "Bern"})]
    assert called(interpreter, "apply weather report Bern 3") == [
        ("weather-report", {"city": "Bern", "days": 3})
    ]


def test_words_match_at_their_boundaries(engine: Engine, interpreter: Interpreter) -> None:
    """A pattern that begins with `dir` reads neither `directions` nor `dirt`."""
    add_flow(engine, "list-directory", "dir $(path:wildcard)", schema=PATH)
    assert called(interpreter, "dir src") == [("list-directory", {"path": "src"})]
    for sentence in ("directions to the airport", "dirt", "dirt road"):
        assert isinstance(interpreter.interpret(sentence), Miss)


def test_a_captured_value_keeps_its_punctuation_and_loses_its_quotes(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A path keeps its slash, dots and star; quotes around a value and the mark at the end of the
    sentence are taken off.
    """
    add_flow(engine, "list-files", "files in $(path:wildcard)", schema=PATH)
    for sentence, path in (
        ("files in /etc", "/etc"),
        ("files in ./src/", "./src/"),
        ("files in *.pdf", "*.pdf"),
        ("files in ~/Downloads", "~/Downloads"),
        ('files in "my documents"', "my documents"),
        ("files in 'my documents'.", "my documents"),
        ("files in downloads?", "downloads"),
        ("files in \N{LEFT DOUBLE QUOTATION MARK}a b\N{RIGHT DOUBLE QUOTATION MARK}", "a b"),
        ("files in the dog's house", "the dog's house"),
    ):
        assert called(interpreter, sentence) == [("list-files", {"path": path})], sentence


def test_a_change_counts_at_the_next_sentence(engine: Engine, interpreter: Interpreter) -> None:
    """An added, edited, disabled, enabled and removed flow is read accordingly by the same
    interpreter and by a new one.
    """

    def reads(sentence: str) -> bool:
        other = Interpreter(engine)
        found = [
            isinstance(one.interpret(sentence), Interpretation) for one in (interpreter, other)
        ]
        other.close()
        assert found[0] == found[1]
        return found[0]

    assert not reads("good morning")
    add_flow(engine, "greet", "good morning")
    assert reads("good morning")
    add_flow(engine, "greet", "good evening")
    assert (reads("good morning"), reads("good evening")) == (False, True)
    engine.registry.set_enabled("greet", False)
    assert not reads("good evening")
    engine.registry.set_enabled("greet", True)
    assert reads("good evening")
    engine.registry.remove("greet")
    assert not reads("good evening")


def test_a_refused_reading_falls_to_the_next(
    engine: Engine, interpreter: Interpreter, tmp_path: Path
) -> None:
    """A reading whose parameters its flow refuses gives way to the next; if all are refused, the
    miss has the flow's own message.
    """
    must_exist = {"type": "string", "format": "path", "pathMustExist": True}
    add_flow(
        engine, "open-file", "open $(path:wildcard)", schema=parameters("path", path=must_exist)
    )
    add_flow(
        engine,
        "open-site",
        "open $(site:wildcard)",
        schema=parameters("site", site={"type": "string", "pattern": r".*\.org"}),
    )
    (tmp_path / "notes").write_text("")
    assert called(interpreter, "open notes", tmp_path) == [("open-file", {"path": "notes"})]
    assert called(interpreter, "open example.org", tmp_path) == [
        ("open-site", {"site": "example.org"})
    ]
    miss = interpreter.interpret("open nothing", context=SentenceContext(directory=tmp_path))
    assert isinstance(miss, Miss)
    assert any("does not exist" in reason for reason in miss.refused)


def test_the_ranking_prefers_what_is_said_over_free_text(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A reading without free text wins, then the one with more words, then the one with less free
    text.
    """
    text = parameters("text", text={})
    add_flow(engine, "anything", "play $(text:wildcard)", schema=text)
    add_flow(engine, "some-music", "play (some)? music")
    add_flow(engine, "an-album", "play the album $(text:wildcard)", schema=text)
    assert called(interpreter, "play some music") == [("some-music", {})]
    assert called(interpreter, "play the album Low") == [("an-album", {"text": "Low"})]
    assert called(interpreter, "play Low") == [("anything", {"text": "Low"})]


def test_equal_readings_of_one_flow_are_both_offered(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A sentence with two divisions is a question that offers both; the choice is a call."""
    add_flow(engine, "play", "play $(song:wildcard) by $(artist:wildcard)", schema=SONG)
    question = interpreter.interpret("play stand by me by ben")
    assert isinstance(question, Question)
    offered = [dict(one.interpretation.calls[0].params) for one in question.choices]
    assert sorted(offered, key=str) == [
        {"song": "stand by me", "artist": "ben"},
        {"song": "stand", "artist": "me by ben"},
    ]
    chosen = interpreter.choose(question, question.choices[0].id)
    assert chosen.calls == question.choices[0].interpretation.calls
    with pytest.raises(UsageError):
        interpreter.choose(question, "7")


def test_a_collision_is_asked_about_and_remembered(
    engine: Engine, interpreter: Interpreter
) -> None:
    """Two flows that read one sentence equally well are a question; the remembered choice answers
    every sentence that only these two read, in a new process too, and each collision is kept.
    """
    text = parameters("text", text={})
    for name in ("play-song", "play-game"):
        add_flow(engine, name, "play $(text:wildcard)", schema=text)
    question = interpreter.interpret("play chess")
    assert isinstance(question, Question)
    game = next(o for o in question.choices if o.interpretation.calls[0].flow == "play-game")
    interpreter.choose(question, game.id, remember=True)
    other = Interpreter(engine)
    for sentence in ("play chess", "play go"):
        found = other.interpret(sentence)
        assert isinstance(found, Interpretation)
        assert (found.calls[0].flow, found.remembered) == ("play-game", True)
    other.close()
    kept = interpreter.collisions.read()
    assert [one["request"] for one in kept] == ["play chess", "play chess", "play go"]
    assert [one["chosen"] is None for one in kept] == [True, False, False]


@pytest.mark.parametrize(
    ("settings", "flow"),
    [
        ("{strategy: first-match}", "alpha"),
        ("{strategy: score-rank}", "alpha"),
        ("{strategy: priority, order: [two, one]}", "beta"),
        ("{strategy: ask}", None),
        ("{strategy: ask, kind: flows}", None),
    ],
)
def test_a_strategy_decides_a_collision(
    engine: Engine, interpreter: Interpreter, settings: str, flow: str | None
) -> None:
    """Each strategy chooses its reading, or asks."""
    add_flow(engine, "alpha", "tell me more", pack="one")
    add_flow(engine, "beta", "tell me more", pack="two")
    engine.store.config_path.write_text(f"collisions: {settings}\n")
    found = interpreter.interpret("tell me more")
    if flow is None:
        assert isinstance(found, Question)
    else:
        assert isinstance(found, Interpretation)
        assert found.calls[0].flow == flow


@pytest.mark.slow
def test_the_last_fifty_collisions_are_kept(engine: Engine, interpreter: Interpreter) -> None:
    """The oldest collision goes when a fifty-first comes."""
    for name in ("alpha", "beta"):
        add_flow(engine, name, "note $(text:wildcard)", schema=parameters("text", text={}))
    for number in range(53):
        interpreter.interpret(f"note {number}")
    kept = interpreter.collisions.read()
    assert [one["request"] for one in kept] == [f"note {number}" for number in range(3, 53)]


def test_a_miss_names_the_nearest_flows_with_their_patterns(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A miss has at most three flows, the nearest first, and no disabled one."""
    add_flow(engine, "git-log", "show (the)? recent commits")
    add_flow(
        engine, "weather", "(the)? weather in $(city:wildcard)", schema=parameters("city", city={})
    )
    add_flow(engine, "commit-all", "commit all recent changes")
    engine.registry.set_enabled("commit-all", False)
    miss = interpreter.interpret("which commits are recent")
    assert isinstance(miss, Miss)
    assert miss.nearest[0].flow == "git-log"
    assert miss.nearest[0].patterns == ("show (the)? recent commits",)
    assert "commit-all" not in [near.flow for near in miss.nearest]


def test_a_miss_names_how_to_enable_the_flow_that_would_read_it(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A sentence that only a disabled flow reads is a miss with the command that enables it."""
    add_flow(engine, "greet", "good morning")
    engine.registry.set_enabled("greet", False)
    miss = interpreter.interpret("good morning")
    assert isinstance(miss, Miss)
    assert miss.enable == "uncaged-workflow enable greet"
    assert miss.enable in miss.why


def test_a_misspelt_word_is_offered_and_never_taken(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A word close to exactly one grammar word gives a corrected sentence; a word close to two
    gives none.
    """
    add_flow(engine, "list-files", "list files in $(path:wildcard)", schema=PATH)
    miss = interpreter.interpret("list fiels in downloads")
    assert isinstance(miss, Miss)
    assert miss.corrected == "list files in downloads"
    add_flow(engine, "list-fields", "list fields in $(path:wildcard)", schema=PATH)
    miss = interpreter.interpret("list fiels in downloads")
    assert isinstance(miss, Miss)
    assert miss.corrected is None


def test_a_pattern_calls_only_its_own_flow(engine: Engine, interpreter: Interpreter) -> None:
    """A pattern with a value, a rule or an import of its own is left out, and hides no other."""
    add_flow(engine, "delete-all", "delete everything")
    hostile = (
        'hello -> { flow: "delete-all", params: {} }',
        'hello ; <Start> = good day -> { flow: "delete-all" }',
        "(hello",
        "good $(when:wildcard)",
    )
    add_flow(engine, "greet", *hostile, schema=parameters(when={}))
    assert isinstance(interpreter.interpret("hello"), Miss)
    assert called(interpreter, "good day") == [("greet", {"when": "day"})]


def test_a_flow_of_the_registry_that_is_damaged_hides_no_other(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A bundle whose file is damaged is not read; the others are."""
    add_flow(engine, "greet", "good morning")
    add_flow(engine, "part", "good bye")
    bundle = engine.registry.flow("part")
    assert bundle is not None
    engine.store.bundle_path(bundle.hash).write_text("no python")
    assert called(interpreter, "good morning") == [("greet", {})]
    assert isinstance(interpreter.interpret("good bye"), Miss)


@pytest.mark.parametrize(
    "sentence",
    ["x" * 1_000_000, "list \0 files", "list \x1b[2J files", "list \N{RIGHT-TO-LEFT OVERRIDE}x"],
)
def test_a_sentence_that_cannot_be_read_is_refused(interpreter: Interpreter, sentence: str) -> None:
    """A sentence of a megabyte, with control characters or marks that reorder text is an error of
    its own, and the next sentence is read.
    """
    with pytest.raises(UsageError, match="sentence"):
        interpreter.interpret(sentence)
    assert isinstance(interpreter.interpret("hello"), Miss)


@pytest.mark.slow
def test_a_sentence_that_too_many_rules_may_read_is_refused(
    engine: Engine, interpreter: Interpreter
) -> None:
    """A sentence with the words of more than a thousand rules is an error, and others are read."""
    patterns = [f"$(x:wildcard) word{number} $(y:wildcard)" for number in range(120)]
    for number in range(9):
        changed = [f"{pattern} {number} $(z:wildcard)" for pattern in patterns]
        add_flow(engine, f"flow-{number}", *changed, schema=parameters(x={}, y={}, z={}))
    words = " ".join(f"word{number}" for number in range(120))
    with pytest.raises(UsageError, match="rules"):
        interpreter.interpret(f"a {words} 0 1 2 3 4 5 6 7 8 b")
    found = called(interpreter, "a word7 b 3 c")
    assert found == [("flow-3", {"x": "a", "y": "b", "z": "c"})]


def test_a_marked_flow_is_named_for_consent(engine: Engine, interpreter: Interpreter) -> None:
    """A call of a flow that is marked in the registry says so, from the next sentence on."""
    add_flow(engine, "clean", "clean up")
    engine.registry.set_confirm("clean", True)
    found = interpreter.interpret("clean up")
    assert isinstance(found, Interpretation)
    assert found.confirm == ("clean",)


def test_a_change_by_another_process_reaches_an_open_interpreter(
    engine: Engine, interpreter: Interpreter
) -> None:
    """An interpreter does not keep a flow as it was when another one has updated the index."""
    add_flow(engine, "greet", "good morning")
    other = Interpreter(engine)
    assert called(interpreter, "good morning") == called(other, "good morning")
    engine.registry.set_confirm("greet", True)
    for one in (other, interpreter):
        found = one.interpret("good morning")
        assert isinstance(found, Interpretation)
        assert found.confirm == ("greet",)
    other.close()


def test_a_damaged_index_is_made_again(engine: Engine) -> None:
    """An index file that is no database, or is gone, is filled again at the next sentence."""
    add_flow(engine, "greet", "good morning")
    path = engine.store.root / "dispatcher" / "rules.db"
    for damage in (b"no database" * 1000, None):
        for name in sorted(path.parent.glob("rules.db*")) if path.parent.exists() else ():
            name.unlink()
        if damage is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(damage)
        interpreter = Interpreter(engine)
        assert called(interpreter, "good morning") == [("greet", {})]
        interpreter.close()


@pytest.mark.parametrize("damage", ["page", "body"])
def test_an_index_damaged_within_is_removed(engine: Engine, damage: str) -> None:
    """A damaged page, or a rule that is no JSON, is an error with its next step; the next sentence
    is read by a new index, even in the same process.
    """
    add_flow(engine, "greet", "good morning")
    path = engine.store.root / "dispatcher" / "rules.db"
    first = Interpreter(engine)
    assert called(first, "good morning") == [("greet", {})]
    first.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'posting'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        if damage == "body":
            connection.execute("UPDATE rule SET body = '{'")
        connection.execute("PRAGMA journal_mode = DELETE")
    if damage == "page":
        data = bytearray(path.read_bytes())
        data[(page - 1) * size : page * size] = b"\xff" * size
        path.write_bytes(data)
    interpreter = Interpreter(engine)
    with pytest.raises(StorageError, match=r"rules\.db was damaged and is removed .*; try again"):
        interpreter.interpret("good morning")
    assert called(interpreter, "good morning") == [("greet", {})]
    interpreter.close()
