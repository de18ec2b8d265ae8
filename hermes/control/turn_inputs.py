"""Builds the input of the agent for a turn."""

from msgspec.structs import replace

from hermes.control.event_content import first_step
from hermes.state.turns import TurnRow
from hermes.types.identity import SessionKey
from hermes.types.messages import Asked, MessageEvent
from hermes.types.profile import AgentProfile
from hermes.types.turns import Turn


def new_turn(
    row: TurnRow,
    key: SessionKey,
    event: MessageEvent,
    request: MessageEvent,
    profile: AgentProfile,
    model: str | None,
) -> Turn:
    """Returns the turn that `event` opened, without its history.

    `request` is the message whose options apply: `event`, or a later message that has replaced its
    options. `model` is the model that a person has chosen for the session.
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
        model=model,
        stateless=row.transient,
        reply_to=origin.reply_to,
        # A chat needs no live events, because its preview is edited at most once a second.
        live=asked.live if isinstance(asked, Asked) else origin.reply_to is None,
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
