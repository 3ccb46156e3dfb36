"""Inspection of a checkout before a thread starts. Its result in the start record is all that a
worker needs.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.services.git import IDENTITY, Git, GitError, WorkspaceError

from .links import DEPENDENCY_NAMES

SHORT_ID_CHARACTERS = 14
"""Ten characters of time and four of chance: a prefix of the thread's id that a command still
accepts.
"""
SHOWN_CHANGES = 10
CONVERTING = re.compile(rb"(?m)^[^#\n]*\b(text|eol|crlf|filter|ident|working-tree-encoding)\b")
SETTINGS = r"^core\.(autocrlf|eol|attributesfile)$"
UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutStatus:
    """Status of a checkout: changed and new files, unmerged ones, and ignored entries (directories
    end in a slash).
    """

    changed: tuple[str, ...]
    unmerged: tuple[str, ...]
    ignored: tuple[str, ...]


def inspect(
    directory: Path,
    *,
    flow: str,
    thread_id: str,
    include_changes: bool,
    links: Iterable[str] = (),
    environment: Mapping[str, str],
    now_ms: int,
) -> dict[str, object]:
    """Return the ``workspace`` of a start record: repository, subdirectory, base commit, branch,
    the ignored paths to link, and the submodules, if there are any.

    Nothing is changed; with *include_changes* one commit object is added that no ref names yet
    (``Workspace.pin`` does).

    Args:
        directory: anywhere in a checkout. links: further ignored paths to link, relative to
            *directory*.
    Raises:
        UsageError: no directory, no repository, a bare one, one without a commit,
            uncommitted changes that are not to be included, a link that is not ignored.
        EnvironmentLacks: no git.
    """
    if not directory.is_dir():
        raise UsageError(
            f"the workspace {str(directory)!r} is not a directory; name another with --workspace DIR"
        )
    here = Git(directory=directory, environment=environment)
    top = top_of(here)
    git = Git(directory=top, environment=environment)
    head = commit_of(git)
    status = read_status(git)
    if status.unmerged:
        raise UsageError(
            f"{top} has unmerged files ({listed(status.unmerged)}); finish or abort the merge first"
        )
    if status.changed and not include_changes:
        raise UsageError(
            f"{top} has uncommitted changes ({listed(status.changed)}); commit or stash them, or start from them with --include-changes"
        )
    inside = directory.resolve().relative_to(top.resolve())
    subdirectory = "" if inside == Path() else inside.as_posix()
    submodules = git.submodules()
    return {
        "repository": str(top),
        "subdirectory": subdirectory,
        "base": commit_changes(git, head, now_ms) if status.changed else head,
        "branch": branch_of(flow, thread_id),
        "links": sorted(
            {
                *dependencies(status),
                *(chosen_link(name, subdirectory, top, status) for name in links),
            }
        ),
        **({"submodules": list(submodules)} if submodules else {}),
    }


def forked(workspace: Mapping[str, object], *, flow: str, thread_id: str) -> dict[str, object]:
    """Return a fork's ``workspace``: its source's, on a branch of its own."""
    return {**workspace, "branch": branch_of(flow, thread_id)}


def branch_of(flow: str, thread_id: str) -> str:
    return f"uncaged/{flow}/{thread_id[:SHORT_ID_CHARACTERS].lower()}"


def has_commit(repository: Path, commit: str, environment: Mapping[str, str]) -> bool:
    """Return whether a commit is in the repository. commit: a whole hexadecimal name."""
    return _resolves(repository, f"{commit}^{{commit}}", environment)


def branch_exists(repository: Path, branch: str, environment: Mapping[str, str]) -> bool:
    return _resolves(repository, f"refs/heads/{branch}", environment)


def _resolves(repository: Path, name: str, environment: Mapping[str, str]) -> bool:
    git = Git(directory=repository, environment=environment)
    return bool(git.run("rev-parse", "--quiet", "--verify", name, accept=(0, 1, 128)).strip())


def top_of(git: Git) -> Path:
    """Return the root of the checkout around the directory; UsageError when there is none."""
    try:
        kind = git.line("rev-parse", "--is-inside-work-tree", "--is-bare-repository").split()
        if kind == ["true", "false"]:
            return Path(git.line("rev-parse", "--show-toplevel"))
    except GitError as exc:
        if "not a git repository" in exc.words:
            advice = (
                "run `git init` and commit there, or name another directory with --workspace DIR"
            )
            raise UsageError(
                f"{str(git.directory)!r} is not in a git repository; {advice}"
            ) from exc
        raise UsageError(f"git cannot use {str(git.directory)!r}: {exc.words}") from exc
    except WorkspaceError as exc:
        raise EnvironmentLacks(str(exc)) from exc
    if kind[-1] == "true":
        raise UsageError(
            f"{str(git.directory)!r} is a bare repository; clone it and name the clone with --workspace DIR"
        )
    raise UsageError(
        f"{str(git.directory)!r} is inside a git directory; name a checkout with --workspace DIR"
    )


def commit_of(git: Git) -> str:
    found = (
        git.run("rev-parse", "--quiet", "--verify", "HEAD^{commit}", accept=(0, 1)).decode().strip()
    )
    if not found:
        raise UsageError(
            f"{git.directory} has no commit yet; commit once (`git add -A && git commit`), then run again"
        )
    return found


def read_status(git: Git) -> CheckoutStatus:
    """Ask git once for everything that is not simply committed."""
    raw = git.run(
        *("--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames"),
        *("--untracked-files=normal", "--ignored=traditional"),
    )
    entries = [
        (entry[:2], entry[3:])
        for entry in raw.decode("utf-8", "surrogateescape").split("\0")
        if entry
    ]
    return CheckoutStatus(
        changed=tuple(path for state, path in entries if state != "!!"),
        unmerged=tuple(path for state, path in entries if state in UNMERGED),
        ignored=tuple(path for state, path in entries if state == "!!"),
    )


def listed(paths: tuple[str, ...]) -> str:
    shown = ", ".join(
        repr(path) if not path.isprintable() else path for path in paths[:SHOWN_CHANGES]
    )
    return (
        shown if len(paths) <= SHOWN_CHANGES else f"{shown} and {len(paths) - SHOWN_CHANGES} more"
    )


def dependencies(status: CheckoutStatus) -> Iterable[str]:
    return (
        path.rstrip("/") for path in status.ignored if PurePosixPath(path).name in DEPENDENCY_NAMES
    )


def chosen_link(name: str, subdirectory: str, top: Path, status: CheckoutStatus) -> str:
    """Return *name* relative to the repository; UsageError unless it exists and git ignores it."""
    path = PurePosixPath(subdirectory) / name
    if PurePosixPath(name).is_absolute() or ".." in path.parts:
        raise UsageError(f"--link {name!r}: give a path inside the workspace")
    if not (top / path).exists():
        raise UsageError(f"--link {name!r}: there is nothing at {top / path}")
    ignored = {PurePosixPath(entry) for entry in status.ignored}
    if ignored.isdisjoint({path, *path.parents}):
        raise UsageError(
            f"--link {name!r}: git does not ignore it, so the worktree has it already or would commit it; add it to .gitignore"
        )
    return path.as_posix()


def commit_changes(git: Git, head: str, now_ms: int) -> str:
    """Commit the checkout as it is, untracked files included, without touching its index, branch or
    files.
    """
    index = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "index"))
    with tempfile.TemporaryDirectory(prefix="uncaged-index-") as private:
        copy = Path(private) / "index"
        if index.exists():
            shutil.copy2(index, copy)
        own_index = {"GIT_INDEX_FILE": str(copy)}
        git.run("add", "--all", more=own_index)
        tree = git.run("write-tree", more=own_index).decode().strip()
    date = {
        "GIT_AUTHOR_DATE": f"@{now_ms // 1000} +0000",
        "GIT_COMMITTER_DATE": f"@{now_ms // 1000} +0000",
    }
    message = b"Uncommitted changes, as they stood when the thread started\n"
    return (
        git.run("commit-tree", tree, "-p", head, stdin=message, more={**IDENTITY, **date})
        .decode()
        .strip()
    )


def changes_bytes(git: Git) -> bool:
    """Return whether a setting or an attribute of the checkout at *git* may convert files. If in
    doubt it is True, which only costs time.
    """
    if git.run("config", "--get-regexp", SETTINGS, accept=(0, 1)).strip():
        return True
    listing = git.run("ls-files", "-z", "--", ":(glob)**/.gitattributes").decode(
        "utf-8", "surrogateescape"
    )
    own = Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "info/attributes"))
    paths = [own, *(git.directory / name for name in listing.split("\0") if name)]
    return any(CONVERTING.search(path.read_bytes()) for path in paths if path.is_file())
