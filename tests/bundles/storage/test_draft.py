"""Changes of single entries of the registry: the same text and the same rows as a whole rewrite, at
the price of an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.names import FlowName
from uncaged_bundles.storage import document
from uncaged_bundles.storage.document import load_yaml
from uncaged_bundles.storage.draft import RegistryDraft, parse
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

WHERE = "workflow.yaml"
HASHES = ("C9NMV6V2TQT81", "EYHPV6X8XHTCS", "5NZJZGVCKW2T0")


def no_language(_hash: BundleHash) -> None:
    return None


@pytest.mark.parametrize("count", [1, 20])
def test_entries_are_added_in_batches(count: int) -> None:
    """The text and the rows are those of single additions, with the comments between entries."""
    text = f"workflows:\n  mine:  # kept\n    hash: {HASHES[0]}\n    timestamp: 1\n# below\nremoved: [x]\n"
    entries = {f"flow-{number}": {"hash": HASHES[1], "timestamp": 2} for number in range(count)}
    batched, single = draft_of(text), draft_of(text)
    batched.add_entries("workflows", entries)
    for name, fields in entries.items():
        single.put("workflows", name, fields)
    assert batched.text == single.text
    stamp = (0, 0, 0, 0)
    assert batched.index(stamp) == single.index(stamp)
    assert batched.names() == {"mine", *entries}


def draft_of(text: str) -> RegistryDraft:
    return RegistryDraft(text.encode(), WHERE, no_language)


COMMENTS = st.sampled_from(
    ["", "", "", "# a comment\n", "  # indented\n", "\n", "\n\n    # deeper\n", "   \n"]
)
ENDS = st.sampled_from(["", "", "  # at the end"])
NAMES = st.sampled_from([f"flow-{letter}" for letter in "abcdef"])
VALUES = st.sampled_from(
    [
        "\n    hash: C9NMV6V2TQT81\n    timestamp: 1\n",
        "\n      hash: EYHPV6X8XHTCS # why\n      timestamp: 2\n      history:\n      - hash: C9NMV6V2TQT81\n        timestamp: 1\n",
        " {hash: C9NMV6V2TQT81, timestamp: 3}\n",
        " {hash: C9NMV6V2TQT81,\n    timestamp: 4}\n",
        "\n    hash: C9NMV6V2TQT81\n    timestamp: 5\n    text: |+\n      kept\n\n\n",
        "\n    text: >-\n      folded\n      # no comment\n    hash: C9NMV6V2TQT81\n    timestamp: 6\n",
        "\n    hash: C9NMV6V2TQT81\n    timestamp: 7\n    text: plain\n      and more\n",
        "\n    hash: C9NMV6V2TQT81\n    # between\n    timestamp: 8\n    text: 'quoted\n\n      # no comment'\n",
    ]
)
FIELDS: list[Mapping[str, object]] = [
    {"hash": HASHES[1], "timestamp": 9},
    {"enabled": False},
    {"history": [{"a": "b\n# c"}]},
]
CHANGES: st.SearchStrategy[tuple[str, str, Mapping[str, object]]] = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(FIELDS)),
    st.tuples(st.just("drop"), NAMES, st.just({})),
    st.tuples(st.just("top"), st.sampled_from(["removed", "seeded", "other"]), st.just({})),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Registries as people and programs write them, with comments everywhere."""
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    flows = "".join(f"{draw(COMMENTS)}  {name}:{draw(VALUES)}" for name in names)
    grants = "".join(
        f"{draw(COMMENTS)}  {hash}:\n    policy: {{}}\n    digest: x{draw(ENDS)}\n"
        for hash in HASHES
    )
    parts = draw(
        st.permutations(
            [
                f"workflows:{draw(ENDS)}\n{flows}",
                f"grants:\n{grants}",
                "seeded:\n- one\n",
                "future: |\n  more\n",
            ]
        )
    )
    return "".join(draw(COMMENTS) + part for part in parts) + draw(COMMENTS)


def expected(data: dict[str, object], change: tuple[str, str, Mapping[str, object]]) -> None:
    """Make the change in plain data."""
    way, name, fields = change
    if way == "top":
        data[name] = ["x", "y"]
        return
    flows = data["workflows"] or {}
    assert isinstance(flows, dict)
    if way == "put":
        flows[name] = {**flows.get(name, {}), **fields}
    else:
        flows.pop(name, None)
    data["workflows"] = flows


FIRST = "workflows:\n  a:\n    hash: C9NMV6V2TQT81\n    timestamp: 1\n    text: |+\n      kept\n"
KEPT = f"{FIRST}  b:\n    hash: C9NMV6V2TQT81\n    timestamp: 2\n"
"""The last entry is below a scalar that keeps the blank lines after it."""


@settings(deadline=None)
@given(texts(), st.lists(CHANGES, max_size=5))
@example(f"{KEPT}\nseeded: []\n", [("drop", "b", {})])
@example(f"{KEPT}      # a comment\nseeded: []\n", [("drop", "b", {})])
def test_changes_of_entries_are_changes_of_the_whole(
    text: str, changes: list[tuple[str, str, Mapping[str, object]]]
) -> None:
    """After any changes the text means what was wanted, its rows are those that a parser finds, and
    no comment line is lost.
    """
    draft = draft_of(text)
    loaded = load_yaml(text.encode(), WHERE)
    assert isinstance(loaded, dict)
    for change in changes:
        way, name, fields = change
        if way == "put":
            draft.put("workflows", name, fields)
        elif way == "drop":
            draft.drop("workflows", name)
        else:
            draft.put_top(name, ["x", "y"])
        expected(loaded, change)
        assert load_yaml(draft.text, WHERE) == loaded, draft.text.decode()
        assert draft.index((0, 0, 0, 0)) == draft_of(draft.text.decode()).index((0, 0, 0, 0)), (
            draft.text.decode()
        )
    assert draft.text.count(b"# a comment\n") == text.count("# a comment\n")


def test_an_unchanged_entry_keeps_its_spelling() -> None:
    """Setting what is set already changes not one byte; changing a neighbour changes none of its
    lines.
    """
    text = "workflows:\n  a:   {hash: 'C9NMV6V2TQT81',   timestamp: 1}\n  b:\n    hash:  'C9NMV6V2TQT81'\n    timestamp: 1\n"
    draft = draft_of(text)
    draft.put("workflows", "b", {"hash": "C9NMV6V2TQT81"})
    assert draft.text.decode() == text
    draft.put("workflows", "b", {"timestamp": 2})
    assert draft.text.decode() == text.replace("timestamp: 1\n", "timestamp: 2\n")


@pytest.mark.parametrize(
    "text",
    [
        "workflows: {a: {hash: C9NMV6V2TQT81, timestamp: 1}}\n",
        "workflows:\n  ? a\n  : {hash: C9NMV6V2TQT81, timestamp: 1}\n",
        "workflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}",
        "---\nworkflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\n",
        "\ufeffworkflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\n",
        "workflows:\r\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\r\n",
        "workflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\n  bad: 1\n",
        "{workflows: {a: {hash: C9NMV6V2TQT81, timestamp: 1}}}\n",
        'workflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1, text: "\u2028"}\n',
        "workflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\ngrants:\n  c9nmv6v2tqt81: {policy: {}, digest: x}\n",
    ],
)
def test_a_text_without_lines_for_each_entry_is_changed_as_a_whole(text: str) -> None:
    """Such a text has no places that could be trusted; its meaning is changed all the same."""
    draft = draft_of(text)
    assert not parse(text.encode(), WHERE, no_language).regular
    draft.put("workflows", "a", {"timestamp": 2})
    draft.put("workflows", "b", {"hash": HASHES[1], "timestamp": 3})
    flow, other = draft.flow("a"), draft.flow("b")
    assert flow is not None
    assert other is not None
    assert (flow.timestamp_ms, other.timestamp_ms) == (2, 3)


@pytest.mark.parametrize("count", [30, 300])
def test_adding_parses_a_few_lines(
    registry: Registry,
    store: Store,
    make_bundle: Callable[..., Bundle],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    """Once the index is there, a new flow and a new version cost the parser the same few hundred
    bytes, however long the registry is.
    """
    entries = "".join(
        f"  flow-{number:05}:\n    hash: {HASHES[0]}\n    timestamp: {number}\n"
        for number in range(count)
    )
    grants = "".join(f"  {hash}:\n    policy: {{}}\n    digest: x\n" for hash in HASHES)
    store.registry_path.write_text(f"# mine\ngrants:\n{grants}workflows:\n{entries}")
    registry.read()
    parsed: list[int] = []
    composed = document._composed

    def counted(data: bytes, where: str) -> object:
        parsed.append(len(data))
        return composed(data, where)

    monkeypatch.setattr(document, "_composed", counted)
    assert registry.add("new", make_bundle(policy={"null": {}}), now_ms=1, granted=True)
    assert registry.add("flow-00007", make_bundle(description="other"), now_ms=2)
    assert 0 < max(parsed) < 600
    assert sum(parsed) < 12_000
    assert len(registry.read().flows) == count + 1
    assert store.registry_path.read_text().startswith("# mine\n")


@given(
    st.one_of(st.just(""), st.just("\n"), texts()),
    st.lists(
        st.tuples(st.sampled_from(["workflows", "grants"]), NAMES, st.sampled_from(FIELDS)),
        max_size=6,
    ),
)
@settings(deadline=None)
def test_entries_that_are_put_at_once_mean_the_same_as_single_ones(
    text: str, entries: list[tuple[str, str, Mapping[str, object]]]
) -> None:
    """Entries that are put at once have the meaning, the order and the rows of single ones, and
    lists follow them.
    """
    single, whole = draft_of(text), draft_of(text)
    for entry in entries:
        single.put(*entry)
    single.put_top("seeded", ["two"])
    whole.put_all(entries, top={"seeded": ["two"]})
    assert repr(load_yaml(whole.text, WHERE)) == repr(load_yaml(single.text, WHERE))
    assert whole.index((0, 0, 0, 0)) == draft_of(whole.text.decode()).index((0, 0, 0, 0))


def test_a_new_registry_is_parsed_a_few_times_however_many_flows_it_gets(
    registry: Registry, make_bundle: Callable[..., Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeding a hundred flows makes no document for each: a first command waits for it."""
    parsed: list[int] = []
    composed = document._composed

    def counted(data: bytes, where: str) -> object:
        parsed.append(len(data))
        return composed(data, where)

    flows = [(FlowName(f"flow-{number}"), make_bundle()) for number in range(100)]
    monkeypatch.setattr(document, "_composed", counted)
    registry.seed("1", lambda: flows, now_ms=1)
    assert 0 < len(parsed) <= 8
    assert len(registry.read().flows) == 100


def test_a_list_that_cannot_be_read_is_not_changed() -> None:
    """The removed names of a list in another form are not lost."""
    draft = draft_of("removed: {a: b}\nworkflows:\n  a: {hash: C9NMV6V2TQT81, timestamp: 1}\n")
    with pytest.raises(DamagedError, match=r"workflow\.yaml:1: removed"):
        draft.removed()
