"""Schedules of flows: cron expressions in time zones, the start of due threads, and the system's
timer.
"""
