"""uncaged_cli.given."""
