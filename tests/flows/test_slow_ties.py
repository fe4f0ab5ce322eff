"""Tools that end within a millisecond of the deadline: whoever wins the race, the output is delivered once."""

import random

import anyio
import pytest

from overspill import Reply, Session, Settings
from overspill.store.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

TIES = 400
DEADLINE = 0.05


@pytest.mark.slow
@pytest.mark.promise("no-turn-blocked")
async def test_no_output_of_400_near_ties_is_lost_or_delivered_twice():
    chance = random.Random(4)  # noqa: S311
    replies: dict[str, Reply] = {}
    told: list[str] = []

    async def tie(session: Session, name: str, ends_after: float) -> None:
        async def tool() -> str:
            await anyio.sleep(ends_after)
            return f"output of {name}"

        replies[name] = await session.call(name, {}, tool)

    settings = Settings(asyncTimeoutSecs=DEADLINE, maxRunning=TIES)
    with anyio.fail_after(60):
        async with Session(settings, store=MemoryStore()) as session:
            async with anyio.create_task_group() as group:
                for n in range(TIES):
                    group.start_soon(tie, session, f"tool-{n}", DEADLINE + chance.uniform(-0.001, 0.001))
            while (text := (await session.invoke("wait_for_tool_output", {})).text) != "No async tools running.":
                told += [line.split()[1] for line in text.splitlines()[1:]]
            late = {name: reply.job for name, reply in replies.items() if reply.job is not None}
            texts = {name: reply.text for name, reply in replies.items() if reply.job is None}
            for name, job in late.items():
                texts[name] = (await session.invoke("get_tool_output", {"id": job.id, "mode": "raw"})).text
    assert texts == {f"tool-{n}": f"output of tool-{n}" for n in range(TIES)}
    assert sorted(told) == sorted(late)
