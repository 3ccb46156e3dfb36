"""The process behind `uncaged-workflow serve`: one listener on loopback for the routes of all
packages.
"""
