"""What can be done with a thread: start, fork, follow, answer, verify, pack up, remove."""
