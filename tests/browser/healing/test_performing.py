"""Operations whose element is another one by now: performed with that, unless it was rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from testbed.bundles import source
from uncaged_browser.elements.facts import ElementFacts
from uncaged_browser.elements.targets import read_target
from uncaged_browser.healing.healed import HealedTarget, Healing
from uncaged_browser.healing.performing import Rejected
from uncaged_browser.healing.versions import was_rejected
from uncaged_browser.operations import Operation, ReadElements, WaitFor
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.session.healed_replay import HealedReplay, replay_healed
from uncaged_browser.session.proof_page import NotRepeated, ProofPage
from uncaged_bundles.names import FlowName
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.proposals import Proposals

OLD = ElementFacts(tag="button", role="button", name="Save", text="Save")
NEW = ElementFacts(tag="button", role="button", name="Save changes", text="Save changes")
STEP = {"do": "click", "target": [{"role": "button", "name": "Save"}], "facts": OLD.document()}


class RedesignedPage:
    """A page whose one element is the button `NEW`. clicked: what was performed."""

    def __init__(self, *, sends: bool = False) -> None:
        self.clicked: list[object] = []
        self._sends = sends

    def perform(self, number: int, body: Mapping[str, Any]) -> object:
        self._find(body["target"])
        if self._sends:
            raise NotRepeated("it sends data")
        self.clicked.append((number, body["target"]))
        return {}

    def look(self, operation: Operation) -> object:
        if isinstance(operation, ReadElements):
            names = {} if operation.number is None else {"names": target_of(NEW)}
            return {"elements": [NEW.document()], **names}
        if isinstance(operation, WaitFor) and operation.target:
            self._find([one.document() for one in operation.target])
        return {}

    def _find(self, target: object) -> None:
        if target != target_of(NEW):
            raise BrowserProblem("not-found", "no visible element is the button")


def target_of(facts: ElementFacts) -> list[dict[str, object]]:
    return [{"role": facts.role, "name": facts.name}]


def replayed(page: RedesignedPage, is_rejected: Rejected) -> HealedReplay:
    return replay_healed(cast("ProofPage", page), [STEP], {}, is_rejected)


def test_the_element_that_takes_the_place_of_another_is_used() -> None:
    """Its new names are in the steps; also where the step is held, as it would send something."""
    page, sending = RedesignedPage(), RedesignedPage(sends=True)
    found = replayed(page, lambda _healed: False)
    assert page.clicked == [(1, target_of(NEW))]
    assert ([one["target"] for one in found.steps], found.step) == ([target_of(NEW)], None)
    found = replayed(sending, lambda _healed: False)
    assert sending.clicked == []
    assert [one["target"] for one in found.steps] == [target_of(NEW)]
    assert (found.step, found.held, found.reason) == (1, True, "it sends data")


def test_an_element_that_a_person_rejected_is_named_and_not_used() -> None:
    """The step fails with the reason."""
    page = RedesignedPage()
    found = replayed(page, lambda _healed: True)
    assert page.clicked == []
    assert (found.step, found.held, found.healed) == (1, False, {})
    assert 'the nearest element is button "Save changes" (a person rejected it)' in found.reason


def test_a_problem_of_another_kind_is_reported_as_it_is() -> None:
    """The element appeared in the rest of the time, and something else failed: the rejected one is
    not its cause.
    """

    class LatePage(RedesignedPage):
        def perform(self, number: int, body: Mapping[str, Any]) -> object:
            if "find_s" not in body:
                raise BrowserProblem("timeout", "the page did not answer")
            return super().perform(number, body)

    found = replayed(LatePage(), lambda _healed: True)
    assert (found.step, found.held, found.reason) == (1, False, "the page did not answer")


def test_a_rejected_proposal_decides_about_its_version(engine: Engine) -> None:
    """An open one does not, and neither does one for another version."""
    former, after = (
        source(
            "note",
            f"    yield {{'null': {{}}}}\n    return {{'success': True, 'message': '{n}'}}\n",
        )
        for n in "ab"
    )
    engine.add("note", former, accept=lambda _sentences: True)
    before = engine.bundle("note").hash
    names = read_target(target_of(NEW), ("target",))
    healed: list[Healing] = [
        HealedTarget(
            key="target", before=str(OLD), after=str(NEW), names=names, facts=NEW, score=1.0, why=()
        )
    ]
    evidence = {"steps": [{"step": 1, "from": str(OLD), "to": str(NEW)}]}
    proposals = Proposals(engine.store)
    proposal = proposals.propose(
        FlowName("note"),
        before=before,
        after=read_bundle(after),
        by="a test",
        evidence=evidence,
        threads=[],
        now_ms=1,
    )
    assert not was_rejected(healed, engine.store, before)
    proposals.reject(proposal.id)
    assert was_rejected(healed, engine.store, before)
    assert not was_rejected(healed, engine.store, proposal.after)
