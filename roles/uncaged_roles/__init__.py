"""uncaged_roles."""
