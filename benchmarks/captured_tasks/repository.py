"""Tasks that change files in a git repository with the tools of a coding agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

from ..outside.scripted_model import Call, Play
from .rule import WORDS, Outcome, Rule, Setting, files_are, output, run
from .shell import chosen

__all__ = ["RULES"]


def edit(path: str, old: str, new: str, **more: object) -> Call:
    return Call(tool="edit", arguments={"path": path, "old": old, "new": new, **more})


def read(path: str) -> Call:
    return Call(tool="read", arguments={"path": path})


def search(pattern: str) -> Call:
    return Call(tool="search", arguments={"pattern": pattern})


class _Repository(Rule):
    """A rule whose outcome is the files after it. `after` knows nothing of the calls."""

    family = "repository"

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        """Return the files of the world after the task."""
        raise NotImplementedError

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        return files_are(outcome, {**self.files(setting), **self.after(setting)})


def versions(random: Random, number: int) -> tuple[str, str]:
    """Return two versions that no other set has."""
    numbers = random.sample(range(1, 90), 6)
    return f"1.{numbers[number]}.0", f"2.{numbers[number + 3]}.1"


class VersionEverywhere(_Repository):
    """The version is in three files."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        old, new = versions(random, number)
        return {"old": old, "new": new}

    def prompt(self, setting: Setting) -> str:
        return f"Change the version from {setting['old']} to {setting['new']} everywhere."

    def files(self, setting: Setting) -> Mapping[str, str]:
        other, version = setting.random("other").choice(WORDS), setting["old"]
        return {
            "pyproject.toml": f'[project]\nname = "{other}"\nversion = "{version}"\n',
            "package/__init__.py": f'"""{other}."""\n\n__version__ = "{version}"\n',
            "docs/install.md": f"# Install {other}\n\nThe present version is {version}.\n",
        }

    def play(self, setting: Setting) -> Play:
        old, new = setting["old"], setting["new"]
        yield [search(old.replace(".", "\\."))]
        yield [
            edit("pyproject.toml", f'version = "{old}"', f'version = "{new}"'),
            edit("package/__init__.py", f'__version__ = "{old}"', f'__version__ = "{new}"'),
            edit("docs/install.md", f"version is {old}", f"version is {new}"),
        ]
        return "The version is changed in three files."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        old, new = setting["old"], setting["new"]
        return {path: text.replace(old, new) for path, text in self.files(setting).items()}


class FunctionRenamed(_Repository):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        old, new, _ = chosen(random, number)
        return {"old": f"make_{old}", "new": f"build_{new}"}

    def prompt(self, setting: Setting) -> str:
        return f"Rename the function {setting['old']} to {setting['new']} and use it so."

    def files(self, setting: Setting) -> Mapping[str, str]:
        old, other = setting["old"], setting.random("other").choice(WORDS)
        return {
            "package/making.py": f"def {old}(size):\n    return size * 2\n",
            "package/using.py": f"from .making import {old}\n\n\ndef {other}():\n    return {old}(4)\n",
            "README.md": f"# {other}\n",
        }

    def play(self, setting: Setting) -> Play:
        old, new = setting["old"], setting["new"]
        yield [search(old), read("package/using.py")]
        yield [edit("package/making.py", f"def {old}(", f"def {new}(")]
        yield [edit("package/using.py", old, new, all=True)]
        return "It is renamed."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        old, new = setting["old"], setting["new"]
        return {path: text.replace(old, new) for path, text in self.files(setting).items()}


class ChangelogEntry(_Repository):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        first, second, _ = chosen(random, number)
        return {"entry": f"Read {first} files of {second}"}

    def prompt(self, setting: Setting) -> str:
        return f'Add the entry "{setting["entry"]}" at the top of Unreleased in CHANGELOG.md.'

    def files(self, setting: Setting) -> Mapping[str, str]:
        other = setting.random("other").choice(WORDS)
        text = f"# Changelog\n\n## Unreleased\n\n- Write {other}.\n\n## 1.0\n\n- Begin.\n"
        return {"CHANGELOG.md": text}

    def play(self, setting: Setting) -> Play:
        yield [read("CHANGELOG.md")]
        old = "## Unreleased\n\n"
        yield [edit("CHANGELOG.md", old, f"{old}- {setting['entry']}\n")]
        return "The entry is added."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        head, _, rest = self.files(setting)["CHANGELOG.md"].partition("- Write")
        return {"CHANGELOG.md": f"{head}- {setting['entry']}\n- Write{rest}"}


class SettingInJson(_Repository):
    """The key gets another value by a command that reads and writes the file."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        value = random.sample(WORDS, 3)[number]
        return {"file": f"config/{chosen(random, number)[0]}.json", "value": value}

    def prompt(self, setting: Setting) -> str:
        return f"Set the theme in {setting['file']} to {setting['value']}."

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("config")
        config = {"theme": f"old-{random.choice(WORDS)}", "size": random.randint(1, 99)}
        return {setting["file"]: json.dumps(config, indent=2) + "\n"}

    def play(self, setting: Setting) -> Play:
        file = setting["file"]
        yield [read(file)]
        change = f'.theme = "{setting["value"]}"'
        [done] = yield [run(f"jq '{change}' {file} > new.json && mv new.json {file}")]
        output(done)
        return "The theme is set."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        config = {**json.loads(self.files(setting)[setting["file"]]), "theme": setting["value"]}
        return {setting["file"]: json.dumps(config, indent=2) + "\n", "new.json": None}


class HolderInHeaders(_Repository):
    """The files are found by a search."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        old, new, _ = chosen(random, number)
        return {"old": f"{old.title()} Ltd", "new": f"{new.title()} AG"}

    def prompt(self, setting: Setting) -> str:
        return f"Change the holder in all headers from {setting['old']} to {setting['new']}."

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("files")
        head = f"# Copyright {setting['old']}\n"
        found = {
            f"src/{one}.py": f"{head}value = {random.randint(1, 99)}\n"
            for one in random.sample(WORDS, 4)
        }
        return {**found, "src/without.py": "value = 0\n"}

    def play(self, setting: Setting) -> Play:
        old, new = setting["old"], setting["new"]
        yield [search(f"Copyright {old}")]
        files = f"grep -rl 'Copyright {old}' src"
        [done] = yield [run(f"{files} | xargs sed -i 's/Copyright {old}/Copyright {new}/'")]
        output(done)
        return "The headers are changed."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        old, new = setting["old"], setting["new"]
        return {path: text.replace(old, new) for path, text in self.files(setting).items()}


class NewModule(_Repository):
    """A file is written that was not there, and one that was gets a line."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        module, word, _ = chosen(random, number)
        return {"module": f"parse_{module}", "word": word}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Add a module {setting['module']} to the package whose constant NAME is "
            f"{setting['word']}, and import it in package/__init__.py."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        other = setting.random("other").choice(WORDS)
        return {
            "package/__init__.py": '"""The package."""\n',
            "notes.txt": f"{other}\n",
        }

    def play(self, setting: Setting) -> Play:
        module, word = setting["module"], setting["word"]
        text = f'"""Module."""\n\nNAME = "{word}"\n'
        yield [read("package/__init__.py")]
        head = '"""The package."""\n'
        yield [
            Call(tool="write", arguments={"path": f"package/{module}.py", "text": text}),
            edit("package/__init__.py", head, f"{head}\nfrom . import {module}\n"),
        ]
        return "The module is there."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        module, word = setting["module"], setting["word"]
        return {
            f"package/{module}.py": f'"""Module."""\n\nNAME = "{word}"\n',
            "package/__init__.py": f'"""The package."""\n\nfrom . import {module}\n',
        }


class TimeoutChanged(_Repository):
    """The present value is not in the prompt, so that the command must fit any."""

    def values(self, random: Random, number: int) -> Mapping[str, str]:
        return {"seconds": str(random.sample(range(100, 990), 3)[number])}

    def prompt(self, setting: Setting) -> str:
        return f"Set the timeout in settings.ini to {setting['seconds']} seconds."

    def files(self, setting: Setting) -> Mapping[str, str]:
        random = setting.random("settings")
        text = f"[client]\nretries = {random.randint(1, 9)}\ntimeout = {random.randint(1, 90)}\n"
        return {"settings.ini": text}

    def play(self, setting: Setting) -> Play:
        [found] = yield [read("settings.ini")]
        if "timeout" not in found:
            raise RuntimeError("settings.ini has no timeout")
        seconds = setting["seconds"]
        [done] = yield [run(f"sed -i 's/^timeout = .*/timeout = {seconds}/' settings.ini")]
        output(done)
        return "The timeout is set."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        head, _, _ = self.files(setting)["settings.ini"].partition("timeout")
        return {"settings.ini": f"{head}timeout = {setting['seconds']}\n"}


class DependencyAdded(_Repository):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        name, (version, _) = chosen(random, number)[0], versions(random, number)
        return {"name": name, "version": version}

    def prompt(self, setting: Setting) -> str:
        return (
            f"Add the dependency {setting['name']} with at least version {setting['version']} as "
            "the last line of requirements.txt."
        )

    def files(self, setting: Setting) -> Mapping[str, str]:
        others = setting.random("others").sample(WORDS, 3)
        return {"requirements.txt": "".join(f"lib-{one}>=1.0\n" for one in others)}

    def play(self, setting: Setting) -> Play:
        line = f"{setting['name']}>={setting['version']}"
        yield [run("cat requirements.txt")]
        [done] = yield [run(f"echo '{line}' >> requirements.txt")]
        output(done)
        yield [run("cat requirements.txt")]
        return "The dependency is added."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        before = self.files(setting)["requirements.txt"]
        return {"requirements.txt": f"{before}{setting['name']}>={setting['version']}\n"}


class ModuleMoved(_Repository):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        old, new, _ = chosen(random, number)
        return {"old": f"old_{old}", "new": f"new_{new}"}

    def prompt(self, setting: Setting) -> str:
        return f"Rename the module {setting['old']} of the package to {setting['new']}."

    def files(self, setting: Setting) -> Mapping[str, str]:
        old, value = setting["old"], setting.random("value").randint(1, 99)
        return {
            f"package/{old}.py": f"VALUE = {value}\n",
            "package/main.py": f"from .{old} import VALUE\n\nprint(VALUE)\n",
        }

    def play(self, setting: Setting) -> Play:
        old, new = setting["old"], setting["new"]
        [done] = yield [run(f"mv package/{old}.py package/{new}.py")]
        output(done)
        yield [read("package/main.py")]
        yield [edit("package/main.py", f"from .{old} import", f"from .{new} import")]
        return "The module is moved."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        old, new, files = setting["old"], setting["new"], self.files(setting)
        return {
            f"package/{old}.py": None,
            f"package/{new}.py": files[f"package/{old}.py"],
            "package/main.py": files["package/main.py"].replace(f".{old} ", f".{new} "),
        }

    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        return files_are(outcome, self.after(setting))


class RowInTable(_Repository):
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        name, about, _ = chosen(random, number)
        return {"name": f"--{name}", "about": f"switches {about} on"}

    def prompt(self, setting: Setting) -> str:
        return f"Document the option {setting['name']} ({setting['about']}) first in README.md."

    def files(self, setting: Setting) -> Mapping[str, str]:
        other = setting.random("other").choice(WORDS)
        table = f"| option | meaning |\n|---|---|\n| --help | {other} |\n"
        return {"README.md": f"# Tool\n\n{table}"}

    def play(self, setting: Setting) -> Play:
        yield [read("README.md"), read("README.md")]
        head = "|---|---|\n"
        row = f"| {setting['name']} | {setting['about']} |\n"
        yield [edit("README.md", head, f"{head}{row}")]
        return "The option is documented."

    def after(self, setting: Setting) -> Mapping[str, str | None]:
        head, _, rest = self.files(setting)["README.md"].partition("| --help")
        row = f"| {setting['name']} | {setting['about']} |\n"
        return {"README.md": f"{head}{row}| --help{rest}"}


RULES: tuple[Rule, ...] = (
    VersionEverywhere(),
    FunctionRenamed(),
    ChangelogEntry(),
    SettingInJson(),
    HolderInHeaders(),
    NewModule(),
    TimeoutChanged(),
    DependencyAdded(),
    ModuleMoved(),
    RowInTable(),
)
