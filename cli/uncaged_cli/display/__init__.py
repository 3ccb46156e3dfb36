"""Output of the verbs: for terminals, for pipes, and as JSON."""
