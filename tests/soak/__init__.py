"""A soak test judged from outside: `python -m tests.soak --minutes 60`."""
