"""Lines of captured scripts: what bash does in place of an agent's tools, and the shell around each
command.
"""

from __future__ import annotations

import re

from uncaged_bundles.clean import shorten

from ..calls import Command, FileEdit, FileLook, FileWrite, TraceCall
from ..commands import may_send
from .rewriting import quoted

__all__ = ["RELATIVE", "REPLACE", "in_shell", "sends", "shown"]

RELATIVE = """\
{name}=${{{name}#"$PWD"/}}
case ${name} in -*) {name}=./${name} ;; esac"""
REPLACE = """\
# replace FILE OLD NEW [all]: OLD must be in FILE exactly once, unless with all
replace() {
  local text old=$2 new=$3 rest
  IFS= read -r -d '' text < "$1" || true
  if [[ $text != *"$old"* && $text == *$'\\r\\n'* ]]; then
    old=${old//$'\\n'/$'\\r\\n'} new=${new//$'\\n'/$'\\r\\n'}
  fi
  rest=${text#*"$old"}
  if [[ $text != *"$old"* ]]; then
    echo "the text to replace is not in $1" >&2
    exit 1
  elif [[ $# -lt 4 && $rest == *"$old"* ]]; then
    echo "the text to replace is in $1 more than once" >&2
    exit 1
  elif [[ $# -lt 4 ]]; then
    printf '%s' "${text%%"$old"*}$new$rest" > "$1"
  else
    printf '%s' "${text//"$old"/"$new"}" > "$1"
  fi
}"""
_STATEFUL = re.compile(r"(?:^|[;&|(\s])(?:cd|export|set|unset|exit|trap|umask|shopt|return)\b|\w=")
_SEVERAL = re.compile(r"[;\n]|&(?!\d)|\|\|")
_ECHO_ESCAPE = re.compile(r"\becho\b[^|;&\n]*\\")
_MAX_SHOWN = 120


def in_shell(line: str, text: str, directory: str) -> str:
    """Return a command that changes nothing of the script's own shell, and that ends as the agent's
    shell would have ended it.
    """
    lines = []
    if _SEVERAL.search(text):
        lines.append("set +eu")
    if _ECHO_ESCAPE.search(text):
        lines.append("shopt -s xpg_echo")
    if directory and directory != ".":
        lines.append(f"cd -- {quoted(directory)}")
    if not lines and not _STATEFUL.search(text):
        return line
    return "(\n" + "\n".join([*lines, line]) + "\n)"


def sends(call: TraceCall) -> bool:
    """Tell whether a call may change something at a host."""
    return isinstance(call.action, Command) and may_send(call.action.text)


def shown(call: TraceCall) -> str:
    """Return a step in one line."""
    match call.action:
        case Command(text=text):
            return shorten(" ".join(text.split()), _MAX_SHOWN)
        case FileWrite(path=path, text=text):
            return f"write {path}, {len(text.splitlines())} lines"
        case FileEdit(path=path, old=old, new=new):
            line = f"edit {path}: {' '.join(old.split())!r} to {' '.join(new.split())!r}"
            return shorten(line, _MAX_SHOWN)
        case FileLook(path=path):
            return f"read {path}"
        case _:
            return call.tool
