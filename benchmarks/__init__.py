"""Benchmarks of the engine against baselines in the same run: `python -m benchmarks` from a
checkout prints one table.
"""
