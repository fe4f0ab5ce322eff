"""The thin front: what `overspill proxy` is while a hub does its work. It copies bytes between a client and the hub.

It knows nothing about the protocol. When a hub dies, it answers the requests that the hub had taken, starts another hub, repeats
the lines that set up the client's session, and sends it the lines that no hub had taken.
"""

from __future__ import annotations

import os
import select
import sys
import time

import overspill
from overspill.hub import frames
from overspill.hub.place import NoHub, Place, is_wanted, send_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill.hub.place import Socket

_READ_BYTES = 1 << 16
_WRITE_BYTES = getattr(select, "PIPE_BUF", 512)  # what a writable pipe takes without blocking
_MAX_WAITING_BYTES = 1 << 20  # unread by one side; beyond this, nothing is read from the other side
_MAX_UNTAKEN_BYTES = 64 << 20  # of lines that no hub has taken yet
_MAX_FRAME_BYTES = 1 << 30  # large, because only a hub of the same user can answer
_START_SECONDS, _RETRY_SECONDS, _MAX_STARTS = 30.0, 0.02, 3
_ANSWER_SECONDS = 8.0  # for a hub that has been running for longer than a start takes
_FLUSH_MILLISECONDS = 1000
_MAX_DEATHS = 3  # of hubs that took nothing
_NOT_IN_A_HUB = ("--help", "-h", "--http", "--no-hub", "--dry-run", "--grace", "-q", "--quiet", "-v", "--verbose")
_TRACES = "opentelemetry.sdk.trace"  # loaded when a proxy is started with `opentelemetry-instrument`, to trace its calls
_LOST = (
    b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"The Overspill hub ended while it worked on this request, so its '
    b"result is lost, and whether the tool did its work is not known. Outputs that were stored before are still there. A new hub "
    b'is running: repeat the request if that is safe."}}\n'
)


def serve_through_hub(words: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """Serve a command through a hub, and return its exit code; None if no hub can serve it and it must work alone."""
    own = words[: words.index("--")] if "--" in words else words
    is_chosen = "--hub" in own and environ.get("OVERSPILL_HUB") != "off"
    if not (is_chosen or is_wanted(environ)) or any(word.startswith(_NOT_IN_A_HUB) for word in own) or _TRACES in sys.modules:
        return None
    try:
        for number in (0, 1):
            os.fstat(number)
        for path in (word.rpartition("=")[2] for word in own):
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
                raise NoHub(f"only this process can read {path}")
        front = Front(Place.of(environ), words, environ)
        front.connect()
    except NoHub as problem:
        os.write(2, f"overspill: No hub is used, because {problem}. This proxy works alone.\n".encode(errors="replace"))
        return None
    except OSError:  # a stream is closed, which the command reports when it works alone
        return None
    try:
        return front.copy()
    except NoHub as problem:
        os.write(2, f"overspill: error: The hub has ended, and {problem}.\n".encode(errors="replace"))
        return 1
    except (BrokenPipeError, KeyboardInterrupt):  # the client is gone
        return 0


class Front:
    def __init__(self, place: Place, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._place = place
        self._environ = environ
        variables = [f"{name}={value}" for name, value in environ.items()]
        self._hello = frames.pack_hello(list(words), os.getcwd(), variables, overspill.__version__)
        self._link: Socket | None = None
        self._confirmations: Socket | None = None
        """Has the frames that say which lines were taken. Nothing wakes up for them: they matter when something else comes."""
        self._confirmed = bytearray()
        self._from_hub: bytearray = bytearray()
        self._to_hub: bytearray = bytearray()
        self._to_client: bytearray = bytearray()
        self._errors: bytearray = bytearray()
        self._untaken = bytearray()
        """What the client has sent and no hub has taken."""
        self._state: list[bytes] = []
        """The lines to repeat to another hub."""
        self._requests: dict[bytes, None] = {}
        """The ids of requests that a hub has taken and not answered, as JSON."""
        self._has_input = True
        self._deaths = 0
        self._client_reads = select.poll()
        self._client_reads.register(1, select.POLLOUT)

    def connect(self) -> None:
        """Connect to the hub, after starting it if necessary. Raises NoHub if it does not serve this front."""
        self._place.check()
        deadline, starts = time.monotonic() + _START_SECONDS, 0
        while True:
            try:
                self._link = self._place.connect(self._patience)
                self._confirmations = send_first(self._link, self._hello)
                if self._hear_welcome(self._link):
                    self._link.setblocking(False)
                    return
            except TimeoutError:
                self._close()
                raise NoHub(f"the hub at {self._place.socket} does not answer; end it with `overspill hub stop`") from None
            except OSError:
                pass  # nothing is listening, or the hub ended at this moment; the code below starts it, or says why it cannot
            self._close()
            if (lock := self._place.take_lock()) is not None:
                starts += 1
                try:
                    if starts > _MAX_STARTS:
                        raise NoHub(f"each new hub ends right after its start; {self._place.log} may say why")
                    self._place.start(lock, self._environ)
                finally:
                    os.close(lock)
            elif time.monotonic() > deadline:
                raise NoHub(f"nothing listens at {self._place.socket}, although a hub seems to run")
            else:
                time.sleep(_RETRY_SECONDS)

    @property
    def _patience(self) -> float:
        """How many seconds to wait for the hub: longer if it may still be starting, shorter if it must be hanging."""
        try:
            has_begun = time.time() - os.stat(self._place.lock).st_mtime > _START_SECONDS
        except OSError:
            return _START_SECONDS
        return _ANSWER_SECONDS if has_begun else _START_SECONDS

    def _hear_welcome(self, link: Socket) -> bool:
        """Wait for the hub's decision. Returns False if it ends before it decides. Raises NoHub if it refuses this front."""
        self._errors.clear()
        while True:
            while (frame := frames.unpack(self._from_hub, _MAX_FRAME_BYTES)) is None:
                if not (data := link.recv(_READ_BYTES)):
                    return False
                self._from_hub += data
            kind, payload = frame
            if kind == frames.REFUSED:
                raise NoHub(payload.decode(errors="replace"))
            if kind == frames.ERRORS:
                self._errors += payload
            elif kind == frames.WELCOME:
                return True

    def copy(self) -> int:
        """Copy in both directions until the hub sends an exit code, and return that code."""
        watched, poll = None, select.poll()
        while True:
            link = self._link
            assert link is not None
            hears_client = self._has_input and len(self._to_hub) < _MAX_WAITING_BYTES
            hears_hub = len(self._to_client) < _MAX_WAITING_BYTES
            events = (select.POLLIN if hears_hub else 0) | (select.POLLOUT if self._to_hub else 0)
            wanted = link, hears_client, events, bool(self._to_client), bool(self._errors)
            if wanted != watched:
                watched, poll = wanted, select.poll()
                poll.register(link.fileno(), events)
                if hears_client:
                    poll.register(0, select.POLLIN)
                for target, waiting in ((1, self._to_client), (2, self._errors)):
                    if waiting:
                        poll.register(target, select.POLLOUT)
            ready = dict(poll.poll())
            if 0 in ready:
                self._read_client()
            if self._to_hub:
                self._send(link)
            if link.fileno() in ready and not self._receive(link):
                self._replace_hub()
            if (code := self._act()) is not None:
                self._flush()
                return code
            while self._to_client and self._client_reads.poll(0):
                del self._to_client[: os.write(1, self._to_client[:_WRITE_BYTES])]
            if 2 in ready:
                self._write_errors()

    def _read_client(self) -> None:
        data = os.read(0, _READ_BYTES)
        self._has_input = bool(data)
        self._to_hub += frames.pack(frames.DATA, data) if data else frames.pack(frames.END)
        if len(self._untaken) > _MAX_WAITING_BYTES:
            self._note_confirmed()
        if len(self._untaken) <= _MAX_UNTAKEN_BYTES:
            self._untaken += data

    def _send(self, link: Socket) -> None:
        """Send what the hub takes now."""
        try:
            del self._to_hub[: link.send(self._to_hub[:_READ_BYTES])]
        except BlockingIOError:
            pass  # the hub is slow to read, so more is sent later
        except OSError:
            self._to_hub.clear()  # the hub is gone, but what it sent before can still be read

    def _receive(self, link: Socket) -> bool:
        """Receive what has come. Returns False if the hub is gone."""
        try:
            data = link.recv(_READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._from_hub += data
        return bool(data)

    def _act(self) -> int | None:
        """Act on the complete frames from the hub. Returns the exit code if the hub has sent it."""
        if self._from_hub:
            self._note_confirmed()
        while (frame := frames.unpack(self._from_hub, _MAX_FRAME_BYTES)) is not None:
            kind, payload = frame
            if kind == frames.LINES:
                self._to_client += payload
            elif kind == frames.ANSWER:
                id, line = frames.unpack_answer(payload)
                self._requests.pop(id, None)
                self._to_client += line
            elif kind == frames.TAKEN:
                self._note_taken(payload)
            elif kind == frames.ERRORS and len(self._errors) < _MAX_WAITING_BYTES:  # drops what the client does not read
                self._errors += payload
            elif kind == frames.EXIT:
                return int(payload)
        return None

    def _note_confirmed(self) -> None:
        """Note which lines were taken. What came over the connection itself was sent after that."""
        if self._confirmations is not None:
            try:
                while data := self._confirmations.recv(_READ_BYTES):
                    self._confirmed += data
            except OSError:
                pass  # there are no more now; if the hub is gone, its connection says so
            while (frame := frames.unpack(self._confirmed, _MAX_FRAME_BYTES)) is not None:
                self._note_taken(frame[1])

    def _note_taken(self, payload: bytes) -> None:
        self._deaths = 0
        line = bytes(self._untaken[: self._untaken.find(b"\n") + 1])
        del self._untaken[: len(line)]
        if payload[0] & frames.IS_REQUEST:
            self._requests[payload[1:]] = None
        if payload[0] & frames.IS_STATE:
            self._state.append(line)

    def _replace_hub(self) -> None:
        """Start another hub after one has died. The client sees whole lines only: half an answer is never passed on."""
        self._note_confirmed()
        if (code := self._act()) is not None:  # the hub sent an exit code before it ended
            self._flush()
            raise SystemExit(code)
        self._deaths += 1
        if self._deaths > _MAX_DEATHS or len(self._untaken) > _MAX_UNTAKEN_BYTES:
            raise NoHub("another one would end the same way")
        self._from_hub.clear()
        self._to_hub.clear()
        self._to_client += b"".join(_LOST % id for id in self._requests)
        self._requests.clear()
        self._close()
        self.connect()
        for line in self._state:
            self._to_hub += frames.pack(frames.REPLAY, line)
        for start in range(0, len(self._untaken), _READ_BYTES):
            self._to_hub += frames.pack(frames.DATA, bytes(self._untaken[start : start + _READ_BYTES]))
        if not self._has_input:
            self._to_hub += frames.pack(frames.END)

    def _write_errors(self) -> None:
        try:
            del self._errors[: os.write(2, self._errors[:_WRITE_BYTES])]
        except OSError:
            self._errors.clear()

    def _flush(self) -> None:
        """Write the last answers, and the last errors as long as they are read in time."""
        try:
            while self._to_client:
                del self._to_client[: os.write(1, self._to_client)]
        except OSError:
            pass  # the client is gone
        poll = select.poll()
        poll.register(2, select.POLLOUT)
        while self._errors and poll.poll(_FLUSH_MILLISECONDS):
            self._write_errors()
        self._close()

    def _close(self) -> None:
        for each in (self._link, self._confirmations):
            if each is not None:
                each.close()
        self._link = self._confirmations = None
        self._from_hub.clear()
        self._confirmed.clear()
