"""Holds the conversation of a turn (its prompt and its history), and shortens it if it is too
long."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from hermes.core.compaction import (
    PASSES,
    Compactor,
    MessageRange,
    choose_range,
    last_request,
    range_on_request,
)
from hermes.core.conversation_record import ConversationRecord
from hermes.core.prompt import PromptWriter, ephemeral
from hermes.core.window import (
    EstimateCorrection,
    Window,
    attachment_tokens,
    message_tokens,
    tokens,
    tokens_in_bytes,
)
from hermes.types.client_tools import ToolChoice
from hermes.types.errors import HermesError
from hermes.types.events import (
    AgentEvent,
    ContextCompacted,
    Notice,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    UsageReported,
)
from hermes.types.messages import AssistantMessage, Message, Sampling, ToolMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Checkpoint, Emit
from hermes.types.tools import AnyTool
from hermes.types.turns import Prompt, Turn

WINDOW_REDUCTION = 0.8
GROWTH_SHARE = 0.1
"""If a conversation could not be shortened enough, the next attempt is made after it has grown by
this share of the window."""


class ModelConversation:
    """Holds the history of one run and creates the model requests."""

    def __init__(
        self,
        turn: Turn,
        choice: ModelChoice,
        tools: Mapping[str, AnyTool],
        window: Window,
        emit: Emit,
        checkpoint: Checkpoint,
    ) -> None:
        self.turn = turn
        self.choice = choice
        self.tools = tools
        self._tools = tuple(tools.values())
        self.history: list[Message] = list(turn.history)
        self.recalled = ""
        """Text from earlier conversations that is relevant to the last request."""
        self._window = window
        self._emit = emit
        self._checkpoint = checkpoint
        self._ephemeral = ephemeral(turn)
        self._sampling = _sampling(turn, choice)
        self._prompt: Prompt | None = None
        self._correction = EstimateCorrection()
        self._gave_up = False
        self._retry_size = 0
        """If the last summary did not shorten the conversation enough, the next summary is
        attempted when the conversation has this number of tokens."""
        self._counted: int | None = None
        """Number of tokens of the history; None until the tokens have been counted."""
        # The stored size in bytes gives an upper bound for the number of tokens. For most histories
        # this bound is far below the limit, so their tokens need not be counted.
        new = message_tokens(turn.history[-1]) if turn.size and turn.history else 0
        self._upper_bound = new + tokens_in_bytes(turn.size) + _attachment_tokens(turn.history[:-1])
        self._name = str(turn.session)
        self._client_tools = sum(
            len(tool.name) + len(tool.description) + len(tool.parameters)
            for tool in turn.client_tools
        )

    async def begin(self, prompt_writer: PromptWriter) -> None:
        """Sets the prompt. The session's prompt is used again if it was made for the same model,
        tools, chat and audience. Otherwise, a new prompt is written."""
        self._prompt = await prompt_writer.prompt(self.turn, self.choice, self.tools)
        if self._prompt is not self.turn.prompt:
            self._checkpoint.prompted(self._prompt)

    def add(self, *messages: Message) -> None:
        self.history += messages
        more = sum(map(message_tokens, messages))
        self._upper_bound += more
        if self._counted is not None:
            self._counted += more

    def answer(self, results: Sequence[ToolMessage]) -> None:
        """Adds results of the last step, and sorts all results of this step in the order of their
        calls. Some results may have been added before a restart."""
        self.add(*results)
        places = reversed(range(len(self.history)))
        made = next(i for i in places if isinstance(self.history[i], AssistantMessage))
        said = self.history[made]
        assert isinstance(said, AssistantMessage)
        found = {one.call: one for one in self.history[made:] if isinstance(one, ToolMessage)}
        self.history[made + 1 :] = [found[call.id] for call in said.calls if call.id in found]

    def request(self, step: int, more: Sequence[Message] = ()) -> ModelRequest:
        """Returns the next request to the model. `more` is added after the history, for this
        call only."""
        assert self._prompt is not None, "begin was not called"
        wanted = self.turn.response_format
        return ModelRequest(
            choice=self.choice,
            system=self._prompt.text,
            ephemeral=self._ephemeral,
            messages=(*self.turn.profile.prefill, *self._with_recalled(), *more),
            step=f"{self.turn.id}_{step}",
            tools=(*self._tools, *self.turn.client_tools),
            tool_choice=self._tool_choice(step),
            sampling=self._sampling,
            response_format=wanted,
            live=self.turn.live and wanted is None,
            conversation=self._name,
        )

    def _tool_choice(self, step: int) -> ToolChoice:
        """Returns the request's tool choice for the first model call of the request, and the
        default choice for later model calls."""
        choice = self.turn.tool_choice
        return choice if step == self.turn.requested_at else ToolChoice(parallel=choice.parallel)

    def emit(self, event: AgentEvent) -> None:
        """Emits an event from the model. If the event reports the usage, also corrects the estimate
        of the conversation's size."""
        if isinstance(event, UsageReported) and self._counted is not None:
            self._correction.learn(self._estimate(), event.prompt_tokens)
        # Structured output is held back until its format has been checked.
        held = (TextDelta, SegmentEnded, SegmentDiscarded)
        if self.turn.response_format is None or not isinstance(event, held):
            self._emit(event)

    def say(self, text: str) -> None:
        """Emits the text of an answer that was held back until its format was checked."""
        self._emit(TextDelta(text=text))
        self._emit(SegmentEnded())

    def is_long(self) -> bool:
        limit = self._window.limit
        if limit is None or self._gave_up:
            return False
        if (
            self._counted is None
            and self.turn.size
            and self._fixed() + self._upper_bound < limit // 2
        ):
            return False
        return self._size() > max(limit, self._retry_size)

    def reduce_window(self) -> None:
        """Assumes a smaller window, after the model reported that the request was too long."""
        self._window = Window.of(int(self._size() * WINDOW_REDUCTION), None, self._window.threshold)

    async def compact(self, compactor: Compactor, prompt_writer: PromptWriter) -> bool:
        """Summarises messages until the conversation is short enough or can't be shortened further.
        Returns whether it became shorter."""
        changed = False
        self._retry_size = 0
        for _ in range(PASSES):
            cut = choose_range(self.history, self._window) if self.is_long() else None
            if cut is None or not await self._summarise(compactor, cut):
                break
            changed = True
        if changed:
            await self._renew_prompt(prompt_writer)
        if self.is_long():
            self._retry_size = self._size() + int(self._window.room * GROWTH_SHARE)
        return changed

    async def compact_on_request(self, compactor: Compactor, prompt_writer: PromptWriter) -> None:
        """If a person has requested a summary, summarises once, even if the conversation is
        short."""
        cut = range_on_request(self.history) if self.turn.summarise else None
        if cut is not None and await self._summarise(compactor, cut):
            await self._renew_prompt(prompt_writer)

    async def _renew_prompt(self, prompt_writer: PromptWriter) -> None:
        """Writes a new prompt after a summary. The new prompt contains the newest notes."""
        self.turn = replace(self.turn, prompt=None)
        await self.begin(prompt_writer)

    async def _summarise(self, compactor: Compactor, cut: MessageRange) -> bool:
        """Replaces the messages in the range by a summary. Returns whether that was possible."""
        found = self.history[cut.first : cut.last]
        try:
            summary = await compactor.summary(self.choice, found, self._window, self._emit)
        except HermesError as error:
            self._gave_up = True
            self._emit(
                Notice(
                    text=f"This conversation could not be summarised ({error})."
                    " Nothing was dropped. /new begins a new one.",
                    lasting=True,
                )
            )
            return False
        untrusted = {tool.name for tool in self._tools if tool.untrusted}
        record = ConversationRecord(replace(self.turn, history=tuple(found)), untrusted)
        summary = replace(summary, trusted=not record.tainted)
        await self._checkpoint.compacted(cut.first, cut.last, summary)
        whole = self._history_tokens()
        self.history[cut.first : cut.last] = [summary]
        self._counted = whole + message_tokens(summary) - sum(map(message_tokens, found))
        self._emit(ContextCompacted(messages=len(found)))
        return True

    def _estimate(self) -> int:
        return self._fixed() + self._history_tokens()

    def _fixed(self) -> int:
        """Returns the number of tokens that each request contains in addition to the history."""
        assert self._prompt is not None, "begin was not called"
        said = tokens(self._prompt.text) + tokens(self._ephemeral) + tokens(self.recalled)
        return said + tokens_in_bytes(self._prompt.tools + self._client_tools)

    def _history_tokens(self) -> int:
        if self._counted is None:
            self._counted = sum(map(message_tokens, self.history))
        return self._counted

    def _size(self) -> int:
        return self._correction(self._estimate())

    def _with_recalled(self) -> Sequence[Message]:
        if not self.recalled:
            return self.history
        last = last_request(self.history)
        recalled = UserMessage(text=self.recalled)
        return (*self.history[:last], recalled, *self.history[last:])


def _sampling(turn: Turn, choice: ModelChoice) -> Sampling:
    """Returns the sampling options of the turn's model calls. If the model can't reason, the
    reasoning effort that a person has chosen is left out."""
    if turn.reasoning is None or turn.sampling.reasoning_effort:
        return turn.sampling
    if choice.quirks.reasoning == "none":
        return turn.sampling
    return replace(turn.sampling, reasoning_effort=turn.reasoning)


def _attachment_tokens(messages: Sequence[Message]) -> int:
    """Estimates the number of tokens of the attachments. The stored size of a history does not
    include its attachments."""
    return sum(
        attachment_tokens(one)
        for message in messages
        if isinstance(message, UserMessage)
        for one in message.attachments
    )
