"""Script flows and task flows: their rules and their bundles."""
