import subprocess
import sys

import pytest

WAITING = """
import signal, threading, time
import anyio
from overspill.cli.signals import Interrupted, cancel_on_signal
from overspill.shell.command import SignalForwarder

def strike(ended):  # the kernel may choose any thread; Python calls the handler in the main thread
    time.sleep(0.2)  # the loop waits by then; nothing tells when, and a signal that comes earlier is handled too
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    ended.wait(20)
"""

CANCEL = """
async def run(ended):
    with cancel_on_signal():
        threading.Thread(target=strike, args=[ended], daemon=True).start()
        await anyio.sleep(20)

ended, before = threading.Event(), time.monotonic()
try:
    anyio.run(run, ended)
except Interrupted:
    ended.set()
print("in time" if time.monotonic() - before < 10 else "late")
"""

FORWARD = """
async def run():
    ended = threading.Event()
    with SignalForwarder() as signals:
        async with await anyio.open_process(["sleep", "20"]) as process:
            signals.forward_to(process.send_signal)
            threading.Thread(target=strike, args=[ended], daemon=True).start()
            before = time.monotonic()
            await process.wait()
            print("in time" if time.monotonic() - before < 10 else "late")

anyio.run(run)
"""


@pytest.mark.parametrize("work", [CANCEL, FORWARD], ids=["cancel", "forward"])
def test_a_signal_that_another_thread_receives_is_handled_at_once(work: str):
    done = subprocess.run([sys.executable, "-c", WAITING + work], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("in time\n", "")
