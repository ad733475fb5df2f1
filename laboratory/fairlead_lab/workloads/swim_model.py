"""From the bytes of a MapReduce job to its tasks, their demands and run times: a model, since the traces do not say.

The SWIM traces name, for each job of a Facebook cluster, when it came and how many bytes it read, shuffled and wrote. All
else a simulation needs is assumed here, and every number of the assumption is a parameter:

- A job has a map stage and, if it shuffles anything, a reduce stage after it.
- Maps = max(1, ceil(input / block)); a job without reduce writes its output from the maps, so there also at least
  ceil(output / output per map). Reduces = ceil(shuffle / shuffle per reduce), 1 to ``reduces_max``.
- A task's bytes: of a map (input + shuffle) / maps, or (input + output) / maps without reduce; of a reduce (shuffle +
  output) / reduces.
- Run time = (start-up + bytes / rate) x f, at most ``duration_max_s``; f is lognormal with median 1, drawn for a stage: its
  tasks are equally long.
- Demand, drawn for a stage: memory-heavy with probability ``map_heavy_share`` or ``reduce_heavy_share``, else CPU-heavy; cores
  from a list with weights, and memory for a core log-uniform in a range. Both are rounded to steps of memory.
- Owner: one of ``users``, the k-th with weight 1 / k, independent of all else.

What is drawn is a hash of (``name``, job, stage, purpose): the same job is drawn the same whatever stands before it in the
file. With the defaults the file ``fb2010`` of the project's traces is reproduced. The shares of memory-heavy stages are a
guess: a result that hangs on them must be shown for other values.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fairlead_proto.resources import Vector
from fairlead_sim.workload import Bundle, WorkloadError

_MIB: Final = 2**20
_GIB: Final = 2**30

Weighted = tuple[tuple[float, float], ...]
"""Values with their probabilities, which sum to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBytes:
    """What the trace says of a job."""

    job_id: str
    submit_ms: int
    input: int
    """Read by the maps."""
    shuffle: int
    """From maps to reduces; 0: no reduces."""
    output: int
    """Written in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwimModel:
    """The parameters; see the module's text."""

    name: str = "fb2010"
    """Another name draws everything anew: a seed."""
    map_heavy_share: float = 0.20
    """Probability that a map stage is memory-heavy."""
    reduce_heavy_share: float = 0.45
    """Probability that a reduce stage is memory-heavy."""
    block_bytes: int = 128 * _MIB
    """Read by one map: the block of HDFS of that time."""
    shuffle_per_reduce_bytes: int = 10**9
    """The default of Hive of that time, as the next."""
    reduces_max: int = 999
    output_per_map_bytes: int = _GIB
    """Written by one map of a job without reduces."""
    startup_s: float = 5.0
    rate_bytes_s: float = 10 * _MIB
    """Read or written by one task in a second."""
    spread: float = 0.5
    """Standard deviation of the logarithm of f."""
    duration_max_s: float = 3600.0
    cpu_heavy_cores: Weighted = ((0.5, 0.15), (1, 0.45), (1.5, 0.15), (2, 0.15), (3, 0.05), (4, 0.05))
    memory_heavy_cores: Weighted = ((0.25, 0.3), (0.5, 0.4), (1, 0.3))
    cpu_heavy_gib_per_core: tuple[float, float] = (0.25, 1.5)
    """A node of 16 cores and 32 GiB has 2 GiB for a core: below it CPU is the dominant resource, above it memory."""
    memory_heavy_gib_per_core: tuple[float, float] = (2.5, 8.0)
    memory_step_mib: int = 128
    memory_max_mib: int = 8192
    users: int = 25

    def __post_init__(self) -> None:
        for field in ("map_heavy_share", "reduce_heavy_share"):
            share = getattr(self, field)
            if not 0 <= share <= 1:
                raise WorkloadError(f"swim model: {field}: expected 0 to 1, got {share:g}")
        for field in ("block_bytes", "shuffle_per_reduce_bytes", "output_per_map_bytes", "rate_bytes_s"):
            if not getattr(self, field) > 0:
                raise WorkloadError(
                    f"swim model: {field}: expected a number above 0, got {getattr(self, field)}"
                )
        if self.users < 1 or self.reduces_max < 1:
            raise WorkloadError(
                f"swim model: expected at least one user and one reduce, got {self.users} and {self.reduces_max}"
            )

    def bundles(self, job: JobBytes) -> Iterator[Bundle]:
        """The stages of a job: one bundle for the maps, and one for the reduces if it has any."""
        user = self._user(job.job_id)
        maps = max(1, -(-job.input // self.block_bytes))
        if not job.shuffle:
            maps = max(maps, -(-job.output // self.output_per_map_bytes))
        written = job.shuffle or job.output
        yield self._bundle(job, user, "map", stage=0, tasks=maps, of_bytes=(job.input + written) / maps)
        if job.shuffle:
            reduces = min(self.reduces_max, -(-job.shuffle // self.shuffle_per_reduce_bytes))
            moved = (job.shuffle + job.output) / reduces
            yield self._bundle(job, user, "reduce", stage=1, tasks=reduces, of_bytes=moved)

    def _bundle(
        self, job: JobBytes, user: str, kind: str, *, stage: int, tasks: int, of_bytes: float
    ) -> Bundle:
        return Bundle(
            job_id=job.job_id,
            user=user,
            stage=stage,
            tasks=tasks,
            unit=self._demand(job.job_id, kind),
            submit_ms=job.submit_ms,
            duration_ms=self._duration_ms(job.job_id, kind, of_bytes),
        )

    def _demand(self, job_id: str, kind: str) -> Vector:
        heavy_share = self.map_heavy_share if kind == "map" else self.reduce_heavy_share
        is_heavy = self._draw(job_id, kind, "heavy") < heavy_share
        weighted = self.memory_heavy_cores if is_heavy else self.cpu_heavy_cores
        least, most = self.memory_heavy_gib_per_core if is_heavy else self.cpu_heavy_gib_per_core
        cores = _pick(weighted, self._draw(job_id, kind, "cpus"))
        gib = cores * least * (most / least) ** self._draw(job_id, kind, "ratio")
        steps = max(1, round(gib * 1024 / self.memory_step_mib))
        memory_mib = min(self.memory_max_mib, steps * self.memory_step_mib)
        return (round(cores * 1000), memory_mib * _MIB, 0, 0)

    def _duration_ms(self, job_id: str, kind: str, of_bytes: float) -> int:
        # Box and Muller: a normal number from two even ones.
        first, second = self._draw(job_id, kind, "a"), self._draw(job_id, kind, "b")
        normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
        seconds = (self.startup_s + of_bytes / self.rate_bytes_s) * math.exp(self.spread * normal)
        # Tenths of a second are what the model is worth, and what the project's own file of it has.
        return round(min(self.duration_max_s, round(seconds, 1)) * 1000)

    def _user(self, job_id: str) -> str:
        total = sum(1 / rank for rank in range(1, self.users + 1))
        weighted = tuple((float(rank), 1 / (rank + 1) / total) for rank in range(self.users))
        return f"u{int(_pick(weighted, self._draw(job_id, 'user'))):02d}"

    def _draw(self, *purpose: str) -> float:
        """A number from 0 to below 1 that depends on the names alone."""
        digest = sha256("|".join((self.name, *purpose)).encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2.0**64


def _pick(weighted: Weighted, quantile: float) -> float:
    for value, weight in weighted:
        if quantile < weight:
            return value
        quantile -= weight
    return weighted[-1][0]
