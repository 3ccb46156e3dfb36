"""The process that runs all live threads of one bundle."""
