"""Measurement of the built-in repair: real fixes and mutants of libraries, each repaired by the
whole command.
"""
