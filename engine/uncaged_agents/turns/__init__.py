"""Turn of a role: the request to its agent, the answers, and the data in them."""
