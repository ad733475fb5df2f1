"""Simulations of a workload under policies, with metrics that are kept as it goes and take bounded memory."""
