"""Performing: any kind of callable is called with named arguments, and none of them blocks the event loop."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from overspill.calls.invoke import Threads, invoke_tool
from overspill.calls.job import Job

pytestmark = pytest.mark.both_loops


def plain(a: int, b: int = 2) -> tuple[int, int, bool]:
    return a, b, on_the_loop()


async def coroutine(a: int, b: int = 2) -> tuple[int, int, bool]:
    await anyio.lowlevel.checkpoint()
    return a, b, on_the_loop()


def on_the_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


class Tools:
    def method(self, a: int, b: int = 2) -> tuple[int, int, bool]:
        return plain(a, b)

    async def async_method(self, a: int, b: int = 2) -> tuple[int, int, bool]:
        return await coroutine(a, b)

    @staticmethod
    def static(a: int, b: int = 2) -> tuple[int, int, bool]:
        return plain(a, b)

    @classmethod
    async def of_the_class(cls, a: int, b: int = 2) -> tuple[int, int, bool]:
        return await coroutine(a, b)


class Callable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, a: int, b: int = 2) -> tuple[int, int, bool]:
        return plain(a, b)


class AsyncCallable:
    async def __call__(self, a: int, b: int = 2) -> tuple[int, int, bool]:
        return await coroutine(a, b)


def awaitable(a: int, b: int = 2) -> Any:
    return coroutine(a, b)


@pytest.fixture
def threads() -> Threads:
    return Threads(4)


def job() -> Job:
    return Job("t", 300)


@pytest.mark.parametrize(
    ("tool", "loop"),
    [
        (plain, False),
        (coroutine, True),
        (Tools().method, False),
        (Tools().async_method, True),
        (Tools.static, False),
        (Tools.of_the_class, True),
        (Callable(), False),
        (AsyncCallable(), True),
        (functools.partial(plain, b=2), False),
        (functools.partial(functools.partial(coroutine), b=2), True),
        (functools.partial(Tools().async_method), True),
        (lambda a, b=2: plain(a, b), False),
        (awaitable, True),
    ],
)
async def test_every_kind_of_callable_is_called(tool: Any, loop: bool, threads: Threads):
    assert await invoke_tool(tool, {"a": 1}, job(), threads) == (1, 2, loop)


async def test_a_class_is_called_in_a_thread(threads: Threads):
    assert await invoke_tool(dict, {"a": 1}, job(), threads) == {"a": 1}


async def test_an_async_generator_function_returns_immediately(threads: Threads):
    async def stream() -> AsyncIterator[str]:
        yield "a"

    assert [chunk async for chunk in await invoke_tool(stream, {}, job(), threads)] == ["a"]


async def test_a_generator_function_returns_its_generator(threads: Threads):
    def stream() -> Iterator[str]:
        yield "a"

    assert list(await invoke_tool(stream, {}, job(), threads)) == ["a"]


async def test_arguments_may_have_any_name(threads: Threads):
    names = {"tool": 1, "args": 2, "job": 3, "threads": 4, "func": 5, "self": 6, "work": 7}
    assert await invoke_tool(lambda **given: given, names, job(), threads) == names


async def test_a_job_knows_its_threads(threads: Threads):
    own = job()
    assert await invoke_tool(lambda: own.threads, {}, own, threads) == 1
    assert own.threads == 0


async def test_a_thread_that_failed_is_no_longer_counted(threads: Threads):
    own = job()
    with pytest.raises(ZeroDivisionError):
        await invoke_tool(lambda: 1 // 0, {}, own, threads)
    assert own.threads == 0


async def test_a_blocking_tool_can_be_left_behind(threads: Threads):
    entered, released = threading.Event(), threading.Event()

    def block() -> None:
        entered.set()
        released.wait(timeout=30)

    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, job(), block)
        await anyio.to_thread.run_sync(entered.wait)
        group.cancel_scope.cancel()
    assert not released.is_set()
    released.set()


async def test_no_tool_is_cached(threads: Threads):
    def tool(**args: Any) -> int:
        return len(args)

    call = functools.partial(tool, secret="x" * 1000)
    gone = weakref.ref(call)
    assert await invoke_tool(call, {}, job(), threads) == 1
    del call
    gc.collect()
    assert gone() is None
