"""Tasks of files and commands of a shell."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from ..outside.scripted_model import Play
from .rule import WORDS, Outcome, Rule, Setting, answer_is, files_are, output, run

__all__ = ["RULES"]


def chosen(random: Random, number: int, count: int = 3) -> list[str]:
    """Return so many different words for set *number*, which no other set has."""
    words = random.sample(WORDS, 3 * count)
    return words[number * count : (number + 1) * count]


def sales(setting: Setting, key: str) -> list[tuple[str, str, int]]:
    """Return rows of day, region and amount; some have the value *key*."""
    random = setting.random("rows")
    regions = [setting[key], *random.sample([one for one in WORDS if one != setting[key]], 3)]
    return [
        (f"2026-03-{day:02}", regions[day % 4], random.randint(100, 999)) for day in range(1, 25)
    ]


def table(rows: Sequence[Sequence[object]], *head: str) -> str:
    return "".join(f"{','.join(map(str, row))}\n" for row in ([*head], *rows))


class _Shell(Rule):
    family = "shell"


class SumOfRegion(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        file, region, _ = chosen(random, number)
        return {"file": f"data/{file}.csv", "region": region}

    def prompt(self, setting: Setting) -> str:
        return f"Add up the amounts of the region {setting['region']} in {setting['file']}."

    def files(self, setting: Setting) -> Mapping[str, str]:
        return {setting["file"]: table(sales(setting, "region"), "day", "region", "amount")}

    def play(self, setting: Setting) -> Play:
        program = f'$2 == "{setting["region"]}" {{ sum += $3 }} END {{ print sum }}'
        [found] = yield [run(f"awk -F, '{program}' {setting['file']}")]
        return f"The total is {output(found)}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        rows = sales(setting, "region")
        total = sum(amount for _, region, amount in rows if region == setting["region"])
        return answer_is(outcome, str(total))


class LinesWithWord(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        file, word, _ = chosen(random, number)
        return {"file": f"logs/{file}.log", "word": word}

    def prompt(self, setting: Setting) -> str:
        return f"How many lines of {setting['file']} have the word {setting['word']}?"

    def files(self, setting: Setting) -> Mapping[str, str]:
        return {setting["file"]: "".join(f"{line}\n" for line in self._lines(setting))}

    def play(self, setting: Setting) -> Play:
        yield [run(f"head -n 3 {setting['file']}")]
        [found] = yield [run(f"grep -c -w {setting['word']} {setting['file']}")]
        return f"{output(found)} lines have the word."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        count = sum(setting["word"] in line.split() for line in self._lines(setting))
        return answer_is(outcome, str(count))

    def _lines(self, setting: Setting) -> list[str]:
        random = setting.random("lines")
        words = [setting["word"], f"{setting['word']}s", *random.sample(WORDS, 4)]
        count = random.randint(40, 90)
        return [f"10:{n % 60:02} {' '.join(random.sample(words, 3))}" for n in range(count)]


class FrequentWords(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        source, target, _ = chosen(random, number)
        return {
            "source": f"{source}.txt",
            "target": f"{target}.txt",
            "count": str(random.sample(range(3, 9), 3)[number]),
        }

    def prompt(self, setting: Setting) -> str:
        return (
            f"Write the {setting['count']} most frequent words of {setting['source']} into "
            f"{setting['target']}, one per line, equal ones in the order of the alphabet."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("words")
        return {setting["source"]: " ".join(random.choices(WORDS, k=200)) + "\n"}

    def play(self, setting: Setting) -> Play:
        counted = f"tr ' ' '\\n' < {setting['source']} | sort | uniq -c | sort -k1,1nr -k2,2"
        chosen_words = f"head -n {setting['count']} | awk '{{ print $2 }}'"
        [done] = yield [run(f"{counted} | {chosen_words} > {setting['target']}")]
        output(done)
        return f"The words are in {setting['target']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        counts = Counter(self.files(setting)[setting["source"]].split())
        order = sorted(counts, key=lambda word: (-counts[word], word))
        expected = "".join(f"{word}\n" for word in order[: int(setting["count"])])
        return files_are(outcome, {setting["target"]: expected})


class RenameEndings(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        folder = chosen(random, number)[0]
        old = random.sample(["txt", "text", "note"], 3)[number]
        new = random.sample(["md", "rst", "adoc"], 3)[number]
        return {"folder": folder, "old": old, "new": new}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Rename all files in the folder {setting['folder']} that end with "
            f".{setting['old']} so that they end with .{setting['new']}."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        folder, old, words = setting["folder"], setting["old"], self._stems(setting)
        return {
            **{f"{folder}/{word}.{old}": f"about {word}\n" for word in words},
            f"{folder}/kept.dat": "1\n",
        }

    def play(self, setting: Setting) -> Play:
        folder, old, new = setting["folder"], setting["old"], setting["new"]
        loop = f'for f in {folder}/*.{old}; do mv "$f" "${{f%.{old}}}.{new}"; done'
        [done] = yield [run(loop)]
        output(done)
        yield [run(f"ls {folder}")]
        return "They are renamed."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        folder, expected = setting["folder"], dict[str, str | None]()
        for word in self._stems(setting):
            expected[f"{folder}/{word}.{setting['old']}"] = None
            expected[f"{folder}/{word}.{setting['new']}"] = f"about {word}\n"
        return files_are(outcome, {**expected, f"{folder}/kept.dat": "1\n"})

    def _stems(self, setting: Setting) -> list[str]:
        random = setting.random("stems")
        return random.sample(WORDS, random.randint(3, 6))


class PackFolder(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        folder, archive, _ = chosen(random, number)
        return {"folder": folder, "archive": f"{archive}.tar"}

    def prompt(self, setting: Setting) -> str:
        return f"Pack the folder {setting['folder']} into the archive {setting['archive']}."

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("files")
        return {
            f"{setting['folder']}/{word}.txt": f"{random.random()}\n"
            for word in random.sample(WORDS, 4)
        }

    def play(self, setting: Setting) -> Play:
        [done] = yield [run(f"tar -cf {setting['archive']} {setting['folder']}")]
        output(done)
        yield [run(f"tar -tf {setting['archive']}")]
        return f"It is packed into {setting['archive']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        path = outcome.directory / setting["archive"]
        if not path.is_file():
            return f"{setting['archive']} is missing"
        with tarfile.open(path) as archive:
            members = {one.name: archive.extractfile(one) for one in archive if one.isfile()}
            found = {name: file.read().decode() for name, file in members.items() if file}
        expected = dict(self.files(setting))
        return "" if found == expected else f"the archive has {sorted(found)}"


class ReplaceWord(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        folder, old, new = chosen(random, number)
        return {"folder": folder, "old": old, "new": new}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Replace the word {setting['old']} by {setting['new']} in all text files of "
            f"the folder {setting['folder']}."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("files")
        words = [setting["old"], *random.sample(WORDS, 6)]
        return {
            f"{setting['folder']}/{name}.txt": " ".join(random.choices(words, k=30)) + "\n"
            for name in ("first", "second", "third")
        }

    def play(self, setting: Setting) -> Play:
        folder, old, new = setting["folder"], setting["old"], setting["new"]
        yield [run(f"grep -l {old} {folder}/*.txt")]
        [done] = yield [run(f"sed -i 's/\\b{old}\\b/{new}/g' {folder}/*.txt")]
        output(done)
        return "It is replaced."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        old = re.compile(rf"\b{setting['old']}\b")
        expected = {
            path: old.sub(setting["new"], text) for path, text in self.files(setting).items()
        }
        return files_are(outcome, expected)


class SortedNames(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        source, target, _ = chosen(random, number)
        return {"source": f"{source}.txt", "target": f"out/{target}.txt"}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Sort the lines of {setting['source']}, without the repeated ones, into "
            f"{setting['target']}, and tell me how many there are."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("lines")
        lines = random.choices(random.sample(WORDS, random.randint(8, 20)), k=40)
        return {setting["source"]: "".join(f"{line}\n" for line in lines), "out/.keep": ""}

    def play(self, setting: Setting) -> Play:
        [done] = yield [run(f"LC_ALL=C sort -u {setting['source']} > {setting['target']}")]
        output(done)
        [count] = yield [run(f"wc -l < {setting['target']}")]
        return f"There are {output(count)} lines."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        lines = sorted(set(self.files(setting)[setting["source"]].split()))
        expected = "".join(f"{line}\n" for line in lines)
        return files_are(outcome, {setting["target"]: expected}) or answer_is(
            outcome, str(len(lines))
        )


class RowsAbove(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        source, target, _ = chosen(random, number)
        return {
            "source": f"{source}.csv",
            "target": f"{target}.csv",
            "limit": str(random.sample(range(300, 800, 7), 3)[number]),
        }

    def prompt(self, setting: Setting) -> str:
        return (
            f"Copy the rows of {setting['source']} whose amount is above {setting['limit']}, "
            f"with the header, to {setting['target']}."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        return {setting["source"]: table(self._rows(setting), "name", "amount")}

    def play(self, setting: Setting) -> Play:
        program = f"NR == 1 || $2 > {setting['limit']}"
        [done] = yield [run(f"awk -F, '{program}' {setting['source']} > {setting['target']}")]
        output(done)
        yield [run(f"wc -l {setting['target']}")]
        return f"The rows are in {setting['target']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        rows = [row for row in self._rows(setting) if row[1] > int(setting["limit"])]
        return files_are(outcome, {setting["target"]: table(rows, "name", "amount")})

    def _rows(self, setting: Setting) -> list[tuple[str, int]]:
        random = setting.random("rows")
        return [(word, random.randint(100, 999)) for word in random.sample(WORDS, 15)]


class Checksums(_Shell):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        folder, target, _ = chosen(random, number)
        return {"folder": folder, "target": f"{target}.sha256"}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Write the SHA-256 sums of the files in {setting['folder']} into {setting['target']}."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("files")
        return {
            f"{setting['folder']}/{word}.bin": f"{random.random()}\n"
            for word in random.sample(WORDS, 3)
        }

    def play(self, setting: Setting) -> Play:
        [done] = yield [run(f"sha256sum {setting['folder']}/*.bin > {setting['target']}")]
        output(done)
        yield [run(f"cat {setting['target']}"), run(f"cat {setting['target']}")]
        return f"The sums are in {setting['target']}."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        sums = {
            path: hashlib.sha256(text.encode()).hexdigest()
            for path, text in self.files(setting).items()
        }
        expected = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums))
        return files_are(outcome, {setting["target"]: expected})


class LinesOfLargest(_Shell):
    """The second command has the file's name from the first one's output."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"folder": chosen(random, number)[0]}

    def prompt(self, setting: Setting) -> str:
        return f"How many lines has the largest file in {setting['folder']}?"

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("files")
        names, sizes = random.sample(WORDS, 4), random.sample(range(10, 40), 4)
        return {
            f"{setting['folder']}/{name}.txt": "a line of the file\n" * (size + 30 * setting.number)
            for name, size in zip(names, sizes, strict=True)
        }

    def play(self, setting: Setting) -> Play:
        [found] = yield [run(f"ls -S {setting['folder']} | head -n 1")]
        [count] = yield [run(f"wc -l < {setting['folder']}/{output(found)}")]
        return f"It has {output(count)} lines."

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        largest = max(self.files(setting).values(), key=len)
        return answer_is(outcome, str(largest.count("\n")))


RULES: tuple[Rule, ...] = (
    SumOfRegion(),
    LinesWithWord(),
    FrequentWords(),
    RenameEndings(),
    PackFolder(),
    ReplaceWord(),
    SortedNames(),
    RowsAbove(),
    Checksums(),
    LinesOfLargest(),
)
