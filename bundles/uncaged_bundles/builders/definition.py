"""Builder for definition files. The file is loaded in a child process, so that its imports, output
and crashes stay there; only the bundle comes back.

python -m uncaged_bundles.builders.definition flow.py      # prints {"bundle": text} or {"error":
message}
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from uncaged_bundles.authoring import Workflow
from uncaged_bundles.errors import BundleError, NotFoundError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds

from .workflow import check_built, write_workflow

_TRACE_LINES = 12


def build_definition(path: Path, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle of the workflow that the Python file *path* defines.

    The file's directory (for a module of a package: the directory of the outermost package) is
    importable while it is loaded. The workflow is the one named ``workflow``, or else the only one.

    Args:
        known_effects: effect kinds that the workflow's policy may name.
    Raises:
        NotFoundError: there is no such file.
        BundleError: the file does not load, defines no workflow, or one that cannot be built.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no file {str(path)!r}")
    command = [sys.executable, "-P", "-B", "-m", __spec__.name, str(path.absolute())]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        trace = "\n".join(done.stderr.decode(errors="replace").splitlines()[-_TRACE_LINES:])
        raise BundleError(f"{path} does not load (exit {done.returncode}):\n{trace}")
    reply: dict[str, str] = json.loads(done.stdout)
    if "error" in reply:
        raise BundleError(reply["error"])
    return check_built(reply["bundle"].encode(), path.name, known_effects)


def find_workflow(module: ModuleType) -> Workflow:
    """Return the workflow that *module* defines: the one named ``workflow``, or else the only
    one.
    """
    found = {name: value for name, value in vars(module).items() if isinstance(value, Workflow)}
    if "workflow" in found:
        return found["workflow"]
    if not found:
        raise BundleError(
            f"{module.__file__} defines no workflow; write workflow = Workflow(…), from uncaged_bundles.authoring"
        )
    if len({id(workflow) for workflow in found.values()}) > 1:
        raise BundleError(
            f"{module.__file__} defines several workflows ({', '.join(found)}); name the one to build 'workflow'"
        )
    return next(iter(found.values()))


def _load(path: Path) -> ModuleType:
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        root, names = root.parent, [root.name, *names]
    sys.path.insert(0, str(root))
    name = ".".join(names)
    if name in sys.modules or name in sys.stdlib_module_names:
        raise BundleError(f"{path} has the name of another module, {name!r}; rename the file")
    if len(names) > 1:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BundleError(f"{path} is no Python file; a definition's name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _reply(path: Path) -> dict[str, str]:
    try:
        return {"bundle": write_workflow(find_workflow(_load(path))).decode()}
    except BundleError as exc:
        return {"error": str(exc)}


if __name__ == "__main__":
    reply_fd = os.dup(1)
    os.dup2(2, 1)  # output of the definition is not part of the reply
    text = json.dumps(_reply(Path(sys.argv[1])))
    with os.fdopen(reply_fd, "w") as stream:
        stream.write(text)
