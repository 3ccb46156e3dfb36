"""What scripts take and need, guessed from their text."""

from __future__ import annotations

import pytest
from uncaged_bundles.builders.inference.inference import infer_arguments, infer_commands, infer_parameters

BASH = """#!/bin/bash
set -euo pipefail   # curl is only named here
file=${1:-README.md}
count="$2"
name=$(basename "$file")
if [ -f "$file" ] && ! grep -q "rm x" "$file"; then
  wc -l < "$file" | awk '{ sort | uniq }'
fi
for item in a b c; do LANG=C sed -n "1,${count}p"; done
case $name in
  *.md) cut -c1 ;;
esac
helper() { tr a b; echo "$1"; }
helper "$(date +%s)"
sudo -n find . -name x | xargs -0 -n 1 du
cat <<EOF
wget is text
EOF
"""
GETOPTS = """
while getopts "vn:o:" opt; do
  case $opt in
    v) verbose=1 ;;
    n) limit=$OPTARG ;;
    o) out_file=$OPTARG ;;
  esac
done
"""
PYTHON = """
import argparse, os, subprocess
parser = argparse.ArgumentParser()
parser.add_argument("file", help="what to read")
parser.add_argument("extra", nargs="?")
parser.add_argument("-c", "--count", type=int, default=3)
parser.add_argument("--mode", choices=["a", "b"], required=True)
parser.add_argument("--all", action="store_true")
subprocess.run(["git", "log"], check=True)
os.system("ls -l | sort")
"""
CLICK = """
import click
@click.command()
@click.argument("path")
@click.option("--dry-run", is_flag=True, help="Only say.")
@click.option("--times", default=2)
def main(path, dry_run, times): pass
"""
POWERSHELL = """<# Get-Nothing #>
param(
    [Parameter(Mandatory = $true)][string]$Path,
    [ValidateSet("one", 'two')][string] $Mode = "one",  # Get-Comment
    [int]$Depth = 3, [switch]$Recurse, $Filter = "a,b"
)
function Get-Mine { Get-Date }
Get-ChildItem $Path | Where-Object { $_.Name -like 'Stop-Process' } | Get-Mine
"""


def names(language: str, text: str) -> list[tuple[object, ...]]:
    return [(part["name"], part["type"], part["required"], part.get("default")) for part in infer_parameters(language, text).parameters]


def test_bash_places_have_names() -> None:
    """The variable that takes a place names it; a default makes it optional; a function's own places are not the script's."""
    assert names("bash", BASH) == [("file", "path", False, "README.md"), ("count", "string", True, None)]
    assert infer_parameters("bash", BASH).arguments == ({"param": "file"}, {"param": "count"})


def test_bash_options_have_flags() -> None:
    """A letter with a colon takes a value, one without is a switch."""
    found = infer_parameters("bash", GETOPTS)
    assert names("bash", GETOPTS) == [
        ("verbose", "boolean", False, None),
        ("limit", "string", False, None),
        ("out_file", "path", False, None),
    ]
    assert found.arguments[0] == {"param": "verbose", "flag": "-v", "switch": True}
    assert found.arguments[1] == {"param": "limit", "flag": "-n"}


def test_bash_variables_need_no_command_line() -> None:
    """`PARAM_NAME` is read from the environment; its default has a type."""
    text = 'echo "${PARAM_LIMIT:-10}" "$PARAM_PATH" "${PARAM_QUIET:-false}"'
    assert names("bash", text) == [("limit", "number", False, 10), ("path", "path", True, None), ("quiet", "boolean", False, False)]
    assert infer_parameters("bash", text).arguments == ()


def test_bash_commands_are_first_words() -> None:
    """Not words in quotes, comments or here documents, not builtins, not the script's own functions."""
    wanted = "awk basename cat cut date du find grep sed sudo tr wc xargs"
    assert infer_commands("bash", BASH) == tuple(wanted.split())


def test_python_arguments_are_read_from_the_tree() -> None:
    """argparse and click; names, types, defaults, choices, switches, help."""
    assert names("python", PYTHON) == [
        ("file", "path", True, None),
        ("extra", "string", False, None),
        ("count", "number", False, 3),
        ("mode", "string", True, None),
        ("all", "boolean", False, None),
    ]
    assert infer_parameters("python", PYTHON).arguments == (
        {"param": "count", "flag": "--count"},
        {"param": "mode", "flag": "--mode"},
        {"param": "all", "flag": "--all", "switch": True},
        {"param": "file"},
        {"param": "extra"},
    )
    assert names("python", CLICK) == [("path", "path", True, None), ("dry_run", "boolean", False, None), ("times", "number", False, 2)]
    argv = names("python", "import sys\nprint(sys.argv[2], sys.argv[1])")
    assert argv == [("argument1", "string", True, None), ("argument2", "string", True, None)]
    assert infer_commands("python", PYTHON) == ("git", "ls", "sh", "sort")


def test_powershell_blocks_are_read() -> None:
    """`param()` with its attributes; cmdlets without those in comments and strings and without the script's own."""
    assert names("powershell", POWERSHELL) == [
        ("Path", "path", True, None),
        ("Mode", "string", False, "one"),
        ("Depth", "number", False, 3),
        ("Recurse", "boolean", False, None),
        ("Filter", "string", False, "a,b"),
    ]
    assert infer_parameters("powershell", POWERSHELL).arguments[3] == {"param": "Recurse", "flag": "-Recurse", "switch": True}
    assert infer_commands("powershell", POWERSHELL) == ("Get-ChildItem", "Get-Date", "Where-Object")


def test_declared_parameters_find_their_place() -> None:
    """Names are matched in any case; what the script does not take from its command line is left out."""
    schema: dict[str, object] = {"properties": {"FILE": {}, "other": {}}}
    assert infer_arguments("bash", BASH, schema) == ({"param": "FILE"},)


@pytest.mark.parametrize("language", ["bash", "python", "powershell"])
@pytest.mark.parametrize("text", ["", "\"'`$(((", "param(((", "def", "${1", "# " * 5000, "'" * 9999, "a" * 99999])
def test_nonsense_is_no_error(language: str, text: str) -> None:
    """A text that nobody can read gives nothing, or little."""
    infer_parameters(language, text)
    infer_commands(language, text)
