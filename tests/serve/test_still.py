"""Script of the page of a thread as one file."""

from __future__ import annotations

import re

from uncaged_serve.still import FOLDER, inlined


def test_the_modules_become_one_script() -> None:
    """Each module that the page needs is there once, before those that use it, and nothing of the
    module syntax is left.
    """
    script = inlined(FOLDER / "modules" / "still.js")
    names = re.findall(r"^const (module_\w+) = \(\(\) => \{$", script, re.MULTILINE)
    assert len(names) == len(set(names)) > 5
    assert names[-1] == "module_modules_still"
    for at, name in enumerate(names):
        assert all(used in names[:at] for used in used_by(script, name))
    assert re.search(r"^(import|export) ", script, re.MULTILINE) is None
    assert "</" not in script and "innerHTML" not in script


def used_by(script: str, name: str) -> list[str]:
    body = script.partition(f"const {name} = (() => {{\n")[2].partition("\n})();\n")[0]
    return re.findall(r"^const \{[^}]*\} = (module_\w+);$", body, re.MULTILINE)
