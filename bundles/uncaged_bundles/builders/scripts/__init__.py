"""Scripts, by the hand of the operating system or as tasks, become bundles."""
