"""A sampling profiler of one thread's CPU time, cheap enough to leave the proportions as they are.

A tracing profiler charges each call the same fee, which makes a program of many small calls look like nothing else.
"""

import signal
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

INTERVAL_S: Final = 0.001

Place = tuple[str, str, int]
"""File, function, line."""


class Sampler:
    """Counts where the main thread is, each time its process has used another millisecond of CPU."""

    def __init__(self) -> None:
        self.total = 0
        self.by_line: Counter[Place] = Counter()
        self.by_function: Counter[Place] = Counter()
        self.within: Counter[Place] = Counter()
        """A function counts once a sample, wherever in the stack it is."""

    def start(self) -> None:
        """Begin; only on the main thread."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """End; what was counted stays."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        self.total += 1
        code = frame.f_code
        self.by_line[code.co_filename, code.co_name, frame.f_lineno] += 1
        self.by_function[code.co_filename, code.co_name, code.co_firstlineno] += 1
        seen: dict[Place, None] = {}
        at: FrameType | None = frame
        while at is not None:
            seen[at.f_code.co_filename, at.f_code.co_name, at.f_code.co_firstlineno] = None
            at = at.f_back
        self.within.update(seen.keys())

    def write(self, path: Path, shown: int = 60) -> None:
        """Write three lists: time in functions alone, with what they call, and on lines, in percent."""
        parts = (
            ("in the function itself", self.by_function),
            ("in it and what it calls", self.within),
            ("on the line", self.by_line),
        )
        lines = [f"{self.total} samples of {INTERVAL_S * 1000:g} ms CPU"]
        for title, counts in parts:
            lines += ["", title]
            for (file, function, line), count in counts.most_common(shown):
                place = "/".join(Path(file).parts[-2:])
                lines.append(f"{100 * count / max(1, self.total):6.2f} %  {function}  {place}:{line}")
        path.write_text("\n".join(lines) + "\n")
