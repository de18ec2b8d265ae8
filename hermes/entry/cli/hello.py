"""Prints the text for new users when the service has started, and the service's first answer."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec

from hermes import settings as configuration
from hermes.entry.output import say, say_unwrapped, terminal_columns
from hermes.settings import Settings
from hermes.settings.sources import ENVIRONMENT
from hermes.text.event_stream import EventStreamParser
from hermes.text.redact import redact_tokens
from hermes.text.wrapping import StreamWrapper
from hermes.types.errors import Disconnected, HermesError, Rejected
from hermes.types.offers import ModelResolver
from hermes.types.value import Value

DEMO = """\
model: {model}, a small demo model that runs here, without tools
For a real one, set the key of a provider, such as {key}, in {dotenv}, or choose one with \
`hermes model`. Then start again."""
LAST_PAYLOAD = b"[DONE]"
"""The last payload of a streamed answer."""
TRY_BODY = (
    '{{"model": "{model}", "stream": true, "messages": [{{"role": "user", "content": "Hi"}}]}}'
)


def model_line(settings: Settings, models: ModelResolver) -> str:
    """Returns a line that names the model, or says how to configure one."""
    choice = models.main()
    if choice is None:
        return models.advice
    if models.is_demo(choice):
        where = settings.home.dotenv
        return DEMO.format(model=choice.model, key=models.example_key, dotenv=where)
    place = filter(None, (choice.provider, redact_tokens(choice.base_url)))
    return f"model: {choice.model} ({', '.join(place)})"


def ways_in(settings: Settings, url: str) -> list[str]:
    """Returns the lines that say how to use the service."""
    return [
        f"The API key is in {key_place(settings)}. In another terminal:",
        f"  {own_command(settings)} chat",
        f"  {curl(settings, url)}",
    ]


def own_command(settings: Settings) -> str:
    """Returns the command that starts `hermes` in any other shell, in the same home."""
    typed, found = Path(sys.argv[0]), shutil.which("hermes")
    # A virtual environment is active in this shell only: a new shell would not find `hermes`.
    on_path = found and typed.samefile(found) and not configuration.ENVIRON.get("VIRTUAL_ENV")
    command = "hermes"
    if typed.parts[-2:] == ("hermes", "__main__.py"):
        command = f"{shlex.quote(sys.executable)} -m hermes"
    elif typed.name == "hermes" and not on_path:
        command = shlex.quote(str(typed.absolute()))
    usual = configuration.locate(environ={}) == settings.home
    return command if usual else f"HERMES_HOME={shlex.quote(str(settings.home.root))} {command}"


def key_place(settings: Settings) -> str:
    """Returns a text that says where the API key is stored. The text never contains the key."""
    if settings.api_server.key:
        return settings.explain("api_server.key").source
    return str(settings.home.api_key)


def curl(settings: Settings, url: str) -> str:
    """Returns a `curl` command that can be pasted into any shell. If this process has the key from
    its environment, the other shell must have the key in its environment too."""
    if not settings.api_server.key:
        key = f"$(cat {shlex.quote(str(settings.home.api_key))})"
    elif settings.sources.layer("api_server.key") == ENVIRONMENT:
        key = "$API_SERVER_KEY"
    else:
        key = f"$({own_command(settings)} config get --reveal api_server.key)"
    body = TRY_BODY.format(model=settings.api_server.model_name)
    return (
        f'curl -sN {url}/v1/chat/completions -H "Authorization: Bearer {key}"'
        f" -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )


async def say_hello(url: str, key: str, text: str) -> None:
    """Shows a question and its answer, or the error."""
    say(f"\nasked: {text}")

    lines = StreamWrapper(terminal_columns() or sys.maxsize)

    def show(words: str) -> None:
        say_unwrapped(lines.feed(words), nl=False)

    try:
        await ask(url, key, text, show)
        say_unwrapped(f"{lines.flush()}\n")
    except HermesError as error:
        say(f"{error}\n", err=True)


class _Problem(Value):
    message: str = ""


class _Delta(Value):
    content: str | None = None


class _Choice(Value):
    delta: _Delta = _Delta()


class _Chunk(Value):
    choices: tuple[_Choice, ...] = ()
    error: _Problem | None = None


_chunks = msgspec.json.Decoder(_Chunk)


async def ask(url: str, key: str, text: str, show: Callable[[str], None]) -> None:
    """Shows the answer to `text` piece by piece. Raises an error if there is no answer."""
    body = {
        "model": "hermes-agent",
        "stream": True,
        "messages": [{"role": "user", "content": text}],
    }
    bearer = {"Authorization": f"Bearer {key}"}
    address = f"{url}/v1/chat/completions"
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(address, json=body, headers=bearer) as response,
        ):
            if response.status != 200:
                show(_said(await response.read()))
            parser = EventStreamParser()
            async for data in response.content.iter_any():
                for payload in parser.feed(data):
                    if payload != LAST_PAYLOAD:
                        show(_said(payload))
    except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
        raise Disconnected(f"{address} did not answer: {error}") from error


def _said(data: bytes) -> str:
    chunk = _chunks.decode(data)
    if chunk.error is not None:
        raise Rejected(chunk.error.message)
    return "".join(choice.delta.content or "" for choice in chunk.choices)
