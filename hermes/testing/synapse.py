"""A Matrix homeserver for tests: Synapse from PyPI, on a free port of the loopback interface."""

import base64
import hashlib
import hmac
import http.client
import itertools
import json
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hermes.testing.gateway_process import free_port
from hermes.testing.postgres import end_with_parent

SYNAPSE_SECONDS = 90.0
"""Maximum number of seconds that the server may take to start or to stop."""
CALL_SECONDS = 30.0
SECRET = "a-secret-for-tests-only"  # noqa: S105
UNLIMITED = {"per_second": 1e6, "burst_count": 1e6}


def _config(folder: Path, port: int) -> dict[str, object]:
    client = {"names": ["client"], "compress": False}
    return {
        "server_name": "localhost",
        "listeners": [
            {"port": port, "bind_addresses": ["127.0.0.1"], "type": "http", "resources": [client]}
        ],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "synapse.db")}},
        "media_store_path": str(folder / "media"),
        "log_config": str(folder / "log.json"),
        "signing_key_path": str(folder / "signing.key"),
        "macaroon_secret_key": SECRET,
        "form_secret": SECRET,
        "registration_shared_secret": SECRET,
        "report_stats": False,
        "trusted_key_servers": [],
        "presence": {"enabled": False},
        "bcrypt_rounds": 4,
        # The server has no rate limits. A test of rate limits sets a limit for one user.
        "rc_message": UNLIMITED,
        "rc_room_creation": UNLIMITED,
        "rc_login": {"address": UNLIMITED, "account": UNLIMITED, "failed_attempts": UNLIMITED},
        "rc_joins": {"local": UNLIMITED, "remote": UNLIMITED},
        "rc_invites": {"per_room": UNLIMITED, "per_user": UNLIMITED, "per_issuer": UNLIMITED},
    }


_LOG = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"level": "WARNING", "handlers": ["console"]},
}


class SynapseProcess:
    """A homeserver that can be stopped and started again on the same port. It ends when the process
    that started it ends, even if that process is killed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-synapse-")
        self._path = Path(self._folder.name)
        self.port = free_port()
        key = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        (self._path / "signing.key").write_text(f"ed25519 a_test {key}\n")
        (self._path / "log.json").write_text(json.dumps(_LOG))
        (self._path / "config.json").write_text(json.dumps(_config(self._path, self.port)))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the server and waits until it answers requests."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Starts the server without waiting for it. The kernel ends the server when the calling
        thread ends."""
        self._process = self._launched()

    def wait(self) -> None:
        """Waits until the server answers requests."""
        deadline = time.monotonic() + SYNAPSE_SECONDS
        while True:
            assert self._process is not None, "the server was not launched"
            # The server exits if another program happens to use the port. In this case, the server
            # is started again.
            if self._process.poll() is not None:
                self._process = self._launched()
            with suppress(OSError):
                self.call("GET", "/_matrix/client/versions")
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"Synapse did not start: {self._log()}")
            time.sleep(0.05)

    def _launched(self) -> "subprocess.Popen[bytes]":
        program = [sys.executable, "-m", "synapse.app.homeserver"]
        with (self._path / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                [*program, "--config-path", str(self._path / "config.json")],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # no thread of ours holds a lock
            )

    def stop(self) -> None:
        """Kills the server, as in a crash. All its connections end at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(SYNAPSE_SECONDS)
            self._process = None

    def remove(self) -> None:
        self.stop()
        self._folder.cleanup()

    def call(
        self, method: str, path: str, body: object = None, token: str = "", data: bytes = b""
    ) -> Any:
        """Returns the result of an endpoint. Raises AssertionError if the status is not 200."""
        content = data if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS)
        try:
            connection.request(method, path, content or None, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        assert response.status == 200, f"{method} {path}: {response.status} {answer.decode()}"
        return json.loads(answer)

    def register(self, name: str, *, admin: bool = False) -> "MatrixUser":
        """Creates a user whose password is the same as the name."""
        path = "/_synapse/admin/v1/register"
        nonce = self.call("GET", path)["nonce"]
        parts = [nonce, name, name, "admin" if admin else "notadmin"]
        proof = hmac.new(SECRET.encode(), "\0".join(parts).encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": name, "admin": admin, "mac": proof}
        made = self.call("POST", path, body)
        return MatrixUser(self, made["user_id"], made["access_token"])

    def _log(self) -> str:
        return (self._path / "log").read_text("utf-8", "replace")[-2000:]


def _end_with_parent() -> None:
    # When the parent ends, the kernel sends SIGQUIT to the server. This signal would write a core
    # dump, so core dumps are turned off.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_with_parent()


class MatrixUser:
    """A user of the homeserver. Every method blocks until the homeserver has answered."""

    def __init__(self, server: SynapseProcess, id: str, token: str) -> None:
        self.id = id
        self.token = token
        self._server = server
        self._keys = itertools.count()
        self._token = ""

    def call(self, method: str, *parts: str, body: object = None, **query: str) -> Any:
        """Calls an endpoint of the client-server API. `parts` are the segments of its path, without
        percent-encoding."""
        path = "/".join(["/_matrix/client/v3", *(quote(part, safe="") for part in parts)])
        if query:
            path += f"?{urlencode(query)}"
        return self._server.call(method, path, body, self.token)

    def create_room(self, *invited: "MatrixUser", **options: object) -> str:
        """Creates a room, and returns its id."""
        body = {"invite": [user.id for user in invited], "preset": "private_chat", **options}
        room: str = self.call("POST", "createRoom", body=body)["room_id"]
        return room

    def join(self, room: str) -> None:
        self.call("POST", "rooms", room, "join", body={})

    def say(self, room: str, text: str, **fields: object) -> str:
        """Sends a text message, and returns its event id. `fields` are further fields of the
        event's content."""
        return self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **fields})

    def send(self, room: str, kind: str, content: Mapping[str, object]) -> str:
        key = f"{self.id}{next(self._keys)}{time.time_ns()}"
        event: str = self.call("PUT", "rooms", room, "send", kind, key, body=content)["event_id"]
        return event

    def set_state(self, room: str, kind: str, content: Mapping[str, object]) -> None:
        self.call("PUT", "rooms", room, "state", kind, "", body=content)

    def upload(self, data: bytes) -> str:
        """Uploads a file, and returns its `mxc:` address."""
        path = "/_matrix/media/v3/upload"
        address: str = self._server.call("POST", path, token=self.token, data=data)["content_uri"]
        return address

    def events(self, room: str, most: int = 0) -> list[dict[str, Any]]:
        """Returns the newest events of a room, at most `most`, in the order in which they were
        sent. If `most` is 0, returns all events."""
        found: list[dict[str, Any]] = []
        start: dict[str, str] = {}
        while True:
            limit = {"dir": "b", "limit": str(most or 1000)}
            page = self.call("GET", "rooms", room, "messages", **limit, **start)
            found += page["chunk"]
            if most or "end" not in page:
                return found[::-1]
            start = {"from": page["end"]}

    def messages(self, room: str, by: "MatrixUser", most: int = 0) -> list[dict[str, Any]]:
        """Returns the contents of the messages of the user `by`, after all edits. `most` is the
        maximum number of events that are read; 0 for no limit."""
        shown: dict[str, dict[str, Any]] = {}
        for event in self.events(room, most):
            if event["type"] != "m.room.message" or event["sender"] != by.id:
                continue
            relation = event["content"].get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                shown[relation["event_id"]] = event["content"]["m.new_content"]
            else:
                shown[event["event_id"]] = event["content"]
        return list(shown.values())

    def texts(self, room: str, by: "MatrixUser") -> list[str]:
        """Returns the plain texts of the messages of the user `by`, after all edits."""
        return [content["body"] for content in self.messages(room, by)]

    def token_now(self) -> str:
        """Returns a sync token. A sync with this token returns only events after this moment."""
        # For two minutes, Synapse answers an identical sync request from its cache. So each request
        # has a different `since`.
        since = {"since": self._token} if self._token else {}
        self._token = self.call("GET", "sync", timeout="0", **since)["next_batch"]
        return self._token


@contextmanager
def running_synapse() -> Iterator[SynapseProcess]:
    """Runs a homeserver until the block ends."""
    server = SynapseProcess()
    try:
        server.start()
        yield server
    finally:
        server.remove()


_shared: list[SynapseProcess] = []


def shared_synapse() -> SynapseProcess:
    """Returns the homeserver that all tests of this process share. The first call starts it."""
    if not _shared:
        server = SynapseProcess()
        _shared.append(server)
        server.start()
    return _shared[0]


def remove_shared_synapse() -> None:
    while _shared:
        _shared.pop().remove()
