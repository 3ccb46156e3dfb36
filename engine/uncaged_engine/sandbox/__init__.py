"""The walls: one recipe for a bundle's process, one for an operating-system script, each in bubblewrap or Landlock."""
