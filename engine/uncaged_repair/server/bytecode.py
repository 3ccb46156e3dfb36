"""Bytecode of modules that have none beside their source, in a directory of its own: of libraries,
and of the repository's own.

An entry is found by a digest of path and source text, so it is never that of an older text, or of a
text that a candidate has changed.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import os
import sys
from importlib import machinery
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .wire import Message

REWRITING = ["fn", "config"]
"""Parameters of the function that rewrites assertions, in the versions of pytest that are known."""

_installed: list[BytecodeDirectory] = []


class BytecodeDirectory:
    """Directory of bytecode. fill: new entries are added. repository: this copy of it; all copies
    share its entries. libraries, excluded: the directories whose modules have entries, and those
    inside of them whose modules have none.
    """

    def __init__(
        self, path: str, *, fill: bool, repository: str, libraries: list[str], excluded: list[str]
    ) -> None:
        self._path, self._fill = path, fill
        self._repository = repository.rstrip(os.sep) + os.sep
        self._libraries = tuple(place.rstrip(os.sep) + os.sep for place in libraries)
        self._excluded = tuple(place.rstrip(os.sep) + os.sep for place in excluded)

    def covers(self, path: str) -> bool:
        """Return whether *path*, a file or a directory, is one of a library or the repository."""
        inside = os.path.abspath(path) + os.sep  # noqa: PTH100 - for each import
        if inside.startswith(self._repository):
            return True
        return inside.startswith(self._libraries) and not inside.startswith(self._excluded)

    def code(self, kind: str, path: str, source: bytes, make: Callable[[], CodeType]) -> CodeType:
        """Return the code of the module *path* with this *source*: the entry, else what *make*
        returns. kind: how the code is made of the source.
        """
        place = path
        if path.startswith(self._repository):
            place = path[len(self._repository) :]
        about = (kind, sys.implementation.cache_tag, MAGIC_NUMBER, sys.flags.optimize, place)
        digest = hashlib.blake2b(repr(about).encode() + source, digest_size=16).hexdigest()
        entry = f"{self._path}/{digest}"
        try:
            with open(entry, "rb") as file:  # noqa: PTH123 - for each import
                found = marshal.loads(file.read())  # noqa: S302 - in the sandbox alone
            if isinstance(found, CodeType):
                return _located(found, path)
        except (OSError, EOFError, ValueError, TypeError):
            pass
        made = make()
        if self._fill:
            self._add(entry, made)
        return made

    def _add(self, entry: str, code: CodeType) -> None:
        new = f"{entry}.{os.getpid()}"
        try:
            with open(new, "wb") as file:  # noqa: PTH123 - the same
                file.write(marshal.dumps(code))
            os.replace(new, entry)  # noqa: PTH105 - the same
        except OSError:  # the disk is full, for instance: the module is loaded all the same
            return


class BytecodeLoader(machinery.SourceFileLoader):
    """Loader of a covered module. Python compiles it only if there is no bytecode beside it."""

    def source_to_code(self, data: Any, path: Any, *more: Any, **named: Any) -> CodeType:  # type: ignore[override, unused-ignore]
        # more, named: a level of optimization, and in newer versions of Python the module's name
        def compiled() -> Any:
            return super(BytecodeLoader, self).source_to_code(data, path, *more, **named)

        if not _installed or not isinstance(data, bytes) or named.get("_optimize", -1) != -1:
            return compiled()  # type: ignore[no-any-return]
        return _installed[0].code("module", str(path), data, compiled)


def _located(code: CodeType, path: str) -> CodeType:
    """Return *code* as that of the file *path*, which may have been in another copy."""
    if code.co_filename == path:
        return code
    inner = [
        _located(part, path) if isinstance(part, CodeType) else part for part in code.co_consts
    ]
    return code.replace(co_filename=path, co_consts=tuple(inner))


def install(settings: Message | None) -> None:
    """Use the directory of *settings* (path, fill, repository, libraries, excluded) in this process
    and its forks; None: use none.
    """
    if settings is None:
        return
    libraries = [*settings["libraries"], sys.prefix, sys.base_prefix]
    directory = BytecodeDirectory(
        settings["path"],
        fill=settings["fill"],
        repository=settings["repository"],
        libraries=libraries,
        excluded=settings["excluded"],
    )
    _installed[:] = [directory]
    find = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (BytecodeLoader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def find_covered(path: str) -> Any:
        if not directory.covers(path):
            raise ImportError("its modules have no entries", path=path)
        return find(path)

    sys.path_hooks.insert(0, find_covered)
    sys.path_importer_cache.clear()


def keep_rewritten_modules() -> None:
    """Let pytest take modules with rewritten assertions from the directory, too."""
    from _pytest import __version__
    from _pytest.assertion import rewrite

    original: Any = getattr(rewrite, "_rewrite_test", None)
    known = original is not None and list(inspect.signature(original).parameters) == REWRITING
    if not _installed or not known or original.__module__ == __name__:
        return
    directory = _installed[0]

    def rewrite_test(fn: Any, config: Any) -> Any:
        if not directory.covers(str(fn)):
            return original(fn, config)
        with_hook = config.getini("enable_assertion_pass_hook")
        kind = f"pytest {__version__} {with_hook}"
        status, source = fn.stat(), fn.read_bytes()
        return status, directory.code(kind, str(fn), source, lambda: original(fn, config)[1])

    rewrite._rewrite_test = rewrite_test
