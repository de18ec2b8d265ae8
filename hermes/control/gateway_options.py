"""The options of a gateway."""

from collections.abc import Callable

from hermes.control.access import AccessPolicy
from hermes.control.human_pace import HumanPace
from hermes.control.maintenance import Retention
from hermes.control.placement import Placement
from hermes.state.credential_locks import CredentialLocks
from hermes.streaming.policy import StreamingPolicy
from hermes.text.redact import redact_tokens
from hermes.types.deployment import NodeFolder
from hermes.types.value import Value


class GatewayOptions(Value):
    """Options that do not change while the gateway runs."""

    access: AccessPolicy = AccessPolicy()
    streaming: StreamingPolicy = StreamingPolicy()
    pace: HumanPace = HumanPace()
    retention: Retention = Retention()
    most_runs: int = 4096
    """Maximum number of API turns that run at the same time; 0 for no limit."""
    unread_seconds: float = 10.0
    """Seconds for which a request without a session continues after the last client that reads its
    events has disconnected."""
    folder: NodeFolder | None = None
    """The folder with the files of the agents; None if there are no files, as in some tests."""
    several_folders: bool = False
    """Whether other processes with the same store may keep the files of their agents in another
    folder. With SQLite, all processes use the same folder."""
    credential_locks: CredentialLocks | None = None
    """The locks on the credentials of accounts. All homes of the user share these locks. None if
    credentials are not locked, as in some tests."""
    redact: Callable[[str], str] = redact_tokens
    """Removes secrets from texts that everybody may read, such as the reason why an account is
    down."""
    terminal: bool = False
    """Whether this is the gateway of a terminal. Such a gateway runs only its own sessions and the
    sessions of terminals that died."""

    @property
    def placement(self) -> Placement:
        return Placement(
            folder=self.folder.id if self.folder else None,
            checked=self.several_folders and self.folder is not None,
            terminal=self.terminal,
        )
