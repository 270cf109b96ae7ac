"""One call at a time: all that is asked for while one is under way is asked for together by the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from protocol.errors import A2AError, InternalError

K = TypeVar("K")
V = TypeVar("V")

_BATCH = 128


class Together(Generic[K, V]):
    """What `call` gives for single keys, however many ask at once."""

    def __init__(self, call: Callable[[list[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._call = call
        self._wanted: dict[K, list[asyncio.Future[V | None]]] = {}
        self._caller: asyncio.Task[None] | None = None
        self._calling = False

    async def stop(self) -> None:
        """Finish what is asked for."""
        if self._caller is not None:
            await asyncio.gather(self._caller, return_exceptions=True)

    async def get(self, key: K) -> V | None:
        """What a call that begins from now on gives for a key, None if nothing. Raises its A2AError, InternalError for
        any other."""
        waiter: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        self._wanted.setdefault(key, []).append(waiter)
        if not self._calling:
            self._calling = True
            self._caller = asyncio.create_task(self._call_wanted(), name="together")
        return await waiter

    async def _call_wanted(self) -> None:
        try:
            while self._wanted:
                batch = {key: self._wanted.pop(key) for key in list(self._wanted)[:_BATCH]}
                await self._call_batch(batch)
        finally:
            self._calling = False

    async def _call_batch(self, batch: dict[K, list[asyncio.Future[V | None]]]) -> None:
        found: Mapping[K, V] = {}
        failure: A2AError | None = None
        try:
            found = await self._call(list(batch))
        except A2AError as error:
            failure = error
        except Exception as error:
            failure = InternalError()
            failure.__cause__ = error
        for key, waiters in batch.items():
            for waiter in waiters:
                if waiter.done():
                    continue
                if failure is None:
                    waiter.set_result(found.get(key))
                else:
                    waiter.set_exception(failure)
