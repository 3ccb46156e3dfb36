"""Services of the core for its parts and for other distributions: public names, and nothing else of
the core, beside the door.
"""
