"""What a live cluster would do under another policy, with more hosts, or without one: simulated from its state now.

``snapshot`` is that state as values and ``reading`` takes it from a master; ``run_times`` is what is assumed of how long
tasks run; ``question`` is what is asked, ``scenario`` simulates one case of it, ``answer`` is what comes out.
"""
