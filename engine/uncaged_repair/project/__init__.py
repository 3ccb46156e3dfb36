"""The repository under repair: test command, interpreter, paths. Nothing of it is run here."""
