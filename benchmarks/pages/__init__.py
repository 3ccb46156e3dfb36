"""Web pages with tasks of a person: all kinds of controls, for recording, replay and healing."""
