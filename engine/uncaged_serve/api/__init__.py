"""JSON API of the page: one module, one subject."""
