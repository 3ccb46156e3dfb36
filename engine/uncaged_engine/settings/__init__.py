"""Settings of the person: config file, secrets, keys, and the environment variables passed on to
other processes.
"""
