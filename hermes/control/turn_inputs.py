"""Builds the input of the agent for a turn."""

from collections.abc import Iterable

from msgspec.structs import replace

from hermes.control.event_content import first_step
from hermes.state.sessions import SessionRow
from hermes.state.turns import TurnRow
from hermes.types.identity import SessionKey
from hermes.types.messages import Asked, MessageEvent
from hermes.types.profile import AgentProfile
from hermes.types.turns import Approved, Decision, Denied, Turn


def new_turn(
    row: TurnRow,
    key: SessionKey,
    event: MessageEvent,
    request: MessageEvent,
    profile: AgentProfile,
    session: SessionRow | None,
) -> Turn:
    """Returns the turn that `event` opened, without its history.

    `request` is the message whose options apply: `event`, or a later message that has replaced its
    options. `session` contains what people have chosen for the session, such as its model. It is
    None for a request without a session.
    """
    body, origin = event.body, event.origin
    asked = request.body
    turn = Turn(
        id=row.id,
        session=key,
        agent=key.agent,
        source=event.source,
        profile=profile,
        history=(),
        trigger=origin.trigger,
        person=row.person,
        principal=origin.principal,
        place=origin.place,
        stateless=row.transient,
        reply_to=origin.reply_to,
        # A chat does not need each event at once, because the message that shows the turn is edited
        # at most once a second.
        live=asked.live if isinstance(asked, Asked) else origin.reply_to is None,
    )
    if session is not None:
        turn = replace(
            turn,
            model=session.model,
            reasoning=session.reasoning,
            personality=profile.personalities.get(session.personality or "", ""),
            summarise=session.summarise,
        )
    if not isinstance(body, Asked) or not isinstance(asked, Asked):
        return turn
    return replace(
        turn,
        instructions=asked.instructions or body.instructions,
        model=body.model or turn.model,
        sampling=asked.sampling,
        client_tools=asked.tools,
        tool_choice=asked.tool_choice,
        requested_at=first_step(asked),
        response_format=asked.response_format,
    )


def is_detached(event: MessageEvent, decisions: Iterable[Decision] = ()) -> bool:
    """Returns whether the turn that `event` opened continues without readers. After a person has
    decided an approval of the turn, the turn always continues, because the request with the
    decision is not always the request that reads the events."""
    if not isinstance(event.body, Asked) or event.body.detached:
        return True
    return any(isinstance(one, Approved | Denied) for one in decisions)
