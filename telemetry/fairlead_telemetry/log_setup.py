"""How a process of the cluster logs: one line for each decision, on stderr, as JSON unless a person is looking."""

import logging
import sys
from contextlib import suppress
from typing import TextIO

# structlog imports rich, if it is there, for tracebacks that no processor of ours makes: a fifth of the time that a master or an agent
# takes to start. While this is None there is none.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # as Python's own documentation says

import structlog  # noqa: E402 - as said
from structlog.typing import Processor  # noqa: E402

if sys.modules.get("rich") is None:
    del sys.modules["rich"]


def configure_logging(level: str) -> None:
    """Set structlog up for this process.

    Args:
        level: "debug", "info", "warning" or "error"; what is below it costs next to nothing.

    Raises:
        ValueError: no such level.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"log level: expected debug, info, warning or error, got {level!r}")
    is_person = sys.stderr.isatty()
    renderer: Processor = (
        structlog.dev.ConsoleRenderer() if is_person else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(
            file=_Unfailing(sys.stderr)  # type: ignore[arg-type]  # it writes and flushes, and nothing else is asked of it
        ),
        cache_logger_on_first_use=True,
    )


class _Unfailing:
    """A log that drops what cannot be written: its disk is full, which it may have filled itself, or somebody closed it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()
