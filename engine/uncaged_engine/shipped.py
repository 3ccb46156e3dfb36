"""Flows that come with a distribution, ours or another, found through its entry points and added to
a store once. Ours are added again, without those that a person removed, when there are new ones.

Every open compares the installed template packages with those that were added before. As long as no
directory on the module path and none of our templates has changed, that is one small file; no
package is imported unless it may have new flows.
"""

from __future__ import annotations

# not hashlib: it loads OpenSSL, which costs every start two milliseconds
from _blake2 import blake2b
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.names import FlowName, new_flow_name
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import read_if_there, write_atomically
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_bundles.version import __version__

from .effect_kinds import KNOWN
from .plugins import digest_of_state, installation, loaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

TEMPLATES = "uncaged_workflow.templates"
OURS = "uncaged-workflow"
STAMPS = "templates-"
"""Begins the name of a file in `run`: what the module path and the directories of our templates
looked like, these directories, and the keys of the template packages.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedFlow:
    """A flow of a template package. confirm: a sentence runs it only after a person agreed."""

    name: FlowName
    bundle: Bundle
    confirm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamp:
    """What an open found: the states of the module path and of our templates' directories, and the
    keys of the template packages.
    """

    path_state: str
    templates_state: str
    directories: tuple[str, ...]
    keys: tuple[str, ...]


def add_shipped_flows(store: Store, registry: Registry, now_ms: int) -> tuple[str, ...]:
    """Add the flows of template packages that are new; return why the flows of some could not be
    had.
    """
    module_path, path_state = installation()
    stamp_path = store.run / f"{STAMPS}{module_path}"
    stamp = _read_stamp(stamp_path)
    has_same_templates = (
        stamp is not None and digest_of_state(stamp.directories) == stamp.templates_state
    )
    known = registry.seeded()
    if (
        stamp is not None
        and has_same_templates
        and stamp.path_state == path_state
        and known.issuperset(stamp.keys)
    ):
        return ()
    # a store without any stamp is new, or has been written by hand
    may_lack_ours = not has_same_templates and any(store.run.glob(f"{STAMPS}*"))
    points = _points()
    problems: list[str] = []
    keys = []
    for key, found in points.items():
        is_ours = key == __version__
        before = [one for one in known if one == key or (is_ours and one.startswith(f"{key} "))]
        if before and not (is_ours and may_lack_ours):
            keys += before
            continue
        try:
            shipped = [flow for point in found for flow in _flows_of(point, is_ours=is_ours)]
        except (
            UncagedError,
            ImportError,
            AttributeError,
            TypeError,
            ValueError,
            LookupError,
            OSError,
        ) as exc:
            if before:  # they were added; what is new among them, a later open finds
                return tuple(problems)
            problems.append(
                f"the flows of {key} cannot be added: {exc}; update or uninstall that package"
            )
            continue
        keys.append(f"{key} {_digest_of_names(shipped)}" if is_ours else key)
        registry.seed(
            keys[-1],
            _just([(flow.name, flow.bundle) for flow in shipped]),
            now_ms=now_ms,
            confirm={flow.name for flow in shipped if flow.confirm},
        )
    directories = _template_directories(points.get(__version__, ()))
    lines = [path_state, digest_of_state(directories), str(len(directories)), *directories, *keys]
    write_atomically(
        stamp_path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    )
    return tuple(problems)


def add_our_flows(registry: Registry, now_ms: int) -> None:
    """Add the flows of this distribution to a registry that several machines share, unless those of
    this version were added before. Flows of other packages wait for a person who adds them: they
    would be granted on machines that do not have the package.
    """
    if any(key.partition(" ")[0] == __version__ for key in registry.seeded()):
        return
    points = _points().get(__version__, [])
    shipped = [flow for point in points for flow in _flows_of(point, is_ours=True)]
    registry.seed(
        f"{__version__} {_digest_of_names(shipped)}",
        _just([(flow.name, flow.bundle) for flow in shipped]),
        now_ms=now_ms,
        confirm={flow.name for flow in shipped if flow.confirm},
    )


def _read_stamp(path: Path) -> _Stamp | None:
    lines = (read_if_there(path) or b"").decode("utf-8", "surrogateescape").splitlines()
    if len(lines) < 3 or not lines[2].isdecimal():  # written by a former version
        return None
    path_state, templates_state, count, *rest = lines
    return _Stamp(
        path_state=path_state,
        templates_state=templates_state,
        directories=tuple(rest[: int(count)]),
        keys=tuple(rest[int(count) :]),
    )


def _template_directories(points: Iterable[EntryPoint]) -> list[str]:
    """Return the directories of the packages that have these entry points, on which the names of
    their flows depend.
    """
    from importlib.util import find_spec

    found: set[Path] = set()
    for package in {point.value.partition(".")[0].partition(":")[0] for point in points}:
        spec = find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec is not None else ():
            found |= {Path(root), *(path for path in Path(root).rglob("*") if path.is_dir())}
    return sorted(str(path) for path in found if path.name != "__pycache__")


def _digest_of_names(flows: Iterable[ShippedFlow]) -> str:
    """Return what tells one set of our flows from another; a flow that a store has is not replaced,
    so its content does not count.
    """
    names = "\0".join(sorted(flow.name for flow in flows))
    return blake2b(names.encode(), digest_size=8).hexdigest()


def shipped_flows() -> Iterable[tuple[FlowName, Bundle]]:
    """The flows of all template packages that are installed."""
    for key, points in _points().items():
        for point in points:
            flows = _flows_of(point, is_ours=key == __version__)
            yield from ((flow.name, flow.bundle) for flow in flows)


def _flows_of(point: EntryPoint, *, is_ours: bool) -> Iterable[ShippedFlow]:
    from uncaged_bundles.builders.workflow import write_workflow

    found: Any = loaded(point)
    # a function gives several flows, each with its name, and True if it needs consent
    pairs = found() if callable(found) else [(point.name, found)]
    for name, source, *marks in pairs:
        is_built = isinstance(source, bytes)
        # schemas and code of ours are checked by the tests, and the code again when it is run: the
        # checks cost a first command 60 ms and 200 ms
        built = source if is_built else write_workflow(source)
        yield ShippedFlow(
            name=new_flow_name(name),
            bundle=read_bundle(
                built,
                KNOWN,
                check_schemas=not is_built and not is_ours,
                check_code=not is_ours,
            ),
            confirm=marks == [True],
        )


def _points() -> dict[str, list[EntryPoint]]:
    """The entry points of template packages by a key that changes with the package's version; ours
    is the version alone.
    """
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=TEMPLATES), key=lambda one: one.name):
        # reading the name parses the distribution's metadata
        name = None if point.dist is None else point.dist.name
        package = "unknown" if point.dist is None else f"{name} {point.dist.version}"
        found.setdefault(
            __version__ if name == OURS else f"{package}: {point.name} = {point.value}", []
        ).append(point)
    return found


def _just(flows: list[tuple[FlowName, Bundle]]) -> Callable[[], Iterable[tuple[FlowName, Bundle]]]:
    return lambda: flows
