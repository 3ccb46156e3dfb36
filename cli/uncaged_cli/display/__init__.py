"""uncaged_cli.display."""
