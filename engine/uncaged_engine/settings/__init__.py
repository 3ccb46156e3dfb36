"""What a person set: the config file, secrets and keys, and the variables that travel."""
