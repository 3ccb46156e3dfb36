"""Whether an agent can answer is tried out on the agent itself, with at most one tiny turn, and told in one line with the remedy."""
