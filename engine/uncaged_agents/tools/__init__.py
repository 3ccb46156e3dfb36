"""Tools of a model in a worktree: list, read, search, edit, write, run, commit, within the role's
rights.
"""
