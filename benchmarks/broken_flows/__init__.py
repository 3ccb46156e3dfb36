"""Flows that worked and then broke, or were wrong from the start. A checker that knows what each
must do runs what a fix proposes; it never reads the evidence of the fix.
"""
