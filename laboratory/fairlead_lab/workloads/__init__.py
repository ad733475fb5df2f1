"""Real and synthetic workloads: traces read as streams, selected, scaled to a cluster, planned."""
