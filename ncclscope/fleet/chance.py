"""Chance: how likely a count is when failures fall on nodes by chance, and what stays after many such questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul

__all__ = ["hypergeometric_tail", "poisson_binomial_tail", "stand_out", "trend"]


def hypergeometric_tail(successes: int, draws: Sequence[tuple[int, int, int]]) -> float:
    """P(at least `successes` are good) of all that independent draws take together. Each draw: how many are drawn
    without putting back, how many are good, out of how many."""
    if successes <= 0:
        return 1.0
    # below[k]: probability of exactly k so far; what has reached `successes` stays there.
    below, tail = [1.0], 0.0
    for draw in draws:
        backwards = _hypergeometric(*draw)
        most = len(backwards) - 1
        at_least = list(accumulate(backwards))  # at_least[most - k]: probability of k or more
        tail += sum(p * at_least[most - successes + k] for k, p in enumerate(below) if successes - k <= most)
        after = []
        for k in range(min(successes, len(below) + most)):
            least = max(0, k - most)
            after.append(sum(map(mul, below[least : k + 1], backwards[most - k + least :])))
        below = after
    return min(1.0, tail)


@lru_cache(4096)  # nodes that took part in equally many jobs are many
def _hypergeometric(drawn: int, good: int, total: int) -> list[float]:
    """P(exactly k of `drawn` are good) for every k down to 0."""
    least, most = max(0, drawn - (total - good)), min(drawn, good)
    whole = _log_choose(total, drawn)
    down = range(most, least - 1, -1)
    chances = [math.exp(_log_choose(good, k) + _log_choose(total - good, drawn - k) - whole) for k in down]
    return chances + [0.0] * least


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def poisson_binomial_tail(successes: int, chances: Sequence[float]) -> float:
    """P(at least `successes` of independent events with these probabilities)."""
    if successes <= 0:
        return 1.0
    if successes > len(chances):
        return 0.0
    # below[k]: probability of exactly k so far; all that matters is what stays below `successes`.
    below = [1.0] + [0.0] * (successes - 1)
    tail = 0.0
    for p in chances:
        tail += below[-1] * p
        for k in range(successes - 1, 0, -1):
            below[k] = below[k] * (1 - p) + below[k - 1] * p
        below[0] *= 1 - p
    return min(1.0, tail)


def stand_out(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which of many tests count when at most this share of those named may be false (Benjamini and Hochberg, 1995)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    last = -1
    for place, i in enumerate(order):
        if p_values[i] <= rate * (place + 1) / len(order):
            last = place
    named = set(order[: last + 1])
    return [i in named for i in range(len(p_values))]


def trend(failed: Sequence[int], jobs: Sequence[int]) -> tuple[float, float] | None:
    """(z, two-sided p) of a rising (z > 0) or falling share over equal steps (Cochran, Armitage); None without any."""
    total, bad = sum(jobs), sum(failed)
    if len(jobs) < 3 or bad in (0, total):
        return None
    share = bad / total
    mean = sum(i * n for i, n in enumerate(jobs)) / total
    spread = sum(n * (i - mean) ** 2 for i, n in enumerate(jobs))
    if spread == 0:
        return None
    score = sum((i - mean) * k for i, k in enumerate(failed))
    z = score / math.sqrt(share * (1 - share) * spread)
    return z, math.erfc(abs(z) / math.sqrt(2))
