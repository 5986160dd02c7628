"""One rule against the observations: does it hold, how sure is it, who is to blame, and what is the proof."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ncclscope.clocks import Answer, Stamp
from ncclscope.engine.conditions import Context, Outcome, evaluate
from ncclscope.engine.match import Index, select
from ncclscope.engine.rule import NextSpec, Rule, Signal
from ncclscope.lazy import lazy
from ncclscope.model import Value
from ncclscope.observation import Observation, earlier
from ncclscope.report import CONFIDENCE, AbsenceEvidence, Confidence, Culprit, LineEvidence, NextCheck, Phase

__all__ = ["Candidate", "Surroundings", "describe_ranks", "diagnose", "input_word", "trace"]

_MAX_EVIDENCE = 8
# Ranks that fail with the same message within this time failed together; none of them is "the first".
_TOGETHER_S = 2.0


class Surroundings(msgspec.Struct, frozen=True):
    """What the whole input shows, for every rule alike."""

    given: frozenset[str]
    versions: Mapping[str, Sequence[str]]
    phase_of: Callable[[Observation], Phase]
    values: Mapping[str, str]  # placeholders that any command may use: nccl_library, bundle, ...


class Candidate(msgspec.Struct, frozen=True):
    """A rule that holds, before causes and consequences are sorted out."""

    rule: Rule
    title: str
    confidence: Confidence
    why: tuple[str, ...]
    culprit: Culprit
    phase: Phase
    evidence: tuple[LineEvidence | AbsenceEvidence, ...]
    next_checks: tuple[NextCheck, ...]
    fix: str
    blamed: tuple[Observation, ...]
    unknowns: tuple[str, ...] = ()

    @property
    def head(self) -> Observation:
        return self.blamed[0]


def diagnose(
    rule: Rule, signals: Mapping[str, Signal], index: Index, around: Surroundings
) -> Candidate | None:
    """The candidate that `rule` makes of the observations, or None when it does not hold."""
    blame = signals.get(rule.blame)
    if blame is not None and not select(blame, index):  # mostly so, and told without looking at the other signals
        return None
    bound = {name: select(signal, index) for name, signal in signals.items()}
    context = Context(bound, around.given, around.versions)
    outcome = evaluate(rule.when, context)
    if outcome.answer is Answer.NO:
        return None
    bound.update(outcome.narrowed)
    if not bound[rule.blame]:
        return None
    blamed = _blamed(rule, bound[rule.blame])
    confidence, why = _confidence(rule, outcome, context)
    if outcome.answer is Answer.UNKNOWN:
        why = (*why, "part of what this rests on could not be checked in the given input")
    values = {**around.values, **_values(bound, blamed)}
    explained = blamed[0].fields.get("why")
    if isinstance(explained, tuple):
        why = (*(str(w) for w in explained), *why)
    fix, _ = _fill(rule.fix, values)
    title = _UNNAMED.sub(_article, _fill(rule.title, values)[0])
    return Candidate(
        rule=rule,
        title=title,
        confidence=confidence,
        why=(*why, f"not proof of: {_fill(rule.not_proof_of, values)[0]}") if rule.not_proof_of else why,
        culprit=_culprit(rule, blamed),
        phase=rule.phase or around.phase_of(blamed[0]),
        evidence=_evidence(rule, bound, blamed),
        next_checks=tuple(
            _next(spec, values)
            for spec in rule.next
            if spec.when is None or evaluate(spec.when, context).answer is Answer.YES
        ),
        fix=fix,
        blamed=tuple(blamed),
    )


def _blamed(rule: Rule, some: Sequence[Observation]) -> list[Observation]:
    """The observations that name the culprit, the first one in front."""
    # The same failure is often told twice, once without saying whose it was.
    named = [o for o in some if o.ranks or o.pids or o.gpus]
    if named:
        told_earlier = any(earlier(o, n) is Answer.YES and o.time for o in some if o not in named for n in named[:1])
        some = some if told_earlier else named
    first = some[0]
    for other in some[1:]:
        if earlier(other, first) is Answer.YES:
            first = other
    chosen = [o for o in some if rule.take != "first" or o is first or _together(first, o)]
    chosen.sort(key=lambda o: o is not first)
    return chosen


def _together(first: Observation, other: Observation) -> bool:
    """Whether `other` did not come clearly later: close in time, or not comparable and from someone else."""
    if (
        first.time
        and other.time
        and first.time.clock == other.time.clock
        and first.time.zone == other.time.zone
    ):
        return abs(other.time.seconds - first.time.seconds) <= _TOGETHER_S
    return earlier(first, other) is Answer.UNKNOWN


def _confidence(rule: Rule, outcome: Outcome, context: Context) -> tuple[Confidence, tuple[str, ...]]:
    level = CONFIDENCE.index(rule.confidence.base)
    why: list[str] = []
    if outcome.answer is Answer.UNKNOWN:
        level -= 1
    for step, adjusts in ((1, rule.confidence.higher), (-1, rule.confidence.lower)):
        for adjust in adjusts:
            if evaluate(adjust.when, context).answer is Answer.YES:
                level += step
                why.append(adjust.why)
    level = max(0, min(level, CONFIDENCE.index(rule.confidence.at_most)))
    return CONFIDENCE[level], tuple(why)


def _culprit(rule: Rule, blamed: Sequence[Observation]) -> Culprit:
    if rule.take == "none":
        return Culprit()
    return Culprit(
        ranks=sorted({r for o in blamed for r in o.ranks}),
        hosts=sorted({h for o in blamed for h in o.hosts}),
        gpus=sorted({g for o in blamed for g in o.gpus}),
        pids=sorted({p for o in blamed for p in o.pids}),
    )


def _evidence(
    rule: Rule, bound: Mapping[str, Sequence[Observation]], blamed: Sequence[Observation]
) -> tuple[LineEvidence | AbsenceEvidence, ...]:
    """Lines of the blamed first, then of the other signals; the same line once."""
    ordered = list(blamed)
    for name in rule.signals:
        ordered += [o for o in bound[name][:3] if o not in ordered]
    out: list[LineEvidence | AbsenceEvidence] = []
    seen: set[tuple[str, int]] = set()
    for observation in ordered:
        for item in observation.evidence:
            if isinstance(item, LineEvidence):
                place = (item.source, item.line)
                if place in seen:
                    continue
                seen.add(place)
            elif item in out:
                continue
            out.append(item)
    return tuple(out[:_MAX_EVIDENCE])


def _values(bound: Mapping[str, Sequence[Observation]], blamed: Sequence[Observation]) -> dict[str, str]:
    """Placeholder values: identities of the blamed, their fields, and `signal.field` of the others."""
    values: dict[str, str] = {}
    for name, some in bound.items():
        if some:
            for field, value in some[0].fields.items():
                values[f"{name}.{field}"] = _plain(value)
            values[f"{name}.ranks"] = describe_ranks({r for o in some for r in o.ranks})
            values[f"{name}.hosts"] = ", ".join(sorted({h for o in some for h in o.hosts}))
    for field, value in blamed[0].fields.items():
        values[field] = _plain(value)
    ranks = {r for o in blamed for r in o.ranks}
    identities = {
        "ranks": describe_ranks(ranks),
        "rank": str(min(ranks)) if ranks else "",
        "host": next((h for o in blamed for h in o.hosts), ""),
        "hosts": ", ".join(sorted({h for o in blamed for h in o.hosts})),
        "gpu": next((g for o in blamed for g in o.gpus), ""),
        "pid": str(next((p for o in blamed for p in o.pids), "")),
        "source": blamed[0].source,
        "count": str(sum(o.count for o in blamed)),
    }
    values.update({name: value for name, value in identities.items() if value})
    return {name: value for name, value in values.items() if value}


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        if value and all(isinstance(v, int) for v in value):
            return describe_ranks({int(v) for v in value})
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def describe_ranks(ranks: set[int]) -> str:
    """Ranks as ranges: {0,1,2,5} is "0-2,5"."""
    parts: list[str] = []
    run: list[int] = []
    for rank in sorted(ranks):
        if run and rank == run[-1] + 1:
            run.append(rank)
            continue
        if run:
            parts.append(_run(run))
        run = [rank]
    if run:
        parts.append(_run(run))
    return ",".join(parts)


def _run(run: Sequence[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}"


# {name}, {signal.field}, and {name?text}: the text only when the value is known; {name|other} a default in words.
_HOLE = lazy(r"\{([a-z_0-9.]+)(?:\?([^{}]*(?:\{\}[^{}]*)?)|\|([^{}]*))?\}")


# A rank, node or host without a name in a title.
_UNNAMED = lazy(r"\b([Rr]ank|[Nn]ode|[Hh]ost) \?(?![\w?])")


def _article(m: re.Match[str]) -> str:
    return f"{'A' if m[1][0].isupper() else 'a'} {m[1].lower()}"


def _fill(template: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """The template with its holes filled, and the names that had no value (left as <name>)."""
    unfilled: list[str] = []

    def put(m: re.Match[str]) -> str:
        name, optional, default = m[1], m[2], m[3]
        value = values.get(name)
        if optional is not None:
            return optional.replace("{}", value) if value else ""
        if value:
            return value
        if default is not None:
            return default
        short = _ASKED_AS.get(name, name.rpartition(".")[2])
        if short not in unfilled:
            unfilled.append(short)
        return f"<{short}>"

    return re.sub(r"[ \t]{2,}", " ", _HOLE.sub(put, template)).strip(), unfilled


# What a command asks for that cannot name the input.
_ASKED_AS = {"source": "log", "inputs": "log"}
_ASKED = lazy(r"<([a-z][a-z ]*)>")


def input_word(path: str) -> str:
    """An input as a word in a command that reads it again. "" where it cannot be read again, as standard input, by
    `ncclscope` at all, as a URL, or be copied from where it is printed, as a name with control characters."""
    if path in ("", "-", "<stdin>") or "://" in path or not path.isprintable():
        return ""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _next(spec: NextSpec, values: Mapping[str, str]) -> NextCheck:
    do, _ = _fill(spec.do, values)
    words = {name: shlex.quote(value) for name, value in values.items()}
    words["source"] = input_word(values.get("source", ""))
    words["inputs"] = values.get("inputs", "")  # words already
    command, unfilled = _fill(spec.run, words)
    where, more = _fill(spec.where, values)
    # What a log can never show, such as the job's own command, stands in the rule as <your command>.
    asked = _ASKED.findall(spec.run)
    return NextCheck(do, command, where, spec.effect, sorted({*unfilled, *more, *asked}))


def trace(
    rule: Rule, signals: Mapping[str, Signal], index: Index, around: Surroundings
) -> list[tuple[str, str]]:
    """Why a rule holds or not: (what, answer) for each signal and condition, for `ncclscope why`."""
    bound = {name: select(signal, index) for name, signal in signals.items()}
    context = Context(bound, around.given, around.versions)
    rows: list[tuple[str, str]] = []
    for name, some in bound.items():
        places = [
            f"{item.source}:{item.line}"
            for o in some[:3]
            for item in o.evidence[:1]
            if isinstance(item, LineEvidence)
        ]
        rows.append((f"signal {name}", f"{len(some)} seen" + (f" ({', '.join(places)})" if places else "")))
    rows += _trace(rule.when, context, "when")
    for kind, adjusts in (("raise", rule.confidence.higher), ("lower", rule.confidence.lower)):
        rows += [(f"{kind} if {a.when}", evaluate(a.when, context).answer.value) for a in adjusts]
    return rows


def _trace(condition: object, context: Context, where: str) -> list[tuple[str, str]]:
    rows = [(f"{where}: {condition}", evaluate(condition, context).answer.value)]
    if isinstance(condition, Mapping):
        for key in ("all", "any", "none"):
            for inner in condition.get(key, []):
                rows += _trace(inner, context, f"{where}.{key}")
    elif isinstance(condition, list):
        for inner in condition:
            rows += _trace(inner, context, where)
    return rows


def stamp_of(candidate: Candidate) -> Stamp | None:
    return candidate.head.time
