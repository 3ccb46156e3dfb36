"""The flows and threads of a store, served to clients of the Model Context Protocol."""
