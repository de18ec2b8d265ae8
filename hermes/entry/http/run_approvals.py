"""POST /v1/runs/{id}/approval: approves or denies an action for which a suspended run waits."""

import time
from collections.abc import Iterable, Sequence

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from hermes.control.decisions import OpenApproval, waiting_in
from hermes.control.gateway import Gateway
from hermes.entry.http.auth import principal_of
from hermes.entry.http.endpoint import body_of
from hermes.entry.http.errors import ApiError, bad_request
from hermes.entry.http.responses import json_response
from hermes.entry.http.runs import known_run
from hermes.streaming.wire import ApprovalChoice, WireValue
from hermes.types.approvals import offered_grants, short_id
from hermes.types.identity import Principal, SessionKey, Source, TurnId, new_id
from hermes.types.messages import DENY, Accepted, MessageEvent, Origin, Pressed, Refused

CHOICES: dict[str, ApprovalChoice] = {
    "once": "once",
    "approve": "once",
    "approved": "once",
    "allow": "once",
    "session": "session",
    "always": "always",
    "deny": "deny",
}
"""The words that a client may send, with their meanings."""


class ApprovalRequestBody(msgspec.Struct):
    choice: str
    """`once`, `session` (for the rest of the conversation), `always` or `deny`. `approve`,
    `approved` and `allow` mean `once`."""
    approval_id: str | None = None
    """The complete id of the approval, or the short form that the question shows. This field may be
    left out if the run waits for only one decision."""
    reason: str | None = None
    """The reason for a denial. The model sees this text."""


class ApprovalResponse(WireValue):
    run_id: str
    """The id of the run."""
    choice: ApprovalChoice
    """The decision."""
    object: str = "hermes.run.approval_response"
    """Always `hermes.run.approval_response`."""
    resolved: int = 1
    """The number of approvals that were decided: always 1."""


class RunApproval:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, request: Request) -> ASGIApp:
        run_id, turn = await known_run(self._gateway, request)
        body = _parse(await body_of(request))
        choice = CHOICES.get(body.choice)
        if choice is None:
            raise _invalid_choice(f"{body.choice!r} is not a decision: send {_listed(CHOICES)}.")
        waiting = await self._waiting(turn)
        id = _chosen(list(waiting), body.approval_id)
        grants = offered_grants(waiting[id].choices)
        label = DENY if choice == "deny" else grants.get(choice)
        if label is None:
            possible = _listed([*grants, "deny"])
            raise _invalid_choice(f"This action can't be approved for that long: send {possible}.")
        pressed = Pressed(question=id, choice=label, reason=body.reason or "")
        session = SessionKey.parse(waiting[id].session)
        receipt = await self._gateway.accept(_event(principal_of(request), session, pressed))
        if isinstance(receipt, Refused) and id in await self._waiting(turn):
            raise ApiError(403, f"Not accepted: {receipt.reason}.", "refused")
        if isinstance(receipt, Refused) or (isinstance(receipt, Accepted) and receipt.failed):
            raise _not_pending(f"The approval {id} was decided a moment ago.")
        return json_response(ApprovalResponse(run_id=run_id, choice=choice))

    async def _waiting(self, turn: TurnId) -> dict[str, OpenApproval]:
        return {one.id: one for one in await self._gateway.read(waiting_in, turn)}


def _parse(body: bytes) -> ApprovalRequestBody:
    try:
        return msgspec.json.decode(body, type=ApprovalRequestBody)
    except msgspec.ValidationError as error:
        raise _invalid_choice(f"{error}.") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise bad_request(f"The body is not valid JSON: {error}.", "invalid_json") from error


def _chosen(waiting: Sequence[str], wanted: str | None) -> str:
    """Returns the id of the approval that a request means. Raises ApiError if no such approval
    waits, or if several approvals wait and the request names none of them."""
    found = [id for id in waiting if wanted is None or wanted in (id, short_id(id))]
    if not waiting:
        raise _not_pending("The run does not wait for a decision.")
    if not found:
        raise _not_pending(
            f"{wanted!r} does not wait for a decision. These do: {_listed(waiting)}."
        )
    if len(found) > 1:
        raise _not_pending(
            f"Several actions wait for a decision: send `approval_id`, one of {_listed(found)}."
        )
    return found[0]


def _event(principal: Principal, session: SessionKey, pressed: Pressed) -> MessageEvent:
    """Returns the event of a decision by this principal about an action in this session."""
    source = Source(
        platform="api",
        account=principal.name,
        chat_kind=session.kind,
        chat_id=session.chat,
        user_id=principal.name,
    )
    return MessageEvent(
        dedupe_key=f"api:approval:{new_id()}",
        source=source,
        origin=Origin(trigger="api", principal=principal),
        received_at=time.time(),
        body=pressed,
    )


def _invalid_choice(message: str) -> ApiError:
    return ApiError(400, message, "invalid_approval_choice", param="choice")


def _not_pending(message: str) -> ApiError:
    return ApiError(409, message, "approval_not_pending")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
