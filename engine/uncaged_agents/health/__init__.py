"""Health checks of agents: whether each could answer, with at most one tiny turn, and the remedy if
not.
"""
