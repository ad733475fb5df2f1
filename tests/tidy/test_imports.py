"""How far imports reach down; that they never point up again is held by the contracts in `pyproject.toml`."""

from functools import cache

import grimp

ROOTS = (
    "fairlead_proto",
    "fairlead_telemetry",
    "fairlead_master",
    "fairlead_agent",
    "fairlead_sdk",
    "fairlead_local",
    "fairlead_sim",
    "fairlead_lab",
    "fairlead_bench",
    "fairlead_cli",
)

CHAIN_MAX = 24
"""Modules one below the other. One more is a floor more to know before a change is understood; lower it where it can be."""


def test_no_chain_of_imports_is_longer_than_the_longest_was() -> None:
    graph = grimp.build_graph(ROOTS[0], *ROOTS[1:], cache_dir=None)

    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = (chain(imported) for imported in sorted(graph.find_modules_directly_imported_by(module)))
        return (module, *max(below, key=len, default=()))

    longest = max((chain(module) for module in sorted(graph.modules)), key=len)

    assert len(longest) <= CHAIN_MAX, "\n".join((f"a chain of {len(longest)}:", *longest))
