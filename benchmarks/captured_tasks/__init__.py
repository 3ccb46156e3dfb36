"""Tasks that a scripted model does once, whose captured flows are then run with other values in
other worlds without a model. The world itself shows whether they did what they should.
"""
