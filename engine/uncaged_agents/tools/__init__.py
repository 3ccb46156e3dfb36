"""What a model may do in a worktree: look, change, run, commit; each within the worktree and within what the role may use."""
