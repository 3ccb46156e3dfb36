"""uncaged_bundles.storage."""
