"""How the time of a function grows with the size of its input: a ratio in one run, so that a slow machine does not
matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def measure_growth(work: Callable[[int], None], size: int, *, times: int) -> float:
    """Return the time of the function for a larger input as a multiple of the time for a smaller one.

    The best of two counts.
    """
    small, large = (min(_measure(work, n) for _ in range(2)) for n in (size, times * size))
    return large / small


def _measure(work: Callable[[int], None], size: int) -> float:
    started = time.thread_time()  # of this thread only
    work(size)
    return time.thread_time() - started
