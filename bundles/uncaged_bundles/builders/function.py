"""Checks of the functions that a workflow names: plain, at the top level of a module, with the
right parameters, and not a closure.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType

from uncaged_bundles.errors import BundleError
from uncaged_bundles.shapes import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLocation:
    """The loaded module and the name by which a function is found."""

    module: str
    name: str


def locate(function: object, what: str, parameters: Sequence[str]) -> FunctionLocation:
    """Return the location of *function*.

    Args:
        what: the function's part in the workflow, such as ``moderator``.
        parameters: the names that it must take, such as ``["ctx"]``.
    Raises:
        BundleError: it is no plain function of that shape, closes over something, or has no name
            at the top level of its module.
    """
    if not isinstance(function, FunctionType):
        raise BundleError(
            f"the {what} is {shown(function)}; write a plain function, undecorated, at the top level of a module"
        )
    head = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}: the {what} {function.__name__!r}"
    if function.__closure__:
        names = ", ".join(map(repr, function.__code__.co_freevars))
        raise BundleError(
            f"{head} closes over {names}; a bundle carries text, not values: make that a constant of the module"
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise BundleError(f"{head} is a generator or async; it must simply return its answer")
    _check_parameters(function, head, parameters)
    module = sys.modules.get(function.__module__)
    found = [name for name, value in vars(module).items() if value is function] if module else []
    if not found:
        raise BundleError(f"{head} has no name at the top level of its module; define it there")
    return FunctionLocation(
        module=function.__module__,
        name=function.__name__ if function.__name__ in found else found[0],
    )


def _check_parameters(function: FunctionType, head: str, required: Sequence[str]) -> None:
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.default is not parameter.empty:
            raise BundleError(
                f"{head} has a default for {parameter.name!r}; it takes exactly ({', '.join(required)})"
            )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) != len(required) or any(
        parameter.kind not in positional for parameter in parameters
    ):
        raise BundleError(
            f"{head} takes {inspect.signature(function)}; it must take exactly ({', '.join(required)})"
        )
