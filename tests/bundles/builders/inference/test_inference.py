"""Inference of parameters and commands from the text of scripts."""

from __future__ import annotations

import re

import pytest
from uncaged_bundles.builders.inference.inference import (
    infer_arguments,
    infer_commands,
    infer_parameters,
)
from uncaged_bundles.errors import BundleError

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
    return [
        (part["name"], part["type"], part["required"], part.get("default"))
        for part in infer_parameters(language, text).parameters
    ]


def test_bash_places_have_names() -> None:
    """The variable that takes a place names it; a default makes it optional; a function's own
    places are not the script's.
    """
    assert names("bash", BASH) == [
        ("file", "path", False, "README.md"),
        ("count", "string", True, None),
    ]
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
    assert names("bash", text) == [
        ("limit", "number", False, 10),
        ("path", "path", True, None),
        ("quiet", "boolean", False, False),
    ]
    assert infer_parameters("bash", text).arguments == ()


def test_bash_commands_are_first_words() -> None:
    """Not words in quotes, comments or here documents, not builtins, not the script's own
    functions.
    """
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
    assert names("python", CLICK) == [
        ("path", "path", True, None),
        ("dry_run", "boolean", False, None),
        ("times", "number", False, 2),
    ]
    argv = names("python", "import sys\nprint(sys.argv[2], sys.argv[1])")
    assert argv == [("argument1", "string", True, None), ("argument2", "string", True, None)]
    assert infer_commands("python", PYTHON) == ("git", "ls", "sh", "sort")


def test_powershell_blocks_are_read() -> None:
    """`param()` with its attributes; cmdlets without those in comments and strings and without the
    script's own.
    """
    assert names("powershell", POWERSHELL) == [
        ("Path", "path", True, None),
        ("Mode", "string", False, "one"),
        ("Depth", "number", False, 3),
        ("Recurse", "boolean", False, None),
        ("Filter", "string", False, "a,b"),
    ]
    assert infer_parameters("powershell", POWERSHELL).arguments[3] == {
        "param": "Recurse",
        "flag": "-Recurse",
        "switch": True,
    }
    assert infer_commands("powershell", POWERSHELL) == ("Get-ChildItem", "Get-Date", "Where-Object")


def test_declared_parameters_find_their_place() -> None:
    """A place gets the parameter of the script's own variable, in any case, else the one at its
    number.
    """
    schema: dict[str, object] = {
        "properties": {"FILE": {}, "other": {}},
        "required": ["FILE", "other"],
    }
    assert infer_arguments("bash", BASH, schema) == ({"param": "FILE"}, {"param": "other"})


@pytest.mark.parametrize(
    ("text", "names", "bound"),
    [
        ('wc -l "$1"', "path", "path"),
        ('grep -c "$2" "$1"', "path pattern", "path pattern"),
        ('echo "from $1 to $2"', "a b", "a b"),
        ('echo "$1 $2"', "a b", "a b"),
        ('pattern=$1; file=$2; grep "$pattern" "$file"', "file pattern", "pattern file"),
        ('cut -c "$2" README', "a b", "a b"),
        ('for one in "$@"; do echo "$one"; done', "a b c", "a b c"),
        ('a=$1; shift; echo "$1"', "a b", "a b"),
        ('cat "$PARAM_B" "$1"', "a b", "a"),
        ("awk '{ print $1, $2 }' \"$1\"", "path", "path"),
        ("echo \"\\$3\" '$2' $1 # $4", "a", "a"),
        ('f() { echo "$2"; }; f x y; echo "$1"', "a", "a"),
        ("cat <<EOF\nto $1 from $2\nEOF\ncat <<'EOF'\n$3\nEOF\n", "a b", "a b"),
        ('echo "${1:-x}" "${2:-y}"', "a", "a"),
        ("echo hello", "a", ""),
    ],
)
def test_a_place_is_bound_in_the_order_of_parameters(text: str, names: str, bound: str) -> None:
    """A place that bash would expand has its parameter; text in quotes, comments, functions and awk
    programs has none.
    """
    schema: dict[str, object] = {
        "properties": {name: {} for name in names.split()},
        "required": names.split(),
    }
    assert infer_arguments("bash", text, schema) == tuple({"param": name} for name in bound.split())


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        ('echo "$1"', "", "reads $1, and there is no parameter"),
        ('echo "$1" "$2"', "a", "reads $2, and there is no parameter"),
        (
            'grep "$PARAM_PATTERN" "$1"',
            "pattern path",
            "may be 'pattern' (by the order of the parameters) or 'path'",
        ),
        ('b=$1; echo "$2"', "a b", "its parameter would be 'b', as that of a place before it"),
    ],
)
def test_a_place_without_one_parameter_is_refused(text: str, names: str, problem: str) -> None:
    """A script whose places cannot be bound is refused with the place and the way out."""
    schema: dict[str, object] = {
        "properties": {name: {} for name in names.split()},
        "required": names.split(),
    }
    with pytest.raises(BundleError, match=re.escape(problem)):
        infer_arguments("bash", text, schema)


def test_an_absent_parameter_moves_no_place() -> None:
    """A parameter that may be absent, without a default, can only be the last on the command
    line.
    """
    properties: dict[str, object] = {"a": {}, "b": {}}
    assert infer_arguments(
        "bash", 'echo "$1" "${2:-}"', {"properties": properties, "required": ["a"]}
    ) == ({"param": "a"}, {"param": "b"})
    with pytest.raises(BundleError, match="'a' may be absent and comes before 'b'"):
        infer_arguments("bash", 'echo "${1:-}" "$2"', {"properties": properties, "required": ["b"]})
    assert infer_arguments(
        "bash",
        'echo "${1:-}" "$2"',
        {"properties": {"a": {"default": ""}, "b": {}}, "required": ["b"]},
    )


def test_a_python_place_is_bound_in_the_order_of_parameters() -> None:
    """A place of `sys.argv` has its parameter, beside parameters that are read from the
    environment.
    """
    text = "import os, sys\nprint(sys.argv[1], os.environ['PARAM_B'])"
    schema: dict[str, object] = {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    assert infer_arguments("python", text, schema) == ({"param": "a"},)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cat <<EOF\ntoday: $(date) on `hostname`\nEOF", "cat date hostname"),
        ("cat <<'EOF'\n$(date)\nEOF", "cat"),
        ("bash <<'EOF'\nuptime\nEOF", "bash"),
        (
            "find . -name '*.x' -exec grep -l y {} \\; -o -execdir /usr/bin/stat {} +",
            "find grep stat",
        ),
        ("find . -print0 | xargs -0 -I {} cp {} /tmp", "cp find xargs"),
        ("sh -c 'ls | sort'", "sh"),
        ('echo "# $(uptime)" # $(who)', "uptime"),
        ("timeout 5 env A=1 curl -s x", "curl env timeout"),
    ],
)
def test_commands_inside_other_texts_are_found(text: str, wanted: str) -> None:
    """A program that a here document, `find -exec` or `xargs` starts is one that the script starts;
    one that a shell inside the script starts is not inferred.
    """
    assert infer_commands("bash", text) == tuple(wanted.split())


@pytest.mark.parametrize("language", ["bash", "python", "powershell"])
@pytest.mark.parametrize(
    "text", ["", "\"'`$(((", "param(((", "def", "${1", "# " * 5000, "'" * 9999, "a" * 99999]
)
def test_nonsense_is_no_error(language: str, text: str) -> None:
    """An unreadable text gives no parameters and commands, or few."""
    infer_parameters(language, text)
    infer_commands(language, text)
