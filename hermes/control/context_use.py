"""Measures how much of a model's context window a session takes."""

from hermes.core.window import message_tokens, tokens, tokens_in_bytes
from hermes.state import sessions, transcript
from hermes.state.transcript import History
from hermes.text.quantity import counted
from hermes.types.agents import FindModel
from hermes.types.errors import ConfigError
from hermes.types.store import Work
from hermes.types.value import Value


class ContextPart(Value):
    """One part of the text that is sent to the model with the next message."""

    name: str
    tokens: int


class ContextUse(Value):
    """The estimated number of tokens of a session, and the size of its model's context window."""

    model: str = ""
    """Name of the model that answers the next message; empty if no model can be used."""
    window: int = 0
    """Tokens that the model can read and write in one call; 0 if unknown."""
    parts: tuple[ContextPart, ...] = ()
    """The parts of the context; empty for a new session, because its system prompt is only written
    with the first message."""

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def share(self) -> float:
        """The part of the window that is used, from 0 to 1."""
        return self.tokens / self.window if self.window else 0.0


def context_use(session: str, find_model: FindModel) -> Work[ContextUse]:
    """Estimates how many tokens the system prompt, the tools, the last summary and the messages
    after it take up."""
    row = yield from sessions.find(session)
    chosen = yield from sessions.model_of(session)
    prompt = (yield from sessions.prompt_of(row.prompt)) if row and row.prompt else None
    try:
        choice = find_model(chosen or "")
        model, window = choice.model, choice.window
    except ConfigError:
        model, window = "", prompt.window if prompt else 0
    if row is None or prompt is None:
        return ContextUse(model=model, window=window)
    known = History(generation=row.generation, compaction=row.compaction)
    messages = (yield from transcript.history(session, known)).messages
    parts = [ContextPart(name=part.name, tokens=tokens(part.text)) for part in prompt.parts]
    said = f"conversation ({counted(len(messages), 'message')})"
    return ContextUse(
        model=model,
        window=window,
        parts=(
            *parts,
            ContextPart(name="tools", tokens=tokens_in_bytes(prompt.tools)),
            ContextPart(name=said, tokens=sum(map(message_tokens, messages))),
        ),
    )
