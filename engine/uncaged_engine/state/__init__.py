"""How a thread stands, told from its files alone."""
