"""How an agent logs: one line for each decision, on stderr, as JSON unless a person is looking."""

import logging
import sys

import structlog
from structlog.typing import Processor


def configure(level: str) -> None:
    """Set structlog up for this process.

    Args:
        level: "debug", "info", "warning" or "error"; what is below it costs next to nothing.
    """
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
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
