"""Things outside of the engine that a whole procedure needs: the command line with a store of its
own, a scripted model, an HTTP service whose state a checker reads, and a file of results.
"""
