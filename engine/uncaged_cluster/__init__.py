"""Store in PostgreSQL."""
