"""uncaged_bundles.carried."""
