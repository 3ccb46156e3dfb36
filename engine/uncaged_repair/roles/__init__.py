"""The four roles that the repair plays: planner, coder, reviewer and committer."""
