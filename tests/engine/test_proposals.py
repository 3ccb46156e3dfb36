"""Proposals of new versions: what is accepted, what is refused, and files of strangers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import granted, source
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.proposals import Proposal
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.proposals import Proposals

BODY = '\n    yield {"null": {"value": %d}}\n'
THREAD = ThreadId("01HX5WBE000000000000000001")
NARROW: Mapping[str, object] = {"null": {}}
WIDER: Mapping[str, object] = {"null": {}, "http": {"hosts": ["api.example.org"]}}
Change = Callable[[dict[str, Any]], object]


def version(number: int, name: str = "count", policy: Mapping[str, object] = NARROW) -> Bundle:
    return read_bundle(source(name, BODY % number, policy=policy), KNOWN)


def yes(_sentences: tuple[str, ...]) -> bool:
    return True


def no(sentences: tuple[str, ...]) -> bool:
    raise AssertionError(f"a person was asked: {sentences}")


@pytest.fixture
def first(store: Store) -> Bundle:
    """The head of the flow `count`."""
    granted(store, version(1).source)
    return version(1)


def proposed(store: Store, first: Bundle, after: Bundle, now_ms: int = 5) -> Proposal:
    return Proposals(store).propose(
        Registry(store).resolve("count")[0] or pytest.fail("no flow"),
        before=first.hash,
        after=after,
        by="healing",
        evidence={"steps": [{"step": 1}]},
        threads=[THREAD],
        now_ms=now_ms,
    )


def head(store: Store) -> str:
    return Registry(store).resolve("count")[1]


def test_an_accepted_version_is_the_head_and_rollback_returns(store: Store, first: Bundle) -> None:
    """A proposal changes nothing until it is accepted; then the former head is in the history."""
    proposal = proposed(store, first, version(2))
    assert (head(store), Registry(store).granted(version(2))) == (first.hash, False)
    assert (proposal.state, proposal.policy, proposal.threads) == ("open", (), (THREAD,))
    found = Proposals(store).accept(proposal.id[:12].lower(), accept=no, now_ms=9)
    assert (found.proposal.state, head(store)) == ("accepted", version(2).hash)
    assert Proposals(store).find(proposal.id).state == "accepted"
    Registry(store).rollback("count")
    assert head(store) == first.hash
    with pytest.raises(RefusedError, match="was accepted already"):
        Proposals(store).accept(proposal.id, accept=no, now_ms=9)


def test_a_wider_policy_needs_consent(store: Store, first: Bundle) -> None:
    """The sentences are those of `add`; without a yes neither the name nor the grant changes."""
    wider = version(2, policy=WIDER)
    proposal = proposed(store, first, wider)
    asked: list[str] = []

    def refuse(sentences: tuple[str, ...]) -> bool:
        asked.extend(sentences)
        return False

    assert not Registry(store).granted(wider)
    with pytest.raises(RefusedError, match="asks for more"):
        Proposals(store).accept(proposal.id, accept=refuse, now_ms=9)
    assert asked == list(proposal.policy) and "api.example.org" in asked[0]
    assert (head(store), Registry(store).granted(wider)) == (first.hash, False)
    Proposals(store).accept(proposal.id, accept=yes, now_ms=9)
    assert (head(store), Registry(store).granted(wider)) == (wider.hash, True)


def test_a_contradicted_version_needs_its_own_yes(store: Store, first: Bundle) -> None:
    """A yes to permissions is none to other results."""
    proposal = Proposals(store).propose(
        Registry(store).resolve("count")[0] or pytest.fail("no flow"),
        before=first.hash,
        after=version(2),
        by="fixing",
        evidence={"contradictions": ["thread 1 had success with 5; its result is 6 now"]},
        threads=[THREAD],
        now_ms=5,
    )
    with pytest.raises(RefusedError, match=r"not proved: thread 1 had .* add --contradicted"):
        Proposals(store).accept(proposal.id, accept=yes, now_ms=9)
    assert head(store) == first.hash
    Proposals(store).accept(proposal.id, accept=no, now_ms=9, contradicted=True)
    assert head(store) == version(2).hash


def test_a_proposal_is_stale_when_its_flow_moved(store: Store, first: Bundle) -> None:
    """Another head refuses it, for good, and the head stays."""
    proposal = proposed(store, first, version(2))
    granted(store, version(3).source)
    assert Proposals(store).find(proposal.id).state == "stale"
    with pytest.raises(RefusedError, match=f"stale: count is no longer {first.hash}"):
        Proposals(store).accept(proposal.id, accept=no, now_ms=9)
    assert head(store) == version(3).hash
    Registry(store).rollback("count")
    assert Proposals(store).find(proposal.id).state == "stale"


def test_the_same_version_is_proposed_once(store: Store, first: Bundle) -> None:
    """An open proposal gets the new thread; a rejected one stays rejected, and cannot be
    accepted.
    """
    proposal = proposed(store, first, version(2))
    assert proposed(store, first, version(2), now_ms=8) == proposal
    assert Proposals(store).reject(proposal.id).state == "rejected"
    assert proposed(store, first, version(2), now_ms=9).state == "rejected"
    assert len(Proposals(store).all()) == 1
    with pytest.raises(RefusedError, match="was rejected"):
        Proposals(store).accept(proposal.id, accept=no, now_ms=9)


def test_two_accepts_at_once_move_the_name_once(store: Store, first: Bundle) -> None:
    """Of two proposals for one head that are accepted together, one is the head and the other is
    stale.
    """
    two = [proposed(store, first, version(number), now_ms=number) for number in (2, 3)]

    def accept(proposal: Proposal) -> bool:
        try:
            Proposals(store).accept(proposal.id, accept=no, now_ms=9)
        except RefusedError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(accept, [*two, *two]))
    assert done.count(True) == 1
    flow = Registry(store).flow("count")
    assert flow is not None
    assert [one.hash for one in flow.versions] == [
        next(p.after for p, ok in zip([*two, *two], done, strict=True) if ok),
        first.hash,
    ]
    assert sorted(one.state for one in Proposals(store).all()) == ["accepted", "stale"]


FORGED: dict[str, Change] = {
    "a path for a hash": lambda it: it.update(to="../../../etc/x"),
    "a path for a flow": lambda it: it.update(flow="../count"),
    "another id": lambda it: it.update(proposalId="01HX5WBE000000000000000009"),
    "a newer format": lambda it: it.update(format=2),
    "an unknown key": lambda it: it.update(granted=True),
    "a wrong state": lambda it: it.update(state="granted"),
    "no thread": lambda it: it.update(threadIds=["../x"]),
    "a time past all ids": lambda it: it.update(createdMs=1 << 60),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_file_is_named_and_hides_no_other(
    store: Store, first: Bundle, change: Change
) -> None:
    """A file with a field of another form is refused; the other proposals are listed."""
    other = proposed(store, first, version(2), now_ms=1)
    path = file_of(store, proposed(store, first, version(3), now_ms=2))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    (path.parent / "01HX5WBE000000000000000002.json").write_text("{")
    (path.parent / "01HX5WBE000000000000000003.json").mkdir()
    (path.parent / "notes.json").write_text("{}")
    proposals = Proposals(store)
    assert [one.id for one in proposals.all()] == [other.id]
    assert len(proposals.found().problems) == 3
    with pytest.raises(DamagedError, match="cannot be read"):
        proposals.accept(path.stem, accept=no, now_ms=9)
    assert head(store) == first.hash


def test_a_forged_proposal_with_another_bundle_is_refused(store: Store, first: Bundle) -> None:
    """A bundle of another flow, a missing one, and one whose bytes were changed."""
    granted(store, version(7, "other").source)
    path = file_of(store, proposed(store, first, version(2)))
    document = json.loads(path.read_text())
    hashes = {version(7, "other").hash: RefusedError, version(9).hash: NotFoundError}
    for hash, error in hashes.items():
        path.write_text(json.dumps(document | {"to": hash}))
        with pytest.raises(error):
            Proposals(store).accept(path.stem, accept=yes, now_ms=9)
    path.write_text(json.dumps(document))
    store.bundle_path(version(2).hash).write_bytes(version(3).source)
    with pytest.raises(DamagedError, match="have the hash"):
        Proposals(store).accept(path.stem, accept=yes, now_ms=9)
    assert head(store) == first.hash


def test_an_id_is_found_by_its_start(store: Store, first: Bundle) -> None:
    """A start of several ids, and a path, are refused."""
    for number in (2, 3):
        proposed(store, first, version(number))
    for text, error in (("0", UsageError), ("", NotFoundError), ("../x", NotFoundError)):
        with pytest.raises(error):
            Proposals(store).find(text)


def test_a_store_without_proposals_is_an_empty_list(store: Store) -> None:
    """Reading writes nothing."""
    assert (Proposals(store).found().proposals, Proposals(store).found().problems) == ((), ())
    assert not (store.root / "proposals").exists()


def file_of(store: Store, proposal: Proposal) -> Path:
    path = store.root / "proposals" / f"{proposal.id}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    return path
