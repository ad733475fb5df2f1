"""Simulator of processes that use one resource at a time, by turns: paper 004, section 4.1, under the live policy.

``program`` reads what a process does, ``simulation`` runs processes, ``history`` records who used which resource when,
``averages`` takes means over runs, ``charts`` draws runs as the paper does and ``report`` writes what a user gets.
"""
