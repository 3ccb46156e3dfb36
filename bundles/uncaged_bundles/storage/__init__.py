"""Storage of bundles, of flows with their history, and of threads."""
