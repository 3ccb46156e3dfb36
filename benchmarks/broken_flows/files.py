"""Script flows whose files change: renamed columns, moved paths, defaults that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from .case import BrokenFlow, Fix, Parameters, World, changed, replaced
from .making import NAMES, drawn, parameter, script

__all__ = ["cases"]

COLUMNS: Sequence[tuple[str, tuple[str, ...], Fix]] = (
    ("amount", ("amount_eur",), "one"),
    ("unitCount", ("unit_count",), "one"),
    ("net_weight", ("netWeight",), "one"),
    ("quantity", ("Quantity",), "one"),
    ("cost", ("cost_before", "cost_after"), "two"),
    ("points", (), "none"),
)
SUM_COLUMN = """\
import csv
import os

with open(os.environ["PARAM_FILE"], newline="") as file:
    rows = list(csv.DictReader(file))
print(sum(int(row["{column}"]) for row in rows))
"""
MOVES: Sequence[tuple[str, tuple[str, ...], Fix]] = (
    ("data/prices.txt", ("data/archive/prices.txt",), "one"),
    ("stock/list.txt", ("stock/stock-list.txt",), "one"),
    ("tables/rates.txt", ("tables/rates.tsv",), "one"),
    ("shop/articles.txt", ("store/articles.txt",), "one"),
    ("data/items.txt", ("data/items-old.txt", "data/items-new.txt"), "two"),
    ("data/counts.txt", ("archive/totals.txt",), "one"),
)
FIND_ROW = 'awk -v name="$PARAM_NAME" \'$1 == name {{ print $2 }}\' "{path}"\n'
FIND_IN_FILE = 'awk -v name="$PARAM_NAME" \'$1 == name { print $2 }\' "$PARAM_FILE"\n'
DEFAULTS: Sequence[tuple[str, tuple[str, ...], Fix]] = (
    ("lists/main.txt", ("lists/main-list.txt",), "one"),
    ("conf/sizes.txt", ("config/sizes.txt",), "one"),
    ("table.txt", ("tables.txt",), "one"),
    ("lists/all.txt", ("lists/all-1.txt", "lists/all-2.txt"), "two"),
    ("lists/base.txt", ("lists/catalogue.txt",), "one"),
)
NOTES: Mapping[str, Mapping[str, str]] = {
    "data/counts.txt": {"data/README.md": "The counts are in archive/totals.txt since May.\n"},
    "lists/base.txt": {"lists/README.md": "catalogue.txt has what base.txt had.\n"},
}
"""Files that say where another one is whose new name is unlike the old one."""


def cases(seed: int) -> Iterator[BrokenFlow]:
    for number, (old, new, fix) in enumerate(COLUMNS, 1):
        yield renamed_column(seed, f"column-{number}", old, new, fix)
    for number, (old, new, fix) in enumerate(MOVES, 1):
        yield moved_path(seed, f"path-{number}", old, new, fix)
    for number, (old, new, fix) in enumerate(DEFAULTS, 1):
        yield wrong_default(seed, f"default-{number}", old, new, fix)


def renamed_column(seed: int, name: str, old: str, new: Sequence[str], fix: Fix) -> BrokenFlow:
    """The program that writes the tables names a column differently now."""
    random = drawn(seed, name)
    files = [f"{one}.csv" for one in random.sample(NAMES, 6)]
    values = {one: [random.randint(10, 99) for _ in range(6)] for one in files}
    true = random.choice(list(new)) if new else ""

    def tables(among: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
        return {one: table(one, columns) for one in among}

    def table(file: str, columns: Sequence[str]) -> str:
        lines = [",".join(["day", "place", *columns, "remark"])]
        for day, value in enumerate(values[file], 1):
            cells = [str(value + (0 if one in (old, true) else 5)) for one in columns]
            lines.append(",".join([f"2026-05-{day:02}", NAMES[day], *cells, "none"]))
        return "\n".join(lines) + "\n"

    body = SUM_COLUMN.format(column=old)
    recipe = script(
        f"sum-{name}", "python", body, [parameter("file", "path")], paths=["param:file"]
    )
    sets: list[Parameters] = [{"file": one} for one in files]
    return BrokenFlow(
        name=f"csv-{name}",
        family="column renamed",
        fix=fix,
        recipe=recipe,
        past=sets[:3],
        failing=sets[3],
        others=sets[4:6],
        before=World(files=tables(files[:3], [old])),
        after=World(files=tables(files, list(new))),
        truth=lambda one: str(sum(values[one["file"]])),
        right=replaced(recipe, f'row["{old}"]', f'row["{true}"]') if true else None,
        mistaken=replaced(recipe, f'int(row["{old}"])', "len(row)"),
    )


def rows(random: Random, names: Sequence[str]) -> tuple[dict[str, int], str]:
    """Return values by name, and a file of them."""
    values = {one: random.randint(100, 999) for one in names}
    return values, text_of(values)


def text_of(values: Mapping[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def moved_path(seed: int, name: str, old: str, new: Sequence[str], fix: Fix) -> BrokenFlow:
    """A file that the script reads has another path."""
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    values, text = rows(random, names)
    true = random.choice(list(new))
    wrong = text_of({one: value + 3 for one, value in values.items()})
    recipe = script(
        f"look-{name}",
        "bash",
        FIND_ROW.format(path=old),
        [parameter("name")],
        commands=["awk"],
        paths=["."],
    )
    sets: list[Parameters] = [{"name": one} for one in names]
    others = {"README.md": "Files.\n", "other/notes.md": "Notes.\n"}
    files = {one: text if one == true else wrong for one in new}
    return BrokenFlow(
        name=f"file-{name}",
        family="path moved",
        fix=fix,
        recipe=recipe,
        past=sets[:3],
        failing=sets[3],
        others=sets[4:6],
        before=World(files={**others, old: text}),
        after=World(files={**others, **files, **NOTES.get(old, {})}),
        truth=lambda one: str(values[one["name"]]),
        right=replaced(recipe, old, true),
        mistaken=replaced(recipe, old, "README.md"),
    )


def wrong_default(seed: int, name: str, old: str, new: Sequence[str], fix: Fix) -> BrokenFlow:
    """The default of a path leads nowhere; the good threads named another file."""
    random = drawn(seed, name)
    names = random.sample(NAMES, 6)
    values, text = rows(random, names)
    true = random.choice(list(new))
    wrong = text_of({one: value + 3 for one, value in values.items()})
    recipe = script(
        f"default-{name}",
        "bash",
        FIND_IN_FILE,
        [parameter("name"), parameter("file", "path", default=old)],
        commands=["awk"],
        paths=["param:file"],
    )
    before = {"mine/other.txt": text}
    files = {one: text if one == true else wrong for one in new}
    past: list[Parameters] = [{"name": one, "file": "mine/other.txt"} for one in names[:3]]
    sets: list[Parameters] = [{"name": one} for one in names[3:]]
    place = ("parameters", 1, "default")
    return BrokenFlow(
        name=f"file-{name}",
        family="wrong default",
        fix=fix,
        recipe=recipe,
        past=past,
        failing=sets[0],
        others=sets[1:],
        before=World(files=before),
        after=World(files={**before, **files, **NOTES.get(old, {})}),
        truth=lambda one: str(values[one["name"]]),
        right=changed(recipe, place, true),
        mistaken=changed(recipe, place, "README.md"),
    )
