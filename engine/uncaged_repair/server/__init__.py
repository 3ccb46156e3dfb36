"""Test server, which runs inside the script sandbox under the repository's own interpreter: the
standard library and its pytest, nothing of ours.

These modules keep to Python 3.8, and are loaded under a private package name so that they hide none
of the repository's modules.
"""
