"""What a stream may do: keep order, be late, repeat, stall, and break with everything under way."""

from random import Random

from fairlead_sim.engine import Engine
from fairlead_sim.virtual_cluster.network import KEEPALIVE_MS, Connection, End, Network, NetworkOptions


class Ends:
    """Both ends of one connection, which note what comes out."""

    def __init__(self, **options: float) -> None:
        self.engine = Engine(Random(3), now_ms=0)
        self.up: list[object] = []
        self.down: list[object] = []
        self.lost: list[str] = []
        host = End(lambda _, message: self.up.extend(message), lambda _: self.lost.append("host"))
        self.network = Network(self.engine, NetworkOptions(**options), host)  # type: ignore[arg-type]
        self.connection = self.dial()

    def dial(self) -> Connection:
        connection = self.network.dial(
            "peer", End(lambda _, message: self.down.extend(message), lambda _: self.lost.append("peer"))
        )
        assert connection is not None
        return connection


def test_messages_arrive_late_and_in_order() -> None:
    ends = Ends(delay_min_ms=1, delay_max_ms=50)
    for number in range(100):
        ends.connection.send_up([number])
        ends.connection.send_down([-number])

    ends.engine.run_until(0)
    assert ends.up == []
    ends.engine.run_until(50)

    assert ends.up == list(range(100))
    assert ends.down == [-number for number in range(100)]


def test_a_repeat_comes_right_behind_its_original_and_a_first_message_has_none() -> None:
    ends = Ends(repeat_fraction=1.0)

    ends.connection.open(["hello"])
    ends.connection.send_up(["a"])
    ends.connection.send_up(["b"])
    ends.engine.run_until(10)

    assert ends.up == ["hello", "a", "a", "b", "b"]


def test_a_break_loses_what_is_under_way_in_both_directions_and_each_end_notices_once() -> None:
    ends = Ends(delay_min_ms=10, delay_max_ms=10, notice_max_ms=100)
    ends.connection.send_up(["x"])
    ends.connection.send_down(["y"])

    ends.connection.break_off()
    ends.connection.break_off()
    ends.connection.send_up(["z"])
    ends.engine.run_until(1_000)

    assert (ends.up, ends.down) == ([], [])
    assert sorted(ends.lost) == ["host", "peer"]
    assert not ends.connection.is_open


def test_a_message_may_take_its_connection_down() -> None:
    ends = Ends(break_fraction=1.0)

    ends.connection.send_up(["x"])
    ends.engine.run_until(10)

    assert ends.up == []
    assert sorted(ends.lost) == ["host", "peer"]


def test_a_stalled_direction_lets_everything_through_later_and_the_other_one_goes_on() -> None:
    ends = Ends(delay_max_ms=0)

    ends.connection.stall(5_000, up=True, down=False)
    ends.connection.send_up(["x"])
    ends.connection.send_down(["y"])
    ends.engine.run_until(4_999)
    assert (ends.up, ends.down) == ([], ["y"])
    ends.engine.run_until(5_000)

    assert ends.up == ["x"]


def test_a_stall_beyond_the_keepalive_breaks_the_connection() -> None:
    ends = Ends()

    ends.connection.stall(KEEPALIVE_MS + 1, up=False, down=True)
    ends.engine.run_until(KEEPALIVE_MS)

    assert sorted(ends.lost) == ["host", "peer"]


def test_the_master_ends_a_connection_with_a_last_word() -> None:
    ends = Ends(delay_min_ms=5, delay_max_ms=5)

    ends.connection.send_up(["too late"])
    ends.connection.end(["refused"])
    ends.engine.run_until(10)

    assert (ends.up, ends.down, ends.lost) == ([], ["refused"], ["peer"])


def test_a_peer_closes_and_what_it_said_before_arrives() -> None:
    ends = Ends(delay_min_ms=5, delay_max_ms=5)

    ends.connection.send_up(["goodbye"])
    ends.connection.send_down(["never read"])
    ends.connection.close()
    ends.engine.run_until(10)

    assert (ends.up, ends.down, ends.lost) == (["goodbye"], [], ["host"])


def test_a_peer_that_is_cut_off_reaches_nobody_until_it_heals() -> None:
    ends = Ends()
    ends.network.cut("peer", 1_000)

    assert ends.network.dial("peer", End(lambda *_: None, lambda _: None)) is None
    assert ends.network.dial("other", End(lambda *_: None, lambda _: None)) is not None
    ends.network.heal()
    assert ends.dial().number == 3


def test_nobody_reaches_a_master_that_is_down() -> None:
    ends = Ends()
    ends.network.is_host_up = False

    assert ends.network.dial("peer", End(lambda *_: None, lambda _: None)) is None


def test_a_quiet_network_throws_no_dice() -> None:
    ends = Ends(delay_min_ms=2, delay_max_ms=2)
    before = ends.engine.random.getstate()

    ends.connection.send_up(["x"])
    ends.connection.send_down(["y"])
    ends.engine.run_until(10)

    assert ends.engine.random.getstate() == before


def test_what_is_sent_in_one_millisecond_on_an_even_network_comes_out_together() -> None:
    engine = Engine(Random(3), now_ms=0)
    told: list[object] = []
    host = End(
        lambda connection, message: told.append((connection.number, message)),
        lambda _: None,
        lambda: told.append("settled"),
    )
    network = Network(engine, NetworkOptions(delay_min_ms=2, delay_max_ms=2), host)
    first, second = (network.dial(name, End(lambda *_: None, lambda _: None)) for name in ("a", "b"))
    assert first is not None
    assert second is not None

    first.send_up(["x"])
    second.send_up(["y"])
    second.break_off()
    first.send_up(["z"])
    engine.run_until(10)

    assert told == [(1, ["x"]), (1, ["z"]), "settled"]


def test_a_first_message_is_answered_at_once_where_peers_are_there_from_the_start() -> None:
    engine = Engine(Random(3), now_ms=0)
    heard: list[object] = []
    host = End(lambda *_: None, lambda _: None, opened=lambda _, message: [f"welcome {message[0]}"])
    options = NetworkOptions(delay_min_ms=2, delay_max_ms=2, opens_at_once=True)
    connection = Network(engine, options, host).dial(
        "a", End(lambda _, said: heard.extend(said), lambda _: None)
    )
    assert connection is not None

    connection.open(["a"])

    assert heard == ["welcome a"]
