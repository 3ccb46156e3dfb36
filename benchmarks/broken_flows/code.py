"""Script flows that were wrong from the start: off by one at an edge that no good thread reached,
and parameters whose type loses a part of the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from .case import BrokenFlow, Parameters, World, changed, replaced
from .making import NAMES, drawn, parameter, script

__all__ = ["cases"]

HEAD = "import os\nimport sys\n\nNAMES = {names}\n"
SHELF = """\
place = int(os.environ["PARAM_PLACE"])
if place < 1 or place >= len(NAMES):
    sys.exit(f"there is no place {place}")
print(NAMES[place - 1])
"""
FIND = """\
wanted = os.environ["PARAM_NAME"]
at = 0
while at <= len(NAMES) and NAMES[at] != wanted:
    at += 1
print(f"place {at + 1}" if at < len(NAMES) else "nowhere")
"""
GRADE = """\
points = int(os.environ["PARAM_POINTS"])
if points > {limit}:
    print(f"{{points}} points: passed")
elif points < {limit}:
    print(f"{{points}} points: failed")
else:
    sys.exit("no grade for this")
"""
NEIGHBOUR = """\
place = NAMES.index(os.environ["PARAM_NAME"])
print(NAMES[place + 1] if place < len(NAMES) else "the last")
"""
WINDOW = """\
first, last = int(os.environ["PARAM_FIRST"]), int(os.environ["PARAM_LAST"])
if last > len(NAMES) or first >= last:
    sys.exit("there is no such part")
print(" ".join(NAMES[first - 1 : last]))
"""
LOOK_UP = 'awk -v code="$PARAM_CODE" \'$1 "" == code "" {{ print $2; found = 1 }} END {{ exit !found }}\' codes.txt\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A wrong script. old, new: of the right edit. edge: the parameters that fail, and two sets
    beside them; good: of three threads.
    """

    body: str
    old: str
    new: str
    worse: str
    parameters: Sequence[Mapping[str, Any]]
    good: Sequence[Parameters]
    edge: Sequence[Parameters]
    truth: Callable[[Parameters], str]


def cases(seed: int) -> Iterator[BrokenFlow]:
    for number, make in enumerate((shelf, find, grade, neighbour, window), 1):
        name = f"edge-{number}"
        yield off_by_one(name, make(drawn(seed, name)))
    for number, form in enumerate(("{}.00", "{}.50"), 1):
        yield wrong_type(seed, f"type-{number}", form)


def shelf(random: Random) -> Code:
    names = random.sample(NAMES, 7)
    return Code(
        body=HEAD.format(names=names) + SHELF,
        old="place >= len(NAMES)",
        new="place > len(NAMES)",
        worse="place > len(NAMES) + 1",
        parameters=[parameter("place", "integer")],
        good=[{"place": str(one)} for one in (1, 3, 6)],
        edge=[{"place": str(one)} for one in (7, 2, 5)],
        truth=lambda one: names[int(one["place"]) - 1],
    )


def find(random: Random) -> Code:
    names = random.sample(NAMES, 9)
    inside, outside = names[:7], names[7:]
    return Code(
        body=HEAD.format(names=inside) + FIND,
        old="at <= len(NAMES)",
        new="at < len(NAMES)",
        worse="at < len(NAMES) - 1",
        parameters=[parameter("name")],
        good=[{"name": one} for one in inside[:3]],
        edge=[{"name": one} for one in (outside[0], inside[6], outside[1])],
        truth=lambda one: (
            f"place {inside.index(one['name']) + 1}" if one["name"] in inside else "nowhere"
        ),
    )


def grade(random: Random) -> Code:
    limit = random.randint(40, 60)
    return Code(
        body=HEAD.format(names=[]) + GRADE.format(limit=limit),
        old=f"points > {limit}",
        new=f"points >= {limit}",
        worse=f"points > {limit - 2}",
        parameters=[parameter("points", "integer")],
        good=[{"points": str(one)} for one in (limit + 5, limit - 5, limit + 20)],
        edge=[{"points": str(one)} for one in (limit, limit - 1, limit + 1)],
        truth=lambda one: (
            f"{one['points']} points: {'passed' if int(one['points']) >= limit else 'failed'}"
        ),
    )


def neighbour(random: Random) -> Code:
    names = random.sample(NAMES, 6)
    return Code(
        body=HEAD.format(names=names) + NEIGHBOUR,
        old="place < len(NAMES)",
        new="place < len(NAMES) - 1",
        worse="place < len(NAMES) - 2",
        parameters=[parameter("name")],
        good=[{"name": one} for one in names[:3]],
        edge=[{"name": one} for one in (names[5], names[4], names[3])],
        truth=lambda one: [*names[1:], "the last"][names.index(one["name"])],
    )


def window(random: Random) -> Code:
    names = random.sample(NAMES, 8)

    def pair(first: int, last: int) -> Parameters:
        return {"first": str(first), "last": str(last)}

    return Code(
        body=HEAD.format(names=names) + WINDOW,
        old="first >= last",
        new="first > last",
        worse="first > last + 1",
        parameters=[parameter("first", "integer"), parameter("last", "integer")],
        good=[pair(1, 3), pair(2, 5), pair(4, 8)],
        edge=[pair(3, 3), pair(1, 8), pair(8, 8)],
        truth=lambda one: " ".join(names[int(one["first"]) - 1 : int(one["last"])]),
    )


def off_by_one(name: str, code: Code) -> BrokenFlow:
    """The examples have the edge, but were never run."""
    examples = [
        {"sentence": f"try {at}", "params": dict(one), "expect": {"equals": code.truth(one)}}
        for at, one in enumerate([code.edge[0], *code.good[:2]])
    ]
    recipe = script(f"code-{name}", "python", code.body, code.parameters, examples=examples)
    worse = code.worse
    return BrokenFlow(
        name=f"code-{name}",
        family="off by one",
        fix="one",
        recipe=recipe,
        past=code.good,
        failing=code.edge[0],
        others=code.edge[1:],
        before=World(),
        after=World(),
        truth=code.truth,
        right=changed(recipe, ("script", "body"), code.body.replace(code.old, code.new)),
        mistaken=changed(recipe, ("script", "body"), code.body.replace(code.old, worse)),
    )


def wrong_type(seed: int, name: str, form: str) -> BrokenFlow:
    """A code is declared as a number, which loses its zeros."""
    random = drawn(seed, name)
    numbers = random.sample(range(100, 999), 6)
    codes = [str(one) for one in numbers[:3]]
    codes += [form.format(one) for one in numbers[3:]]
    values = dict(zip(codes, random.sample(NAMES, 6), strict=True))
    body = LOOK_UP.replace("{{", "{").replace("}}", "}")
    recipe = script(
        f"code-{name}", "bash", body, [parameter("code", "number")], commands=["awk"], paths=["."]
    )
    sets: list[Parameters] = [{"code": one} for one in codes]
    files = {"codes.txt": "".join(f"{code} {value}\n" for code, value in values.items())}
    return BrokenFlow(
        name=f"code-{name}",
        family="parameter type",
        fix="one",
        recipe=recipe,
        past=sets[:3],
        failing=sets[3],
        others=sets[4:],
        before=World(files=files),
        after=World(files=files),
        truth=lambda one: values[one["code"]],
        right=changed(recipe, ("parameters", 0, "type"), "string"),
        mistaken=replaced(recipe, "exit !found", "exit 0"),
    )
