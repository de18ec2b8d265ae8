"""What the model is told before the conversation."""

from hermes.types.turns import Turn

IDENTITY = (
    "You are Hermes, a helpful assistant. Answer plainly and briefly. Use the tools you are given"
    " when they help; say so when something did not work."
)


def system_prompt(turn: Turn) -> str:
    """The persona first, stable for the session; then what holds for this request only."""
    persona = turn.profile.soul or IDENTITY
    return f"{persona}\n\n{turn.instructions}" if turn.instructions else persona
