"""Processes that use one resource at a time, by turns: the simulator of paper 004, section 4.1, under the live policy.

``program`` reads what a process does, ``simulation`` lets processes run, ``history`` says who used what and when,
``averages`` takes the mean over many runs and ``charts`` draws them as the paper does.
"""
