"""Language models: two wire formats behind one protocol, the tool loop, prompts, and extraction of
data.
"""
