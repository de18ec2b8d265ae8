"""The usage of conversations: tokens and cost."""

from hermes.types.events import UsageReported
from hermes.types.store import Work
from hermes.types.value import Value


class ConversationUsage(Value):
    turns: int
    """Number of turns."""
    used: UsageReported
    """The sum of all turns. The cost is None if no price is known."""


def conversation_usage(session: str, generation: int) -> Work[ConversationUsage]:
    """Returns the usage of all turns of a conversation."""
    rows = yield (
        "select count(*), cast(sum(prompt_tokens) as bigint),"
        " cast(sum(completion_tokens) as bigint), cast(sum(cached_tokens) as bigint), sum(cost)"
        " from turns where id in (select turn from messages"
        " where session = ? and generation = ? and transient = 0)",
        (session, generation),
    )
    count, prompt, completion, cached, cost = rows[0]
    used = UsageReported(
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=cached or 0,
        cost=cost,
    )
    return ConversationUsage(turns=count, used=used)
