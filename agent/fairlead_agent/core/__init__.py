"""The pure agent core: events in, actions out, without I/O, clock or randomness."""
