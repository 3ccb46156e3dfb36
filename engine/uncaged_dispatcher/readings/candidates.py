"""Candidates: readings of a sentence as calls, in the order of preference, with the reason why one
cannot be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from ..calls import Call, Tier
from ..entities.captures import restored
from ..grammar.readings import Rank, Reading
from ..grammar.sentences import Sentence
from ..index.rule_index import IndexedRule
from ..packs.verbs import VERB_MARK

_DECLARED_CALLS = 16
"""Most calls of one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateReading:
    """One reading with its calls. by: what its rule was made from.

    pack: of the first call's flow, or empty. implicit: parameters of the calls that the sentence
    does not hold. disabled: the command that enables the flow or pack, or None. confirm: flows that
    are marked. refused: why the calls cannot run, or None. away: why its pack is not read on the
    page that the browser shows, or None.
    """

    calls: tuple[Call, ...]
    rule: str
    pattern: str
    pack: str
    priority: int
    rank: Rank
    implicit: int
    by: Tier = "grammar"
    confirm: tuple[str, ...] = ()
    disabled: str | None = None
    refused: str | None = None
    away: str | None = None

    @property
    def order(self) -> tuple[bool, int, int, int, int]:
        """Return the place in the order of readings; the least is the best."""
        rank = self.rank
        return (
            rank.has_free_text,
            self.implicit,
            rank.fewer_required_parts,
            rank.fewer_parts,
            rank.free_text,
        )

    @property
    def flows(self) -> tuple[str, ...]:
        return tuple(call.flow for call in self.calls)


def flow_calls(reading: Reading, sentence: Sentence, flow: str) -> tuple[tuple[Call, ...], int]:
    """Return the call of a flow's own rule, and how many of its parameters are implicit: none."""
    value = reading.value
    params = value.get("params") if isinstance(value, Mapping) else None
    found = restored(params, sentence, reading.entities)
    return (Call(flow=flow, params=found if isinstance(found, dict) else {}),), 0


def pack_calls(
    reading: Reading,
    sentence: Sentence,
    rule: IndexedRule,
    allowed: Iterable[str],
    *,
    verbs: bool,
) -> tuple[tuple[Call, ...], int]:
    """Return the calls that the value of a pack's rule names, and how many values in them are not
    from the sentence. verbs: the pack may call verbs of the command line, such as ``@threads``.

    Raises:
        UsageError: the value has another form, or calls a flow of another pack.
    """
    value = restored(reading.value, sentence, reading.entities)
    listed = value if isinstance(value, list) else [value]
    if not 0 < len(listed) <= _DECLARED_CALLS:
        raise UsageError(f"a rule has 1 to {_DECLARED_CALLS} calls, not {len(listed)}")
    calls = tuple(Call.read(item) for item in listed)
    called = {call.flow for call in calls}
    if verbs:
        called = {flow for flow in called if not flow.startswith(VERB_MARK)}
    strange = sorted(called - set(allowed))
    if strange:
        raise UsageError(
            f"the rule {rule.row.name} calls {', '.join(strange)}, which the pack does not list under flows"
        )
    leaves = sum(_leaves(call.params) for call in calls)
    return calls, max(0, leaves - reading.matched_values)


def _leaves(value: object) -> int:
    match value:
        case Mapping():
            return sum(map(_leaves, value.values()))
        case list():
            return sum(map(_leaves, value))
        case _:
            return 1
