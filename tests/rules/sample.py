"""A small sound rule with lines of its own, to change in one place at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

RULE = """\
schema: 1
id: NS9901
name: valve-stuck
title: "Valve {valve} is stuck on rank {ranks|?}"
role: root
category: other
since: "0.1"
summary: The program says that a valve is stuck and that pressure rises.
cause: Rust.
not_proof_of: a broken pump
signals:
  stuck: {line: 'valve (?P<valve>\\w+) is (?P<state>\\w+)', has: "valve ", state: stuck}
  rising: {line: 'pressure rises to (?P<bar>\\d+)', has: "pressure rises"}
  drill: {line: 'this is a drill', has: "this is a drill"}
  hot: {line: 'temperature high', has: "temperature high"}
when:
  all:
    - stuck
    - {together: [stuck, rising], same: [rank]}
    - none: [drill]
blame: stuck
confidence:
  base: possible
  raise:
    - {if: hot, why: "the temperature is high as well"}
explains: [symptoms]
next:
  - do: "Look at the valve"
    run: "cat /proc/valve/{valve}"
    where: "host {host}"
    effect: read_only
fix: "Replace the valve."
refs:
  - {title: "Manual", url: "https://example.org/manual"}
tests:
  - name: stuck under pressure
    given:
      job.log: |
        [rank1]: valve a7 is stuck
        [rank1]: pressure rises to 9
    expect: {confidence: possible, ranks: [1], title: "Valve a7 is stuck on rank 1"}
  - name: hot as well
    given:
      job.log: |
        [rank1]: valve a7 is stuck
        [rank1]: pressure rises to 9
        [rank1]: temperature high
    expect: {confidence: likely}
  - name: an open valve
    given:
      job.log: |
        [rank1]: valve a7 is open
        [rank1]: pressure rises to 9
    expect: {silent: true}
  - name: the pressure of another rank
    given:
      job.log: |
        [rank1]: valve a7 is stuck
        [rank2]: pressure rises to 9
    expect: {silent: true}
  - name: no pressure
    given:
      job.log: |
        [rank1]: valve a7 is stuck
    expect: {silent: true}
  - name: a drill
    given:
      job.log: |
        [rank1]: valve a7 is stuck
        [rank1]: pressure rises to 9
        [rank1]: this is a drill
    expect: {silent: true}
"""


def without_case(text: str, *names: str) -> str:
    """The rule without the cases of these names; a case that is not there is an error."""
    data = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts only
    kept = [case for case in data["tests"] if case["name"] not in names]
    assert len(kept) + len(names) == len(data["tests"])
    return yaml.safe_dump({**data, "tests": kept}, sort_keys=False)


def write_rule(directory: Path, text: str = RULE, name: str = "NS9901-valve-stuck.yml") -> Path:
    """Writes one rule file into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def other_rule(rule_id: str, name: str, text: str = RULE) -> str:
    """The sample under another id and name."""
    return text.replace("NS9901", rule_id, 1).replace("valve-stuck", name, 1)
