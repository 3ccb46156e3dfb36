"""uncaged_templates."""
