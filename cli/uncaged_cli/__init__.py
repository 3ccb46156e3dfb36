"""uncaged_cli."""
