"""Data classes like those of `dataclasses`, for modules that every start imports.

The standard library compiles five to seven functions for each class when it is defined, and imports
`inspect` for it: 0.4 ms a class and 5 ms once, more than a third of what a worker imports before
its first step. Here the functions are shared, and the constructor alone is compiled, when the first
instance is made. The functions of `dataclasses` (`replace`, `asdict`, subclassing) work with these
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_MISSING: Any = object()


class FrozenError(AttributeError):
    """An attribute of a frozen instance was set or deleted."""


class _Field:
    """default, factory: `_MISSING` if there is none."""

    __slots__ = ("compare", "default", "factory", "name")

    def __init__(
        self, name: str, default: Any = _MISSING, factory: Any = _MISSING, compare: bool = True
    ) -> None:
        self.name = name
        self.default = default
        self.factory = factory
        self.compare = compare


@overload
def field(*, default: T, compare: bool = True) -> T: ...
@overload
def field(*, default_factory: Callable[[], T], compare: bool = True) -> T: ...
def field(*, default: Any = _MISSING, default_factory: Any = _MISSING, compare: bool = True) -> Any:
    """Declare a field with a default factory, or one that equality ignores."""
    return _Field("", default, default_factory, compare)


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, slots: bool, frozen: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[type[T]], type[T]]:
    """Make a class whose fields are its annotations; the arguments are those of `dataclasses`, and
    there are always slots.
    """
    if not slots:
        raise TypeError("a record has slots")
    return lambda cls: _made(cls, frozen=frozen, kw_only=kw_only, eq=eq)


def replace(instance: T, **changes: object) -> T:
    """Return a copy with other values for some fields."""
    cls: Any = type(instance)
    for part in cls.__record__:
        changes.setdefault(part.name, getattr(instance, part.name))
    made: T = cls(**changes)
    return made


def asdict(instance: object) -> dict[str, Any]:
    """Return the fields of a record by name, with their values as they are."""
    cls: Any = type(instance)
    return {part.name: getattr(instance, part.name) for part in cls.__record__}


def without_default(cls: Any) -> set[str]:
    """Return the names of the required fields of a record or of a class of `dataclasses`."""
    if hasattr(cls, "__record__"):
        return {
            part.name
            for part in cls.__record__
            if part.default is _MISSING and part.factory is _MISSING
        }
    import dataclasses

    missing = dataclasses.MISSING
    return {
        part.name
        for part in dataclasses.fields(cls)
        if part.default is missing and part.default_factory is missing
    }


def _made(cls: type[T], *, frozen: bool, kw_only: bool, eq: bool) -> type[T]:
    """Return a copy of the class with slots, which an existing class cannot get."""
    inherited = {
        part.name: part
        for base in reversed(cls.__mro__[1:])
        for part in getattr(base, "__record__", ())
    }
    members: dict[str, Any] = dict(cls.__dict__)
    own = {
        name: _declared(name, members.pop(name, _MISSING))
        for name in members.get("__annotations__", {})
    }
    fields = tuple({**inherited, **own}.values())
    owner: list[Any] = []
    members.pop("__dict__", None)
    members.pop("__weakref__", None)
    members |= {
        "__slots__": tuple(name for name in own if name not in inherited),
        "__record__": fields,
        "__match_args__": () if kw_only else tuple(part.name for part in fields),
        "__init__": _first_init(owner, kw_only=kw_only),
        "__dataclass_fields__": _StandardFields(),
        "__dataclass_params__": _StandardParameters(frozen=frozen, kw_only=kw_only, eq=eq),
    }
    members.setdefault("__repr__", _repr)
    if eq:
        members["_key"] = staticmethod(_key_of([part.name for part in fields if part.compare]))
        members |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        members |= {
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
            "__getstate__": _getstate,
            "__setstate__": _setstate,
        }
    metaclass: Any = type(cls)
    made: type[T] = metaclass(cls.__name__, cls.__bases__, members)
    owner.append(made)
    made.__qualname__ = cls.__qualname__
    return made


def _declared(name: str, value: Any) -> _Field:
    return (
        _Field(name, value.default, value.factory, value.compare)
        if isinstance(value, _Field)
        else _Field(name, value)
    )


def _first_init(owner: Sequence[Any], *, kw_only: bool) -> Callable[..., None]:
    """Return a constructor that compiles the real one for the class that it was defined in. Several
    threads may construct the first instances at once; each compiles it then.

    Args:
        owner: gets that class before the first call.
    """

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        init = _compiled_init(owner[0], kw_only=kw_only)
        type.__setattr__(owner[0], "__init__", init)
        init(self, *arguments, **named)

    return __init__


def _compiled_init(cls: Any, *, kw_only: bool) -> Callable[..., None]:
    """Return a constructor that sets each slot by its descriptor: quicker than
    `object.__setattr__`, and it bypasses a frozen class's own.
    """
    names: dict[str, Any] = {"_missing": _MISSING}
    parameters, lines = [], []
    for part in cls.__record__:
        names[f"_set_{part.name}"] = getattr(cls, part.name).__set__
        value = part.name
        if part.factory is not _MISSING:
            names[f"_make_{part.name}"] = part.factory
            parameters.append(f"{part.name}=_missing")
            value = f"_make_{part.name}() if {part.name} is _missing else {part.name}"
        elif part.default is not _MISSING:
            names[f"_default_{part.name}"] = part.default
            parameters.append(f"{part.name}=_default_{part.name}")
        else:
            parameters.append(part.name)
        lines.append(
            f"  _set_{part.name}(self, {value})"
            if cls.__dataclass_params__.frozen
            else f"  self.{part.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    star = ["*"] if kw_only and parameters else []
    source = f"def __init__(self, {', '.join(star + parameters)}):\n" + (
        "\n".join(lines) or "  pass"
    )
    exec(source, names)  # noqa: S102 - the names of annotations, as `dataclasses` does
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _key_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _eq(self: Any, other: Any) -> Any:
    return (
        self._key(self) == self._key(other) if other.__class__ is self.__class__ else NotImplemented
    )


def _hash(self: Any) -> int:
    return hash(self._key(self))


def _repr(self: Any) -> str:
    values = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in self.__record__)
    return f"{type(self).__qualname__}({values})"


def _refuse_to_set(_self: Any, name: str, _value: object) -> None:
    raise FrozenError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> None:
    raise FrozenError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, part.name) for part in self.__record__]


def _setstate(self: Any, state: list[Any]) -> None:
    for part, value in zip(self.__record__, state, strict=True):
        object.__setattr__(self, part.name, value)


class _StandardFields:
    """``__dataclass_fields__`` of a class, made when the standard library asks for it."""

    def __get__(self, _instance: object, owner: Any) -> dict[str, Any]:
        import dataclasses

        found = {}
        for part in owner.__record__:
            defaults = {"default": part.default, "default_factory": part.factory}
            made: Any = dataclasses.field(
                compare=part.compare,
                **{key: value for key, value in defaults.items() if value is not _MISSING},
            )
            made.name, made.type, made.kw_only = (
                part.name,
                owner.__annotations__.get(part.name, ""),
                owner.__dataclass_params__.kw_only,
            )
            made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]  # the mark of an ordinary field
            found[part.name] = made
        return found


class _StandardParameters:
    """``__dataclass_params__`` of a class."""

    __slots__ = ("eq", "frozen", "kw_only")

    def __init__(self, *, frozen: bool, kw_only: bool, eq: bool) -> None:
        self.frozen = frozen
        self.kw_only = kw_only
        self.eq = eq
