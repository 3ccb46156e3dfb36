"""The queue of deliveries: it does not block, has bounds, and ends."""

from __future__ import annotations

from threading import Event

from uncaged_engine.door.effects import Cancel
from uncaged_engine.notify.sender import AT_ONCE, MOST_WAITING, Sender


def test_deliveries_run_beside_their_senders_and_end_with_the_process() -> None:
    """With all places taken, more wait up to a bound and are dropped beyond it; the end cancels
    those under way and begins none.
    """
    sender, begun, ended = Sender(), [Event() for _ in range(AT_ONCE)], []

    def hang(number: int) -> None:
        def deliver(cancel: Cancel) -> None:
            stopped = Event()
            with cancel.on_request(stopped.set):
                begun[number].set()
                assert stopped.wait(60)
            ended.append(number)

        assert sender.send(deliver)

    for number in range(AT_ONCE):
        hang(number)
    assert all(one.wait(60) for one in begun)
    late: list[int] = []
    accepted = [sender.send(lambda _cancel: late.append(1)) for _ in range(MOST_WAITING + 1)]
    assert accepted == [True] * MOST_WAITING + [False]
    assert sender.is_busy
    sender.close()
    assert (sorted(ended), late, sender.is_busy) == (list(range(AT_ONCE)), [], False)


def test_a_queue_is_worked_off_in_its_order() -> None:
    """What waits is begun in the order in which it came, and the sender is idle after that."""
    sender, seen, done = Sender(), list[int](), Event()
    hold = Event()

    def wait(_cancel: Cancel) -> None:
        assert hold.wait(60)

    for _ in range(AT_ONCE):
        sender.send(wait)
    for number in range(20):
        sender.send(lambda _cancel, number=number: seen.append(number))  # type: ignore[misc]
    sender.send(lambda _cancel: done.set())
    hold.set()
    assert done.wait(60)
    sender.close()
    assert sorted(seen) == list(range(20))
    assert not sender.is_busy
