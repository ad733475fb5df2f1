"""The small committed workload of the demonstration, and the nodes it was invented for.

The work is invented, not measured: four users with unlike tasks hand in jobs over three minutes on four nodes of 16 cores and
64 GiB, more than those can do at once. At a speedup of 60 it is about ten seconds of real processes. The seeded program that
made it is ``tests/laboratory/replay/sample_program.py``.
"""

from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).parent / "data"
SAMPLE: Final = _DATA / "sample.csv"
SAMPLE_NODES: Final = _DATA / "sample_nodes.csv"
NODES: Final = 4
SPEEDUP: Final = 60
