"""The sentences of the benchmark, read by the patterns of the shipped flows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.paraphrases import MOST_MISSED, paraphrases, read_all


@pytest.mark.slow
def test_the_shipped_flows_read_sentences_as_meant(tmp_path: Path) -> None:
    """Most sentences give the right flow and parameters, and no other flow runs at once for any;
    a sentence that no shipped flow answers runs none.
    """
    readings = list(read_all(tmp_path))
    meant = [one for one in readings if one.paraphrase.call is not None]
    others = [one for one in readings if one.paraphrase.call is None]
    assert (len(meant), len(others)) == (200, 40)
    missed = [one.paraphrase.sentence for one in meant if one.outcome != "right"]
    assert len(missed) <= MOST_MISSED, missed
    wrong = [one for one in readings if one.outcome == "wrong" and not one.asked]
    assert wrong == []
    assert {one.outcome for one in others} == {"miss"}


def test_no_sentence_of_the_benchmark_occurs_twice() -> None:
    """Two hundred sentences with a call, forty without, none twice."""
    found = paraphrases()
    assert len({one.sentence for one in found}) == len(found) == 240
