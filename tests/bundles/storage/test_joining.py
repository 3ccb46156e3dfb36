"""Joins of two registries: what is added, brought up to date, kept and refused."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.document import Document
from uncaged_bundles.storage.joining import JoinedRegistry, RegistryText, join_registries
from uncaged_bundles.storage.snapshot import Snapshot, read_document

A, B, C = "C9NMV6V2TQT81", "EYHPV6X8XHTCS", "5NZJZGVCKW2T0"
MINE = f"""\
workflows:
  mine:  # of the target
    hash: {A}
    timestamp: 1
removed: [gone]
"""


def flow(name: str, *versions: str, more: str = "") -> str:
    """Return the entry of a flow with these versions, the newest first."""
    head, *former = versions
    history = "".join(f"\n    - {{hash: {one}, timestamp: 1}}" for one in former) or " []"
    return f"  {name}:\n    hash: {head}\n    timestamp: 2\n{more}    history:{history}\n"


def grant(hash: str, digest: str = "x") -> str:
    return f"  {hash}:\n    policy: {{}}\n    digest: {digest}\n"


def joined(source: str, target: str, *, replace: bool = False) -> JoinedRegistry:
    return join_registries(
        RegistryText(text=source.encode(), where="source"),
        RegistryText(text=target.encode(), where="target"),
        replace=replace,
    )


def snapshot(join: JoinedRegistry) -> Snapshot:
    return read_document(Document.parse(join.text, "joined"), "joined")[0]


def counts(join: JoinedRegistry) -> tuple[int, int, int]:
    return join.copied, join.present, join.grants


def test_missing_flows_and_grants_are_added() -> None:
    """The target's own lines, comments and lists stay; unknown fields of the source come along, and
    a second join changes nothing.
    """
    theirs = flow("theirs", B, A, more="    team: east\n")
    source = f"workflows:\n{theirs}grants:\n{grant(B)}"
    join = joined(source, MINE)
    assert join.text.decode().startswith(MINE.partition("removed")[0])
    assert "\nremoved: [gone]\n" in join.text.decode() and "team: east" in join.text.decode()
    assert [version.hash for version in snapshot(join).flows["theirs"].versions] == [B, A]
    assert counts(join) == (1, 0, 1) and join.problems == ()
    again = joined(source, join.text.decode())
    assert again.text == join.text and counts(again) == (0, 1, 0)


@pytest.mark.parametrize("target", ["", "\n"])
def test_a_blank_target_becomes_the_source(target: str) -> None:
    """The bytes of the text are copied, lists and unreadable entries included, of which no later
    join complains.
    """
    source = f"{MINE}other: 1\ngrants:\n{grant(A)}  bad: 1\n"
    join = joined(source, target)
    assert join.text == source.encode() and counts(join) == (1, 0, 1)
    again = joined(source, join.text.decode())
    assert again.problems == () and counts(again) == (0, 1, 0)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        pytest.param((B, A), (A,), (1, 0, 0), id="older"),
        pytest.param((A,), (B, A), (0, 1, 0), id="newer"),
        pytest.param((B, A), (B, A), (0, 1, 0), id="same"),
    ],
)
def test_versions_are_compared_from_the_oldest(
    source: tuple[str, ...], target: tuple[str, ...], expected: tuple[int, int, int]
) -> None:
    """Older versions are brought up to date, newer ones stay, also with `replace`; times are not
    compared.
    """
    mine = flow("x", *target, more="    created: 7\n    confirm: true\n")
    theirs = flow("x", *source, more="    confirm: true\n")
    for replace in (False, True):
        join = joined(f"workflows:\n{theirs}", f"workflows:\n{mine}", replace=replace)
        assert counts(join) == expected and join.problems == ()
        [found] = snapshot(join).flows.values()
        assert found.confirm
        assert [version.hash for version in found.versions] == list(
            source if len(source) > len(target) else target
        )


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        pytest.param(flow("x", B, A), flow("x", C, A), f"versions {C}, {A}, not {B}", id="split"),
        pytest.param(flow("x", A, B), flow("x", B, A), "versions", id="rolled back"),
        pytest.param(
            flow("x", B, A), flow("x", A, more="    enabled: false\n"), "is disabled", id="disabled"
        ),
        pytest.param(
            flow("x", A), flow("x", A, more="    confirm: true\n"), "confirm: true", id="confirm"
        ),
        pytest.param(
            flow("x", A, more="    enabled: false\n"),
            flow("x", B, A),
            "newer versions and is enabled",
            id="disabled in an older version",
        ),
        pytest.param(flow("x", A), "  x: {hash: 5}\n", "cannot be read", id="unreadable"),
        pytest.param(flow("x", A), flow("x", B) + flow("x", C), "cannot be read", id="there twice"),
    ],
)
def test_a_flow_that_differs_is_left_and_named(source: str, target: str, reason: str) -> None:
    """`replace` takes the source's entry of that flow alone; flows of the target stay."""
    theirs, mine = (
        f"workflows:\n{source}",
        f"# a person's\n{MINE}".replace("removed", f"{target}removed"),
    )
    join = joined(theirs, mine)
    assert join.text == mine.encode() and counts(join) == (0, 0, 0)
    [problem] = join.problems
    assert "flow 'x' differs" in problem and reason in problem
    replaced = joined(theirs, mine, replace=True)
    assert replaced.problems == () and replaced.copied == 1
    expected = snapshot(joined(theirs, "")).flows["x"]
    found = snapshot(replaced)
    assert found.problems == () and found.flows.keys() == {"mine", "x"}
    assert (found.flows["x"].versions, found.flows["x"].enabled, found.flows["x"].confirm) == (
        expected.versions,
        expected.enabled,
        expected.confirm,
    )
    assert b"# a person's\n" in replaced.text and b"# of the target\n" in replaced.text


def test_problems_of_the_source_and_of_grants_are_named() -> None:
    """An unreadable entry is left out; a grant of other bytes under a known hash is never
    replaced.
    """
    source = f"workflows:\n  bad: 1\n{flow('good', A)}grants:\n{grant(B, 'other')}{grant(C)}"
    target = f"{MINE}grants:\n{grant(B)}"
    join = joined(source, target, replace=True)
    assert counts(join) == (1, 0, 1)
    bad, other = join.problems
    assert "bad" in bad and f"bundle {B}" in other
    assert grant(B) in join.text.decode() and "bad" not in join.text.decode()


@pytest.mark.parametrize("texts", [("[]", MINE), (MINE, "workflows: []\n"), ("a: &x 1\n", "")])
def test_a_text_that_is_no_registry_is_refused(texts: tuple[str, str]) -> None:
    with pytest.raises(DamagedError):
        joined(*texts)
