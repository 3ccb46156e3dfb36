"""Sandboxes of bundle processes and of operating-system scripts, each in bubblewrap or Landlock."""
