from __future__ import annotations

import pytest
from uncaged_bundles.contract import END, START, parse_descriptor
from uncaged_bundles.shapes import ShapeError

PLANNER = {
    "description": "d",
    "systemPrompt": "s",
    "extractPrompt": "e",
    "schema": {"type": "object"},
}
SMALLEST: dict[str, object] = {"contract": 1, "name": "demo", "description": "", "kind": "task"}


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_smallest_descriptor_has_four_keys() -> None:
    """Everything else has a default, and all defaults are the harmless ones."""
    descriptor = parse_descriptor(SMALLEST)
    assert (descriptor.parameters, descriptor.roles, descriptor.graph, descriptor.continues) == (
        {},
        {},
        None,
        False,
    )
    assert (descriptor.policy.limits, descriptor.policy.trusted) == ({}, False)
    assert descriptor.raw == SMALLEST


def test_roles_keep_what_the_file_says() -> None:
    """A role is pure data under its own name."""
    role = parse_descriptor(SMALLEST | {"roles": {"planner": PLANNER}}).roles["planner"]
    assert (role.name, role.description, role.system_prompt, role.extract_prompt, role.schema) == (
        "planner",
        "d",
        "s",
        "e",
        {"type": "object"},
    )


def test_a_table_has_one_form() -> None:
    """A bare target becomes the one for every status, and each status has its targets as a
    tuple.
    """
    graph = {START: "planner", "planner": {"planned": ["planner", END], "aborted": END}}
    descriptor = parse_descriptor(SMALLEST | {"roles": {"planner": PLANNER}, "graph": graph})
    assert descriptor.graph == {
        START: {"": ("planner",)},
        "planner": {"planned": ("planner", END), "aborted": (END,)},
    }


def test_optional_keys_are_checked() -> None:
    """A descriptor may name its pack, how its sentences are learned, what follows a failure and its
    time; a value of another form is refused with its path.
    """
    more: dict[str, object] = {
        "pack": "files",
        "learn": False,
        "onFailure": "reason",
        "scope": {"sites": ["example.org"]},
        "urlPatterns": ["https://example.org/*"],
        "maxSeconds": 180.0,
    }
    assert parse_descriptor(SMALLEST | more).raw == SMALLEST | more
    for key, value in (
        ("pack", "Not A Name"),
        ("learn", "no"),
        ("onFailure", "retry"),
        ("scope", []),
        ("urlPatterns", "https://example.org/*"),
        ("maxSeconds", -1),
    ):
        with pytest.raises(ShapeError, match=key):
            parse_descriptor(SMALLEST | {key: value})


def test_a_newer_contract_is_refused_before_its_keys_are_judged() -> None:
    """Keys of a later contract are unknown here by nature; the number is what matters."""
    with pytest.raises(ShapeError, match=r"descriptor\.contract: contract 2 is newer than 1"):
        parse_descriptor({"contract": 2, "novelty": set()})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contract": True}, r"^descriptor\.contract: must be a whole number"),
        ({"contract": 0}, r"^descriptor\.contract: there is no contract 0"),
        ({"colour": 1}, r"^descriptor\.colour: unknown key 'colour'"),
        ({"name": "../x"}, r"^descriptor\.name: '\.\./x' is not a flow name"),
        ({"name": ""}, r"^descriptor\.name: a flow needs a name"),
        ({"name": 3}, r"^descriptor\.name: must be text, not 3"),
        ({"description": None}, r"^descriptor\.description: must be text, not None"),
        ({"description": "\ud800"}, r"^descriptor\.description: .*surrogate"),
        ({"kind": "daemon"}, r"^descriptor\.kind: 'daemon' is not one of workflow, script"),
        ({"kind": ["task"]}, r"^descriptor\.kind: \['task'\] is not one of"),
        ({"parameters": []}, r"^descriptor\.parameters: must be a mapping"),
        ({"parameters": {"a": (1,)}}, r"^descriptor\.parameters\.a: \(1,\) is no JSON value"),
        ({"parameters": {"a": b""}}, r"^descriptor\.parameters\.a: b'' is no JSON value"),
        ({"parameters": {1: 2}}, r"^descriptor\.parameters: has the key 1"),
        ({"parameters": {"a": float("nan")}}, r"^descriptor\.parameters\.a: nan is no JSON number"),
        ({"examples": nested(70)}, r"^descriptor\.examples.*: is nested deeper than 64 levels"),
        ({"continues": 1}, r"^descriptor\.continues: must be True or False"),
        (
            {"policy": {"role": {"workspace": "rw"}}},
            r"^descriptor\.policy\.role\.workspace: 'rw' is not one of",
        ),
        (
            {"roles": {"a b": PLANNER}},
            r"^descriptor\.roles\.a b: a role's name starts with a letter",
        ),
        ({"roles": {"__end__": PLANNER}}, r"^descriptor\.roles\.__end__: a role's name"),
        (
            {"roles": {"p": {**PLANNER, "agent": 1}}},
            r"^descriptor\.roles\.p\.agent: unknown key 'agent'",
        ),
        ({"roles": {"p": {"description": ""}}}, r"^descriptor\.roles\.p\.systemPrompt: is missing"),
        (
            {"roles": {"p": {**PLANNER, "schema": True}}},
            r"^descriptor\.roles\.p\.schema: must be a mapping",
        ),
        (
            {"graph": {"p": {}}},
            r"^descriptor\.graph\.p: is neither a role nor '__start__'; roles: none",
        ),
        (
            {"roles": {"p": PLANNER}, "graph": {START: "q"}},
            r"^descriptor\.graph\.__start__: 'q' is neither a role nor '__end__'; roles: p",
        ),
        (
            {"roles": {"p": PLANNER}, "graph": {"p": {"ok": 1}}},
            r"^descriptor\.graph\.p\.ok: 1 is neither a role",
        ),
        (
            {"roles": {"p": PLANNER}, "graph": {"p": {"ok": ["p", "q"]}}},
            r"^descriptor\.graph\.p\.ok: 'q' is neither a role",
        ),
        (
            {"roles": {"p": PLANNER}, "graph": {"p": {"ok": []}}},
            r"^descriptor\.graph\.p\.ok: \[\] is neither a role",
        ),
        ({"patterns": "x"}, r"^descriptor\.patterns: must be a list of texts"),
        ({"examples": {}}, r"^descriptor\.examples: must be a list"),
        ({"displayName": 1}, r"^descriptor\.displayName: must be text"),
    ],
)
def test_a_wrong_shape_is_told_with_its_dotted_path(
    changes: dict[str, object], message: str
) -> None:
    """The path leads to the value, the sentence says what is wrong with it."""
    with pytest.raises(ShapeError, match=message):
        parse_descriptor(SMALLEST | changes)


@pytest.mark.parametrize("key", ["contract", "name", "description", "kind"])
def test_a_missing_key_is_named(key: str) -> None:
    """Four keys are required."""
    with pytest.raises(ShapeError, match=rf"^descriptor\.{key}: is missing"):
        parse_descriptor({name: value for name, value in SMALLEST.items() if name != key})


@pytest.mark.parametrize("raw", [None, [], "x", 1])
def test_a_descriptor_is_a_mapping(raw: object) -> None:
    """Nothing else is one."""
    with pytest.raises(ShapeError, match=r"^descriptor: must be a mapping"):
        parse_descriptor(raw)
