"""The command /handoff, which moves a conversation to another chat of the same person."""

from hermes.state import access, deliveries, handover, session_lock, turns
from hermes.state.handover import PrivateChat
from hermes.types.commands import CommandContext, CommandReply
from hermes.types.identity import Target, person_of
from hermes.types.messages import Content
from hermes.types.store import Work


def handoff(command: CommandContext) -> Work[CommandReply]:
    """The argument names a platform or an account. Moves the conversation to the private chat that
    the person used last there."""
    wanted, session = command.argument.strip(), str(command.session)
    if command.session.kind != "private":
        return _fail("This conversation belongs to a group. /handoff works in private chats.")
    if not wanted:
        return _fail("Name the platform on which you continue, for example /handoff telegram.")
    chat = yield from _chat_of(command, wanted)
    if chat is None:
        return _fail(
            f"I know no private chat with you on {wanted}. Write to me there first. Then link your"
            " ids with `hermes people link`."
        )
    yield from session_lock.lock(chat.session)
    if (yield from turns.open_in(chat.session)) is not None:
        return _fail(f"I am still working in your chat on {chat.account}. Try again later.")
    title = yield from handover.hand_over(session, chat, command.now)
    if title is None:
        return _fail("There is no conversation here yet.")
    target = Target(account=chat.account, chat_id=chat.chat_id, thread_id=chat.thread_id)
    notice = Content(text=f"Your conversation “{title}” continues here.")
    yield from deliveries.owe(target, notice, command.session.agent, None, command.now)
    reply = f"“{title}” continues in your chat on {chat.account}. A new conversation begins here."
    return CommandReply(reply=reply, notified=target)


def _chat_of(command: CommandContext, wanted: str) -> Work[PrivateChat | None]:
    """Returns the private chat that the person used last on the platform or account."""
    linked = (yield from access.load_people()).linked
    for chat in (yield from handover.private_chats(command.session.agent, wanted)):
        id = (chat.platform, chat.user_id)
        own = linked.get(id, person_of(*id)) == command.person
        if own and chat.session != str(command.session):
            return chat
    return None


def _fail(reply: str) -> CommandReply:
    return CommandReply(reply=reply, failed=True)
