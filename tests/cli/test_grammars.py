"""The verb `grammar check` on files: errors, warnings, imports, and files that are no grammar."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_a_checked_grammar_shows_its_problems(command: Command, tmp_path: Path) -> None:
    """Errors end the check with code 1, warnings do not; both have their places."""
    main = tmp_path / "main.agr"
    main.write_text('import { Tea } from "tea/tea.agr";\n<Start> = pour <Tea> | <Bug>;\n')
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "tea.agr").write_text("export <Tea> = green;\n<Old> = black;\n")
    done = command("grammar", "check", str(main))
    assert done.returncode == 1
    assert done.stdout == f"{main}(2,24): error: in <Start>: there is no rule <Bug>\n"
    main.write_text('import { Tea } from "tea/tea.agr";\n<Start> = pour <Tea>;\n')
    done = command("grammar", "check", str(main), "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["ok"], document["rules"], document["errors"]) == (True, ["Start"], [])
    (warning,) = document["warnings"]
    assert (warning["file"], warning["line"]) == (str(tmp_path / "tea" / "tea.agr"), 2)


def test_a_file_that_is_no_grammar_is_refused(command: Command, tmp_path: Path) -> None:
    """A missing import, bytes that are no text, and a grammar that is too long have own errors."""
    file = tmp_path / "a.agr"
    file.write_text("import * from './b.agr'; <Start> = a;")
    done = command("grammar", "check", str(file))
    assert (done.returncode, done.stdout) == (
        1,
        f"{file}(1,8): error: there is no file './b.agr' to import from\n",
    )
    file.write_bytes(b"<Start> = \xff;")
    done = command("grammar", "check", str(file))
    assert (done.returncode, "is not UTF-8 at byte 10" in done.stderr) == (2, True)
    file.write_bytes(b"<Start> = a;\n" * 1_000_000)
    done = command("grammar", "check", str(file))
    assert (done.returncode, "at most 4,000,000 are read" in done.stderr) == (2, True)
    assert command("grammar", "check", str(tmp_path / "no.agr")).returncode == 5
