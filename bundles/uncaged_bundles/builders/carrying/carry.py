"""Collection of the code that a function needs: its own text, and every helper, constant, class and
import that it names, from all of the author's modules.

Code that cannot be carried (of a third party, a name that is bound twice, a whole module) is an
error with its name and place.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from uncaged_bundles.errors import BundleError

from .constants import Binding
from .imports import Import, check_allowed, is_installed, is_standard
from .source import Source, Statement, read_source
from .stateless import check_stateless

_CARRIED = "uncaged_bundles.carried."
"""The prefix of modules that are written to be carried."""
_OURS = frozenset(
    f"uncaged_{name}"
    for name in (
        "bundles",
        "engine",
        "models",
        "effects",
        "agents",
        "repair",
        "tools",
        "dispatcher",
        "serve",
        "browser",
        "capture",
        "schedules",
        "telemetry",
        "cluster",
        "roles",
        "templates",
        "cli",
    )
)
_SHARED = frozenset({"uncaged_roles", "uncaged_templates"})
"""Packages of ours whose code a bundle may carry."""
POSTPONED = Import(level=0, module="__future__", name="annotations", alias="")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)

ImportNode = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Origin:
    """The definition of a name in the bundle.

    identity: equal for equal definitions. module: the module that has the value under that name;
    empty for an import.
    """

    identity: tuple[object, ...]
    place: str
    module: str = ""


@dataclass(slots=True)
class Carrier:
    """Collects the code of one bundle.

    reserved: names that the bundle binds itself. trusted: any standard module may be imported.
    """

    reserved: Sequence[str]
    trusted: bool = False
    _starts: list[str] = field(default_factory=list)
    _sources: dict[str, Source] = field(default_factory=dict)
    # lines of a module, by the statement that they come from
    _code: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    # modules that a module imports from, by statement
    _imported_from: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    _origins: dict[str, Origin] = field(default_factory=dict)
    _builtins: dict[str, str] = field(default_factory=dict)  # the place of each first use
    _imports: dict[Import, None] = field(default_factory=dict)

    def carry(self, module: str, name: str) -> None:
        """Collect the definition of *name* in the loaded *module*, and all that it needs.

        Raises:
            BundleError: a part of it cannot be carried.
        """
        self._starts.append(module)
        source = self._source(module, f"the module {module!r}")
        self._take(source, name, source.path)

    def imports(self) -> tuple[Import, ...]:
        """Return the imports that the code needs; annotations are postponed if one of the author's
        modules postpones them.
        """
        postponed = any(self._sources[module].postpones_annotations for module in self._code)
        return (*([POSTPONED] if postponed else []), *self._imports)

    def bindings(self) -> Iterator[Binding]:
        """Yield the names of carried definitions."""
        for name, origin in self._origins.items():
            if origin.module:
                yield Binding(name=name, module=origin.module, place=origin.place)

    def code(self) -> Iterator[tuple[str, str]]:
        """Yield (module, text of a statement): imported modules before those that import from them,
        each in its own order.

        Raises:
            BundleError: a carried definition would shadow a built-in name that other code uses.
        """
        for name, place in self._builtins.items():
            if name in self._origins:
                raise BundleError(
                    f"{place} means the built-in {name!r}, but {self._origins[name].place} defines another; rename that"
                )
        for module in self._ordered():
            for _, texts in sorted(self._code.get(module, {}).items()):
                for text in texts:
                    yield module, text

    def _take(self, source: Source, name: str, place: str) -> None:
        found = source.bindings.get(name, ())
        imports = [
            (statement, node, alias)
            for statement in found
            for node, alias in _imports_of(statement, name)
        ]
        if not found:
            self._take_builtin(source, name, place)
        elif len(imports) == len(found):
            for statement, node, alias in imports:
                self._take_import(source, statement, node, alias)
        elif len(found) > 1:
            places = " and ".join(source.place(statement.nodes[0].lineno) for statement in found)
            raise BundleError(
                f"{place}: {name!r} is bound more than once, at {places}; give it one definition"
            )
        else:
            self._take_statement(source, found[0], name, place)

    def _take_builtin(self, source: Source, name: str, place: str) -> None:
        if name.startswith("__"):
            raise BundleError(
                f"{place}: {name!r} belongs to the file that it is in, and means nothing in a bundle"
            )
        if not hasattr(builtins, name):
            hint = (
                "import it by name, not by '*'"
                if source.imports_star
                else "it is defined nowhere in that file"
            )
            raise BundleError(f"{place}: {name!r} cannot be carried; {hint}")
        self._builtins.setdefault(name, place)

    def _take_statement(self, source: Source, statement: Statement, name: str, place: str) -> None:
        code = self._code.setdefault(source.name, {})
        if statement.index in code:
            return
        if source.name.partition(".")[0] in _OURS - _SHARED and not source.name.startswith(
            _CARRIED
        ):
            raise BundleError(
                f"{place}: {name!r} is part of {source.name}; from uncaged_bundles, a bundle carries END, START and View alone"
            )
        for node in statement.nodes:
            if not isinstance(node, _DEFINITIONS) and type(node).__name__ != "TypeAlias":
                word = type(node).__name__.lower()
                raise BundleError(
                    f"{place}: {name!r} is bound inside {word!r} at {source.place(node.lineno)}; define it on its own"
                )
        check_stateless(statement, source)
        code[statement.index] = [statement.text]
        for bound in statement.binds:
            self._claim(
                bound,
                Origin(
                    (source.name, statement.index),
                    source.place(statement.nodes[0].lineno),
                    source.name,
                ),
            )
        self._check_inner_imports(source, statement)
        lines = statement.first_lines()
        for needed in statement.needs:
            self._take(source, needed, source.place(lines[needed]))

    def _take_import(
        self, source: Source, statement: Statement, node: ImportNode, alias: ast.alias
    ) -> None:
        place = source.place(node.lineno)
        entry = Import.of(node, alias)
        if entry.level == 0 and is_standard(entry.module):
            check_allowed(entry, place, trusted=self.trusted)
            self._claim(entry.bound, Origin(("import", entry), place))
            self._imports[entry] = None
            return
        if not entry.name:
            raise BundleError(
                f"{place}: {entry.module!r} is a module, and none is carried as a whole; import from it the names that you use"
            )
        target = self._source(_absolute(source, entry, place), place)
        if entry.name not in target.bindings and f"{target.name}.{entry.name}" in sys.modules:
            raise BundleError(
                f"{place}: {entry.name!r} is a module, and none is carried as a whole; import from it the names that you use"
            )
        self._imported_from.setdefault(source.name, {}).setdefault(statement.index, []).append(
            target.name
        )
        self._take(target, entry.name, place)
        if entry.bound != entry.name:
            self._claim(entry.bound, Origin(("alias", target.name, entry.name), place))
            texts = self._code.setdefault(source.name, {}).setdefault(statement.index, [])
            texts.extend({f"{entry.bound} = {entry.name}"} - set(texts))

    def _check_inner_imports(self, source: Source, statement: Statement) -> None:
        for node in statement.walk():
            if isinstance(node, ImportNode):
                place = source.place(node.lineno)
                for entry in (Import.of(node, alias) for alias in node.names):
                    if entry.level or not is_standard(entry.module):
                        raise BundleError(
                            f"{place}: an import inside a function is not carried; move it to the top of the file"
                        )
                    check_allowed(entry, place, trusted=self.trusted)

    def _source(self, name: str, place: str) -> Source:
        if name not in self._sources:
            module = sys.modules.get(name)
            if module is None:
                raise BundleError(
                    f"{place}: the module {name!r} is not loaded, so nothing can be carried from it"
                )
            authored = {start.partition(".")[0] for start in self._starts}
            if (
                is_installed(getattr(module, "__file__", None) or "")
                and name.partition(".")[0] not in authored | _OURS
            ):
                raise BundleError(
                    f"{place}: {name!r} is an installed package, not part of your code; a bundle cannot carry it"
                )
            self._sources[name] = read_source(module)
        return self._sources[name]

    def _claim(self, name: str, origin: Origin) -> None:
        if name in self.reserved:
            raise BundleError(
                f"{origin.place}: {name!r} is a name that every bundle uses itself; rename yours"
            )
        known = self._origins.setdefault(name, origin)
        if known.identity != origin.identity:
            raise BundleError(
                f"two things are named {name!r}, at {known.place} and at {origin.place}; a bundle is one file: rename one"
            )

    def _ordered(self) -> list[str]:
        """Return the modules in the order in which Python would finish importing them."""
        ordered: dict[str, None] = {}
        visited: set[str] = set()

        def visit(module: str) -> None:
            if module not in visited:
                visited.add(module)
                for _, targets in sorted(self._imported_from.get(module, {}).items()):
                    for target in targets:
                        visit(target)
                ordered[module] = None

        for module in self._starts:
            visit(module)
        return list(ordered)


def _imports_of(statement: Statement, name: str) -> Iterator[tuple[ImportNode, ast.alias]]:
    """Yield the imports that bind *name*, including those for type checkers, because annotations
    are carried, too.
    """
    for node in statement.nodes:
        for part in (
            node.body
            if isinstance(node, ast.If)
            and not node.orelse
            and "TYPE_CHECKING" in ast.dump(node.test)
            else (node,)
        ):
            if isinstance(part, ImportNode):
                yield from (
                    (part, alias) for alias in part.names if Import.of(part, alias).bound == name
                )


def _absolute(source: Source, entry: Import, place: str) -> str:
    try:
        return importlib.util.resolve_name("." * entry.level + entry.module, source.package)
    except ImportError as exc:
        raise BundleError(f"{place}: {exc}") from exc
