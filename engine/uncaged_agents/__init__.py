"""The role effect: agents, the turn of a role, and the git worktree that roles work in."""
