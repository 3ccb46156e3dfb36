"""Script flows whose programs change: missing commands, renamed options, short timeouts, and
policies that are too narrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import BrokenFlow, Fix, Parameters, World, changed, replaced
from .making import NAMES, drawn, parameter, script

__all__ = ["cases"]

PYTHON = "/usr/bin/python3"
MISSING: Sequence[tuple[str, str, str, Fix]] = (
    ("python", PYTHON, "python -c 'import sys; print(sys.argv[1][::-1])' \"$PARAM_NAME\"\n", "one"),
    ("gsed", "/usr/bin/sed", "printf '%s' \"$PARAM_NAME\" | gsed 's/[aeiou]//g'\n", "one"),
    (
        "gawk",
        "/usr/bin/awk",
        "printf '%s' \"$PARAM_NAME\" | gawk '{{ print length($0) }}'\n",
        "one",
    ),
    ("shelfmark", "", 'shelfmark "$PARAM_NAME"\n', "one"),
    ("stamp-code", "", 'stamp-code "$PARAM_NAME"\n', "none"),
)
"""Command that is gone, the program behind it ("" for OWN), the script, whether another one does
the same.
"""
NEWS = {"shelfmark": "callmark"}
"""New names of programs, which a file says."""
OWN = '#!/bin/sh\nprintf \'%s-%s\\n\' "$1" "$(printf \'%s\' "$1" | wc -c)"\n'
OPTIONS: Sequence[tuple[str, tuple[str, ...], Fix]] = (
    ("--colour", ("--color",), "one"),
    ("--max", ("--max-count",), "one"),
    ("--seperator", ("--separator",), "one"),
    ("--col", ("--column",), "one"),
    ("--size", ("--size-net", "--size-gross"), "two"),
    ("--label", ("--tag",), "one"),
)
RENAMED = '  {old}) echo "tally: unknown option {old}; it is called {new} now" >&2; exit 2 ;;\n'
"""Case of an option of which the program says what it is called."""
TOOL = """\
#!/bin/sh
if [ "$1" = "--help" ]; then
  echo "usage: tally OPTION VALUE NAME"
  echo "  --help     show this help"
  echo "  --version  show the version"
{help}  exit 0
fi
case "$1" in
{cases}  *) echo "tally: unknown option $1; see tally --help" >&2; exit 2 ;;
esac
"""
SLOW: Sequence[tuple[int, float]] = ((2, 4.0), (2, 5.0), (3, 6.0))
"""Seconds that the policy allows, and seconds that the work takes now."""


def cases(seed: int) -> Iterator[BrokenFlow]:
    for number, (command, program, body, fix) in enumerate(MISSING, 1):
        yield missing_command(
            seed, f"missing-{number}", command, program=program, body=body, fix=fix
        )
    for number, (old, new, fix) in enumerate(OPTIONS, 1):
        yield renamed_option(seed, f"option-{number}", old, new, fix)
    for number, (allowed_s, needed_s) in enumerate(SLOW, 1):
        yield short_timeout(seed, f"timeout-{number}", allowed_s, needed_s)
    yield narrow_command(seed, "policy-1")
    yield narrow_path(seed, "policy-2")
    yield narrow_second_command(seed, "policy-3")


def named(names: Sequence[str]) -> tuple[list[Parameters], Parameters, list[Parameters]]:
    sets: list[Parameters] = [{"name": name} for name in names]
    return sets[:3], sets[3], sets[4:6]


def missing_command(
    seed: int, name: str, command: str, *, program: str, body: str, fix: Fix
) -> BrokenFlow:
    past, failing, others = named(drawn(seed, name).sample(NAMES, 6))
    body = body.replace("{{", "{").replace("}}", "}")
    commands = [command, *([] if program else ["wc"])]
    recipe = script(f"use-{name}", "bash", body, [parameter("name")], commands=commands)
    successor = NEWS.get(command, program.rpartition("/")[2])
    after = World(
        files={"NEWS.md": f"The program {command} is called {successor} now.\n"},
        programs={successor: OWN},
    )

    def truth(one: Parameters) -> str:
        word = one["name"]
        match command:
            case "python":
                return word[::-1]
            case "gsed":
                return "".join(letter for letter in word if letter not in "aeiou")
            case "gawk":
                return str(len(word))
            case _:
                return f"{word}-{len(word)}"

    return BrokenFlow(
        name=f"program-{name}",
        family="command missing",
        fix=fix,
        recipe=recipe,
        past=past,
        failing=failing,
        others=others,
        before=World(programs={command: program or OWN}),
        after=after if command in NEWS else World(),
        truth=truth,
        right=replaced(recipe, command, successor) if successor else None,
        mistaken=changed(recipe, ("script", "body"), 'printf %s "$PARAM_NAME"\n'),
    )


def tool(options: Sequence[tuple[str, str]], refusal: str = "") -> str:
    """Return a program. options: name, and what it prints after the name of the article. refusal: a
    case that refuses an option.
    """
    lines = "".join(f'  echo "  {option}  print name and value"\n' for option, _ in options)
    found = "".join(f'  {option}) echo "$3:$2{text}" ;;\n' for option, text in options)
    return TOOL.format(help=lines, cases=found + refusal)


def renamed_option(seed: int, name: str, old: str, new: Sequence[str], fix: Fix) -> BrokenFlow:
    random = drawn(seed, name)
    past, failing, others = named(random.sample(NAMES, 6))
    value, true = random.choice(NAMES), random.choice(list(new))
    refusal = RENAMED.format(old=old, new=true) if old == "--label" else ""
    options = [(one, "" if one == true else "?") for one in new]
    body = f'tally {old} {value} "$PARAM_NAME"\n'
    recipe = script(f"tally-{name}", "bash", body, [parameter("name")], commands=["tally"])
    return BrokenFlow(
        name=f"program-{name}",
        family="option renamed",
        fix=fix,
        recipe=recipe,
        past=past,
        failing=failing,
        others=others,
        before=World(programs={"tally": tool([(old, "")])}),
        after=World(programs={"tally": tool(options, refusal)}),
        truth=lambda one: f"{one['name']}:{value}",
        right=replaced(recipe, f"tally {old}", f"tally {true}"),
        mistaken=replaced(recipe, f"tally {old}", "tally --version"),
    )


def short_timeout(seed: int, name: str, allowed_s: int, needed_s: float) -> BrokenFlow:
    """The work takes longer than it did, as its input has grown."""
    past, failing, others = named(drawn(seed, name).sample(NAMES, 6))
    body = 'sleep "$(cat seconds.txt)"\necho "$PARAM_NAME is done"\n'
    recipe = script(
        f"work-{name}",
        "bash",
        body,
        [parameter("name")],
        commands=["sleep", "cat"],
        paths=["."],
        seconds=allowed_s,
    )
    return BrokenFlow(
        name=f"program-{name}",
        family="timeout too short",
        fix="one",
        recipe=recipe,
        past=past,
        failing=failing,
        others=others,
        before=World(files={"seconds.txt": "0.1\n"}),
        after=World(files={"seconds.txt": f"{needed_s}\n"}),
        truth=lambda one: f"{one['name']} is done",
        right=changed(recipe, ("sandbox", "maxExecutionTime"), 120),
        mistaken=replaced(recipe, "is done", "is done?"),
    )


def narrow_command(seed: int, name: str) -> BrokenFlow:
    """A branch that no good thread took uses a command that the policy does not have."""
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    body = 'if [ "$PARAM_ORDER" = sorted ]; then\n  sort names.txt\nelse\n  cat names.txt\nfi | head -n "$PARAM_COUNT"\n'
    parameters = [parameter("order"), parameter("count", "integer")]
    recipe = script(
        f"names-{name}", "bash", body, parameters, commands=["cat", "head"], paths=["."]
    )
    files = {"names.txt": "".join(f"{one}\n" for one in names)}

    def truth(one: Parameters) -> str:
        listed = sorted(names) if one["order"] == "sorted" else names
        return "\n".join(listed[: int(one["count"])])

    return BrokenFlow(
        name=f"program-{name}",
        family="policy too narrow",
        fix="one",
        recipe=recipe,
        past=[{"order": "plain", "count": str(one)} for one in (2, 3, 4)],
        failing={"order": "sorted", "count": "3"},
        others=[{"order": "sorted", "count": "5"}, {"order": "plain", "count": "5"}],
        before=World(files=files),
        after=World(files=files),
        truth=truth,
        right=changed(recipe, ("sandbox", "allowedCommands"), ["cat", "head", "sort"]),
        mistaken=replaced(recipe, "  sort names.txt", "  cat names.txt"),
    )


def narrow_path(seed: int, name: str) -> BrokenFlow:
    """A parameter leads to a folder that the policy does not have."""
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    recipe = script(
        f"read-{name}",
        "bash",
        'cat "$PARAM_FOLDER/$PARAM_NAME.txt"\n',
        [parameter("folder", "path"), parameter("name")],
        commands=["cat"],
        paths=["recent"],
    )
    files = {
        f"{folder}/{one}.txt": f"{one} of {folder}\n"
        for folder in ("recent", "older")
        for one in names
    }
    return BrokenFlow(
        name=f"program-{name}",
        family="policy too narrow",
        fix="one",
        recipe=recipe,
        past=[{"folder": "recent", "name": one} for one in names[:3]],
        failing={"folder": "older", "name": names[3]},
        others=[{"folder": "older", "name": names[4]}, {"folder": "recent", "name": names[5]}],
        before=World(files=files),
        after=World(files=files),
        truth=lambda one: f"{one['name']} of {one['folder']}",
        right=changed(recipe, ("sandbox", "allowedPaths"), ["recent", "older"]),
        mistaken=replaced(recipe, "$PARAM_FOLDER/", "recent/"),
    )


def narrow_second_command(seed: int, name: str) -> BrokenFlow:
    """The flow was added with a policy that a person wrote, without one of its commands."""
    names = drawn(seed, name).sample(NAMES, 6)
    body = 'if [ -n "$PARAM_LETTER" ]; then\n  printf %s "$PARAM_NAME" | tr -d "$PARAM_LETTER"\nelse\n  echo "$PARAM_NAME"\nfi\n'
    recipe = script(
        f"letters-{name}",
        "bash",
        body,
        [parameter("name"), parameter("letter", default="")],
        commands=["cat"],
    )
    sets: list[Parameters] = [{"name": one, "letter": "e"} for one in names[3:]]
    return BrokenFlow(
        name=f"program-{name}",
        family="policy too narrow",
        fix="one",
        recipe=recipe,
        past=[{"name": one} for one in names[:3]],
        failing=sets[0],
        others=sets[1:],
        before=World(),
        after=World(),
        truth=lambda one: one["name"].replace("e", ""),
        right=changed(recipe, ("sandbox", "allowedCommands"), ["cat", "tr"]),
        mistaken=replaced(recipe, 'tr -d "$PARAM_LETTER"', "cat"),
    )
