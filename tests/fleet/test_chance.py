"""Probabilities against counting all cases, and who is named by chance."""

from __future__ import annotations

import itertools
import math

import pytest

from ncclscope.fleet.chance import hypergeometric_tail, poisson_binomial_tail, stand_out, trend


@pytest.mark.parametrize(
    "draws",
    [
        [(3, 4, 9)],
        [(6, 6, 7)],
        [(1, 1, 1)],
        [(3, 4, 9), (5, 2, 8)],
        [(2, 1, 3), (0, 2, 4), (6, 6, 7), (4, 3, 5)],
        [(2, 0, 6), (3, 3, 3)],
    ],
)
def test_hypergeometric_tail_counts_all_draws(draws: list[tuple[int, int, int]]) -> None:
    """As by listing every draw, one or several together."""
    each = [
        [sum(i < good for i in draw) for draw in itertools.combinations(range(total), drawn)]
        for drawn, good, total in draws
    ]
    sums = [sum(found) for found in itertools.product(*each)]
    for least in range(sum(drawn for drawn, _, _ in draws) + 2):
        share = sum(found >= least for found in sums) / len(sums)
        assert hypergeometric_tail(least, draws) == pytest.approx(share)


def test_hypergeometric_tail_is_exact_where_it_is_small() -> None:
    """All that could be drawn were: one draw of each pile, however unlikely."""
    assert hypergeometric_tail(60, [(30, 30, 500), (30, 30, 500)]) == pytest.approx(math.comb(500, 30) ** -2, rel=1e-9)


def test_poisson_binomial_tail_counts_all_outcomes() -> None:
    """As by listing every outcome."""
    chances = [0.1, 0.5, 0.25, 0.9, 0.0]
    for least in range(7):
        wanted = sum(
            math.prod(p if hit else 1 - p for p, hit in zip(chances, outcome, strict=True))
            for outcome in itertools.product([True, False], repeat=len(chances))
            if sum(outcome) >= least
        )
        assert poisson_binomial_tail(least, chances) == pytest.approx(wanted)


def test_stand_out_follows_the_worked_example() -> None:
    """Fifteen p-values of Benjamini and Hochberg's paper of 1995, section 3.1: the first four at 0.05."""
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    assert stand_out(p, 0.05) == [True] * 4 + [False] * 11
    assert stand_out(list(reversed(p)), 0.05) == [False] * 11 + [True] * 4
    assert stand_out([], 0.05) == []


def test_trend_tells_rising_from_falling() -> None:
    """A steady share has none; three days are the least that have one."""
    rising = trend([1, 2, 4, 8, 16], [20] * 5)
    falling = trend([16, 8, 4, 2, 1], [20] * 5)
    assert rising is not None
    assert falling is not None
    assert rising[0] > 2
    assert falling[0] == pytest.approx(-rising[0])
    assert rising[1] < 0.001
    steady = trend([5, 5, 5, 5], [20] * 4)
    assert steady is not None
    assert steady[1] == pytest.approx(1)
    assert trend([1, 2], [9, 9]) is None
