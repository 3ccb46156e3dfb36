"""How things look on a terminal, on a pipe and as JSON."""
