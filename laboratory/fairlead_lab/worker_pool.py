"""Processes that share out work and end with whoever started them, however that one ends.

What comes between a pool and its end: Ctrl-C reaches the whole group of processes, SIGTERM only the parent, and SIGKILL the
parent without a word. A pool of the standard library waits in the first two cases for the calls under way, and in the third its
processes wait for ever for calls that nobody makes any more.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, connection, get_context, parent_process
from typing import Any, Final

FRESH: Final = get_context("spawn")
"""How processes are started: forked ones would inherit threads' locks; a fresh interpreter costs a tenth of a second."""


@contextmanager
def worker_pool(
    processes: int, begin: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh interpreters; an exception that leaves the context, such as an interrupt, ends them at once.

    Args:
        processes: at most so many. They are started by calls: make those in ``uninterrupted``.
        begin: called first in each.
        *arguments: what it is called with.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(processes, mp_context=FRESH, initializer=_begin, initargs=(begin, *arguments))
    try:
        yield pool
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put SIGINT off; processes that are started meanwhile put it off as well, until they have begun.

    An interpreter that is interrupted while it starts tells of it in thirty lines.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[..., None] | None, *arguments: Any) -> None:
    """A process has begun."""
    threading.Thread(target=_end_with_parent, name="parent watch", daemon=True).start()
    # Ctrl-C ends it without a word, and the parent says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if begin is not None:
        begin(*arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "only processes of a pool begin here"
    connection.wait([parent.sentinel])
    # Nobody will ever take an answer, and whatever is under way may take an hour.
    os._exit(1)
