"""Timestamps (case W28)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from protocol.timestamps import normalize_timestamp, now, parse_timestamp, print_timestamp

pytestmark = pytest.mark.spec("5.6.1")


def test_now_holds_what_is_printed() -> None:
    before = datetime.now(UTC)
    moment = now()
    assert before - timedelta(milliseconds=1) < moment <= datetime.now(UTC)
    assert moment.microsecond % 1000 == 0
    assert moment.tzinfo is UTC
    assert parse_timestamp(print_timestamp(moment)) == moment


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2025, 10, 28, 10, 30, tzinfo=UTC), "2025-10-28T10:30:00.000Z"),
        (datetime(2025, 10, 28, 10, 30, 0, 142_999, UTC), "2025-10-28T10:30:00.142Z"),
        (datetime(2025, 10, 28, 12, 30, tzinfo=timezone(timedelta(hours=2))), "2025-10-28T10:30:00.000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_prints_milliseconds_in_utc(moment: datetime, expected: str) -> None:
    assert print_timestamp(moment) == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-10-28T10:30:00Z", datetime(2025, 10, 28, 10, 30, tzinfo=UTC)),
        ("2025-10-28T10:30:00.5Z", datetime(2025, 10, 28, 10, 30, 0, 500_000, UTC)),
        ("2025-10-28T12:30:00+02:00", datetime(2025, 10, 28, 10, 30, tzinfo=UTC)),
        ("2025-10-28T00:30:00-10:00", datetime(2025, 10, 28, 10, 30, tzinfo=UTC)),
        ("2025-10-28T10:30:00.000000001Z", datetime(2025, 10, 28, 10, 30, 0, 1, UTC)),
        ("2025-10-28T10:30:00.000001000Z", datetime(2025, 10, 28, 10, 30, 0, 1, UTC)),
        ("2025-10-28T10:30:59.999999999Z", datetime(2025, 10, 28, 10, 31, tzinfo=UTC)),
        ("2024-02-29T23:59:59-00:00", datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_reads_any_offset_and_nanoseconds(text: str, expected: datetime) -> None:
    moment = parse_timestamp(text)
    assert moment == expected
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "2025-10-28", "2025-10-28T10:30:00", "2025-10-28 10:30:00Z", "2025-10-28t10:30:00z", "1761647400"),
        *("2025-10-28T10:30Z", "2025-10-28T10:30:60Z", "2025-10-28T24:00:00Z", "2025-02-29T00:00:00Z"),
        *("2025-10-28T10:30:00.Z", "2025-10-28T10:30:00.1234567890Z", "2025-10-28T10:30:00+2", "0000-01-01T00:00:00Z"),
        *("2025-10-28T10:30:00+24:00", "2025-10-28T10:30:00+00:60", "２025-10-28T10:30:00Z", "2025-10-28T10:30:00Z\n"),
        *("0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"),
    ],
)
def test_refuses_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|range|must be"):
        parse_timestamp(text)
    with pytest.raises(ValueError, match=r"RFC 3339|range|must be"):
        normalize_timestamp(text)


def test_rounding_does_not_leave_the_calendar() -> None:
    text = "9999-12-31T23:59:59.999999999Z"
    assert normalize_timestamp(text) == text
    with pytest.raises(ValueError, match="out of range"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-10-28T10:30:00Z", "2025-10-28T10:30:00Z"),
        ("2025-10-28T10:30:00.000Z", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28T10:30:00.1Z", "2025-10-28T10:30:00.100Z"),
        ("2025-10-28T12:30:00.1234+02:00", "2025-10-28T10:30:00.123400Z"),
        ("2025-10-28T10:30:00.123456789Z", "2025-10-28T10:30:00.123456789Z"),
        ("2025-10-28T10:30:00.000000010Z", "2025-10-28T10:30:00.000000010Z"),
    ],
)
def test_normal_form_keeps_the_moment(text: str, expected: str) -> None:
    assert normalize_timestamp(text) == expected
