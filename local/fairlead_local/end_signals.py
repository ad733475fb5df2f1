"""The signals by which a person, a service manager or a closed terminal ends a command."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(handler: Callable[[int, object], None], *numbers: signal.Signals) -> Iterator[None]:
    """Have ``handler`` called at each of these signals; a SIGHUP that is ignored, as under `nohup`, stays so."""
    before = {number: signal.getsignal(number) for number in numbers}
    for number, old in before.items():
        if number is not signal.SIGHUP or old is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end what is in the context as Ctrl-C does: it cleans up after itself."""
    with handled(_interrupt, signal.SIGTERM, signal.SIGHUP):
        yield


def _interrupt(_number: int, _frame: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell does for commands in the background
        raise KeyboardInterrupt
    # Not the exception itself: an asyncio loop takes the signal in a gentler way, by cancelling its main task.
    signal.raise_signal(signal.SIGINT)
