"""Broken flows: their number, their dependence on a seed, and the verdicts of their checker."""

from __future__ import annotations

from collections import Counter

from benchmarks.broken_flows.flows import broken_flows, sampled

URLS = ("http://127.0.0.1:1", "http://127.0.0.1:2")


def test_there_are_sixty_flows_of_thirteen_families() -> None:
    """Names differ; a tenth is the quick sample; some have no right fix, some two likely ones."""
    cases = broken_flows(3, *URLS)
    assert len({case.name for case in cases}) == len(cases) == 60
    assert len({case.family for case in cases}) == 13
    assert len(sampled(cases, quick=True)) == 6
    fixes = Counter(case.fix for case in cases)
    assert fixes["none"] == 4
    assert fixes["two"] >= 4
    assert all((case.right is None) == (case.fix == "none") for case in cases)


def test_a_flow_follows_from_its_seed() -> None:
    """Recipes and truths are the same at every call, and others with another seed."""
    one, again, other = (broken_flows(seed, *URLS) for seed in (3, 3, 4))
    for first, second in zip(one, again, strict=True):
        assert first.recipe == second.recipe
        assert [*map(first.truth, first.sets)] == [*map(second.truth, second.sets)]
    assert [case.sets for case in one] != [case.sets for case in other]


def test_a_checker_knows_the_truth_of_each_set() -> None:
    """The truth passes; another message, and the recipes of both edits, differ from it."""
    for case in broken_flows(5, *URLS):
        for parameters in case.sets:
            assert case.wrong(parameters, f"{case.truth(parameters)} more", ())
            if case.sends is None:
                assert case.wrong(parameters, f"{case.truth(parameters)}\n", ()) == ""
        assert case.recipe not in (case.right, case.mistaken)
        assert case.right != case.mistaken
        assert len({*map(case.truth, case.sets)}) > 1
