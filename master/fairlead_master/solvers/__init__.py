"""Exact answers to static problems: who gets how much under each policy, if nobody came or went.

The reference the live policies are tested against, and the engine of ``fairlead allocate``. Pure, and without libraries:
what is small enough to be asked by hand is solved in milliseconds in plain Python.
"""
