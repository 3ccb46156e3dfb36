"""Runners: durable execution of the turns that a worker has taken, each with another engine."""
