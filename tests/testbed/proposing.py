"""Process that proposes a version of the flow `count`, or accepts it: ``proposing STORE DEED`` with
the bundle on standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from uncaged_bundles.names import FlowName
from uncaged_bundles.storage.proposals import Proposal
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.proposals import Proposals


def announce(proposal: Proposal) -> None:
    """Write that a proposal is announced."""
    sys.stdout.write(f"announced {proposal.flow}\n")


def main(root: str, deed: str) -> None:
    """Perform one deed, ``propose`` or ``accept``."""
    store = Store.open(Path(root))
    proposals = Proposals(store)
    if deed == "accept":
        [proposal] = proposals.all()
        proposals.accept(proposal.id, accept=lambda _sentences: True, now_ms=2)
        return
    proposals.propose(
        FlowName("count"),
        before=Registry(store).resolve("count")[1],
        after=read_bundle(sys.stdin.buffer.read(), KNOWN),
        by="a test",
        evidence={},
        threads=[],
        now_ms=1,
        announce=announce,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
