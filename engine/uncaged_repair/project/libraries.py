"""Import paths of an interpreter outside of its own directory, read from its installation without
starting it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .interpreter import ProjectInterpreter

QUOTED_PATH = re.compile(r"""['"](/[^'"\n]+)['"]""")
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Import paths. paths: directories that have to be readable. variables: for the environment of
    the interpreter.
    """

    paths: tuple[Path, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def libraries_of(interpreter: ProjectInterpreter, environment: Mapping[str, str]) -> Libraries:
    """Return the directories that `.pth` files and editable installations of *interpreter* name,
    and the user's own site-packages outside of a virtual environment.
    """
    prefix = interpreter.executable.parent.parent
    places = [
        place
        for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages")
        for place in prefix.glob(pattern)
    ]
    found = [path for place in places for path in _linked_directories(place)]
    if (prefix / "pyvenv.cfg").is_file():
        return Libraries(paths=tuple(dict.fromkeys(found)))
    base = Path(
        environment.get("PYTHONUSERBASE") or Path(environment.get("HOME", "/nonexistent"), ".local")
    )
    own = (
        base / "lib" / f"python{interpreter.version[0]}.{interpreter.version[1]}" / "site-packages"
    )
    if not own.is_dir():
        return Libraries(paths=tuple(dict.fromkeys(found)))
    return Libraries(
        paths=tuple(dict.fromkeys([*found, own, *_linked_directories(own)])),
        variables={"PYTHONUSERBASE": str(base)},
    )


def _linked_directories(place: Path) -> Iterator[Path]:
    """Yield the directories that `.pth` files and finders of editable installations in *place*
    name.
    """
    for file in sorted(place.glob("*.pth")):
        for line in _text(file).splitlines():
            if line.startswith("/") and Path(line.strip()).is_dir():
                yield Path(line.strip())
    for file in sorted(place.glob("__editable__*.py")):
        for name in QUOTED_PATH.findall(_text(file)):
            if Path(name).exists():
                yield (
                    Path(name).parent
                    if Path(name).is_file() or (Path(name) / "__init__.py").is_file()
                    else Path(name)
                )


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace") if file.stat().st_size <= MAX_FILE_BYTES else ""
    except OSError:
        return ""
