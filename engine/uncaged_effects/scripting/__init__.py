"""What the script effect checks, prepares and explains around one run in the sandbox."""
