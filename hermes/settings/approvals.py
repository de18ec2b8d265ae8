"""The settings for approvals."""

from typing import Annotated, Literal, get_args

import msgspec

from hermes.settings.schema import Aliases
from hermes.settings.sections import Seconds
from hermes.types.approvals import ApprovalMode, ApprovalPolicy
from hermes.types.identity import PersonId
from hermes.types.value import Value

_MODES: dict[str, ApprovalMode] = {"auto": "auto", "smart": "auto", "off": "off"}


ModeName = Literal["auto", "ask", "off", "manual", "smart"]


class ApprovalSettings(Value):
    mode: ModeName = "auto"
    """When a person must approve an action of the agent. `auto` asks before every dangerous action,
    except for actions whose dangers are limited to the sandbox. `ask` (or `manual`) asks before
    these actions, too. `off` never asks. `smart`, a mode of Hermes Agent, is the same as `auto`."""
    backend_modes: dict[str, str] = msgspec.field(default_factory=dict)
    """Modes for particular execution backends. The key is the name of a backend. The value is the
    mode of all agents whose commands run with this backend; it replaces approvals.mode."""
    timeout: Seconds = 3600.0
    """Seconds for which an approval waits for a decision."""
    unattended: Annotated[
        Literal["deny", "allow", "approve"], Aliases(keys=("approvals.cron_mode",))
    ] = "deny"
    """The decision if no person is present, as in a scheduled job: `deny` or `allow`. `approve`
    means the same as `allow`."""
    untrusted_content: bool = True
    """Whether untrusted content, such as a web page or a received file, makes approvals stricter.
    As soon as such content is part of the conversation, every action that sends data out or writes
    outside of the workspace needs approval."""
    approvers: tuple[str, ...] = ()
    """Users who may also decide about the actions of other people, each as `platform:id`. They use
    `/approve` and `/deny` with the id of the approval."""

    def policy(self, backend: str) -> ApprovalPolicy:
        """Returns the rules for an agent whose commands run with this backend."""
        return ApprovalPolicy(
            mode=_MODES.get(self.backend_modes.get(backend, self.mode), "ask"),
            taint=self.untrusted_content,
            seconds=self.timeout,
            unattended="deny" if self.unattended == "deny" else "allow",
            approvers=tuple(map(PersonId, self.approvers)),
        )


def approval_problems(settings: ApprovalSettings) -> list[str]:
    """Returns the problems of values that have the right type but are not allowed."""
    known = get_args(ModeName)
    return [
        f"approvals.backend_modes: {mode!r} is no mode: use one of {', '.join(known)}"
        for mode in settings.backend_modes.values()
        if mode not in known
    ]
