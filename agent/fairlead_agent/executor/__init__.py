"""Runs tasks as real processes in a small process of its own, which outlives the agent.

The agent holds ``client.ExecutorClient``; everything else here but ``protocol`` and ``sandbox`` runs in the executor
process, which is started as ``python -I -S main.py`` and imports nothing that is slow or large: no grpc, no psutil, no
asyncio, no dataclasses (importing those costs ten milliseconds and a megabyte).
"""
