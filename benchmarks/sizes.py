"""The size of a benchmark run: the number of requests and the durations of each phase."""

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and durations of a run."""

    starts: int = 3
    commands: int = 5
    used: int = 200
    """Number of requests between the two measurements of the memory."""
    latency: int = 100
    """Number of requests in one round of the latency measurement."""
    rounds: int = 4
    seconds: float = 2.5
    """Duration of each measurement of the throughput, in seconds."""
    concurrencies: tuple[int, ...] = (1, 8, 32, 128)
    streams: int = 160
    """Number of streams in a round, of 200 tokens each."""
    waves: int = 3
    """Number of turns that each client of the slow model runs, one after another."""
    slow_streams: int = 64
    tools: int = 50
    sandboxed: int = 50
    """Number of commands that run in the sandbox. The same number of commands runs without the
    sandbox."""
    attacks: int = 3
    """Number of times that each attack on the limits of the sandbox is repeated."""
    races: int = 20_000
    """Number of calls of the file tools while another process exchanges a folder for a link."""
    old: int = 240
    """Number of turns that a session has when it counts as old."""
    grown: int = 3
    """Number of old sessions that are measured."""
    pairs: int = 3
    """Number of pairs of measurements. A pair measures first one gateway, then several gateways."""
    scale_seconds: float = 8.0
    """Duration in seconds of each of the two measurements in a pair."""
    crowd: int = 2000
    stored: int = 5000
    replays: int = 200
    """Number of clients that read one long run at full speed."""
    slow_replays: int = 1000
    uploads: int = 3
    """Number of large requests, one after another."""
    upload_messages: int = 2_000
    """Number of messages of a large request with many messages."""
    readers: int = 200
    reading: float = 45.0
    """Seconds for which the slow readers are measured."""
    hostile: float = 1.0
    """Scale of the hostile requests. With 1.0, the largest request has a gigabyte."""
    fuzz: int = 20_000
    """Number of random requests."""
    session_names: int = 10_000
    """Number of requests with hostile session headers."""
    session_keys: int = 1_000_000
    """Number of random session keys that are built, to look for a key that two conversations
    share."""
    fuzzed_commands: int = 10_000
    """Number of random shell commands that the danger detector judges."""
    answered_rounds: int = 1000
    """Number of times that two to five pending approvals are decided in random order."""
    similar_commands: int = 500
    """Number of commands that resemble an approved command."""
    forged_answers: int = 200
    """Number of attempts by other people to decide an approval that only one person may decide."""
    script_races: int = 100
    """Number of approved scripts that the benchmark changes before or during their start."""
    pending_approvals: int = 100
    """Number of approvals that are pending when the gateway is killed."""
    samples: int = 100_000
    """Number of wrong keys for which the benchmark measures how long the check takes."""
    reader_minutes: float = 5.0
    """Duration of the phase `lasting_readers`, in minutes. Slow readers that are disconnected
    connect again in this time."""
    soak_minutes: float = 20.0
    waiting: int = 500
    """Number of messages that wait at the platform while the gateway is down."""
    waiting_chats: int = 10
    down_seconds: float = 5.0
    repeats: int = 2000
    """Number of updates that are delivered three times."""
    repeat_chats: int = 100
    owed: int = 2000
    """Number of replies that the gateway wants to send while the platform is down. The replies wait
    until the outage ends."""
    owed_chats: int = 200
    outage_seconds: float = 60.0
    ordered_chats: int = 200
    ordered_messages: int = 50
    """Number of messages that people write in each chat while the gateway is killed again and
    again."""
    ordered_kills: int = 10
    burst: int = 10_000
    """Number of messages that are delivered in `burst_seconds`."""
    burst_chats: int = 500
    burst_seconds: float = 10.0


USUAL = Sizes()
FULL = Sizes(
    rounds=6,
    seconds=4.0,
    latency=200,
    waves=5,
    grown=6,
    pairs=5,
    down_seconds=60.0,
    outage_seconds=600.0,
    races=100_000,
)
