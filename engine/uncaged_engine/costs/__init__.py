"""What was used up, what that cost, and when it is too much."""
