"""uncaged_bundles."""
