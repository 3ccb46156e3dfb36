"""The `uncaged-workflow` command."""
