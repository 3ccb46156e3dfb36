"""Status, summary and view of threads, derived from their files."""
