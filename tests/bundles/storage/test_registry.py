from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import yaml
from uncaged_bundles.errors import (
    DamagedError,
    NotFoundError,
    RefusedError,
    UncagedError,
    UsageError,
)
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.names import FlowName, parse_flow_name
from uncaged_bundles.storage.registry import Registry, Version
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

MakeBundle = Callable[..., Bundle]
OTHER = "C9NMV6V2TQT81"


@pytest.fixture
def versions(make_bundle: MakeBundle) -> list[Bundle]:
    return [make_bundle(description=f"version {number}") for number in range(4)]


def history(registry: Registry, name: str) -> list[tuple[str, int]]:
    flow = registry.read().flows[name]
    return [
        (flow.hash, flow.timestamp_ms),
        *((version.hash, version.timestamp_ms) for version in flow.history),
    ]


@pytest.mark.parametrize("blank", [None, "", "\n", "# nothing yet\n", "workflows:\n"])
def test_a_missing_or_blank_registry_is_an_empty_one(
    registry: Registry, store: Store, versions: list[Bundle], blank: str | None
) -> None:
    """A missing or blank file is read as an empty registry, and flows can be added."""
    if blank is not None:
        store.registry_path.write_text(blank)
    snapshot = registry.read()
    assert (snapshot.flows, snapshot.problems, snapshot.removed, snapshot.seeded) == (
        {},
        (),
        frozenset(),
        frozenset(),
    )
    assert registry.add("demo", versions[0], now_ms=1)


def test_a_registry_of_the_seeds_format_is_read(registry: Registry, store: Store) -> None:
    """Hash, timestamp and history are enough; what is missing has a default."""
    entry = f"    hash: EYHPV6X8XHTCS\n    timestamp: 20\n    history:\n      - hash: {OTHER.lower()}\n        timestamp: 10\n"
    store.registry_path.write_text(f"workflows:\n  solve-issue:\n{entry}")
    flow = registry.read().flows["solve-issue"]
    assert (flow.hash, flow.timestamp_ms, flow.enabled, flow.source, flow.created_ms) == (
        "EYHPV6X8XHTCS",
        20,
        True,
        "person",
        20,
    )
    assert flow.history == (Version(hash=BundleHash(OTHER), timestamp_ms=10),)


def test_a_new_hash_pushes_the_head_to_history(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """Newest first; each entry keeps the time when it was added; the bundles lie in the store."""
    for number, bundle in enumerate(versions[:3]):
        assert registry.add("demo", bundle, now_ms=100 + number)
    assert history(registry, "demo") == [
        (versions[2].hash, 102),
        (versions[1].hash, 101),
        (versions[0].hash, 100),
    ]
    assert registry.read().flows["demo"].created_ms == 100
    assert store.find_bundles() == sorted(bundle.hash for bundle in versions[:3])


def test_adding_the_head_again_changes_nothing_and_says_so(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """The registry's file is not even rewritten, whatever a person's hand made of its spelling."""
    registry.add("demo", versions[0], now_ms=1)
    store.registry_path.write_text(
        "# mine\n" + store.registry_path.read_text().replace("history: []", "history:  [ ]")
    )
    before = store.registry_path.stat()
    assert not registry.add("demo", versions[0], now_ms=2)
    assert store.registry_path.stat() == before


def test_a_former_version_that_comes_back_stands_in_history_once(
    registry: Registry, versions: list[Bundle]
) -> None:
    """So that a rollback by hash means one entry."""
    for number in (0, 1, 0):
        registry.add("demo", versions[number], now_ms=number)
    assert history(registry, "demo") == [(versions[0].hash, 0), (versions[1].hash, 1)]


@pytest.mark.parametrize("name", ["", "../x", "a\0", "\N{ROCKET}", "Demo", "x" * 61])
def test_unsafe_names_are_never_added(
    registry: Registry, store: Store, versions: list[Bundle], name: str
) -> None:
    """Refused before anything is stored."""
    with pytest.raises(UsageError):
        registry.add(name, versions[0], now_ms=1)
    assert not store.registry_path.exists()
    assert store.find_bundles() == []


def test_one_hash_may_carry_several_names(registry: Registry, versions: list[Bundle]) -> None:
    """Each name has its own history; removing one leaves the other."""
    registry.add("one", versions[0], now_ms=1)
    registry.add("two", versions[0], now_ms=2)
    registry.remove("one")
    assert registry.read().flows.keys() == {"two"}
    assert registry.resolve("two") == ("two", versions[0].hash)


def test_a_rollback_toggles(registry: Registry, versions: list[Bundle]) -> None:
    """Without a hash it goes to the newest history entry, with that entry's own timestamp; twice is
    where one began.
    """
    for number, bundle in enumerate(versions[:3]):
        registry.add("demo", bundle, now_ms=number)
    start = history(registry, "demo")
    flow = registry.rollback("demo")
    assert (flow.hash, flow.timestamp_ms) == (versions[1].hash, 1)
    assert history(registry, "demo") == [start[1], start[0], start[2]]
    registry.rollback("demo")
    assert history(registry, "demo") == start


def test_a_rollback_by_hash_goes_to_that_version(
    registry: Registry, versions: list[Bundle]
) -> None:
    """In any case of letters; the head becomes the newest former version."""
    for number, bundle in enumerate(versions[:3]):
        registry.add("demo", bundle, now_ms=number)
    registry.rollback("demo", BundleHash(versions[0].hash.lower()))
    assert [hash for hash, _ in history(registry, "demo")] == [
        versions[0].hash,
        versions[2].hash,
        versions[1].hash,
    ]


def test_a_rollback_that_cannot_be_is_refused(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """No former version, the head itself, a hash that is not in the history, a file that is gone;
    nothing changes.
    """
    registry.add("demo", versions[0], now_ms=0)
    with pytest.raises(RefusedError, match="'demo' has no former version"):
        registry.rollback("demo")
    registry.add("demo", versions[1], now_ms=1)
    before = store.registry_path.read_bytes()
    with pytest.raises(RefusedError, match="is the head of 'demo' already"):
        registry.rollback("demo", versions[1].hash)
    with pytest.raises(
        NotFoundError,
        match=rf"{versions[2].hash} is not in the history of 'demo', which holds {versions[0].hash}",
    ):
        registry.rollback("demo", versions[2].hash)
    with pytest.raises(UsageError):
        registry.rollback("demo", BundleHash("../x"))
    store.bundle_path(versions[0].hash).unlink()
    for hash in (None, versions[0].hash):
        with pytest.raises(NotFoundError, match=rf"{versions[0].hash} of 'demo' is no longer in"):
            registry.rollback("demo", hash)
    assert store.registry_path.read_bytes() == before


def test_removing_leaves_bundles_journals_and_grants(
    registry: Registry, store: Store, make_bundle: MakeBundle
) -> None:
    """Only the name goes, and that it was removed is remembered."""
    bundle = make_bundle(policy={"null": {}})
    registry.add("demo", bundle, now_ms=1, granted=True)
    registry.remove("demo")
    snapshot = registry.read()
    assert not snapshot.flows
    assert snapshot.removed == {"demo"}
    assert registry.granted(bundle)
    assert store.load_bundle(bundle.hash) == bundle
    with pytest.raises(NotFoundError):
        registry.remove("demo")


def test_a_disabled_flow_is_refused_by_name(registry: Registry, versions: list[Bundle]) -> None:
    """A disabled flow keeps all else, and its hash still works; a new version does not enable it
    silently.
    """
    registry.add("demo", versions[0], now_ms=1)
    registry.set_enabled("demo", False)
    registry.add("demo", versions[1], now_ms=2)
    with pytest.raises(RefusedError, match="'demo' is disabled; 'uncaged-workflow enable demo'"):
        registry.resolve("demo")
    assert registry.resolve(versions[1].hash) == (None, versions[1].hash)
    registry.set_enabled("demo", True)
    assert registry.resolve("demo") == ("demo", versions[1].hash)


def test_a_mark_to_ask_outlives_new_versions(registry: Registry, versions: list[Bundle]) -> None:
    """A flow is marked until the mark is removed: a new version, disabling and another process
    keep it, and other flows have none.
    """
    for name in ("demo", "other"):
        registry.add(name, versions[0], now_ms=1)
    registry.set_confirm("demo", True)
    registry.add("demo", versions[1], now_ms=2)
    registry.set_enabled("demo", False)
    marks = {name: flow.confirm for name, flow in registry.read().flows.items()}
    assert marks == {"demo": True, "other": False}
    registry.set_confirm("demo", False)
    found = registry.flow("demo")
    assert found is not None and not found.confirm


def test_a_reader_gets_the_entries_that_it_has_not_seen(
    registry: Registry, versions: list[Bundle]
) -> None:
    """Each change has another state; a reader that names the seals that it knows gets the new and
    changed flows alone, and misses the seals of those that are gone.
    """
    assert registry.changes(()).seals == ()
    states = {registry.state()}
    for number, name in enumerate(("first", "second", "third"), 1):
        registry.add(name, versions[0], now_ms=number)
        states.add(registry.state())
    assert len(states) == 4
    seen = registry.changes(())
    assert seen.state == registry.state()
    assert {flow.name for flow in seen.changed.values()} == {"first", "second", "third"}
    assert set(seen.changed) == set(seen.seals)
    registry.set_enabled("first", False)
    registry.remove("second")
    after = registry.changes(seen.seals)
    assert [(flow.name, flow.enabled) for flow in after.changed.values()] == [("first", False)]
    gone = set(seen.seals) - set(after.seals)
    assert {seen.changed[seal].name for seal in gone} == {"first", "second"}


def test_the_next_changes_are_known_without_a_comparison(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """A reader of a former text gets the names of the flows that were added, changed and removed
    since, and compares no seal; a text that another program wrote is compared.
    """

    def refuse() -> tuple[str, ...]:
        raise AssertionError("all seals were asked for")

    for number, name in enumerate(("first", "second", "third", "other"), 1):
        registry.add(name, versions[0], now_ms=number)
    state = registry.state()
    assert registry.changes_since(state, refuse) is None
    registry.add("fourth", versions[0], now_ms=5)
    registry.grant(versions[1])
    middle = registry.state()
    registry.set_enabled("first", False)
    registry.remove("second")
    for former, names in ((state, {"first", "second", "fourth"}), (middle, {"first", "second"})):
        found = registry.changes_since(former, refuse)
        assert found is not None and found.names is not None
        assert found.state == registry.state()
        assert names <= set(found.names)
        assert {flow.name for flow in found.changed.values()} == set(found.names) - {"second"}
        everything = registry.changes(()).changed
        assert all(everything[seal] == flow for seal, flow in found.changed.items())
    store.registry_path.write_bytes(store.registry_path.read_bytes() + b"# a note\n")
    with pytest.raises(AssertionError, match="all seals"):
        registry.changes_since(middle, refuse)
    found = registry.changes_since(middle, lambda: ())
    assert found is not None and found.names is None
    assert set(found.seals) == set(registry.changes(()).seals)


def test_a_flow_is_meant_by_name_or_hash(registry: Registry, versions: list[Bundle]) -> None:
    """A name first; else a stored bundle by its hash or the only one that starts like this, in any
    case.
    """
    registry.add("demo", versions[0], now_ms=1)
    hash = versions[0].hash
    for text in (hash, hash.lower(), hash[:4], hash[:9].lower()):
        assert registry.resolve(text) == (None, hash)
    named_like_a_hash = "abcdefghjkmnp"
    registry.add(named_like_a_hash, versions[1], now_ms=2)
    assert registry.resolve(named_like_a_hash) == (named_like_a_hash, versions[1].hash)


def test_several_bundles_with_one_start_are_listed(registry: Registry, store: Store) -> None:
    """The person is asked for more of it."""
    for end in ("1", "2"):
        (store.bundles / f"C9NMV6V2TQT8{end}.py").touch()
    with pytest.raises(
        UsageError, match="'c9nm' is the start of 2 bundle hashes: C9NMV6V2TQT81, C9NMV6V2TQT82"
    ):
        registry.resolve("c9nm")


def test_an_unknown_flow_is_told_with_the_closest_names(
    registry: Registry, versions: list[Bundle]
) -> None:
    """A slip of the pen finds its name; a stranger finds the way to the list."""
    registry.add("solve-issue", versions[0], now_ms=1)
    for call in (
        registry.resolve,
        registry.remove,
        registry.rollback,
        lambda name: registry.set_enabled(name, True),
    ):
        with pytest.raises(
            NotFoundError, match="no flow 'slove-issue'; did you mean 'solve-issue'"
        ):
            call("slove-issue")
    for text in ("zzz", "../x", "", "\0", OTHER, "x" * 300):
        with pytest.raises(NotFoundError, match="'uncaged-workflow list' shows all"):
            registry.resolve(text)


GOOD = "    hash: C9NMV6V2TQT81\n    timestamp: 1\n"
ENTRIES: list[tuple[str, str]] = [
    ("  bad: 1\n", r"workflows\.bad: must be a mapping, not 1"),
    ("  bad:\n", r"workflows\.bad: must be a mapping, not None"),
    ("  bad:\n    timestamp: 1\n", r"workflows\.bad\.hash: is missing"),
    (
        "  bad:\n    hash: 1234567890123\n    timestamp: 1\n",
        r"workflows\.bad\.hash: must be text in quotes, not 1234567890123",
    ),
    (
        "  bad:\n    hash: XYZ\n    timestamp: 1\n",
        r"workflows\.bad\.hash: 'XYZ' is not a bundle hash",
    ),
    (
        "  bad:\n    hash: ../../etc/x.\n    timestamp: 1\n",
        r"workflows\.bad\.hash: '\.\./\.\./etc/x\.' is not",
    ),
    ("  bad:\n    hash: C9NMV6V2TQT81\n", r"workflows\.bad\.timestamp: is missing"),
    (
        "  bad:\n    hash: C9NMV6V2TQT81\n    timestamp: soon\n",
        r"workflows\.bad\.timestamp: must be a whole number, not 'soon'",
    ),
    (f"  bad:\n{GOOD}    history: 5\n", r"workflows\.bad\.history: must be a list, not 5"),
    (
        f"  bad:\n{GOOD}    history: [{{hash: C9NMV6V2TQT81}}]\n",
        r"workflows\.bad\.history\[0\]\.timestamp: is missing",
    ),
    (f"  bad:\n{GOOD}    enabled: 'yes'\n", r"workflows\.bad\.enabled: must be True or False"),
    (f"  bad:\n{GOOD}    timestamp: 2\n", r"workflows\.bad: the key 'timestamp' is there twice"),
    (f"  bad:\n{GOOD}    created: 2001-99-99\n", r"workflows\.bad: a value that cannot be read"),
    (
        "  bad: !!python/object/apply:os.system ['echo']\n",
        r"workflows\.bad: could not determine a constructor",
    ),
    (f"  ../x:\n{GOOD}", r"'\.\./x' is not a flow name"),
    ('  "a\\0": 1\n', r"'a\\x00' is not a flow name"),
    (f"  \N{ROCKET}:\n{GOOD}", "'\N{ROCKET}' is not a flow name"),
    (f"  '':\n{GOOD}", r"a flow needs a name"),
    (f"  1:\n{GOOD}", r"workflows: must be text"),
    (f"  [a]:\n{GOOD}", r"workflows: must be text"),
    (f"  bad:\n{GOOD}  bad:\n{GOOD}", r"workflows\.bad is there twice"),
]


@pytest.mark.parametrize(("entry", "problem"), ENTRIES)
def test_a_malformed_entry_is_named_and_hides_no_other(
    registry: Registry, store: Store, versions: list[Bundle], entry: str, problem: str
) -> None:
    """The problem has file, line and field; the flows before and after it are listed, and a change
    keeps the entry as it was.
    """
    store.registry_path.write_text(f"workflows:\n  first:\n{GOOD}{entry}  last:\n{GOOD}")
    snapshot = registry.read()
    assert list(snapshot.flows) == ["first", "last"]
    assert re.match(rf"{re.escape(str(store.registry_path))}:5: .*{problem}", snapshot.problems[0])
    registry.add("added", versions[0], now_ms=1)
    after = registry.read()
    assert list(after.flows) == ["first", "last", "added"]
    assert [sentence.partition(": ")[2] for sentence in after.problems] == [
        sentence.partition(": ")[2] for sentence in snapshot.problems
    ]


def test_a_malformed_entry_is_not_written_over(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """A malformed entry may have a history worth saving: every use of the name is refused with the
    place, and `remove` deletes the entry.
    """
    store.registry_path.write_text(f"workflows:\n  bad:\n    hash: {OTHER}\n")
    calls: list[Callable[[], object]] = [
        lambda: registry.add("bad", versions[0], now_ms=1),
        lambda: registry.rollback("bad"),
        lambda: registry.set_enabled("bad", True),
        lambda: registry.resolve("bad"),
    ]
    for call in calls:
        with pytest.raises(
            RefusedError,
            match=r"'bad' cannot be read \(.*workflow.yaml:2: workflows\.bad\.timestamp: is missing\)",
        ):
            call()
    registry.remove("bad")
    assert registry.read().problems == ()
    assert registry.add("bad", versions[0], now_ms=1)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "- a\n",
        "a: &x 1\nb: *x\n",
        "workflows: 3\n",
        "grants: []\n",
        "workflows: {}\nworkflows: {}\n",
        "\0",
    ],
)
def test_a_registry_that_cannot_be_read_is_never_written_over(
    registry: Registry, store: Store, versions: list[Bundle], text: str
) -> None:
    """Reading and every change fail with the file's name, and the file stays."""
    store.registry_path.write_text(text)
    for call in (
        registry.read,
        lambda: registry.add("demo", versions[0], now_ms=1),
        lambda: registry.remove("demo"),
    ):
        with pytest.raises(DamagedError, match=r"workflow\.yaml"):
            call()
    assert store.registry_path.read_text() == text


def test_fields_that_nobody_knows_survive_a_change(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """A later version's registry loses nothing in the hands of this one."""
    text = f"workflows:\n  demo:\n{GOOD}    colour: blue\nfuture: [1, 2]\n"
    store.registry_path.write_text(text)
    registry.add("demo", versions[0], now_ms=2)
    registry.add("demo", versions[1], now_ms=3)
    registry.rollback("demo")
    registry.set_enabled("demo", False)
    after = yaml.safe_load(store.registry_path.read_text())
    assert after["future"] == [1, 2]
    assert after["workflows"]["demo"]["colour"] == "blue"


def test_a_grant_is_for_exactly_these_bytes(
    registry: Registry, store: Store, make_bundle: MakeBundle
) -> None:
    """Another version needs its own yes, and so do other bytes that were made to have the same
    hash.
    """
    bundle = make_bundle(policy={"http": {"hosts": ["a.com"]}})
    other = make_bundle(policy={"http": {"hosts": ["b.com"]}})
    assert not registry.granted(bundle)
    registry.grant(bundle)
    assert registry.granted(bundle)
    assert not registry.granted(other)
    assert not registry.granted(replace(other, hash=bundle.hash))
    assert yaml.safe_load(store.registry_path.read_text())["grants"][bundle.hash]["policy"] == {
        "http": {"hosts": ["a.com"]}
    }


def test_a_pure_bundle_needs_no_grant(registry: Registry, make_bundle: MakeBundle) -> None:
    """A pure bundle asks for nothing; a trusted one asks for everything."""
    assert registry.granted(make_bundle())
    assert registry.granted(make_bundle(policy={"trusted": False}))
    assert not registry.granted(make_bundle(policy={"trusted": True}))


def test_grants_outlive_every_change(
    registry: Registry, versions: list[Bundle], make_bundle: MakeBundle
) -> None:
    """Adding, going back, disabling, removing, seeding: a yes that was given stays given."""
    granted = [make_bundle(policy={"null": {}}, description=str(number)) for number in range(3)]
    for number, bundle in enumerate(granted):
        registry.add("demo", bundle, now_ms=number, granted=True)
    registry.rollback("demo")
    registry.set_enabled("demo", False)
    registry.add("demo", versions[0], now_ms=9)
    registry.remove("demo")
    registry.seed("1", lambda: [(FlowName("sample"), versions[1])], now_ms=10)
    assert all(registry.granted(bundle) for bundle in granted)


def test_adding_the_head_again_can_grant_it(registry: Registry, make_bundle: MakeBundle) -> None:
    """A yes that was not given at first is recorded though nothing else changes."""
    bundle = make_bundle(policy={"null": {}})
    registry.add("demo", bundle, now_ms=1)
    assert not registry.granted(bundle)
    assert not registry.add("demo", bundle, now_ms=2, granted=True)
    assert registry.granted(bundle)


@pytest.mark.parametrize(
    "grant", ["1", "{policy: {}}", "{policy: [], digest: x}", "{policy: {null: {}}, digest: 5}"]
)
def test_a_malformed_grant_grants_nothing(
    registry: Registry, store: Store, make_bundle: MakeBundle, grant: str
) -> None:
    """A malformed grant is a problem with its place, and the flows are listed."""
    bundle = make_bundle(policy={"null": {}})
    store.registry_path.write_text(
        f"workflows:\n  demo:\n{GOOD}grants:\n  {bundle.hash}: {grant}\n  ../x: {{}}\n"
    )
    assert not registry.granted(bundle)
    snapshot = registry.read()
    assert list(snapshot.flows) == ["demo"]
    assert [
        f"workflow.yaml:{line}: grants" in sentence
        for line, sentence in zip((6, 7), snapshot.problems, strict=True)
    ] == [True, True]


def shipped(*bundles: tuple[str, Bundle]) -> Callable[[], Iterator[tuple[FlowName, Bundle]]]:
    return lambda: ((parse_flow_name(name), bundle) for name, bundle in bundles)


def test_a_store_is_filled_once_per_key(
    registry: Registry, store: Store, make_bundle: MakeBundle
) -> None:
    """Shipped flows come granted; the second open with the same key does not even ask for them."""
    bundle = make_bundle(policy={"null": {}})
    registry.seed("1", shipped(("sample", bundle)), now_ms=5)
    flow = registry.read().flows["sample"]
    assert (flow.hash, flow.source, flow.created_ms, registry.granted(bundle)) == (
        bundle.hash,
        "sample",
        5,
        True,
    )
    assert store.load_bundle(bundle.hash) == bundle
    registry.seed("1", lambda: pytest.fail("built again"), now_ms=6)
    assert registry.read().seeded == {"1"}


def test_a_removed_sample_does_not_come_back(registry: Registry, versions: list[Bundle]) -> None:
    """Neither in the same version nor in a later one; a new sample does come."""
    registry.seed("1", shipped(("one", versions[0]), ("two", versions[1])), now_ms=1)
    registry.remove("one")
    registry.seed(
        "2", shipped(("one", versions[2]), ("two", versions[2]), ("three", versions[3])), now_ms=2
    )
    flows = registry.read().flows
    assert {name: flow.hash for name, flow in flows.items()} == {
        "two": versions[1].hash,
        "three": versions[3].hash,
    }


def test_a_sample_never_takes_a_persons_name(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """Even when that entry cannot be read at the moment."""
    store.registry_path.write_text("workflows:\n  bad: 1\n")
    registry.add("mine", versions[0], now_ms=1)
    registry.seed("1", shipped(("mine", versions[1]), ("bad", versions[1])), now_ms=2)
    assert registry.read().flows["mine"].hash == versions[0].hash
    assert len(registry.read().problems) == 1


def test_a_broken_sample_leaves_the_registry_as_it_was(registry: Registry, store: Store) -> None:
    """Nothing is written when the shipped flows cannot be had, so the next open tries again."""

    def broken() -> Iterator[tuple[FlowName, Bundle]]:
        raise LookupError("no such template")

    with pytest.raises(LookupError):
        registry.seed("1", broken, now_ms=1)
    assert not store.registry_path.exists()


def test_a_list_of_removed_names_that_cannot_be_read_is_kept(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """The list is a problem for readers and an error for changes that would rewrite it."""
    store.registry_path.write_text(f"workflows:\n  demo:\n{GOOD}removed: all\n")
    assert "removed: must be a list of texts" in registry.read().problems[0]
    with pytest.raises(DamagedError, match="removed: must be a list"):
        registry.remove("demo")
    with pytest.raises(DamagedError, match="removed: must be a list"):
        registry.seed("1", shipped(("a", versions[0])), now_ms=1)
    assert registry.add("other", versions[0], now_ms=1)
    assert yaml.safe_load(store.registry_path.read_text())["removed"] == "all"


def test_a_store_that_cannot_be_written_is_told(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """No bare OSError reaches a person: the path that failed is named."""
    (store.root / "workflow.yaml.lock").mkdir()
    with pytest.raises(UncagedError, match=r"cannot change .*workflow\.yaml: "):
        registry.add("demo", versions[0], now_ms=1)
    store.registry_path.mkdir()
    with pytest.raises(UncagedError, match=r"cannot read .*workflow\.yaml: Is a directory"):
        registry.read()


def test_what_killed_writers_left_is_cleaned(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """The next add removes temporary files older than ten minutes; younger ones may be in use."""
    old, young = store.root / ".workflow.yaml.aa.tmp", store.bundles / ".x.py.bb.tmp"
    for path, modified_s in ((old, 1000), (young, 2000)):
        path.touch()
        os.utime(path, (modified_s, modified_s))
    registry.add("demo", versions[0], now_ms=(1000 + 601) * 1000)
    assert (old.exists(), young.exists()) == (False, True)


def test_a_change_leaves_the_registry_its_index_and_one_lock_file(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """No temporary file stays. The lock file does: taking it away would let two waiters hold two
    locks.
    """
    registry.add("demo", versions[0], now_ms=1)
    files = sorted(path.name for path in store.root.iterdir() if path.is_file())
    assert files == ["workflow.index", "workflow.yaml", "workflow.yaml.lock"]


def test_a_registry_is_shown_as_it_is_written(
    registry: Registry, store: Store, versions: list[Bundle]
) -> None:
    """Readable YAML in the seed's shape, with our fields beside it."""
    registry.add("demo", versions[0], now_ms=1)
    registry.add("demo", versions[1], now_ms=2, source="import")
    loaded = yaml.safe_load(store.registry_path.read_text())
    assert loaded == {
        "workflows": {
            "demo": {
                "hash": versions[1].hash,
                "timestamp": 2,
                "enabled": True,
                "source": "import",
                "created": 1,
                "history": [{"hash": versions[0].hash, "timestamp": 1}],
            }
        }
    }
