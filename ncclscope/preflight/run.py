"""Runs the checks side by side under one time limit."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ncclscope.preflight.checks import CHECKS, DECISIVE
from ncclscope.preflight.model import CheckResult, Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ncclscope.preflight.checks import Check
    from ncclscope.preflight.node import Node


def run(node: Node, *, only: Iterable[str] = (), skip: Iterable[str] = (), seconds: float = 30.0) -> Report:
    """Runs all checks, or those in `only`, less those in `skip`, for at most `seconds` in all.

    A check that is skipped, that breaks or that does not come back in time is reported as not checked, with
    the reason. Raises ValueError for an id that is no check.
    """
    wanted, left_out = set(only) or set(CHECKS), set(skip)
    unknown = (wanted | left_out) - set(CHECKS)
    if unknown:
        raise ValueError(f"no check is called {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    deadline = time.monotonic() + seconds
    answers: dict[str, CheckResult] = {}
    threads: dict[str, threading.Thread] = {}
    for name, check in CHECKS.items():
        if name in wanted - left_out:
            # Daemons: a check that hangs in the kernel must not keep the process from ending.
            thread = threading.Thread(target=_answer, args=(check, node, answers), daemon=True)
            threads[name] = thread
            thread.start()
    for thread in threads.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    done = dict(answers)
    results: list[CheckResult] = []
    for name, check in CHECKS.items():
        if name in done:
            results.append(done[name])
        elif name in wanted:
            reason = f"no answer within {seconds:g} s" if name in threads else "skipped as asked"
            results.append(check.subject.not_checked(reason))
    seen = node.gpus() if "gpus" in done else None
    return Report(
        host=node.hostname(),
        gpus=() if seen is None else tuple(gpu.label for gpu in seen.gpus),
        driver=None if seen is None else seen.driver,
        results=tuple(results),
        decisive=DECISIVE - left_out,
    )


def _answer(check: Check, node: Node, answers: dict[str, CheckResult]) -> None:
    try:
        answers[check.subject.id] = check.function(node)
    except Exception as error:  # one broken check must not cost the others' answers
        reason = f"the check broke: {type(error).__name__}: {error}"
        answers[check.subject.id] = check.subject.not_checked(reason)
