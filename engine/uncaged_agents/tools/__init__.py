"""Tools of a model in a worktree: look, change, run, commit, within the worktree and the role's
rights.
"""
