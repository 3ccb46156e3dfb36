"""The built-in repair agent: no model; small edits are tried until the repository's own failing
test passes.
"""
