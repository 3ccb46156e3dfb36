"""What a script takes and needs, guessed from its text for a person to confirm."""
