"""The house's import rule: each part imports only what its room may know."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_bundles.builders.carrying import carry

ROOT = Path(__file__).parent.parent
PARTS = {
    "uncaged_bundles": ROOT / "bundles",
    **dict.fromkeys(
        (
            "uncaged_engine",
            "uncaged_models",
            "uncaged_effects",
            "uncaged_agents",
            "uncaged_repair",
            "uncaged_tools",
            "uncaged_dispatcher",
            "uncaged_serve",
            "uncaged_browser",
            "uncaged_capture",
            "uncaged_schedules",
            "uncaged_telemetry",
            "uncaged_cluster",
        ),
        ROOT / "engine",
    ),
    "uncaged_roles": ROOT / "roles",
    "uncaged_templates": ROOT / "templates",
    "uncaged_cli": ROOT / "cli",
}
"""Each package, with the folder that holds it."""
MAY_IMPORT = {
    "uncaged_bundles": set(),
    "uncaged_engine": {"uncaged_bundles"},
    "uncaged_models": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_effects": {"uncaged_bundles", "uncaged_engine", "uncaged_models"},
    "uncaged_repair": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_tools": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_dispatcher": {"uncaged_bundles", "uncaged_engine", "uncaged_models"},
    "uncaged_serve": {"uncaged_bundles", "uncaged_engine", "uncaged_schedules"},
    "uncaged_schedules": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_browser": {"uncaged_bundles", "uncaged_engine", "uncaged_models"},
    "uncaged_capture": {
        "uncaged_bundles",
        "uncaged_engine",
        "uncaged_models",
        "uncaged_browser",
        "uncaged_tools",
        "uncaged_repair",
    },
    "uncaged_telemetry": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_cluster": {"uncaged_bundles", "uncaged_engine"},
    "uncaged_agents": {"uncaged_bundles", "uncaged_engine", "uncaged_models", "uncaged_tools"},
    "uncaged_roles": {"uncaged_bundles"},
    "uncaged_templates": {"uncaged_bundles", "uncaged_roles"},
    "uncaged_cli": set(PARTS) - {"uncaged_cli"},
}
FACES = {
    "uncaged_models": ("door", "services"),
    "uncaged_effects": ("door", "services"),
    "uncaged_repair": ("door", "services"),
    "uncaged_agents": ("door", "services"),
    "uncaged_tools": ("door", "services", "api"),
    "uncaged_dispatcher": ("door", "services", "api"),
    "uncaged_serve": ("services", "api"),
    "uncaged_browser": ("door", "services"),
    "uncaged_capture": ("door", "services", "api"),
    "uncaged_schedules": ("door", "services", "api"),
    "uncaged_telemetry": ("door", "services"),
    "uncaged_cluster": ("services",),
}
"""Packages of the core that each part may import, as any other distribution may."""
PUBLIC_MODULES = (
    "uncaged_engine.api",
    *(
        f"uncaged_engine.{room}.{path.stem}"
        for room in ("door", "services")
        for path in sorted((PARTS["uncaged_engine"] / "uncaged_engine" / room).glob("[!_]*.py"))
    ),
)
"""The modules of the core that parts and other distributions may import."""
FLOORS = (
    ("plugins", "settings", "journal", "processes", "listening"),
    ("door", "sandbox"),
    ("costs", "cells", "network", "effect_kinds"),
    ("notify", "stores"),
    ("state", "shipped", "proposals"),
    ("flows",),
    ("steps",),
    ("worker",),
    ("threads",),
    ("shared",),
    ("api",),
    ("shared_engine",),
    ("services",),
)
"""The rooms of the core, floor by floor: each imports only rooms of floors below its own."""
UPWARDS = {("threads", "api"): "housekeeping and travelling act through the front door"}
"""The only way up inside the core, and why."""
HEAVY = (
    "acp",
    "anthropic",
    "cronsim",
    "dbos",
    "h11",
    "httpcore2",
    "httpx",
    "httpx2",
    "jsonschema",
    "keyring",
    "markdownify",
    "mcp",
    "opentelemetry",
    "playwright",
    "prometheus_client",
    "prompt_toolkit",
    "psycopg",
    "pydantic",
    "pytest",
    "rich",
    "sqlalchemy",
    "starlette",
    "tree_sitter",
    "uvicorn",
    "websockets",
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
def test_a_package_imports_only_what_the_table_allows(part: str) -> None:
    """Each package imports only those that the table names for it."""
    modules = sorted((PARTS[part] / part).rglob("*.py"))
    assert modules
    wrong = {
        str(path.relative_to(ROOT)): sorted(strange)
        for path in modules
        if (strange := imports(path) & set(PARTS) - {part} - MAY_IMPORT[part])
    }
    assert wrong == {}


@pytest.mark.parametrize("part", FACES)
def test_a_part_reaches_the_core_by_its_public_modules(part: str) -> None:
    """A part imports the door, the services, and where the table says so the API; no other room of
    the core.
    """
    found: set[str] = set()
    for path in sorted((PARTS[part] / part).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and (node.module or "").partition(".")[0] == "uncaged_engine"
            ):
                found.update([*str(node.module).split("."), alias.name][1] for alias in node.names)
    assert found <= set(FACES[part])


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_a_public_module_lists_its_names(module: str) -> None:
    """`__all__` of a public module has each public name that the module defines, and only names
    that are there; each of its classes and functions has a docstring.
    """
    loaded = importlib.import_module(module)
    listed = set(loaded.__all__)
    assert len(listed) == len(loaded.__all__)
    tree = ast.parse(Path(str(loaded.__file__)).read_text("utf-8"))
    assert {name for name in definitions(tree) if not name.startswith("_")} <= listed
    assert {name for name in listed if not hasattr(loaded, name)} == set()
    objects = [getattr(loaded, name) for name in listed]
    assert [
        found.__qualname__
        for found in objects
        if (inspect.isclass(found) or inspect.isfunction(found)) and not inspect.getdoc(found)
    ] == []


@pytest.mark.parametrize("part", FACES)
def test_a_part_uses_only_listed_names_of_a_public_module(part: str) -> None:
    """A part imports, or takes as an attribute, no name of a public module that its `__all__` does
    not have.
    """
    wrong: set[str] = set()
    for path in sorted((PARTS[part] / part).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    if (inner := f"{node.module}.{alias.name}") in PUBLIC_MODULES:
                        modules[alias.asname or alias.name] = inner
                    elif node.module in PUBLIC_MODULES and alias.name not in names_of(node.module):
                        wrong.add(f"{path.name}: {inner}")
        wrong |= {
            f"{path.name}: {modules[node.value.id]}.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and node.attr not in names_of(modules[node.value.id])
        }
    assert wrong == set()


def test_no_module_imports_a_private_name_of_another() -> None:
    """A name with a leading underscore is used in its own module only."""
    wrong = {
        f"{path.relative_to(ROOT)}: {alias.name}"
        for name, folder in PARTS.items()
        for path in sorted((folder / name).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    }
    assert wrong == set()


def test_python_is_parsed_in_one_place() -> None:
    """`ast.parse` itself fails at times in a process whose threads parse at the same time. The
    server of the repair runs alone, in the interpreter of the repository.
    """
    found = {
        str(path.relative_to(ROOT))
        for name, folder in PARTS.items()
        for path in (folder / name).rglob("*.py")
        if "ast.parse(" in path.read_text("utf-8") and "uncaged_repair/server" not in str(path)
    }
    assert found == {"bundles/uncaged_bundles/syntax.py"}


def definitions(tree: ast.Module) -> set[str]:
    """Return the names of the classes, functions and values that a module defines itself."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


def names_of(module: str) -> list[str]:
    """Return the names that a public module lists."""
    listed: list[str] = importlib.import_module(module).__all__
    return listed


def test_a_room_of_the_core_imports_only_rooms_of_lower_floors() -> None:
    """The floors of the core hold but for the named way up, and no way up is named in vain."""
    engine = PARTS["uncaged_engine"] / "uncaged_engine"
    entries = {
        path.stem
        for path in engine.iterdir()
        if (path.is_dir() and not path.name.startswith(".")) or path.suffix == ".py"
    } - {
        "__init__",
        "__pycache__",
    }
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    assert entries == set(floor)
    upwards = {
        (room, other)
        for room in floor
        for other in rooms_imported(engine, room, set(floor))
        if floor[other] >= floor[room]
    }
    assert upwards == set(UPWARDS)


def rooms_imported(engine: Path, room: str, rooms: set[str]) -> set[str]:
    """Return the other rooms of the core that the modules of *room* import."""
    found: set[str] = set()
    for path in sorted((engine / room).rglob("*.py")) or [engine / f"{room}.py"]:
        inside = ("uncaged_engine", *path.relative_to(engine).parts[:-1])
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                begun = inside[: len(inside) - node.level + 1] if node.level else ()
                named = [*begun, *(node.module.split(".") if node.module else ())]
                found.update(
                    [*named, alias.name][1] for alias in node.names if named[0] == "uncaged_engine"
                )
    return found & rooms - {room}


def test_a_bundle_can_carry_no_code_of_our_packages() -> None:
    """The builder knows each of our packages by name."""
    assert set(PARTS) == carry._OURS


def test_outer_folders_hold_packages_and_nothing_loose() -> None:
    """Each outer folder has the packages of the table, each with a `py.typed`, and no loose
    module.
    """
    for folder in set(PARTS.values()):
        assert not list(folder.glob("*.py"))
        found = {one.name for one in folder.iterdir() if one.is_dir() and one.name != "__pycache__"}
        assert found == {name for name, place in PARTS.items() if place == folder}
        assert all((folder / name / "py.typed").exists() for name in found)


@pytest.mark.parametrize("words", [["--help"], ["list"], ["threads"], ["completion", "bash"]])
@pytest.mark.slow
def test_light_commands_load_no_heavy_library(words: list[str], tmp_path: Path) -> None:
    """`--help`, `list`, `threads` and completion must start quickly, so they import none of the
    heavy libraries.
    """
    code = (
        "import sys\n"
        "from uncaged_cli.main import run\n"
        f"assert run({words!r}) == 0\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    environment = {
        "UNCAGED_WORKFLOW_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run(
        [sys.executable, "-c", "from uncaged_engine.api import Engine; Engine.open()"],
        env=environment,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
