"""The settings for approvals."""

from typing import Annotated, Literal

from hermes.settings.schema import Aliases
from hermes.settings.sections import Seconds
from hermes.types.approvals import ApprovalMode, ApprovalPolicy
from hermes.types.identity import PersonId
from hermes.types.value import Value

_MODES: dict[str, ApprovalMode] = {"auto": "auto", "smart": "auto", "off": "off"}


class ApprovalSettings(Value):
    mode: Literal["auto", "ask", "off", "manual", "smart"] = "auto"
    """When a person must approve an action of the agent. `auto` asks before every dangerous action,
    except for dangers that the sandbox contains. `ask` (or `manual`) asks about those too. `off`
    never asks. `smart`, a mode of Hermes Agent, is the same as `auto`."""
    timeout: Seconds = 3600.0
    """Seconds for which an approval waits for a decision."""
    unattended: Annotated[
        Literal["deny", "allow", "approve"], Aliases(keys=("approvals.cron_mode",))
    ] = "deny"
    """The decision if no person is present, as in a scheduled job: `deny`, or `allow` (or
    `approve`)."""
    untrusted_content: bool = True
    """Whether untrusted content, such as a web page or a received file, makes approvals stricter.
    As soon as it is part of the conversation, every action that sends data out or writes outside of
    the workspace needs approval."""
    approvers: tuple[str, ...] = ()
    """Users who may also decide about the actions of other people, each as `platform:id`. They use
    `/approve` and `/deny` with the id of the approval."""

    @property
    def policy(self) -> ApprovalPolicy:
        return ApprovalPolicy(
            mode=_MODES.get(self.mode, "ask"),
            taint=self.untrusted_content,
            seconds=self.timeout,
            unattended="deny" if self.unattended == "deny" else "allow",
            approvers=tuple(map(PersonId, self.approvers)),
        )
