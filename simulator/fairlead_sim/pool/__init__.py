"""The fast level of simulation: the allocator of a live cluster, frameworks and hosts as queues, and nothing between them."""
