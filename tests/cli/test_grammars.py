"""The verb `grammar` on files: problems, imports, readings, completions, wrong files."""

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


def test_a_grammar_shows_how_it_reads_a_sentence(command: Command, tmp_path: Path) -> None:
    """Each reading is a line of JSON, or an entry of the document; none ends with code 1."""
    file = tmp_path / "tea.agr"
    file.write_text("<Start> = pour $(what) into $(cup) -> { what, cup };\n")
    sentence = "pour tea into milk into a cup"
    done = command("grammar", "match", str(file), sentence)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"what": "tea", "cup": "milk into a cup"},
        {"what": "tea into milk", "cup": "a cup"},
    ]
    done = command("grammar", "match", str(file), sentence, "--best", "--json")
    document = json.loads(done.stdout)
    assert [reading["value"]["what"] for reading in document["readings"]] == ["tea"]
    assert not document["cut"]
    assert document["readings"][0]["freeCharacters"] == 18
    done = command("grammar", "match", str(file), "drink tea", "--json")
    assert (done.returncode, json.loads(done.stdout)["readings"]) == (1, [])
    done = command("grammar", "match", str(file), "x" * 2001)
    assert (done.returncode, "at most 2000" in done.stderr) == (2, True)
    file.write_text("<Start> = pour $(what) into;")
    done = command("grammar", "match", str(file), "pour \u202e into")
    assert (done.returncode, "U+202E" in done.stderr) == (2, True)


def test_a_grammar_shows_what_can_follow(command: Command, tmp_path: Path) -> None:
    """The next words and captures are lines, or a document with their separators."""
    file = tmp_path / "tea.agr"
    file.write_text("<Start> = pour $(what) into $(cup) -> { what, cup } | pour out -> 1;\n")
    done = command("grammar", "complete", str(file), "pour ")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["out", "$(what)"])
    done = command("grammar", "complete", str(file), "pour tea", "--json")
    document = json.loads(done.stdout)
    assert document["groups"] == [
        {"completions": ["into"], "separatorMode": "autoSpacePunctuation"}
    ]
    assert (document["matchedPrefixLength"], document["afterWildcard"]) == (8, "all")
    done = command("grammar", "complete", str(file), "pour tea", "--backward", "--json")
    document = json.loads(done.stdout)
    assert (document["matchedPrefixLength"], document["closedSet"]) == (4, False)
    done = command("grammar", "complete", str(file), "pour <")
    assert done.returncode == 0
