"""Verbs of the command line: one module per verb, each with one `command`."""
