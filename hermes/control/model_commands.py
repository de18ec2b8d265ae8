"""Slash commands about the model, the reasoning effort, the personality and the usage of a
session."""

from hermes.control.context_use import context_use
from hermes.control.session_commands import create_session
from hermes.state import sessions
from hermes.state.usage import conversation_usage
from hermes.text.quantity import counted
from hermes.text.spelling import did_you_mean
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.store import Work

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The efforts that /reasoning accepts. Most models support only some of them."""
USUAL_CHOICE = "default"
"""The argument of /model and /reasoning that undoes an earlier choice."""
NO_PERSONALITY = "none"
"""The argument of /personality that removes the personality."""


def model(command: CommandContext) -> Work[CommandReply]:
    """Shows or changes the model of the session; a running turn keeps its model."""
    session, wanted = str(command.session), command.argument.strip()
    usual = wanted.casefold() == USUAL_CHOICE
    chosen = "" if usual else wanted or (yield from sessions.model_of(session)) or ""
    try:
        choice = command.find_model(chosen)
    except ConfigError as error:
        way_back = f"\n/model {USUAL_CHOICE} goes back to the usual model." if chosen else ""
        return CommandReply(reply=f"{error}{way_back}", failed=True)
    answers = f"{choice.model} of {choice.provider} answers in this conversation"
    if not wanted:
        return CommandReply(
            reply=f"{answers}. /model NAME chooses another one, /model {USUAL_CHOICE} the usual"
            " one."
        )
    yield from sessions.set_model(session, None if usual else f"{choice.provider}/{choice.model}")
    return CommandReply(reply=f"{answers}, from the next message on.")


def reasoning(command: CommandContext) -> Work[CommandReply]:
    """Shows or changes the reasoning effort of the session; a running turn keeps its effort."""
    session, wanted = str(command.session), command.argument.strip().casefold()
    efforts = (*REASONING_EFFORTS, USUAL_CHOICE)
    if not wanted:
        row = yield from sessions.find(session)
        effort = (row.reasoning if row else None) or USUAL_CHOICE
        reply = f"The reasoning effort is {effort}. It can be {', '.join(efforts)}."
        return CommandReply(reply=reply)
    if wanted not in efforts:
        reply = f"The reasoning effort can be {', '.join(efforts)}."
        return CommandReply(reply=reply, failed=True)
    yield from create_session(command)
    yield from sessions.set_reasoning(session, None if wanted == USUAL_CHOICE else wanted)
    return CommandReply(reply=f"The reasoning effort is {wanted}, from the next message on.")


def personality(command: CommandContext) -> Work[CommandReply]:
    """Shows or changes the personality of the session; a running turn keeps its personality."""
    session, wanted = str(command.session), command.argument.strip()
    known = command.profile.personalities
    if not wanted:
        row = yield from sessions.find(session)
        chosen = (row.personality if row else None) or NO_PERSONALITY
        names = ", ".join((*known, NO_PERSONALITY))
        return CommandReply(reply=f"The personality is {chosen}. It can be {names}.")
    if wanted.casefold() == NO_PERSONALITY:
        yield from sessions.set_personality(session, None)
        return CommandReply(reply="There is no personality, from the next message on.")
    found = next((name for name in known if name.casefold() == wanted.casefold()), None)
    if found is None:
        hint = did_you_mean(wanted, known) or ". The setting agent.personalities defines them."
        return CommandReply(reply=f"There is no personality {wanted!r}{hint}", failed=True)
    yield from create_session(command)
    yield from sessions.set_personality(session, found)
    return CommandReply(reply=f"The personality is {found}, from the next message on.")


def context(command: CommandContext) -> Work[CommandReply]:
    """Shows the size of each part that is sent to the model with the next message."""
    used = yield from context_use(str(command.session), command.find_model)
    if not used.parts:
        return CommandReply(reply="Nothing yet: the prompt is written with the next message.")
    lines = [f"{part.name}: {part.tokens:,} tokens" for part in used.parts]
    total = f"together about {used.tokens:,} of {used.window:,} ({used.share:.0%})"
    return CommandReply(reply="\n".join([*lines, total]))


def usage(command: CommandContext) -> Work[CommandReply]:
    """Shows how many tokens the finished steps of the conversation have used."""
    session = str(command.session)
    row = yield from sessions.find(session)
    found = yield from conversation_usage(session, row.generation if row else 0)
    used = found.used
    if not found.turns:
        return CommandReply(reply="This conversation has used no tokens yet.")
    cached = f" ({used.cached_tokens:,} of them cached)" if used.cached_tokens else ""
    cost = f" They cost ${used.cost:.4f}." if used.cost else ""
    return CommandReply(
        reply=f"This conversation has used {used.prompt_tokens:,} input tokens{cached} and"
        f" {used.completion_tokens:,} output tokens in {counted(found.turns, 'turn')}.{cost}"
    )


def model_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(
            name="model",
            usage="[NAME]",
            help="show or change the model of this conversation",
            action=model,
            group="model",
        ),
        SlashCommand(
            name="reasoning",
            usage="[EFFORT]",
            help="show or change the reasoning effort of this conversation",
            action=reasoning,
            group="model",
        ),
        SlashCommand(
            name="personality",
            usage="[NAME]",
            help="show or change the personality of this conversation",
            action=personality,
            group="model",
        ),
        SlashCommand(
            name="context",
            help="show the parts of the context and their sizes",
            action=context,
            group="model",
        ),
        SlashCommand(
            name="usage",
            help="show the tokens and the cost of this conversation",
            action=usage,
            group="model",
        ),
    )
