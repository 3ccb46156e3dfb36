"""Store in PostgreSQL, for teams that outgrow one machine."""
