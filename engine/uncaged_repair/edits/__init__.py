"""Edit operators: pure functions from a place in a file to candidate edits, each with a weight."""
