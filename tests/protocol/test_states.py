"""The life of a task as a table (§4.1.3)."""

from __future__ import annotations

import pytest

from protocol.states import TaskState, may_move

LIVE = {TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}
OVER = {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}


@pytest.mark.spec("4.1.3")
def test_states_that_nothing_follows() -> None:
    assert {state for state in TaskState if state.terminal} == OVER


@pytest.mark.spec("3.2.2")
def test_states_at_which_a_blocking_send_returns() -> None:
    assert {state for state in TaskState if state.settled} == OVER | {
        TaskState.INPUT_REQUIRED,
        TaskState.AUTH_REQUIRED,
    }


@pytest.mark.spec("4.1.3")
@pytest.mark.parametrize("old", TaskState)
def test_moves(old: TaskState) -> None:
    reachable = {new for new in TaskState if may_move(old, new)}
    if old is TaskState.SUBMITTED:
        assert reachable == set(TaskState)
    elif old in LIVE:
        assert reachable == LIVE | OVER
    else:
        assert reachable == set()


def test_numbers_are_their_order() -> None:
    assert [state.number for state in TaskState] == list(range(9))
    assert [TaskState.from_number(number) for number in range(9)] == list(TaskState)
    with pytest.raises(KeyError):
        TaskState.from_number(9)
