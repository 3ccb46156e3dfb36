"""Block flows: a chain of JSON blocks is read, its texts compiled, and a bundle made of it."""
