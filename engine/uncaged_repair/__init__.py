"""Automated program repair without a model: candidate patches are generated and tested until the
repository's own failing test passes.
"""
