from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import BundleError
from uncaged_bundles.ids import bundle_hash
from uncaged_bundles.limits import Limits
from uncaged_bundles.validation.validate import MAX_SOURCE_BYTES, read_bundle

MakeSource = Callable[..., bytes]
LITERAL = "descriptor = {'contract': 1, 'name': 'demo', 'description': '', 'kind': 'task'}\n"
RUN = "def run(input, options):\n    yield {'null': {}}\n"
OPEN_BRACKETS = "(" * 300
ROLE = {"description": "", "systemPrompt": "", "extractPrompt": "", "schema": {"type": "objekt"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailLimits(Limits):
    to: list[str]


def refusal(source: str | bytes) -> str:
    with pytest.raises(BundleError) as caught:
        read_bundle(source if isinstance(source, bytes) else source.encode())
    return str(caught.value)


def test_a_bundle_is_its_bytes_its_hash_and_what_it_says(make_source: MakeSource) -> None:
    """Validation keeps the bytes as they are."""
    source = make_source(policy={"null": {}})
    bundle = read_bundle(source)
    assert (bundle.source, bundle.hash, bundle.descriptor.name) == (
        source,
        bundle_hash(source),
        "demo",
    )
    assert not bundle.trusted


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"x = 1\n# \xff", "line 2, column 3: byte 0xff is not UTF-8"),
        ("é = '\0'", "line 1, column 6: a NUL character is not Python"),
        (
            "# coding: latin-1\n" + LITERAL + RUN,
            "line 1, column 11: a bundle is UTF-8, but this line says 'latin-1'",
        ),
        ("\ufeff" + LITERAL + RUN, "line 1, column 1: not Python"),
        (LITERAL + "def run(:", "line 2, column 9: not Python: "),
        ("export const descriptor = {}", "build it first with 'uncaged-workflow build FILE'"),
        (OPEN_BRACKETS, "not Python: too many nested parentheses"),
        ("", "line 1, column 1: no 'descriptor' in the file"),
        (RUN, "line 1, column 1: no 'descriptor' in the file"),
        ("def f():\n    descriptor = {}\n" + RUN, "no 'descriptor' in the file"),
        (
            "from uncaged_bundles.authoring import Workflow\n",
            "no 'descriptor' in the file; this is a definition, not a bundle: build it first",
        ),
        ('{"name": "block flow", "active": true}', "build it first"),
        ("descriptor: dict\n" + RUN, "line 1, column 1: 'descriptor' has no value of its own"),
        (
            LITERAL + "descriptor |= {}\n" + RUN,
            "line 2, column 1: 'descriptor' is assigned a second time",
        ),
        (LITERAL + LITERAL + RUN, "line 2, column 1: 'descriptor' is assigned a second time"),
        (
            "é = 1; descriptor = dict(a=1)",
            "line 1, column 21: 'descriptor' is not a literal: it contains a call ('dict(a=1)')",
        ),
        (
            "descriptor = {\n  'a': f'{x}'}",
            "line 2, column 8: 'descriptor' is not a literal: it contains an f-string",
        ),
        (
            "descriptor = {'a': ['b', NAME]}",
            "line 1, column 26: 'descriptor' is not a literal: it contains a name",
        ),
        (
            "descriptor = {'a': 'b' + 'c'}",
            "line 1, column 20: 'descriptor' is not a literal: it contains a sum",
        ),
        (
            "descriptor = {**other}",
            "line 1, column 17: 'descriptor' is not a literal: it contains a name",
        ),
        (
            "descriptor = {['a']: 1}",
            "line 1, column 14: 'descriptor' is not a literal: unhashable type",
        ),
        (
            "descriptor = {'a': 1,\n 'a': 2}",
            "line 2, column 2: the key 'a' occurs twice in one mapping",
        ),
        (
            "descriptor = {'contract': 1, 'policy': {'http': {},\n 'http': {}}}",
            "line 2, column 2: the key 'http' occurs twice",
        ),
        ("descriptor = []\n" + RUN, "line 1, column 14: descriptor: must be a mapping"),
        (
            LITERAL.replace("'task'", "'chore'") + RUN,
            "column 73: descriptor.kind: 'chore' is not one of workflow",
        ),
        (
            LITERAL.replace("'name': 'demo', ", "") + RUN,
            "line 1, column 14: descriptor.name: is missing",
        ),
        (LITERAL, "line 1, column 1: no function 'run' in the file"),
        (LITERAL + "run = 1\n", "no function 'run' in the file"),
        (
            LITERAL + "if x:\n    def run(input, options):\n        yield\n",
            "no function 'run' in the file",
        ),
        (LITERAL + RUN + RUN, "line 4, column 1: 'run' is defined a second time"),
        (LITERAL + "async def run(input, options):\n    yield", "line 2, column 1: 'run' is async"),
        (
            LITERAL + "def run(input, options):\n    return 1",
            "line 2, column 1: 'run' is no generator function",
        ),
        (
            LITERAL
            + "def run(input, options):\n    def g():\n        yield\n    h = lambda: (yield)\n    class A:\n        def i(s): yield",
            "'run' is no generator function",
        ),
        (
            LITERAL + "def run(input):\n    yield",
            "line 2, column 1: 'run' must take two arguments: (input, options)",
        ),
        (LITERAL + "def run(a, b, c):\n    yield", "'run' must take two arguments"),
        (LITERAL + "def run(a, b, *, c):\n    yield", "'run' must take two arguments"),
        (LITERAL + RUN + "import os", "line 4, column 1: import of 'os': yield a 'script' effect"),
        (LITERAL + RUN + "x = 'é'; eval('1')", "line 4, column 10: 'eval' is refused"),
    ],
)
def test_each_rule_has_its_own_error_with_line_and_column(
    source: str | bytes, message: str
) -> None:
    """Lines and columns count from 1, in characters, and the sentence says what to do."""
    found = refusal(source)
    assert re.match(r"line \d+, column \d+: ", found)
    assert message in found


@pytest.mark.parametrize(
    "parameters",
    [
        "input, options",
        "input, options, /",
        "*args",
        "input, options=None",
        "a, b, c=1, *rest, d=2, **more",
        "a=1, *b",
    ],
)
def test_run_takes_input_and_options(parameters: str) -> None:
    """Whatever can be called with two positional arguments will do."""
    read_bundle(f"{LITERAL}def run({parameters}):\n    yield".encode())


@pytest.mark.parametrize(
    "body",
    [
        "return (yield)",
        "yield from helper()",
        "x = [1]; x.append((yield {}))",
        "if 0:\n        yield",
    ],
)
def test_a_yield_of_its_own_makes_a_generator(body: str) -> None:
    """Python's own rule: any yield in the function itself, reachable or not."""
    read_bundle(f"{LITERAL}def run(input, options):\n    {body}\n".encode())


def test_the_first_rule_that_is_broken_is_told() -> None:
    """Take the mistakes away one by one, from the first: each time the next rule speaks."""
    broken_shape = LITERAL.replace("'task'", "'chore'")
    reach, imports = "eval('1')\n", "import os\n"
    no_generator = "def run(input, options): pass\n"
    assert "not Python" in refusal(reach + imports + no_generator + "descriptor = f()\n(")
    assert "no 'descriptor'" in refusal(reach + imports + no_generator)
    assert "not a literal" in refusal(reach + imports + no_generator + "descriptor = f()\n")
    assert "descriptor.kind" in refusal(reach + imports + no_generator + broken_shape)
    assert "no generator function" in refusal(reach + imports + no_generator + LITERAL)
    assert "import of 'os'" in refusal(reach + imports + RUN + LITERAL)
    assert "'eval' is refused" in refusal(reach + RUN + LITERAL)
    assert read_bundle((RUN + LITERAL).encode())


def test_a_trusted_bundle_may_import_what_it_likes(make_source: MakeSource) -> None:
    """Trust lifts the last two rules and no other."""
    code = {"head": "import os, requests\n", "tail": "eval('1')\n"}
    assert read_bundle(make_source(policy={"trusted": True}, **code)).trusted
    assert "import of 'os'" in refusal(make_source(policy={"trusted": False}, **code))
    assert "no generator function" in refusal(
        make_source(policy={"trusted": True}, body="    pass\n")
    )
    assert "descriptor.kind" in refusal(make_source(policy={"trusted": True}, kind="x"))


def test_reading_runs_nothing(make_source: MakeSource, tmp_path: Path) -> None:
    """The file's own code leaves no trace, at any level."""
    trace = tmp_path / "trace"
    read_bundle(
        make_source(
            policy={"trusted": True},
            head=f"open({str(trace)!r}, 'w')\n",
            tail=f"open({str(trace)!r}, 'w')\n",
        )
    )
    assert not trace.exists()


def test_a_mark_that_is_no_known_claim_is_refused(make_source: MakeSource) -> None:
    """A misspelt claim would be read as none; a claim needs a workspace if an agent makes it; a
    property may have any name.
    """

    def role(claim: object) -> dict[str, object]:
        return {
            "planner": {
                **ROLE,
                "schema": {
                    "type": "object",
                    "properties": {"branch": {"type": "string", "x-claim": claim}},
                },
            }
        }

    def read(claim: object, **policy: object) -> None:
        read_bundle(make_source(roles=role(claim), policy=policy), check_schemas=True)

    read("git.branch", role={"workspace": "read"})
    read("git.branch")
    with pytest.raises(
        BundleError,
        match=r"branch\.x-claim: 'git\.brnch' is not a claim that can be checked \(known: git\.branch, ",
    ):
        read("git.brnch", role={"workspace": "read"})
    with pytest.raises(
        BundleError,
        match=r"x-claim: is compared with the workspace, but the policy's role has none",
    ):
        read("git.branch", role={})
    named = {
        "planner": {
            **ROLE,
            "schema": {"type": "object", "properties": {"x-claim": {"type": "string"}}},
        }
    }
    read_bundle(make_source(roles=named, policy={"role": {}}), check_schemas=True)


def test_schemas_are_checked_when_asked(make_source: MakeSource) -> None:
    """At `add` role schemas and parameters are valid JSON Schema; the error has line, column and
    dotted path.
    """
    source = make_source(roles={"planner": ROLE})
    assert read_bundle(source).descriptor.roles["planner"].schema == {"type": "objekt"}
    with pytest.raises(
        BundleError,
        match=r"^line 1, column \d+: descriptor\.roles\.planner\.schema\.type: is not valid JSON Schema",
    ):
        read_bundle(source, check_schemas=True)
    with pytest.raises(
        BundleError, match=r"descriptor\.parameters\.type: is not valid JSON Schema"
    ):
        read_bundle(make_source(parameters={"type": 1}), check_schemas=True)


def test_a_foreign_effect_is_known_when_the_caller_knows_it(make_source: MakeSource) -> None:
    """Other distributions bring effects; without them the policy is refused by name."""
    source = make_source(policy={"mail": {"to": ["a@b.c"]}})
    assert read_bundle(source, {"mail": MailLimits}).descriptor.policy.limits == {
        "mail": {"to": ["a@b.c"]}
    }
    assert "descriptor.policy.mail: 'mail' is not an effect" in refusal(source)


def test_a_file_of_one_mebibyte_is_the_largest(make_source: MakeSource) -> None:
    """The limit is on bytes, and looked at before anything is read."""
    source = make_source()
    filled = source + b"#" * (MAX_SOURCE_BYTES - len(source))
    assert read_bundle(filled)
    assert "1,048,577 bytes" in refusal(filled + b"#")


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "-" * 200_000 + "1",
        "1+" * 200_000 + "1",
        "f(" * 150,
        "[" * 100_000,
        "x" + ".a" * 200_000,
        "x" + "()" * 150_000,
        "not " * 100_000 + "1",
    ],
)
def test_depth_is_an_error_and_not_a_crash(bomb: str) -> None:
    """A tree too deep to walk is refused like any other file, wherever it is."""
    assert refusal(LITERAL + RUN + f"x = {bomb}\n").startswith("line ")
    assert refusal(f"descriptor = {bomb}\n{RUN}").startswith("line ")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_json_data_survives_the_descriptor(value: object) -> None:
    """A reader gets the value that a builder wrote with repr."""
    source = LITERAL.replace("'kind'", f"'examples': [{value!r}], 'kind'") + RUN
    try:
        source.encode()
    except UnicodeEncodeError:
        return
    assert read_bundle(source.encode()).descriptor.raw["examples"] == [value]
    json.dumps(value)


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass"))
)
def test_any_bytes_are_a_bundle_or_a_bundle_error(source: bytes) -> None:
    """No input reaches the caller as another exception."""
    with pytest.raises(BundleError, match=r"^line \d+, column \d+: "):
        read_bundle(source)


@given(st.integers(0, len(LITERAL + RUN) - 1), st.sampled_from(list("()[]{}'\"\\\n:=*.,0a_é\0")))
def test_one_changed_character_is_a_bundle_or_a_bundle_error(position: int, character: str) -> None:
    """Near misses of a valid file are judged, never crashed on."""
    text = LITERAL + RUN
    source = (text[:position] + character + text[position + 1 :]).encode()
    try:
        bundle = read_bundle(source)
    except BundleError:
        return
    with warnings.catch_warnings():
        # an invalid escape is only a warning, which our settings would make an error
        warnings.simplefilter("ignore")
        assert ast.parse(source)
    assert bundle.source == source
