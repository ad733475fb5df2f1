"""How a process of the cluster logs: one line for each decision, on stderr, as JSON unless a person is looking."""

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, TextIO

# structlog imports rich, if it is there, for tracebacks that no processor of ours makes: a fifth of the time that a master or an agent
# takes to start. While this is None there is none.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # as Python's own documentation says

import structlog  # noqa: E402 - as said
from structlog.typing import EventDict, Processor  # noqa: E402

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
    for_people: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.dev.ConsoleRenderer(),
    ]
    structlog.configure(
        processors=for_people if sys.stderr.isatty() else [_as_json],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(
            file=_Unfailing(sys.stderr)  # type: ignore[arg-type]  # it writes and flushes, and nothing else is asked of it
        ),
        cache_logger_on_first_use=True,
    )


_encode: Final = json.JSONEncoder(default=repr).encode


def _as_json(logger: object, method_name: str, event_dict: EventDict) -> str:
    """Do in one step what processors of structlog's own do in four: a busy agent writes hundreds of lines a second."""
    event_dict["level"] = method_name
    event_dict["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    if "exc_info" in event_dict:
        event_dict = structlog.processors.format_exc_info(logger, method_name, event_dict)
    return _encode(event_dict)


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
