"""Snapshots of a worktree: commits of its exact bytes, and the way back to them.

The files are read through a private git directory of the thread: its own index (kept, so that only
changed files are read again), no hooks, and attributes that switch off every conversion and filter.
Objects and the thread's one ref go into the person's repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_engine.services.git import IDENTITY, Git, GitError, WorkspaceError
from uncaged_engine.services.journal import COMMIT

NO_CONVERSION = "* -text !eol -ident !filter !working-tree-encoding\n"
COPIED_SETTINGS = ("core.filemode", "core.symlinks", "core.ignorecase", "core.excludesfile")
UNFINISHED = (
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
)
UNFINISHED_DIRECTORIES = ("rebase-merge", "rebase-apply", "sequencer")
EMBEDDED = (
    ("warning: adding embedded git repository: ", ""),
    ("error: '", "' does not have a commit checked out"),
)
"""What ``git add`` says of a repository inside the worktree: one with a commit, one without."""
MAX_EMBEDDED = 100
UNREPLACED = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
}
"""Variables that show commits as they are, whatever was put in their place, and fetch none from
elsewhere.
"""
TORN_INDEX = (
    "index file smaller",
    "index file corrupt",
    "bad signature",
    "bad index",
    "index uses",
    "index entry",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadState:
    """Position of a worktree.

    ref: what HEAD names; ``HEAD`` itself when detached. commit: the commit there. branch: the
    commit of the thread's own branch.
    """

    ref: str
    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Snapshots of one thread.

    tree: the worktree. common: the repository's git directory. admin: the worktree's own part of
    it. private: the thread's own git directory. ref: the thread's ref. branch: the thread's branch,
    as a full ref. links: paths that are never part of a snapshot.
    """

    tree: Path
    common: Path
    admin: Path
    private: Path
    ref: str
    branch: str
    links: tuple[str, ...]
    environment: Mapping[str, str]

    def create(self, *, converted: bool) -> None:
        """Make the private git directory; its index starts as the worktree's, which was just
        checked out.

        converted: the checkout passed through conversions, so that the index does not know the
        bytes on disk; all are read once.
        """
        shutil.rmtree(self.private, ignore_errors=True)
        (self.private / "info").mkdir(parents=True)
        (self.private / "refs").mkdir()
        (self.private / "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
        (self.private / "info" / "attributes").write_text(NO_CONVERSION, "utf-8")
        (self.private / "config").write_text(self._config(), "utf-8")
        self._seed_index(read_all=converted)

    def take(self, message: str, *, previous: str | None, now_ms: int) -> str:
        """Commit the worktree as it is, point the thread's ref to the commit, and return it."""
        tree = self._write_tree()
        head = self._head()
        parents = [
            part
            for parent in (head.commit, previous)
            if parent is not None
            for part in ("-p", parent)
        ]
        text = f"{message}\n\nhead: {head.ref} {head.commit or '-'}\nbranch: {self.branch} {head.branch or '-'}\n"
        date = {
            "GIT_AUTHOR_DATE": f"@{now_ms // 1000} +0000",
            "GIT_COMMITTER_DATE": f"@{now_ms // 1000} +0000",
        }
        made = self._repository().run(
            "commit-tree", tree, *parents, stdin=text.encode(), more={**IDENTITY, **date}
        )
        commit = made.decode().strip()
        self._keep_index(commit)
        self._repository().run("update-ref", self.ref, commit)
        return commit

    def restore(self, commit: str) -> None:
        """Put files, index, HEAD and branch of the worktree back to what they were at *commit*.

        Untracked files go, ignored ones stay. A commit that is no snapshot restores its own files,
        with the branch at it.
        """
        tree, head = self._read(commit)
        self._drop_unfinished()
        self._write_pointer()
        self._set_head(head)
        self._write_excludes()
        self._run_with_index("read-tree", "--reset", "-u", tree)
        self._run_with_index("clean", "-ffdq")
        kept = self._kept_index(commit)
        if kept.exists():
            shutil.copy2(kept, self.admin / "index")
        elif head.commit is not None:
            self._worktree().run("read-tree", "--reset", head.commit)

    def branch_at(self, commit: str) -> str | None:
        """Return the commit at which the thread's branch was at the snapshot *commit*; None if
        there was no branch.
        """
        found = self._read(commit)[1].branch
        return found if found is not None and COMMIT.fullmatch(found) else None

    def current_branch(self) -> str | None:
        """Return the branch that the worktree is on; None if it is on none."""
        ref = (
            self._worktree()
            .run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1))
            .decode("utf-8", "surrogateescape")
            .strip()
        )
        return ref.removeprefix("refs/heads/") or None

    def has_commit(self, name: str) -> bool:
        """Return whether *name* is the full id of a commit."""
        words = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
        found = self._worktree().run(*words, accept=(0, 1, 128), more=UNREPLACED)
        return found.decode().strip() == name

    def is_ahead(self, commit: str, base: str) -> bool:
        """Return whether *commit* is part of HEAD's history and not of *base*'s."""
        git = self._worktree()
        behind = git.run("rev-list", "--max-count=1", commit, "--not", "HEAD", more=UNREPLACED)
        return not behind.strip() and bool(
            git.run("rev-list", "--max-count=1", commit, "--not", base, more=UNREPLACED).strip()
        )

    def changed_paths(self, since: Sequence[str]) -> frozenset[str]:
        """Return the paths that differ between the worktree and any of the commits *since*, deleted
        and untracked ones included.
        """
        tree = self._write_tree()
        lists = [
            self._repository().run(
                "diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, tree
            )
            for commit in since
        ]
        return frozenset(
            path.decode("utf-8", "surrogateescape")
            for found in lists
            for path in found.split(b"\0")
            if path
        )

    def untracked(self) -> tuple[str, ...]:
        """Return the paths of all files that git does not track, ignored ones included."""
        found = self._worktree().run("ls-files", "--others", "-z")
        return tuple(path.decode("utf-8", "surrogateescape") for path in found.split(b"\0") if path)

    def _write_tree(self) -> str:
        self._write_excludes()
        for _ in range(MAX_EMBEDDED):
            try:
                _, words = self._run_with_index("add", "--all")
            except GitError as exc:
                words = exc.words
                if not embedded_in(words):
                    raise
            embedded = embedded_in(words)
            if not embedded:
                return self._run_with_index("write-tree")[0].decode().strip()
            # An agent made a repository inside the worktree. Its files stay where they are, but no
            # snapshot can hold them.
            with (self.private / "embedded").open(
                "a", encoding="utf-8", errors="surrogateescape"
            ) as known:
                known.writelines(f"/{path}\n" for path in embedded)
            self._write_excludes()
            self._run_with_index(
                "rm", "-r", "-f", "--cached", "--quiet", "--ignore-unmatch", "--", *embedded
            )
        raise WorkspaceError(
            f"{self.tree} holds more than {MAX_EMBEDDED} repositories of its own",
            remedy="remove them",
        )

    def _run_with_index(self, *arguments: str) -> tuple[bytes, str]:
        """Run git for the files; a private index that a crash tore is made anew once."""
        try:
            return self._files().speak(*arguments)
        except GitError as exc:
            if not any(sign in exc.words for sign in TORN_INDEX):
                raise
            self._seed_index(read_all=True)
            return self._files().speak(*arguments)

    def _seed_index(self, *, read_all: bool) -> None:
        """Copy the worktree's own index, which knows the files that were checked out; with
        *read_all* have all files read again.
        """
        own = self.admin / "index"
        if own.exists():
            shutil.copy2(own, self.private / "index")
        else:
            (self.private / "index").unlink(missing_ok=True)
        submodules = self._files().submodules()
        if submodules:
            # without its entry, git takes a submodule's files for files of the worktree
            self._files().run("update-index", "--force-remove", "--", *submodules)
        if read_all:
            self._write_excludes()
            self._files().run("add", "--update", "--renormalize")

    def _head(self) -> HeadState:
        git = self._worktree()
        try:
            words = git.line("rev-parse", "HEAD", "--symbolic-full-name", "HEAD").split("\n")
            commit, ref = words[0], words[1]
        except GitError:  # an orphan branch: HEAD names a ref that does not exist yet
            return HeadState(
                ref=git.line("symbolic-ref", "HEAD"), commit=None, branch=self._branch_commit()
            )
        return HeadState(
            ref=ref, commit=commit, branch=commit if ref == self.branch else self._branch_commit()
        )

    def _branch_commit(self) -> str | None:
        return (
            self._repository()
            .run("rev-parse", "--quiet", "--verify", self.branch, accept=(0, 1))
            .decode()
            .strip()
            or None
        )

    def _read(self, commit: str) -> tuple[str, HeadState]:
        """Return the tree of *commit* and the position of the worktree."""
        text = self._repository().run("cat-file", "commit", commit).decode("utf-8", "replace")
        headers, _, message = text.partition("\n\n")
        tree = headers.split("\n", 1)[0].removeprefix("tree ")
        recorded = dict(
            line.split(": ", 1)
            for line in message.splitlines()
            if line.startswith(("head: ", "branch: "))
        )
        if not message.startswith("snapshot ") or recorded.keys() != {"head", "branch"}:
            return tree, HeadState(ref=self.branch, commit=commit, branch=commit)
        ref, _, at = recorded["head"].rpartition(" ")
        branch, _, own = recorded["branch"].rpartition(" ")
        # a fork's source made it: its refs are not ours to move
        if branch != self.branch and at != "-":
            return tree, HeadState(ref=self.branch, commit=at, branch=at)
        return tree, HeadState(
            ref=ref, commit=None if at == "-" else at, branch=None if own == "-" else own
        )

    def _set_head(self, head: HeadState) -> None:
        git = self._worktree()
        if head.branch is not None:
            git.run("update-ref", self.branch, head.branch)
        if head.ref == "HEAD":
            git.run("update-ref", "--no-deref", "HEAD", str(head.commit))
            return
        git.run("symbolic-ref", "HEAD", head.ref)
        if head.commit is not None:
            git.run("update-ref", head.ref, head.commit)

    def _drop_unfinished(self) -> None:
        """Remove what a killed git left in the worktree's own directory; nothing else runs there
        now.
        """
        for name in (*UNFINISHED, "index.lock", "HEAD.lock"):
            (self.admin / name).unlink(missing_ok=True)
        for name in UNFINISHED_DIRECTORIES:
            shutil.rmtree(self.admin / name, ignore_errors=True)
        (self.private / "index.lock").unlink(missing_ok=True)

    def _write_pointer(self) -> None:
        """Write the file ``.git`` of the worktree, which an agent may have replaced."""
        pointer = self.tree / ".git"
        text = f"gitdir: {self.admin}\n"
        if pointer.is_dir() and not pointer.is_symlink():
            shutil.rmtree(pointer)
        if (
            pointer.is_symlink()
            or not pointer.exists()
            or pointer.read_text("utf-8", "replace") != text
        ):
            pointer.unlink(missing_ok=True)
            pointer.write_text(text, "utf-8")

    def _write_excludes(self) -> None:
        """Write the private excludes: those of the repository, the links, and the repositories
        inside the worktree.
        """
        parts = [f"/{name}\n" for name in self.links]
        for source in (self.common / "info" / "exclude", self.private / "embedded"):
            if source.exists():
                parts.append(source.read_text("utf-8", "surrogateescape").rstrip("\n") + "\n")
        text = "".join(parts)
        target = self.private / "info" / "exclude"
        if not target.exists() or target.read_text("utf-8", "surrogateescape") != text:
            target.write_text(text, "utf-8", "surrogateescape")

    def _config(self) -> str:
        repository = self._repository()
        form = repository.line("rev-parse", "--show-object-format")
        lines = [
            "[core]",
            "\tbare = false",
            "\trepositoryformatversion = " + ("0" if form == "sha1" else "1"),
        ]
        for name in COPIED_SETTINGS:
            value = (
                repository.run("config", "--get", name, accept=(0, 1))
                .decode("utf-8", "replace")
                .strip()
            )
            if value:
                quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'\t{name.removeprefix("core.")} = "{quoted}"')
        if form != "sha1":
            lines += ["[extensions]", f"\tobjectformat = {form}"]
        return "\n".join(lines) + "\n"

    def _keep_index(self, commit: str) -> None:
        """Keep what is staged beside the newest snapshot; a fork of an older one starts with
        nothing staged.
        """
        index, kept = self.admin / "index", self._kept_index(commit)
        if index.exists():
            half = kept.with_suffix(".half")
            shutil.copy2(index, half)
            half.replace(kept)
        for older in self.private.glob("*.staged"):
            if older != kept:
                older.unlink()

    def _kept_index(self, commit: str) -> Path:
        return self.private / f"{commit}.staged"

    def _files(self) -> Git:
        """Return git for the files: the private directory, the worktree, the repository's
        objects.
        """
        variables = {
            "GIT_DIR": str(self.private),
            "GIT_WORK_TREE": str(self.tree),
            "GIT_OBJECT_DIRECTORY": str(self.common / "objects"),
        }
        return Git(directory=self.tree, environment=self.environment, variables=variables)

    def _worktree(self) -> Git:
        """Return git for HEAD and the real index, even when an agent broke the file ``.git``."""
        variables = {"GIT_DIR": str(self.admin), "GIT_WORK_TREE": str(self.tree)}
        return Git(directory=self.tree, environment=self.environment, variables=variables)

    def _repository(self) -> Git:
        return Git(
            directory=self.common,
            environment=self.environment,
            variables={"GIT_DIR": str(self.common)},
        )


def embedded_in(words: str) -> list[str]:
    """Return the repositories inside the worktree that ``git add`` complained of: with commits (a
    warning) and without (an error).
    """
    found = []
    for line in words.splitlines():
        for before, after in EMBEDDED:
            if line.startswith(before) and line.endswith(after):
                found.append(line.removeprefix(before).removesuffix(after).rstrip("/"))
    return found
