"""What the engine costs, measured against baselines of the same run: `python -m benchmarks` from a
checkout prints one table.
"""
