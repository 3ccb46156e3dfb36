"""Block flows: their JSON is read, their expressions are compiled, and a bundle is built."""
