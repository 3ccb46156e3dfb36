"""Replacement, inside the sandbox, of clock, random numbers and fresh ids by errors that name what
to use instead: replay is deterministic.

This serves determinism and clear errors; the boundary is the kernel. Modules are patched when the
bundle imports them, so an unused one costs nothing. Runs as compiled code sent by the parent;
imports nothing of ours.
"""

from __future__ import annotations

import posix
import sys
import time
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, NoReturn

USE_TIME = "use options['startedAt'] or yield {'now': {}}"
USE_SEED = "use random.Random(options['seed'])"
USE_ID = "derive it from options['threadId'] and options['seed'], or take it from an effect"
USE_SLEEP = "yield {'sleep': {...}}"

CLOCKS = (
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *(
        "process_time",
        "process_time_ns",
        "thread_time",
        "thread_time_ns",
        "clock_gettime",
        "clock_gettime_ns",
    ),
)
MODULE_LEVEL_RANDOM = (
    *(
        "seed",
        "random",
        "uniform",
        "triangular",
        "randint",
        "choice",
        "randrange",
        "sample",
        "shuffle",
        "choices",
        "normalvariate",
    ),
    *(
        "lognormvariate",
        "expovariate",
        "vonmisesvariate",
        "gammavariate",
        "gauss",
        "betavariate",
        "binomialvariate",
        "paretovariate",
    ),
    *("weibullvariate", "getstate", "setstate", "getrandbits", "randbytes"),
)


def replace() -> None:
    """Patch the loaded modules, and install the import finder for later ones."""
    for name in CLOCKS:
        if hasattr(time, name):
            setattr(time, name, refusing(f"time.{name}", USE_TIME))
    time.sleep = refusing("time.sleep", USE_SLEEP)
    for name, position in (
        ("localtime", 0),
        ("gmtime", 0),
        ("ctime", 0),
        ("asctime", 0),
        ("strftime", 1),
    ):
        setattr(time, name, needing(f"time.{name}", getattr(time, name), position))
    for name in ("urandom", "getrandom"):
        if hasattr(posix, name):
            # before any module imports os, which copies it
            setattr(posix, name, refusing(f"os.{name}", USE_SEED))
    for name, change in CHANGES.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, PatchingFinder())


class PatchingFinder:
    """Import finder that patches a few modules right after their execution."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: object = None) -> ModuleSpec | None:
        change = CHANGES.get(name)
        if change is None:
            return None
        spec: ModuleSpec | None = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]  # this one loader, made for this one import
        return spec


def refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    def refused(*_arguments: object, **_named: object) -> NoReturn:
        raise RuntimeError(
            f"{name}() differs from run to run, so a bundle cannot call it: {instead}"
        )

    return refused


def needing(name: str, original: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return the function with a check that its time argument is present."""

    def checked(*arguments: object) -> Any:
        if len(arguments) <= position or arguments[position] is None:
            raise RuntimeError(
                f"{name}() without a time reads the clock, so a bundle cannot call it: {USE_TIME}"
            )
        return original(*arguments)

    return checked


def change_random(module: Any) -> None:
    for name in MODULE_LEVEL_RANDOM:
        if hasattr(module, name):
            setattr(module, name, refusing(f"random.{name}", USE_SEED))
    seed = module.Random.seed

    def seeded(self: object, a: object = None, version: int = 2) -> None:
        if a is None:
            raise RuntimeError(
                f"random.Random() without a seed differs from run to run: {USE_SEED}"
            )
        seed(self, a, version)

    module.Random.seed = seeded


def change_uuid(module: Any) -> None:
    for name in ("uuid1", "uuid4", "uuid6", "uuid7", "getnode"):
        if hasattr(module, name):
            setattr(module, name, refusing(f"uuid.{name}", USE_ID))


def change_datetime(module: Any) -> None:
    """Replace the C types, which cannot be patched, by subclasses that pass for them."""

    def passes_for(real: type) -> type[type]:
        class InstanceCheck(type):
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, real)

            def __subclasscheck__(cls, subclass: type) -> bool:
                return issubclass(subclass, real)

        return InstanceCheck

    def same(real: type, **refused: str) -> type:
        def show(self: object) -> str:
            text: str = real.__repr__(self)  # type: ignore[call-arg]  # typed as `object`, bound by hand
            return f"datetime.{text}" if type(self) is kind else text

        members: dict[str, object] = {
            name: classmethod(refusing(title, USE_TIME)) for name, title in refused.items()
        }
        members["__repr__"] = show
        kind: type = passes_for(real)(
            real.__name__, (real,), {"__module__": "datetime", "__slots__": (), **members}
        )
        return kind

    module.date = same(module.date, today="datetime.date.today")
    module.datetime = same(
        module.datetime,
        now="datetime.datetime.now",
        utcnow="datetime.datetime.utcnow",
        today="datetime.datetime.today",
    )


CHANGES: dict[str, Callable[[Any], None]] = {
    "random": change_random,
    "uuid": change_uuid,
    "datetime": change_datetime,
}
