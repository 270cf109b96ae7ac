"""A row holds only if its ratio keeps the bound and nothing went wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from benchmarks.claims import CLAIMS, HTTP_SHARE, Claim, Metric, Outcome, judge, judge_idle, not_measured
from benchmarks.client import Measure
from benchmarks.jobs import GROUPS, GRPC, HOST, HTTP, JOBS, OTHER, REFERENCE
from benchmarks.report import Conditions, render
from benchmarks.subscribers import Idle

TENFOLD = Claim("row", "job", Metric.RATE, at_least=Fraction(10))
SIXTH = Claim("row", "job", Metric.FIRST_EVENT, at_most=Fraction(1, 6))


def rates(*values: float, errors: int = 0) -> list[Measure]:
    """Measurements of one second each; the errors are in the last one."""
    taken = [Measure(1.0, [0.1] * int(value)) for value in values]
    taken[-1].errors += ["wrong"] * errors
    return taken


def first_events(*milliseconds: float) -> list[Measure]:
    return [Measure(1.0, [1.0], [ms / 1000]) for ms in milliseconds]


def test_the_median_of_the_ratios_counts() -> None:
    outcome = judge(TENFOLD, {REFERENCE: rates(10, 20, 30), HOST: rates(200, 190, 900)})
    assert (outcome.base, outcome.subject, outcome.ratio) == (20, 200, 20)
    assert outcome.passed


@pytest.mark.parametrize(("host", "passed"), [(100, True), (99, False)])
def test_a_rate_below_the_bound_misses(host: int, passed: bool) -> None:
    assert judge(TENFOLD, {REFERENCE: rates(10), HOST: rates(host)}).passed is passed


@pytest.mark.parametrize(("host", "passed"), [(10, True), (10.1, False)])
def test_a_time_beyond_the_bound_misses(host: float, passed: bool) -> None:
    outcome = judge(SIXTH, {REFERENCE: first_events(60), HOST: first_events(host)})
    assert outcome.passed is passed
    assert (outcome.base, outcome.wanted) == (60, "≤ 1/6")


@pytest.mark.parametrize("wrong", [REFERENCE, HOST, HTTP])
def test_one_error_of_any_side_misses(wrong: str) -> None:
    measured = {name: rates(10 if name == REFERENCE else 1000) for name in (REFERENCE, HOST, HTTP)}
    measured[wrong] = rates(10 if wrong == REFERENCE else 1000, errors=1)
    outcome = judge(TENFOLD, measured)
    assert (outcome.passed, outcome.errors) == (False, [f"{wrong}: wrong"])


def test_a_side_that_did_nothing_misses() -> None:
    for reference, host in ((0, 1000), (0, 0)):
        outcome = judge(TENFOLD, {REFERENCE: rates(10, reference), HOST: rates(1000, host)})
        assert math.isnan(outcome.ratio)
        assert not outcome.passed
    assert not judge(SIXTH, {REFERENCE: first_events(60), HOST: rates(10)}).passed


@pytest.mark.parametrize(("http", "passed"), [(334, True), (333, False)])
def test_http_json_must_reach_its_share(http: int, passed: bool) -> None:
    outcome = judge(TENFOLD, {REFERENCE: rates(10), HOST: rates(1000), HTTP: rates(http)})
    assert (outcome.http, outcome.http_share, outcome.passed) == (http, http / 1000, passed)
    assert Fraction(1, 3) == HTTP_SHARE


def test_a_claim_without_a_bound_is_information() -> None:
    claim = Claim("row", "job", Metric.RATE, base=OTHER)
    assert judge(claim, {HOST: rates(1), OTHER: rates(1000)}).passed
    assert not judge(claim, {HOST: rates(1, errors=1), OTHER: rates(1000)}).passed


@pytest.mark.parametrize(
    ("host", "passed"),
    [
        (Idle(1000, 1021, 1021, 16.0), True),
        (Idle(1000, 1021, 1021, 16.1), False),
        (Idle(1000, 1021, 1020, 8.0), False),
        (Idle(1000, 1021, 1021, 8.0, ["wrong"]), False),
        (Idle(1000, errors=["TimeoutError"]), False),
    ],
)
def test_memory_is_bounded_and_every_stream_ends(host: Idle, passed: bool) -> None:
    assert judge_idle(Idle(1000, 1021, 1021, 33.0), host).passed is passed


def test_what_cannot_be_measured_misses() -> None:
    assert not not_measured("row", "≥ 10x", "no tasks").passed


def test_the_wanted_ratios_are_those_of_the_issue() -> None:
    wanted = {claim.title: claim.wanted for claim in CLAIMS if claim.wanted}
    assert wanted == {
        "SendMessage `echo`, c=1": "≥ 10x",
        "SendMessage `echo`, c=16": "≥ 25x",
        "SendMessage `echo`, c=64": "≥ 40x",
        "SendStreamingMessage, c=16": "≥ 20x",
        "SendStreamingMessage, c=64": "≥ 30x",
        "Time to first event p50, c=1": "≤ 1/6",
        "Time to first event p50, c=16": "≤ 1/20",
        "GetTask, c=16": "≥ 12x",
        "ListTasks, 50 of 1,000,000, c=1": "≥ 200x",
        "ListTasks, 50 of 1,000, beside 50 of 1,000,000": "≤ 1.5x",
        "Agent card, c=16": "≥ 4x",
        "SendMessage to an agent in a Celery worker, c=16": "≥ 4x",
        "SendMessage over gRPC, beside JSON-RPC, c=16": "≥ 0.7x",
        "SendMessage over gRPC, beside JSON-RPC, c=64": "≥ 0.7x",
        "SendMessage in 0.3, beside 1.0, c=16": "≥ 0.7x",
    }


def test_every_claim_has_its_job() -> None:
    assert {claim.job for claim in CLAIMS} == {job.name for job in JOBS}
    assert GROUPS == ["idle", "send", "stream", "get", "list", "card", "worker", "key", "grpc", "v03"]


def test_the_table_says_what_missed_and_why() -> None:
    outcomes = [
        Outcome("fast", "requests/s", "≥ 10x", 10, 1234.5, 123.45, 500, 0.405, True),
        Outcome("slow", "ms", "≤ 1/6", 60, 30, 0.5, None, None, False, ["host: wrong", "host: wrong"]),
    ]
    taken = Measure(1.0, [0.1] * 5, cores={"web": 0.5})
    jobs = {"send-1": {HOST: [taken]}, "grpc-16": {HOST: [taken], GRPC: [taken]}}
    text = render(outcomes, jobs, Conditions(4, 3, {"fsync": "on"}, {"a2a-sdk": "1.3.0"}))
    assert "1 of 2 rows miss." in text
    assert "| fast | requests/s | 10 | 1,234 | 123x | ≥ 10x | 500 | 0.41 | pass |" in text
    assert "| slow | ms | 60 | 30 | 1/2 | ≤ 1/6 |  |  | MISS |" in text
    assert "- slow: 2 errors: 2 x `host: wrong`" in text
    assert "| send-1 | 5 | 0.50 |" in text
    assert "| grpc-16, over gRPC | 5 | 0.50 |" in text
    assert "- reference: a2a-sdk 1.3.0, one process" in text
    assert "- PostgreSQL: fsync on" in text
