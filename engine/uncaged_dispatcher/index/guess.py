"""Guess of the flow that a sentence asks for, by its words alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

from .database import FILE, RuleDatabase

MOST_RULES = 20


def likely_flow(store: Store, words: Sequence[str]) -> str | None:
    """Return the flow of the rules that can have the best readings of a sentence of these words, by
    the index as it was left and the registry as it is.

    Returns:
        None without such a rule, where they belong to several flows or to a pack, and where the
        flow is disabled or needs a yes, or its pack is disabled or of a site.
    """
    try:
        with closing(RuleDatabase.for_reading(store.derived / FILE)) as database:
            found = database.find(words)
            leading = [number for bound, number in found if bound == found[0].bound]
            if not 0 < len(leading) <= MOST_RULES:
                return None
            rules = list(database.load(leading))
            packs = json.loads(database.meta("pack_set") or "[]")
    except sqlite3.Error:  # none yet, or one that the reader of sentences replaces
        return None
    flows = {flow for rule in rules for flow in rule.flows}
    if len(flows) != 1 or not all(rule.flows for rule in rules):
        return None
    (flow,) = flows
    declared = {rule.pack for rule in rules}
    # an index of another version may lack a key
    own = [one for one in packs if one["name"] in declared or flow.name in one.get("flows", ())]
    is_read = all(one.get("enabled") and not one.get("hosts") for one in own)
    if not is_read or (now := Registry(store).indexed_flow(flow.name)) is None:
        return None
    return flow.name if now.enabled and not now.confirm else None
