"""What was made lately: within a limit, and made once."""

from threading import Event, Thread

from overspill.store.recent import Recent


def test_what_was_not_used_for_longest_makes_room():
    recent: Recent[str, bytes] = Recent(10, len)
    recent["a"], recent["b"] = b"aaaa", b"bbbb"
    assert recent.get("a") == b"aaaa"
    recent["c"] = b"cccc"
    assert [recent.get(key) for key in "abc"] == [b"aaaa", None, b"cccc"]


def test_what_is_larger_than_all_may_be_is_not_kept_and_drives_out_nothing():
    recent: Recent[str, bytes] = Recent(10, len)
    recent["a"] = b"aaaa"
    recent["b"] = bytes(11)
    assert [recent.get(key) for key in "ab"] == [b"aaaa", None]


def test_what_grew_too_large_leaves_alone():
    recent: Recent[str, bytearray] = Recent(10, len)
    recent["a"], recent["b"] = (grown := bytearray(4)), bytearray(4)
    grown += bytes(10)
    assert recent.get("a") is grown
    assert recent.get("a") is None
    assert recent.get("b") == bytes(4)


def test_one_thread_makes_a_value_and_the_others_wait_for_it():
    recent: Recent[str, bytes] = Recent(10, len)
    made: list[str] = []
    begun = Event()

    def make(name: str) -> None:
        with recent.making("a"):
            begun.set()
            if recent.get("a") is None:
                made.append(name)
                recent["a"] = name.encode()

    with recent.making("a"):
        threads = [Thread(target=make, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        assert not begun.is_set()
    for thread in threads:
        thread.join(timeout=30)
    assert len(made) == 1


def test_nothing_is_left_when_it_is_cleared():
    recent: Recent[str, bytes] = Recent(10, len)
    recent["a"] = bytes(10)
    recent.clear()
    assert recent.get("a") is None
    recent["b"] = bytes(10)
    assert recent.get("b") == bytes(10)
