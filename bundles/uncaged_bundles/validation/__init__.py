"""uncaged_bundles.validation."""
