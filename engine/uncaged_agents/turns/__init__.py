"""Turn of a role: the request, the agent's answers, and the data in them."""
