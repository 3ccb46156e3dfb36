"""Tools of a model as one literal table. A call that does not fit its tool gets an error as its
result, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles.rights import Rights
from uncaged_models.client import ToolDescription
from uncaged_models.conversation import ToolResult, ToolUse, clean
from uncaged_models.prompts.extract import checker
from uncaged_models.prompts.history import cut

from . import files
from .commands import Commands
from .commit import commit
from .working_directory import ToolError

MAX_RESULT_CHARACTERS = 60_000
COMMAND_S = 120
LONGEST_COMMAND_S = 1800
SHOWN_CHARACTERS = 160
SEARCH_S = 60.0
MAX_HITS = 300


def _object(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Relative to the directory that you work in.",
}
TEXT = {"type": "string"}
WHOLE = {"type": "integer", "minimum": 1}

TOOLS: Mapping[str, ToolDescription] = {
    tool.name: tool
    for tool in (
        ToolDescription(
            name="list",
            description="List a directory of the working tree, what is in its directories included.",
            parameters=_object(
                [],
                path=PATH,
                depth={**WHOLE, "maximum": 6, "description": "How many levels; 2 if left out."},
            ),
        ),
        ToolDescription(
            name="read",
            description="Read a text file. A long one comes in parts: give the first line as offset and the number of lines as limit.",
            parameters=_object(["path"], path=PATH, offset=WHOLE, limit=WHOLE),
        ),
        ToolDescription(
            name="search",
            description="Search the files for lines that match an extended regular expression (as grep -E); binary and ignored caches "
            "are left out. The answer has path:line:text.",
            parameters=_object(
                ["pattern"],
                pattern={"type": "string", "minLength": 1},
                path={
                    **PATH,
                    "description": "A directory or file to search; everything if left out.",
                },
                files={
                    "type": "string",
                    "description": "Only files whose name matches this, such as *.py",
                },
                ignoreCase={"type": "boolean"},
            ),
        ),
        ToolDescription(
            name="edit",
            description="Replace one passage of a text file. old is letter for letter what stands there, with enough around it to be "
            "unique.",
            parameters=_object(
                ["path", "old", "new"],
                path=PATH,
                old=TEXT,
                new=TEXT,
                all={"type": "boolean", "description": "Replace every occurrence."},
            ),
        ),
        ToolDescription(
            name="write",
            description="Write a whole text file; one that exists is replaced. For a small change of a file, use edit.",
            parameters=_object(["path", "text"], path=PATH, text=TEXT),
        ),
        ToolDescription(
            name="run",
            description="Run a command with sh in the directory that you work in, within a sandbox: it sees the working tree, the "
            "programs of this machine and git's history, and writes only to the working tree; processes that it leaves running are "
            "ended. Git can be read there (status, diff, log), but not changed.",
            parameters=_object(
                ["command"],
                command={"type": "string", "minLength": 1},
                timeoutSeconds={
                    **WHOLE,
                    "maximum": LONGEST_COMMAND_S,
                    "description": f"{COMMAND_S} if left out.",
                },
            ),
        ),
        ToolDescription(
            name="commit",
            description="Commit changes on the branch of the working tree: those of the paths, or all. Use it only if committing is your "
            "task. The answer has the commit's id and the branch; hooks of the repository are not run.",
            parameters=_object(
                ["message"],
                message={"type": "string", "minLength": 1},
                paths={"type": "array", "items": PATH, "description": "All if left out."},
            ),
        ),
    )
}


class Toolbox:
    """Tools of one answer."""

    def __init__(self, commands: Commands, rights: Rights) -> None:
        self._commands = commands
        self._workdir = commands.workdir
        self._left_s = float("inf")
        self._functions: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "list": lambda arguments: files.list_directory(self._workdir, arguments),
            "read": lambda arguments: files.read_file(self._workdir, arguments),
            "search": self._search,
            "edit": lambda arguments: files.edit_file(self._workdir, arguments),
            "write": lambda arguments: files.write_file(self._workdir, arguments),
            "run": self._run,
            "commit": lambda arguments: commit(self._workdir, commands.environment, arguments),
        }
        self.described: tuple[ToolDescription, ...] = tuple(
            TOOLS[name] for name in rights.usable(writable=commands.writable)
        )
        self._names = tuple(tool.name for tool in self.described)

    def use(self, call: ToolUse, left_s: float = float("inf")) -> ToolResult:
        """Perform a call within *left_s*; any error is in the result."""
        self._left_s = left_s
        try:
            text, failed = self._use(call), False
        except ToolError as exc:
            text, failed = str(exc), True
        except OSError as exc:
            text, failed = (
                f"{call.name}: {exc.filename or ''} {exc.strerror or exc}".replace("  ", " "),
                True,
            )
        return ToolResult(call=call.id, text=cut(clean(text), MAX_RESULT_CHARACTERS), failed=failed)

    def shown(self, call: ToolUse) -> Mapping[str, object]:
        try:
            arguments = call.parsed()
        except ValueError:
            arguments = {}
        what = arguments.get("command") or arguments.get("pattern")
        path = arguments.get("path")
        return {
            "tool": call.name,
            **({"file": path[:SHOWN_CHARACTERS]} if isinstance(path, str) else {}),
            **(
                {"text": " ".join(what.split())[:SHOWN_CHARACTERS]} if isinstance(what, str) else {}
            ),
        }

    def _use(self, call: ToolUse) -> str:
        if call.name not in self._names:
            raise ToolError(f"there is no tool {call.name!r}; there are: {', '.join(self._names)}")
        try:
            arguments = call.parsed()
        except ValueError as exc:
            raise ToolError(f"{exc}; call {call.name} again with a JSON object") from exc
        problems = checker(TOOLS[call.name].parameters)(arguments)
        if problems:
            raise ToolError(f"the arguments of {call.name} are wrong: {'; '.join(problems)}")
        return self._functions[call.name](arguments)

    def _run(self, arguments: Mapping[str, Any]) -> str:
        timeout_s = min(float(arguments.get("timeoutSeconds", COMMAND_S)), max(self._left_s, 0.0))
        done = self._commands.run(["sh", "-c", arguments["command"]], timeout_s=timeout_s)
        text = done.stdout.decode("utf-8", "replace")
        complaints = done.stderr.decode("utf-8", "replace")
        if complaints.strip():
            text += f"{'' if text.endswith(chr(10)) or not text else chr(10)}[standard error]\n{complaints}"
        end = (
            f"it took longer than {timeout_s:.0f} s and was ended"
            if done.timed_out
            else f"exit code {done.exit_code}"
        )
        note = "; a part of the output was dropped" if done.truncated else ""
        return f"[{end}{note}]\n{cut(text, MAX_RESULT_CHARACTERS - 200)}"

    def _search(self, arguments: Mapping[str, Any]) -> str:
        """Search with grep in the sandbox, where a pattern that takes for ever can be ended."""
        where = self._workdir.resolve(arguments.get("path", "."))
        flags = ["--ignore-case"] if arguments.get("ignoreCase") else []
        chosen = [f"--include={arguments['files']}"] if "files" in arguments else []
        closed = [f"--exclude-dir={name}" for name in sorted(files.CLOSED)]
        argv = [
            "grep",
            "-r",
            "-n",
            "-I",
            "-E",
            "-s",
            *flags,
            *chosen,
            *closed,
            "-e",
            arguments["pattern"],
            "--",
            self._workdir.name(where),
        ]
        done = self._commands.run(argv, timeout_s=min(SEARCH_S, max(self._left_s, 0.0)))
        if done.exit_code not in (0, 1) and not done.stdout:
            why = (
                "it took too long"
                if done.timed_out
                else done.stderr.decode("utf-8", "replace").strip()
            )
            raise ToolError(f"the search failed: {why or 'grep gave no reason'}")
        lines = [
            line[:500].removeprefix("./")
            for line in done.stdout.decode("utf-8", "replace").splitlines()
        ]
        lines.sort(key=lambda line: line.partition(":")[0])
        more = (
            [f"[… {len(lines) - MAX_HITS} more lines; search for something narrower]"]
            if len(lines) > MAX_HITS
            else []
        )
        return "\n".join([*lines[:MAX_HITS], *more]) or "nothing matches"
