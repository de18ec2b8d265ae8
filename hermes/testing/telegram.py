"""A strict fake of Telegram's Bot API, over real HTTP on this machine.

The fake refuses the same calls as Telegram, with Telegram's descriptions. Unlike Telegram, it also
sends the messages of a bot back to all bots as updates, as other platforms do.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import msgspec
from aiohttp import web
from msgspec.structs import replace

from hermes.testing.telegram_bots import (
    FakeBot,
    answer_query,
    mentions,
    update_number,
    update_sender,
)
from hermes.testing.telegram_checks import checked_keyboard, formatted_text, read_parameters
from hermes.testing.telegram_http import call_parameters, fail_call, refused_call
from hermes.testing.telegram_parameters import (
    FILE_FIELDS,
    AnswerCallbackQuery,
    EditMessageText,
    GetFile,
    GetUpdates,
    NoParameters,
    SendChatAction,
    SendFile,
    SendMessage,
    SendMessageDraft,
    SetMessageReaction,
    SetMyCommands,
    SetWebhook,
)
from hermes.testing.telegram_records import (
    ApiCall,
    ApiObject,
    ApiRefusal,
    BotMessage,
    BotToken,
    ScriptedFailure,
)

TELEGRAM_LIMIT, CAPTION_LIMIT = 4096, 1024
DOWNLOAD_LIMIT = 20 * 1024 * 1024


class BotApiServer:
    """The server, its chats and its bots."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[ApiCall] = []
        self.messages: dict[tuple[int, int], BotMessage] = {}
        self.actions: list[tuple[int, str]] = []
        """The pair (chat, action) of every call of `sendChatAction`."""
        self.reactions: dict[tuple[int, int], str] = {}
        """Maps (chat, message id) of each message of a person to the reaction that a bot shows on
        it; an empty text if there is no reaction."""
        self.has_drafts = False
        """Whether the server has the method `sendMessageDraft`."""
        self.drafts: list[tuple[int, int, str]] = []
        """The tuple (chat, id, text) of every draft."""
        self.files: dict[str, bytes] = {}
        """The files that people have sent, by file id."""
        self.failures: list[ScriptedFailure] = []
        """The ways in which the next calls fail, one for each call. Polls are not affected."""
        self.trouble: Callable[[], ScriptedFailure | None] = lambda: None
        """A function that the server calls before it answers a call, except polls. The function
        returns the way in which the call fails, or None if the call succeeds."""
        self.observe: Callable[[BotMessage], None] = lambda message: None
        """A function that is called with each message that a bot sends or edits."""
        self.upgraded: dict[int, int] = {}
        """Maps the id of a group that has become a supergroup to the id of the supergroup."""
        self.echoed = 0
        """Number of updates that have delivered a bot's own messages back to the bot."""
        self.impatient: list[ApiCall] = []
        """The calls that a bot made for a chat while the server refused all calls for this chat
        (`penalize`)."""
        self._penalties: dict[int, float] = {}
        self._chats: dict[int, ApiObject] = {}
        self._bots: dict[BotToken, FakeBot] = {}
        self._last_update = 1000
        self._last_message = 0
        self._runner: web.AppRunner | None = None

    def add_bot(self, token: BotToken, username: str) -> FakeBot:
        self._bots[token] = FakeBot(token, username)
        return self._bots[token]

    def add_chat(self, id: int, kind: str = "private", **more: object) -> None:
        """Creates a chat. `more` are further fields of the chat, such as `topics`, the ids of its
        forum topics."""
        self._chats[id] = {"id": id, "type": kind, **more}

    def says(self, chat: int, text: str = "", user: int = 7, **more: object) -> ApiObject:
        """Lets a person write to a chat. Returns the message, which all bots receive."""
        message = self._message(chat, self._person(user), **more)
        if text:
            message["text"] = text
        self._deliver("message", message)
        return message

    def edits(self, message: ApiObject, text: str) -> None:
        """Lets a person edit a message that `says` has returned."""
        edited = {**message, "text": text, "edit_date": int(time.time())}
        self._deliver("edited_message", edited)

    def presses(self, chat: int, label: str, user: int = 7, *, below: str = "") -> None:
        """Lets a person press the button with this label, below a message that contains the text
        `below`. If several messages match, the person presses the button of the newest message."""
        for message in reversed(self.messages.values()):
            rows = message.keyboard.inline_keyboard if message.keyboard else ()
            data = [one.callback_data for row in rows for one in row if one.text == label]
            if message.chat == chat and data and below in message.shown.text:
                break
        else:
            raise AssertionError(f"no message in {chat} has a button {label!r}")
        bot = self._bots[message.token]
        query = f"q{self._last_update}"
        bot.queries.add(query)
        pressed = {"id": query, "from": self._person(user), "data": data[0]}
        self._add(bot, "callback_query", {**pressed, "message": self._shown(message)})

    def texts(self, chat: int) -> list[str]:
        """The visible texts of the messages that bots have sent to a chat, oldest first."""
        return [one.shown.text for one in self.messages.values() if one.chat == chat]

    def redeliver(self, token: BotToken) -> None:
        """Delivers all updates from people to the bot a second time, with new update numbers."""
        for update in list(self._bots[token].received):
            kind = next(name for name in update if name != "update_id")
            content = update[kind]
            assert isinstance(content, dict)
            self._add(self._bots[token], kind, content, again=True)

    def forget_acknowledgements(self, token: BotToken) -> None:
        """Delivers all updates from people again, with their old update numbers, as if the bot had
        acknowledged none of them."""
        bot = self._bots[token]
        bot.pending = list(bot.received)
        bot.wake()

    def penalize(self, chat: int, seconds: float) -> None:
        """Refuses all calls for the chat for this number of seconds, as Telegram does after too
        many calls. This time is called a penalty window."""
        self._penalties[chat] = time.monotonic() + seconds

    def cut(self) -> None:
        """Cuts all open connections, so that the answers to the running calls are lost."""
        for connection in self._connections():
            if connection.transport is not None:
                connection.transport.abort()

    @property
    def connections(self) -> int:
        """Number of open HTTP connections."""
        return len(self._connections())

    def _connections(self) -> list[web.RequestHandler]:
        assert self._runner is not None
        assert self._runner.server is not None
        return self._runner.server.connections

    @asynccontextmanager
    async def running(self) -> AsyncIterator["BotApiServer"]:
        """Serves on a free port of this machine until the block ends."""
        app = web.Application(client_max_size=100 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path}", self._download)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, "127.0.0.1", 0)
            await site.start()
            port = self._runner.addresses[0][1]
            self.url = f"http://127.0.0.1:{port}"
            yield self
        finally:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        token, method = request.match_info["token"], request.match_info["method"]
        parameters: dict[str, object] = {}
        try:
            bot = self._bot(token)
            parameters = await call_parameters(request)
            failure = self._failure() if method != "getUpdates" else None
            if failure and not failure.done:
                await fail_call(request, failure)
            result = await self._called(bot, method, parameters)
            if failure:
                await fail_call(request, failure)
        except ApiRefusal as refusal:
            self._note(token, method, parameters, refusal.status)
            return refused_call(refusal)
        self._note(token, method, parameters, 200)
        return web.json_response({"ok": True, "result": result})

    def _failure(self) -> ScriptedFailure | None:
        return self.failures.pop(0) if self.failures else self.trouble()

    def _bot(self, token: BotToken) -> FakeBot:
        if token not in self._bots:
            raise ApiRefusal(401, "Unauthorized")
        return self._bots[token]

    def _note(
        self, token: BotToken, method: str, parameters: Mapping[str, object], status: int
    ) -> None:
        call = ApiCall(
            at=time.monotonic(), token=token, method=method, parameters=parameters, status=status
        )
        self.calls.append(call)

    async def _called(self, bot: FakeBot, method: str, parameters: ApiObject) -> object:
        if method == "getUpdates":
            return await self._get_updates(bot, read_parameters(parameters, GetUpdates))
        if "chat_id" in parameters:
            self._check_chat(bot, method, parameters)
        if method in FILE_FIELDS:
            return self._send_file(bot, method, parameters)
        methods: dict[str, Callable[[], object]] = {
            "getMe": lambda: bot.user,
            "setWebhook": lambda: bot.set_webhook(read_parameters(parameters, SetWebhook)),
            "deleteWebhook": lambda: bot.delete_webhook(read_parameters(parameters, NoParameters)),
            "sendMessage": lambda: self._send(bot, read_parameters(parameters, SendMessage)),
            "editMessageText": lambda: self._edit(
                bot, read_parameters(parameters, EditMessageText)
            ),
            "sendMessageDraft": lambda: self._draft(read_parameters(parameters, SendMessageDraft)),
            "setMyCommands": lambda: bot.set_menu(read_parameters(parameters, SetMyCommands)),
            "sendChatAction": lambda: self._act(read_parameters(parameters, SendChatAction)),
            "setMessageReaction": lambda: self._react(
                read_parameters(parameters, SetMessageReaction)
            ),
            "answerCallbackQuery": lambda: answer_query(
                bot, read_parameters(parameters, AnswerCallbackQuery)
            ),
            "getFile": lambda: self._get_file(read_parameters(parameters, GetFile)),
        }
        if method not in methods:
            raise ApiRefusal(404, "Not Found")
        return methods[method]()

    def _check_chat(self, bot: FakeBot, method: str, parameters: ApiObject) -> None:
        chat = int(str(parameters["chat_id"]))
        if chat not in self._chats:
            raise ApiRefusal(400, "Bad Request: chat not found")
        if moved := self.upgraded.get(chat):
            description = "Bad Request: group chat was upgraded to a supergroup chat"
            raise ApiRefusal(400, description, migrate_to_chat_id=moved)
        thread = parameters.get("message_thread_id")
        topics = self._chats[chat].get("topics", ())
        assert isinstance(topics, tuple)
        if thread is not None and int(str(thread)) not in topics:
            raise ApiRefusal(400, "Bad Request: message thread not found")
        rest = self._penalties.get(chat, 0.0) - time.monotonic()
        if rest > 0:
            self._note(bot.token, method, parameters, 429)
            self.impatient.append(self.calls.pop())
            seconds = int(rest) + 1
            raise ApiRefusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    async def _get_updates(self, bot: FakeBot, wanted: GetUpdates) -> list[ApiObject]:
        if bot.webhook is not None:
            raise ApiRefusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook"
                " to delete the webhook first",
            )
        bot.poller.cancel()
        # A request acknowledges all updates before its offset, so they are deleted here. An offset
        # that is much higher than the number of the last update deletes nothing.
        if wanted.offset <= self._last_update + 10:
            bot.pending = [one for one in bot.pending if update_number(one) >= wanted.offset]
        with anyio.CancelScope() as bot.poller:
            bot.polls += 1
            try:
                with anyio.move_on_after(wanted.timeout):
                    while not bot.pending:
                        await bot.changed.wait()
            finally:
                bot.polls -= 1
            allowed = (*wanted.allowed_updates, "update_id")
            bot.pending = [one for one in bot.pending if set(one) <= set(allowed)]
            found = bot.pending[: wanted.limit]
            self.echoed += sum(update_sender(one) == bot.user for one in found)
            return found
        raise ApiRefusal(
            409,
            "Conflict: terminated by other getUpdates request; make sure that only one bot"
            " instance is running",
        )

    def _send(self, bot: FakeBot, wanted: SendMessage) -> ApiObject:
        message = BotMessage(
            id=self._next_message(),
            chat=wanted.chat_id,
            token=bot.token,
            thread=wanted.message_thread_id,
            source=wanted.text,
            shown=formatted_text(wanted.text, wanted.parse_mode, TELEGRAM_LIMIT),
            keyboard=checked_keyboard(wanted.reply_markup),
        )
        return self._keep(message)

    def _edit(self, bot: FakeBot, wanted: EditMessageText) -> ApiObject:
        message = self.messages.get((wanted.chat_id, wanted.message_id))
        if message is None:
            raise ApiRefusal(400, "Bad Request: message to edit not found")
        if message.token != bot.token or message.file is not None:
            raise ApiRefusal(400, "Bad Request: message can't be edited")
        shown = formatted_text(wanted.text, wanted.parse_mode, TELEGRAM_LIMIT)
        if (shown, checked_keyboard(wanted.reply_markup)) == (message.shown, message.keyboard):
            raise ApiRefusal(
                400,
                "Bad Request: message is not modified: specified new message content and reply"
                " markup are exactly the same as a current content and reply markup of the message",
            )
        changed = replace(
            message,
            source=wanted.text,
            shown=shown,
            keyboard=wanted.reply_markup,
            versions=(*message.versions, shown.text),
        )
        self.messages[changed.chat, changed.id] = changed
        self.observe(changed)
        return self._shown(changed)

    def _send_file(self, bot: FakeBot, method: str, parameters: ApiObject) -> ApiObject:
        field = FILE_FIELDS[method]
        file = parameters.pop(field, None)
        if not isinstance(file, web.FileField):
            raise ApiRefusal(400, f"Bad Request: there is no {field} in the request")
        wanted = read_parameters(parameters, SendFile)
        parameters[field] = file.filename
        message = BotMessage(
            id=self._next_message(),
            chat=wanted.chat_id,
            token=bot.token,
            thread=wanted.message_thread_id,
            source=wanted.caption,
            shown=formatted_text(wanted.caption, wanted.parse_mode, CAPTION_LIMIT, needed=False),
            file=file.filename,
        )
        return self._keep(message)

    def _draft(self, wanted: SendMessageDraft) -> bool:
        if not self.has_drafts:
            raise ApiRefusal(404, "Not Found")
        shown = formatted_text(wanted.text, wanted.parse_mode, TELEGRAM_LIMIT)
        self.drafts.append((wanted.chat_id, wanted.draft_id, shown.text))
        return True

    def _act(self, wanted: SendChatAction) -> bool:
        self.actions.append((wanted.chat_id, wanted.action))
        return True

    def _react(self, wanted: SetMessageReaction) -> bool:
        key = (wanted.chat_id, wanted.message_id)
        if key not in self.reactions:
            raise ApiRefusal(400, "Bad Request: message to react not found")
        self.reactions[key] = "".join(one.emoji for one in wanted.reaction)
        return True

    def _get_file(self, wanted: GetFile) -> ApiObject:
        data = self.files.get(wanted.file_id)
        if data is None:
            raise ApiRefusal(
                400, "Bad Request: wrong file_id or the file is temporarily unavailable"
            )
        if len(data) > DOWNLOAD_LIMIT:
            raise ApiRefusal(400, "Bad Request: file is too big")
        id = wanted.file_id
        return {"file_id": id, "file_unique_id": id, "file_size": len(data), "file_path": id}

    async def _download(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["path"])
        if request.match_info["token"] not in self._bots or data is None:
            raise web.HTTPNotFound
        return web.Response(body=data)

    def _keep(self, message: BotMessage) -> ApiObject:
        kept = replace(message, versions=(message.shown.text,))
        self.messages[kept.chat, kept.id] = kept
        self.observe(kept)
        self._deliver("message", self._shown(kept))
        return self._shown(kept)

    def _shown(self, message: BotMessage) -> ApiObject:
        found: ApiObject = {
            "message_id": message.id,
            "date": int(time.time()),
            "chat": self._chat(message.chat),
            "from": self._bots[message.token].user,
        }
        if message.thread is not None:
            found |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.keyboard is not None:
            found["reply_markup"] = msgspec.to_builtins(message.keyboard)
        found["caption" if message.file else "text"] = message.shown.text
        found["entities"] = mentions(message.shown.text)
        return found

    def _message(self, chat: int, sender: ApiObject, **more: object) -> ApiObject:
        number = self._next_message()
        self.reactions[chat, number] = ""
        place = {"message_id": number, "chat": self._chat(chat), "from": sender}
        return {**place, "date": int(time.time()), **more}

    def _chat(self, id: int) -> ApiObject:
        return {name: value for name, value in self._chats[id].items() if name != "topics"}

    def _person(self, id: int) -> ApiObject:
        return {"id": id, "is_bot": False, "first_name": f"Person {id}"}

    def _next_message(self) -> int:
        self._last_message += 1
        return self._last_message

    def _deliver(self, kind: str, content: ApiObject) -> None:
        for bot in self._bots.values():
            self._add(bot, kind, content)

    def _add(self, bot: FakeBot, kind: str, content: ApiObject, *, again: bool = False) -> None:
        self._last_update += 1
        update: ApiObject = {"update_id": self._last_update, kind: content}
        bot.pending.append(update)
        if not update_sender(update).get("is_bot") and not again:
            bot.received.append(update)
        bot.wake()
