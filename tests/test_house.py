"""The house's import rule: each part imports only what its room may know."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = {
    "uncaged_bundles": ROOT / "bundles" / "uncaged_bundles",
    "uncaged_engine": ROOT / "engine" / "uncaged_engine",
    "uncaged_roles": ROOT / "roles" / "uncaged_roles",
    "uncaged_templates": ROOT / "templates" / "uncaged_templates",
    "uncaged_cli": ROOT / "cli" / "uncaged_cli",
}
MAY_IMPORT = {
    "uncaged_bundles": set(),
    "uncaged_engine": {"uncaged_bundles"},
    "uncaged_roles": {"uncaged_bundles"},
    "uncaged_templates": {"uncaged_bundles", "uncaged_roles"},
    "uncaged_cli": set(PARTS) - {"uncaged_cli"},
}
ROOMS = (
    *(
        "outcomes",
        "plugins",
        "listening",
        "settings",
        "effects",
        "costs",
        "processes",
        "journal",
        "web",
        "sandbox",
        "scripting",
        "workspace",
    ),
    *("prompts", "models", "agents", "conversation", "handlers", "known_effects", "state", "cells", "steps", "worker", "threads"),
    *("shipped", "api", "tools", "mcp"),
)
"""The engine's rooms, each above those that it may import."""
UPWARDS = {
    ("handlers", "api"): "a flow may start a flow",
    ("handlers", "state"): "and look how that one stands",
    ("handlers", "threads"): "and hand its options on",
    ("agents", "api"): "a model may use a flow as a tool",
    ("agents", "tools"): "and finds it where every other model does",
    ("agents", "handlers"): "and it is started as a child",
    ("threads", "api"): "keeping house and travelling act through the front door",
}
"""The only ways up, and why."""
HEAVY = (
    "acp",
    "anthropic",
    "httpx",
    "httpx2",
    "jsonschema",
    "keyring",
    "markdownify",
    "mcp",
    "playwright",
    "pydantic",
    "pytest",
    "rich",
    "tree_sitter",
    "zstandard",
)


def imports(path: Path) -> set[str]:
    """The top-level packages that a module imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_only_what_the_rule_allows(part: str) -> None:
    """bundles imports nothing of ours; engine and roles import bundles; templates import roles and bundles; cli imports all."""
    modules = sorted(PARTS[part].rglob("*.py"))
    assert modules
    wrong = {
        str(path.relative_to(ROOT)): sorted(strange)
        for path in modules
        if (strange := imports(path) & set(PARTS) - {part} - MAY_IMPORT[part])
    }
    assert wrong == {}


def test_a_room_of_the_engine_imports_only_rooms_below_it() -> None:
    """The order of the rooms holds but for the named ways up, and no way up stands there in vain."""
    engine = PARTS["uncaged_engine"]
    entries = {path.stem for path in engine.iterdir() if (path.is_dir() and not path.name.startswith(".")) or path.suffix == ".py"} - {
        "__init__",
        "__pycache__",
    }
    assert entries == set(ROOMS)
    upwards = {(room, other) for room in ROOMS for other in rooms_imported(engine, room) if ROOMS.index(other) > ROOMS.index(room)}
    assert upwards == set(UPWARDS)


def rooms_imported(engine: Path, room: str) -> set[str]:
    """The other rooms of the engine that the modules of *room* import."""
    found: set[str] = set()
    for path in sorted((engine / room).rglob("*.py")) or [engine / f"{room}.py"]:
        inside = ("uncaged_engine", *path.relative_to(engine).parts[:-1])
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                begun = inside[: len(inside) - node.level + 1] if node.level else ()
                named = [*begun, *(node.module.split(".") if node.module else ())]
                found.update([*named, alias.name][1] for alias in node.names if named[0] == "uncaged_engine")
    return found & set(ROOMS) - {room}


def test_outer_folders_hold_one_package_and_nothing_loose() -> None:
    """Each part's outer folder has exactly one importable package, with a `py.typed`, and no loose module."""
    for package in PARTS.values():
        assert (package / "py.typed").exists()
        assert not list(package.parent.glob("*.py"))
        assert [one.name for one in package.parent.iterdir() if one.is_dir() and one.name != "__pycache__"] == [package.name]


@pytest.mark.parametrize("words", [["--help"], ["list"], ["threads"], ["completion", "bash"]])
@pytest.mark.slow
def test_light_commands_load_no_heavy_library(words: list[str], tmp_path: Path) -> None:
    """`--help`, `list`, `threads` and completion must start quickly, so they import none of the heavy libraries."""
    code = (
        "import sys\n"
        "from uncaged_cli.main import run\n"
        f"assert run({words!r}) == 0\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    environment = {"UNCAGED_WORKFLOW_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", "from uncaged_engine.api import Engine; Engine.open()"], env=environment, check=True)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
