"""Sends random requests, with and without the API key, and counts the wrong answers."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec

from benchmarks.client import Answer, Client, ask_once, encode
from benchmarks.load import PATH, SESSION_HEADER
from benchmarks.model import Behaviour
from benchmarks.phases import Prompt
from benchmarks.sizes import Sizes
from benchmarks.stage import KEY, Stage
from hermes.entry.http.server import OPEN, ROUTES

CLIENTS = 8
VICTIM = "victim"
"""The name of a session that the benchmark creates. No request with another session name may read
or change this session."""
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
PATHS = (*(path for _, path, _ in ROUTES), "/", "/v1", "/v1/models/", "//ready", "/v1/../ready")
VALUES: tuple[object, ...] = (
    None, True, -1, 10**30, 1e308, "", "x" * 300, [], {}, [[]], "\u0000", "\ud7ff", [None],
    {"role": "user"}, {"type": "image_url", "image_url": {"url": "data:x"}},
)  # fmt: skip
FIELDS = (
    "model", "messages", "stream", "tools", "tool_choice", "response_format", "stream_options",
    "temperature", "max_tokens", "n", "stop", "seed", "user", "reasoning_effort",
)  # fmt: skip
SESSIONS: tuple[Callable[[random.Random], bytes], ...] = (
    lambda chance: bytes(chance.choice(b"\x00\x01\x7f\x80\xff\tab:/%") for _ in range(20)),
    lambda chance: (
        VICTIM.encode() + chance.choice((b"\x00", b"\xc2\xa0", b"%00", b"/", b":a", b"."))
    ),
    lambda chance: chance.choice((b"../victim", b"Victim", b"VICTIM", b"%76ictim", b"victi\xad")),
    lambda chance: b"agent:main:api:private:victim:account:default",
    lambda chance: b"x" * chance.choice((256, 257, 4096, 65_536)),
    lambda chance: b"a\r\n%b: b" % SESSION_HEADER.encode(),
    lambda chance: b"a\r\nX-Injected: yes",
    lambda chance: (
        chance.randbytes(chance.randrange(1, 40)).replace(b"\r", b"").replace(b"\n", b"")
    ),
)


async def fuzz(stage: Stage, sizes: Sizes) -> None:
    """Sends random requests of all kinds to all routes, and counts the wrong answers. For example,
    a request without the key must not succeed."""
    await stage.restart("fuzzed")
    await stage.behave(Behaviour())
    let_in, broken = 0, 0

    async def one(chance: random.Random, client: Client) -> None:
        nonlocal let_in, broken
        path, key = chance.choice(PATHS), _key(chance)
        answer = await client.ask(_random_request(chance, path, key), 30.0)
        if 200 <= answer.status < 300 and key != KEY and path not in OPEN:
            let_in += 1
            stage.record.fail(f"{path} with the key {key!r}: {answer.told()}")
        if answer.status >= 500:
            broken += 1
            stage.record.fail(f"{path}: {answer.told()}")

    await _many(stage, sizes.fuzz, one)
    put = stage.record.put
    put("fuzz.requests", sizes.fuzz)
    put("fuzz.let_in", let_in)
    put("fuzz.broken", broken)
    put("fuzz.revoked", await _revoked(stage))


async def sessions(stage: Stage, sizes: Sizes) -> None:
    """Sends hostile session headers, and repeats requests with the same idempotency key."""
    await stage.restart("sessions")
    await stage.behave(Behaviour())
    secret = await _ask(stage, "the secret word is swordfish", {SESSION_HEADER: VICTIM})
    assert secret.good(stage.behaviour.tokens), secret.told()
    broken = injected = 0

    async def one(chance: random.Random, client: Client) -> None:
        nonlocal broken, injected
        name = chance.choice(SESSIONS)(chance)
        request = _post("hello", {}).replace(
            b"\r\n\r\n", b"\r\n%b: %b\r\n\r\n" % (SESSION_HEADER.encode(), name), 1
        )
        answer = await client.ask(request, 30.0)
        broken += answer.status >= 500
        injected += b"X-Injected" in answer.body
        if answer.status >= 500:
            stage.record.fail(f"session {name!r}: {answer.told()}")

    await _many(stage, sizes.session_names, one)
    await _ask(stage, "and now?", {SESSION_HEADER: VICTIM})
    seen = await stage.last(Prompt)
    said = [one for one in seen.messages if one.role in ("user", "assistant")]
    put = stage.record.put
    put("sessions.names", sizes.session_names)
    put("sessions.reached", len(said) - 3)
    put("sessions.broken", broken + injected)
    put("sessions.conflicts", await _wrong_repeats(stage))


async def _many(
    stage: Stage, count: int, one: Callable[[random.Random, Client], Awaitable[None]]
) -> None:
    async def work(number: int) -> None:
        chance = random.Random(number)  # the requests must be repeatable
        client = Client(stage.ours.port)
        try:
            for _ in range(count // CLIENTS):
                await one(chance, client)
        finally:
            client.close()

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(work(number))


def _key(chance: random.Random) -> str:
    # Only one request in a hundred has a wrong key, because the gateway delays each refusal by a
    # second.
    if chance.random() < 0.01:
        return chance.choice((f"{KEY}x", KEY[:-1], KEY.upper(), "\u00fc" * 20, "x" * 2000))
    return chance.choice((KEY, ""))


def _random_request(chance: random.Random, path: str, key: str) -> bytes:
    fields = {name: chance.choice(VALUES) for name in FIELDS if chance.random() < 0.3}
    if chance.random() < 0.5:
        said = {"role": chance.choice(("user", "system", "tool", "x")), "content": "hi"}
        fields["messages"] = [said, chance.choice(VALUES)][: chance.randint(1, 2)]
    body = bytearray(msgspec.json.encode(fields))
    for _ in range(chance.choice((0, 0, 1, 5))):
        body[chance.randrange(len(body))] = chance.randrange(256)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if chance.random() < 0.2:
        headers |= {chance.choice(("Origin", "Content-Type", "Last-Event-ID", "Accept")): "x"}
    shown = path.replace("{run_id}", "run_1").replace("{model_id}", "main")
    return encode(chance.choice(METHODS), shown, headers, bytes(body))


def _post(text: str, headers: dict[str, str]) -> bytes:
    said = [{"role": "user", "content": text}]
    body = msgspec.json.encode({"model": "hermes-agent", "messages": said})
    return encode("POST", PATH, {"Authorization": f"Bearer {KEY}", **headers}, body)


async def _ask(stage: Stage, text: str, headers: dict[str, str]) -> Answer:
    return await ask_once(stage.ours.port, _post(text, headers), 30.0)


async def _revoked(stage: Stage) -> int:
    """Restarts the gateway with another key. Returns the number of requests with the old key that
    the gateway still accepts."""
    await stage.restart("fuzzed", key=f"{KEY}-rotated")
    accepted = 0
    for _ in range(5):
        accepted += (await _ask(stage, "hi", {})).status != 401
    await stage.restart("fuzzed")
    return accepted


async def _wrong_repeats(stage: Stage) -> int:
    """Repeats requests with their idempotency keys. Returns the number of wrong answers."""
    wrong = 0
    for number in range(20):
        key = {"Idempotency-Key": f"key-{number}"}
        first = await _ask(stage, "one", key)
        wrong += (await _ask(stage, "two", key)).status != 409
        wrong += (await _ask(stage, "one", {**key, SESSION_HEADER: "s"})).status != 409
        if number == 0:
            await stage.restart("sessions")
        wrong += _run(await _ask(stage, "one", key)) != _run(first)
    return wrong


def _run(answer: Answer) -> bytes:
    return answer.body.partition(b'"chatcmpl-')[2].partition(b'"')[0]
