"""Flows that come with a distribution, ours or another, found through its entry points and added to
a store once.

Every open compares the installed template packages with those that were added before. As long as no
directory on the module path has changed, that is one small file; no package is imported unless it
is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from .plugins import installation, loaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

TEMPLATES = "uncaged_workflow.templates"
OURS = "uncaged-workflow"
STAMPS = "templates-"
"""Begins the name of a file in `run`: what the module path looked like, and the keys of the
template packages on it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedFlow:
    """A flow of a template package. confirm: a sentence runs it only after a person agreed."""

    name: FlowName
    bundle: Bundle
    confirm: bool


def add_shipped_flows(store: Store, registry: Registry, now_ms: int) -> tuple[str, ...]:
    """Add the flows of template packages that are new; return why the flows of some could not be
    had.
    """
    module_path, stamp = installation()
    stamp_path = store.run / f"{STAMPS}{module_path}"
    before = (read_if_there(stamp_path) or b"").decode("utf-8", "replace").splitlines()
    if before[:1] == [stamp] and registry.seeded().issuperset(before[1:]):
        return ()
    points = _points()
    problems = []
    for key, found in points.items():
        if key in registry.seeded():
            continue
        try:
            shipped = [flow for point in found for flow in _flows_of(point)]
        except (
            UncagedError,
            ImportError,
            AttributeError,
            TypeError,
            ValueError,
            LookupError,
            OSError,
        ) as exc:
            problems.append(
                f"the flows of {key} cannot be added: {exc}; update or uninstall that package"
            )
            continue
        registry.seed(
            key,
            _just([(flow.name, flow.bundle) for flow in shipped]),
            now_ms=now_ms,
            confirm={flow.name for flow in shipped if flow.confirm},
        )
    known = registry.seeded()
    write_atomically(
        stamp_path, "\n".join([stamp, *(key for key in points if key in known), ""]).encode()
    )
    return tuple(problems)


def shipped_flows() -> Iterable[tuple[FlowName, Bundle]]:
    """The flows of all template packages that are installed."""
    for points in _points().values():
        for point in points:
            yield from ((flow.name, flow.bundle) for flow in _flows_of(point))


def _flows_of(point: EntryPoint) -> Iterable[ShippedFlow]:
    from uncaged_bundles.builders.workflow import write_workflow

    found: Any = loaded(point)
    # a function gives several flows, each with its name, and True if it needs consent
    pairs = found() if callable(found) else [(point.name, found)]
    for name, source, *marks in pairs:
        is_built = isinstance(source, bytes)
        # schemas and code of ours are checked by the tests, and the code again when it is run: the
        # checks cost a first command 60 ms and 200 ms
        is_ours = _is_ours(point)
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
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
        found.setdefault(
            __version__ if _is_ours(point) else f"{package}: {point.name} = {point.value}", []
        ).append(point)
    return found


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == OURS


def _just(flows: list[tuple[FlowName, Bundle]]) -> Callable[[], Iterable[tuple[FlowName, Bundle]]]:
    return lambda: flows
