"""One role's turn: the question, the agent's answers, and the data that comes of them."""
