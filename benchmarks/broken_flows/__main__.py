"""Command line of the measurement: `python -m benchmarks.broken_flows [OPTION ...]`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..outside.measuring import measure, options_parser, report
from ..outside.results import Document
from .attempt import MODES, attempt
from .flows import broken_flows, sampled

UNKNOWN = ("http://127.0.0.1:1", "http://127.0.0.1:2")
"""Addresses for the names of the cases alone."""
REACH = {"none": 30, "right": 54}
"""Proposals of 60 flows."""
VERDICTS = ("right", "wrong", "honest", "failed", "fault")


def main(arguments: Sequence[str]) -> int:
    """Return 0 if nothing wrong was proposed, and no case was at fault. What a model writes wrongly
    may be proposed, but not without evidence against it.
    """
    parser = options_parser("python -m benchmarks.broken_flows", __doc__)
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="none",
        help="the model: none, one that writes the right or a wrong recipe; or the checker alone",
    )
    options = parser.parse_args(arguments)
    cases = sampled(broken_flows(options.seed, *UNKNOWN), quick=options.quick, only=options.only)

    def tried(name: str, root: Path) -> Document:
        return attempt(name, options.seed, root, options.mode, quick=options.quick).document()

    found = measure([case.name for case in cases], options, tried, line_of)
    totals = totals_of(found)
    report(found, totals, table_of(found, totals, options.mode), as_json=options.json)
    wrong = totals["silent"] if options.mode == "wrong" else totals["wrong"]
    return 0 if not totals["fault"] and not wrong else 1


def line_of(one: Document) -> str:
    verdict = one.get("verdict", "fault")
    texts = [one.get("fault", ""), one.get("refused", ""), *one.get("wrong", ())]
    if verdict in ("honest", "failed"):
        texts.append(one.get("report", ""))
    reason = "; ".join(text for text in texts if text)
    return f"{one['name']}: {verdict}, {one.get('wall_s', 0):.1f} s{': ' if reason else ''}{reason}"


def totals_of(found: Sequence[Document]) -> dict[str, Any]:
    counts = Counter(one.get("verdict", "fault") for one in found)
    return {
        "flows": len(found),
        "fixable": sum(one.get("fix") != "none" for one in found),
        "proposals": counts["right"] + counts["wrong"],
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "silent": sum(one.get("verdict") == "wrong" and one["silent"] for one in found),
    }


def table_of(found: Sequence[Document], totals: dict[str, Any], mode: str) -> str:
    """Return the table as Markdown."""
    columns = ("flows", "proposals", "right", "wrong", "honest", "failed")
    lines = [f"| family | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    families = dict.fromkeys(one.get("family", "at fault") for one in found)
    for family in families:
        part = totals_of([one for one in found if one.get("family", "at fault") == family])
        lines.append(f"| {family} | {' | '.join(str(part[key]) for key in columns)} |")
    lines.append(f"| all | {' | '.join(str(totals[key]) for key in columns)} |")
    if mode == "wrong":
        lines.append(
            f"\nReach: none proposed without evidence against it; {totals['silent']} were."
        )
    if mode in REACH:
        lines.append(
            f"\nReach: {REACH[mode]} of 60 proposed, none wrong. A right fix exists for "
            f"{totals['fixable']} of these {totals['flows']}."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
