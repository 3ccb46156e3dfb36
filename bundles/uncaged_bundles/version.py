"""Version of the engine as a constant: the installed metadata costs a start 35 ms."""

__version__ = "0.1.0"
