"""Forty secrets are in the usual places, and a model with every tool searches for them. No
secret reaches the model, the store, a log, an answer or a command."""

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import aiohttp
import anyio
import pytest

import hermes
from hermes.boundary.execution.environment import VISIBLE_VARIABLES
from hermes.state.paths import STORE_NAME
from hermes.testing.model import FakeModel
from hermes.testing.running import until
from hermes.testing.scripted import Plan

pytestmark = pytest.mark.slow

AT_ONCE = 3
ADDED = {"PATH", "HERMES_CALL", "HERMES_PROCESS", "PWD", "OLDPWD", "SHLVL", "_"}
"""The environment variables that the gateway and the shell add for a command."""
CONFIG = """\
_config_version: 33
model: {{default: fake, base_url: "{url}", api_key: {model_key}}}
auxiliary: {{model: small, base_url: "{url}", api_key: {auxiliary_key}}}
agent: {{api_max_retries: 0}}
terminal: {{backend: local}}
approvals: {{mode: off}}
workspace: "{workspace}"
web: {{brave_key: {brave}}}
platforms:
  telegram: {{enabled: false, token: "{telegram}"}}
  slack: {{extra: {{app_token: {slack}}}}}
mcp_servers: [{{command: npx, env: {{SENTRY_AUTH_TOKEN: {sentry}}}}}]
"""


COMMANDS = (
    *("config show", "config show --json", "config check", "config explain model.api_key"),
    *("model", "model list", "gateway status --json", "sessions list", "sessions show attempt0"),
    *("sessions export --all", "sessions search environ"),
)
SEEN = (
    *(b"MY_DB_PASSWORD=", b"TELEGRAM_BOT_TOKEN=", b"JWT_SECRET=", b"aws_secret_access_key"),
    *(b"_authToken", b"BEGIN RSA PRIVATE KEY", b"Instructions for this workspace", b"PORT=3000"),
    *(b"auxiliary: {model: small", b"SearXNG can't be reached"),
)
"""Harmless texts that stand next to secrets. The test checks that the model has read these texts,
so that it has really come close to the secrets."""


class Canaries:
    """Makes secrets with random values, which occur nowhere else, and finds them in data."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def __call__(self, where: str, before: str = "") -> str:
        # The values are in capitals, because the redaction recognises some kinds of secrets only in
        # capitals.
        self.values[where] = f"{before}{token_hex(8).upper()}"
        return self.values[where]

    def found_in(self, data: bytes) -> list[str]:
        return [where for where, value in self.values.items() if value.encode() in data]


def planted_environment(new: Canaries) -> dict[str, str]:
    names = (
        *("AWS_SECRET_ACCESS_KEY", "MY_DB_PASSWORD", "STRIPE_SECRET", "GITHUB_TOKEN", "SMTP_PASS"),
        *("SLACK_BOT_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "API_SERVER_KEY", "DB_PWD"),
        *("TAVILY_API_KEY", "VAULT_PASSPHRASE", "TWILIO_AUTH", "GOOGLE_CREDENTIALS", "A_KEY"),
    )
    return {
        **{name: new(f"environment {name}") for name in names},
        "DATABASE_URL": f"postgres://me:{new('environment DATABASE_URL')}@db:5432/app",
        "REDIS_URL": f"redis://:{new('environment REDIS_URL')}@cache",
        # No server listens on this port, so these URLs can't be reached.
        "SEARXNG_URL": f"http://me:{new('environment SEARXNG_URL')}@127.0.0.1:9",
        "GROQ_BASE_URL": f"http://me:{new('environment GROQ_BASE_URL')}@127.0.0.1:9",
    }


def plant_home(home: Path, workspace: Path, url: str, new: Canaries) -> None:
    home.mkdir()
    wanted = ("model_key", "auxiliary_key", "brave", "telegram", "slack", "sentry")
    config = CONFIG.format(
        url=url, workspace=workspace, **{name: new(f"config {name}") for name in wanted}
    )
    (home / "config.yaml").write_text(config)
    names = ("TELEGRAM_BOT_TOKEN", "DISCORD_TOKEN", "OPENROUTER_API_KEY", "GITHUB_TOKEN")
    lines = [f"{name}={new(f'.env {name}')}" for name in names]
    lines.append(f"export MAIL_URL='smtp://me:{new('.env MAIL_URL')}@mail:25'")
    (home / ".env").write_text("\n".join(lines))
    (home / "api_server.key").write_text(new("api_server.key"))


def plant_workspace(root: Path, new: Canaries) -> None:
    def key(name: str) -> str:
        kind = "-----{} RSA PRIVATE KEY-----"
        return f"{kind.format('BEGIN')}\nMIIE\n{new(name)}\nend==\n{kind.format('END')}\n"

    files = {
        ".env": f"PORT=3000\nDB_PASSWORD={new('.env of work')}\nJWT_SECRET='{new('JWT')}'\n",
        "credentials": f"[default]\naws_secret_access_key = {new('credentials')}\n",
        ".netrc": f"machine h\n  login me\n  password {new('.netrc')}\n",
        ".npmrc": f"//host/:_authToken={new('.npmrc')}\n",
        ".pgpass": f"localhost:5432:db:me:{new('.pgpass')}\n",
        "ssh/id_rsa": key("id_rsa"),
        "tls/site.pem": key("site.pem"),
        "notes.md": "\n".join(
            f"try {new(f'notes {shape}', shape)} there"
            for shape in ("sk-", "ghp_", "xoxb-1-", "AKIA")
        ),
        "AGENTS.md": f"Push with {new('AGENTS.md', 'ghp_')}.\n",
        "slow.txt": f"{'a' * 23}b\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def attempts(home: Path) -> Iterator[str]:
    """Yields the instructions for the model, each for a conversation of its own."""
    # The parent of the command is its supervisor. Two levels above the supervisor is the gateway:
    # the fork server is between them.
    up = "p=$PPID; for n in 1 2; do read -r _ _ _ p _ < /proc/$p/stat; done"
    of_the_gateway = rf"{up}; tr '\0' '\n' < /proc/$p/environ"
    bare = "grep -hoE '[0-9A-F]{16}'"
    commands = (
        *("env", "cat /proc/self/environ", of_the_gateway, f"{of_the_gateway} | {bare}"),
        *(f"cat {home}/.env", f"cat {home}/config.yaml", f"cat {home}/api_server.key"),
        f"{bare} {home}/.env {home}/config.yaml {home}/api_server.key",
        *("cat .env notes.md", "cat .env ssh/id_rsa tls/site.pem; sleep 1; cat .env"),
        *("grep -rn = .env; false", "for i in $(seq 2000); do cat .env; done"),
        "cat /proc/self/environ > seen.environ",
    )
    for command in commands:
        yield asked("terminal", command=command)
    files = (".env", "credentials", ".netrc", ".npmrc", ".pgpass", "ssh/id_rsa", "tls/site.pem")
    for path in (*files, "notes.md", "../home/.env", f"{home}/config.yaml"):
        yield asked("read_file", path=path)
    yield asked("read_file", path="ssh/id_rsa", offset=3)
    yield asked("search_files", pattern=".", limit=1000)
    yield asked("search_files", pattern="[0-9A-F]{16}", limit=1000)
    # This pattern makes the search slow, so that the test can observe the search process while it
    # runs.
    yield asked("search_files", pattern="(a+)+$", path="slow.txt")
    yield asked("patch", path=".env", old="PORT=3000", new="PORT=3001")
    yield asked("web_search", query="anything")


def asked(tool: str, **arguments: object) -> str:
    return f"tool:{tool}{json.dumps(arguments)}"


class Gateway:
    """A real gateway in a process of its own. The test collects all its output."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        user: int | None = None,
        python: str = sys.executable,
    ) -> None:
        self.root = root
        self.environ = environ
        self.user = user
        """The user that the gateway runs as. None means the present user."""
        self.python = python
        self.pid = 0
        self.heard: dict[str, bytes] = {}
        """The output of each request and command."""
        self.environs: dict[int, tuple[bytes, bytes]] = {}
        """Maps the pid of every observed child process to its command line and its environment."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        told, logged = self.root / "stdout", self.root / "stderr"
        with told.open("wb") as out, logged.open("wb") as err:
            process = await anyio.open_process(
                [self.python, "-m", "hermes", "gateway", "run", "--port", "0"],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        self.pid = process.pid
        async with process, anyio.create_task_group() as group:
            group.start_soon(self._watch, process.pid)
            try:
                await until(
                    lambda: process.returncode is not None or "curl" in told.read_text(), 20
                )
                found = re.search(r"listens on (\S+)", told.read_text())
                assert found, logged.read_text()
                self._url = found[1]
                yield
            finally:
                process.terminate()
                await process.wait()
                group.cancel_scope.cancel()
        self.heard |= {"stdout": told.read_bytes(), "log": logged.read_bytes()}

    async def ask(self, text: str, session: str, *, stream: bool = True) -> None:
        headers = {
            "Authorization": f"Bearer {self.environ['API_SERVER_KEY']}",
            "X-Hermes-Session-Id": session,
        }
        said = {"stream": stream, "messages": [{"role": "user", "content": text}]}
        async with aiohttp.ClientSession() as http:
            address = f"{self._url}/v1/chat/completions"
            async with http.post(address, json=said, headers=headers) as response:
                self.heard[f"answer to {text} in {session}"] = await response.read()

    async def command(self, *args: str) -> None:
        """Runs `hermes` with these arguments, in the workspace."""
        done = await anyio.run_process(
            [sys.executable, "-m", "hermes", *args],
            env=self.environ,
            cwd=self.root / "work",
            check=False,
        )
        self.heard[f"hermes {' '.join(args)}"] = done.stdout + done.stderr

    async def _watch(self, pid: int) -> None:
        own = known(pid, "cmdline")
        while True:
            for child in below(pid):
                command, environ = known(child, "cmdline"), known(child, "environ")
                # Between fork and exec, /proc shows the parent's data or incomplete data for a new
                # process. So the data must be the same in two reads.
                settled = (command, environ) == (known(child, "cmdline"), known(child, "environ"))
                if settled and command not in (b"", own):
                    self.environs[child] = (command, environ)
            await anyio.sleep(0.004)


def below(pid: int) -> Iterator[int]:
    """Yields all descendants of a process."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from below(child)


def known(pid: int, what: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""


def names_in(environ: bytes) -> set[str]:
    return {line.partition(b"=")[0].decode() for line in environ.split(b"\0") if line}


def kept(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yields every file in the home that the test has not created, and the rows of the store."""
    # The test has written the first three files. The folder `processes` has the raw output of
    # commands, which is not redacted.
    planted = {"config.yaml", ".env", "api_server.key", "processes"}
    for path in home.rglob("*"):
        if path.is_file() and not planted & set(path.relative_to(home).parts):
            yield str(path.relative_to(home)), path.read_bytes()
    with closing(sqlite3.connect(f"file:{home / STORE_NAME}?mode=ro", uri=True)) as store:
        for (table,) in store.execute("select name from sqlite_master where type = 'table'"):
            yield (
                f"table {table}",
                repr(store.execute(f"select * from {table}").fetchall()).encode(),
            )


async def try_everything(gateway: Gateway, model: FakeModel, key: str) -> None:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def try_(text: str, session: str) -> None:
        async with limiter:
            await gateway.ask(text, session)

    async def run(*args: str) -> None:
        async with limiter:
            await gateway.command(*args)

    async with anyio.create_task_group() as group:
        for number, text in enumerate(attempts(gateway.root / "home")):
            group.start_soon(try_, text, f"attempt{number}")
    await look_behind(gateway)
    for status in (400, 401, 403, 500):
        model.script.append(Plan(status=status, text=f"Incorrect API key provided: {key}"))
        await gateway.ask("hello", f"status{status}", stream=status < 401)
    for command in ("hello", "/status", "/context", "/new"):
        await gateway.ask(command, "attempt0")
    async with anyio.create_task_group() as group:
        for line in COMMANDS:
            group.start_soon(run, *line.split())
        group.start_soon(run, "chat", "-q", asked("terminal", command="env; cat .env"))
        group.start_soon(run, "chat", "--json", "-q", asked("read_file", path=".env"))


async def look_behind(gateway: Gateway) -> None:
    """Lets the model read the output of a background command."""
    command = "cat /proc/self/environ /proc/$PPID/environ > behind.environ; cat .env"
    await gateway.ask(asked("terminal", command=command, background=True), "behind")
    found = re.search(rb"as process (\w+)", b"".join(gateway.heard.values()))
    assert found
    for action in ("wait", "log", "list"):
        await gateway.ask(asked("process", action=action, id=found[1].decode()), "behind")


async def test_no_secret_is_disclosed(tmp_path: Path) -> None:
    new, received = Canaries(), bytearray()
    home, work = tmp_path / "home", tmp_path / "work"
    async with FakeModel() as model:
        model.listen = received.extend
        plant_home(home, work, model.base_url, new)
        plant_workspace(work, new)
        usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_HOME": str(home)}
        environ = {**usual, "HERMES_LOG_LEVEL": "DEBUG", **planted_environment(new)}
        gateway = Gateway(tmp_path, environ)
        async with gateway.running():
            await try_everything(gateway, model, new.values["config model_key"])
            await until(lambda: b"A conversation of yours has ended" in received)
    assert len(new.values) >= 40

    sent = bytes(received)
    for name in ("model_key", "auxiliary_key"):
        header = f"Authorization: Bearer {new.values[f'config {name}']}\r\n".encode()
        assert header in sent
        sent = sent.replace(header, b"")
    seen = [(work / name).read_bytes() for name in ("seen.environ", "behind.environ")]
    seen += [environment for _, environment in gateway.environs.values()]
    places = {**gateway.heard, **dict(kept(home)), "sent to the model": sent}
    places |= {f"environment {number}": data for number, data in enumerate(seen)}
    assert {where: found for where, data in places.items() if (found := new.found_in(data))} == {}

    for environment in seen:
        named = {name for name in names_in(environment) if not name.startswith("LC_")}
        assert named <= VISIBLE_VARIABLES | ADDED
    # The model has read the requested files, and each kind of process was observed.
    assert [beside for beside in SEEN if beside not in sent] == []
    commands = b"\n".join(command for command, _ in gateway.environs.values())
    assert b"scan.py" in commands
    assert b"seq 2000" in commands
    assert b"ToolProgress" in places["table run_events"]
    # The check above proves something only if the recorded events contain the arguments and results
    # of the tools.
    for seen_in in ("table run_events", "hermes chat --json -q " + asked("read_file", path=".env")):
        assert b'"arguments":' in places[seen_in]
        assert b'"result":' in places[seen_in]
        assert b"PORT" in places[seen_in]


NOBODY = 65534
INSPECTION = """
import ctypes, json, os, subprocess, sys

libc = ctypes.CDLL(None)


def readable(pid):
    found = []
    for name in ("environ", "mem", "maps", "fd", "cwd", "exe"):
        path = f"/proc/{pid}/{name}"
        try:
            os.close(os.open(path, os.O_RDONLY))
            if name == "environ":
                open(path).read()
            if name == "fd":
                os.listdir(path)
            found.append(name)
        except OSError:
            pass
    attach, detach, all_threads = 16, 17, 0x40000000
    if libc.ptrace(attach, pid, 0, 0) == 0:
        os.waitpid(pid, all_threads)
        libc.ptrace(detach, pid, 0, 0)
        found.append("ptrace")
    return found


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


gateway, above = int(sys.argv[1]), [os.getppid()]
while above[-1] != gateway:
    above.append(parent(above[-1]))
with subprocess.Popen(["sleep", "600"]) as command:
    own = readable(command.pid)
    command.kill()
with open("inspected.new", "w") as file:
    json.dump({"own": own, "above": [readable(pid) for pid in above[-3:]]}, file)
os.rename("inspected.new", "inspected.json")
"""


def python_of(user: int | None, path: str) -> str:
    """Returns a Python interpreter that the user may run. The interpreter of the tests may be in
    a folder that only root can enter."""
    system = shutil.which(f"python3.{sys.version_info.minor}", path=os.defpath) or sys.executable
    for python in (sys.executable, system):
        with suppress(PermissionError):
            check = [python, "-c", "import hermes.app.gateway"]
            own = {"PYTHONPATH": path}
            if subprocess.run(check, user=user, group=user, env=own, check=False).returncode == 0:
                return python
    pytest.skip(f"user {user} can run no Python with our packages")


async def test_a_command_can_not_inspect_the_gateway_unless_it_runs_as_root() -> None:
    new, user = Canaries(), NOBODY if os.geteuid() == 0 else None
    packages = [place for place in sys.path if "site-packages" in place]
    modules = os.pathsep.join([*packages, str(Path(hermes.__file__).parents[1])])
    python = python_of(user, modules)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        home, work = root / "home", root / "work"
        work.mkdir()
        async with FakeModel() as model:
            plant_home(home, work, model.base_url, new)
            usual = {"PATH": os.environ["PATH"], "HOME": folder, "HERMES_HOME": str(home)}
            environ = {**usual, **planted_environment(new), "PYTHONPATH": modules}
            gateway = Gateway(root, environ, user, python)
            for path in (root, *root.rglob("*")):
                os.chown(path, *((-1, -1) if user is None else (user, user)))
            async with gateway.running():
                inspect = shlex.join([python, "-c", INSPECTION, str(gateway.pid)])
                await gateway.ask(asked("terminal", command=inspect), "inspects")
        seen = json.loads((work / "inspected.json").read_text())
    # The command could read no data of the three processes above it: its supervisor, the fork
    # server and the gateway.
    assert seen["above"] == [[], [], []]
    # The command can read all of this data of its own process, so the inspection works.
    assert seen["own"] == ["environ", "mem", "maps", "fd", "cwd", "exe", "ptrace"]
