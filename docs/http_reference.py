"""Makes the reference page of the HTTP API: requests, headers, fields, events, errors, limits."""

import textwrap
from collections.abc import Iterator
from http import HTTPStatus

from docs.error_codes import error_codes
from docs.field_tables import Struct, field_rows, struct_text
from docs.tables import table
from hermes.entry.http.auth import DELAY_SECONDS, DELAYED, FORGET_SECONDS, GUESSES
from hermes.entry.http.chat_completions import EARLY_SECONDS, HEADER
from hermes.entry.http.chat_request import ChatCompletionRequest
from hermes.entry.http.client_tools import MOST_TOOL_BYTES, MOST_TOOLS
from hermes.entry.http.connection import HEADER_BYTES, PIPELINED
from hermes.entry.http.connections import ClientLimits
from hermes.entry.http.content_parts import (
    LARGEST_ATTACHMENT,
    MOST_ATTACHED_BYTES,
    MOST_ATTACHMENTS,
    MOST_PARTS,
)
from hermes.entry.http.errors import ErrorResponseBody
from hermes.entry.http.health import Health, Readiness
from hermes.entry.http.middleware import WHOLE_BODY_SECONDS
from hermes.entry.http.models import ModelListing
from hermes.entry.http.request_limits import MOST_REQUEST_MESSAGES
from hermes.entry.http.run_approvals import ApprovalRequestBody, ApprovalResponse
from hermes.entry.http.server import OPEN, ROUTES
from hermes.entry.http.sse import KEEPALIVE_SECONDS
from hermes.streaming.wire import (
    Chunk,
    Completion,
    ErrorChunk,
    NoticeUpdate,
    RunEvent,
    ToolUpdate,
)

REQUEST_HEADERS = {
    "Authorization": "`Bearer KEY`. The scheme may be written in any case.",
    "X-Hermes-Session-Id": f"The session of the conversation: 1 to {HEADER} printable characters of"
    " your choice. Without it a request is stateless.",
    "Idempotency-Key": f"Makes a request safe to repeat: 1 to {HEADER} printable characters. A"
    " repeat gets the answer of the first request. A request with results of client tools is safe"
    " to repeat without it.",
    "Last-Event-ID": "On `GET /v1/runs/{run_id}/events`: the id of the last event that you have."
    " The query parameter `after` means the same.",
    "X-Request-Id": "Your id for this request, of up to 128 letters, digits and `._:/+=-`. If the"
    " id is missing or not valid, the gateway makes an id.",
    "Content-Type": "Not checked: a body is always read as JSON.",
    "Content-Length": "The size of the body, or else send `Transfer-Encoding: chunked`.",
    "Transfer-Encoding": "`chunked`, for a body whose size is not known in advance.",
    "Host": "Required, exactly once. A server that listens on a loopback address accepts only its"
    " own name and loopback names, so that a web page can't reach it under another name.",
    "Origin": "Sent by browsers. Pages of `api_server.cors_origins` may call the API; all other"
    " pages are refused.",
    "Access-Control-Request-Headers": "Sent by browsers with `OPTIONS`: the headers that a page"
    " wants to send.",
}
RESPONSE_HEADERS = {
    "X-Request-Id": "The id of the request. If the request fails, the log contains this id."
    " An error for a request that the gateway can't read has no id.",
    "X-Hermes-Run-Id": "The id of the run, on answers, errors of a run, and run events.",
    "X-Hermes-Session-Id": "The session, if the request named one.",
    "X-Hermes-Ignored": "Names of fields of the request that had no effect.",
    "Retry-After": "Seconds to wait before the next attempt. Every 429 has it; other errors have it"
    " where the time is known.",
    "Connection": "`close`, if the gateway does not read the rest of the request.",
    "Content-Type": "`application/json`, or `text/event-stream; charset=utf-8` for a stream.",
    "Content-Length": "The size of the body; a stream has `Transfer-Encoding: chunked` instead.",
    "Cache-Control": "`no-store`; `no-cache` for a stream.",
    "X-Accel-Buffering": "`no` for a stream, so that nginx passes it on at once.",
    "X-Content-Type-Options": "`nosniff`, on JSON responses.",
    "Content-Security-Policy": "Forbids browsers to run or frame anything, on JSON responses.",
    "Access-Control-Allow-Origin": "The origin of the page, if it may call the API.",
    "Access-Control-Expose-Headers": "The headers that the page may read.",
    "Access-Control-Allow-Methods": "The methods that the page may use; on `OPTIONS`.",
    "Access-Control-Allow-Headers": "The headers that the page may send; on `OPTIONS`.",
    "Access-Control-Max-Age": "How long a browser may remember the answer to `OPTIONS`.",
    "Vary": "`Origin`, on responses to pages.",
}
ERRORS = {
    "agent_error": "The turn failed for a reason that has no code of its own; the log says why.",
    "attachment_too_large": "A file, or all files of the request together, are too large.",
    "approval_not_pending": "The run does not wait for this decision. Or it waits for several, and"
    " the request names none of them; the message lists their ids.",
    "audio_not_supported": "The model does not accept audio.",
    "auth_failed": "The model's provider refused its key, or requires payment: see the settings.",
    "body_timeout": "The rest of the body did not arrive in time.",
    "body_too_large": "The body is larger than `api_server.max_body_bytes`.",
    "budget": "The turn used all its steps (`agent.max_turns`) without an answer.",
    "config_error": "A setting is wrong or missing, such as the model; the message says which.",
    "content_filter": "The provider's content filter blocked the whole answer.",
    "context_length_exceeded": "The messages are too long for the model. Send fewer messages, or"
    " use a session, in which the gateway summarises earlier messages.",
    "deadline": "The turn took longer than `agent.turn_timeout`.",
    "disconnected": "The model's provider could not be reached, or its answer was interrupted.",
    "empty_answer": "The model gave an empty answer.",
    "empty_attachment": "A file has no content.",
    "file_id_not_supported": "Files can't be uploaded: send the content in `file_data`.",
    "files_not_supported": "The model does not accept files.",
    "folder_unavailable": "No running gateway has the files of the session. Repeat the request when"
    " the gateway that the message names runs again.",
    "foreign_host": "The `Host` header is not a name of this local server.",
    "foreign_origin": "The web page is not in `api_server.cors_origins`.",
    "gateway_draining": "The gateway is shutting down. Repeat the request after the restart.",
    "gateway_restarting": "The gateway stopped during the run, and continues the run after its"
    " restart. Read the events of the run, or repeat the request.",
    "header_too_large": "The request line and the headers are too large.",
    "idempotency_key_conflict": "The key was used for another request or in another session.",
    "images_not_supported": "The model does not accept images.",
    "internal_error": "A defect of the gateway; the log has a traceback with the request id.",
    "invalid_api_key": "The key is missing or wrong.",
    "invalid_approval_choice": "The `choice` is not a decision, or the action can't be approved for"
    " longer.",
    "invalid_base64": "The content of a file is not valid base64.",
    "invalid_content_length": "The `Content-Length` header is not a number.",
    "invalid_data_url": "A file is not a data URL in base64.",
    "invalid_header": "A header has several values, is too long, or is not a number although a"
    " number is needed; `param` names the header.",
    "invalid_host": "The `Host` header is missing, or the request has several `Host` headers.",
    "invalid_http": "The request is not valid HTTP.",
    "invalid_json": "The body is not valid JSON.",
    "invalid_json_schema": "The schema of `response_format` can't be used; the message says why.",
    "invalid_request": "A field is missing, or a field or query parameter has a wrong value;"
    " `param` names it.",
    "invalid_role": "A message has an unknown `role`.",
    "invalid_structured_output": "The model's answer did not have the requested form, also at the"
    " second attempt.",
    "invalid_tool": "A tool has an invalid name or invalid parameters, or two have the same name.",
    "loop": "The agent made the same call again and again without a new result.",
    "media_type_mismatch": "The content of a file does not have the type that the request states.",
    "method_not_allowed": "The path needs another method; the message names this method.",
    "missing_tool_results": "Some tool calls have no result. Send the results of all calls of a"
    " step at once.",
    "mixed_tool_results": "The tool results answer calls of different steps.",
    "model_not_found": "There is no agent or model of this name, or its provider has no"
    " key; see `GET /v1/models`.",
    "not_found": "The path does not exist.",
    "output_truncated": "The answer was cut off at the limit of output tokens. Raise `max_tokens`.",
    "question_expired": "A question of the same step expired. Send the results without further"
    " messages.",
    "question_open": "A question is open in the same step. Send the results without further"
    " messages, then answer the question.",
    "rate_limit_exceeded": "More requests are running than `api_server.max_concurrent_runs`.",
    "rate_limited": "The model's provider requests a pause.",
    "refused": "403: the message was not admitted. 400: the model refused to answer in the"
    " requested form.",
    "rejected": "The model's provider refused the request, and a repeat does not help; the message"
    " says why.",
    "repeated_tool_call": "Two tool calls of the history have the same id.",
    "repeated_tool_result": "A tool call has two results.",
    "run_not_found": "There is no run of this id, or it belongs to another key.",
    "segment_discarded": "Only in a stream: text that was already sent is void, because the model"
    " call was interrupted. Read the events of the run, or repeat the request.",
    "stopped": "Somebody stopped the run before it had an answer.",
    "store_unavailable": "The database can't be used, for example because the disk is full."
    " Nothing was accepted.",
    "too_many_attachments": f"A request can have at most {MOST_ATTACHMENTS} files.",
    "too_many_connections": "Every connection that the gateway can have is in use.",
    "too_many_messages": f"A request can have at most {MOST_REQUEST_MESSAGES:,} messages.",
    "too_many_requests": "Too many requests wait on one connection.",
    "too_many_tools": f"A request can have at most {MOST_TOOLS} tools.",
    "too_many_wrong_keys": "This address has sent too many wrong keys.",
    "tool_call_closed": "The turn of the tool call has ended, or continued without the result.",
    "tool_call_expired": "The result came later than `agent.client_tool_timeout` allows.",
    "tool_results_conflict": "Other results were sent for the same calls before.",
    "tool_results_expired": "The run waited for results of client tools longer than"
    " `agent.client_tool_timeout`.",
    "tools_not_supported": "The request declares tools, but the model can't use tools.",
    "tools_too_large": f"The tools are larger than {MOST_TOOL_BYTES // 1024} kB together.",
    "unknown_tool_call": "A result has the id of a call that does not exist, belongs to another key"
    " or session, or does not wait for a result.",
    "unreadable": "The stored messages of the turn are damaged. Send the message again.",
    "unsupported_content_type": "A content part has a type that is not supported, or that only user"
    " messages can have.",
    "unsupported_media_type": "A file has a type that is not accepted.",
    "unsupported_parameter": "`n` is greater than 1.",
    "unsupported_tool_choice": "`tool_choice` is none of the supported values.",
    "unsupported_tool_type": "Only tools of the type `function` are supported.",
    "url_not_fetched": "The URL of an image can't be fetched: it is not public, too large, or"
    " nothing answers there.",
    "videos_not_supported": "The model does not accept videos.",
    "webhook_busy": "Too many messages of a platform wait to be stored; deliver it again.",
}
"""The meaning of each error code."""
FIELDS = ("field", "value", "meaning")
"""The column titles of a table of fields."""


def http_page() -> Iterator[str]:
    yield from (
        "# HTTP API",
        "",
        "The API follows OpenAI's chat completions. The"
        " [guide for the openai SDK](../guides/openai-sdk.md)",
        "explains sessions, client tools, JSON answers and files; this page lists everything.",
        "The base URL is `http://127.0.0.1:8642/v1`, unless `api_server.host` and",
        "`api_server.port` say otherwise.",
        "",
        "## Requests",
        "",
    )
    rows = [
        (f"`{method} {path}`", "no" if path in OPEN else "yes", text)
        for method, path, text in ROUTES
    ]
    yield from table(("request", "key", "answer"), rows)
    yield from (
        "",
        "If a request needs a key, send `Authorization: Bearer KEY`. The key is the setting",
        "`api_server.key`, or else the content of the file `api_server.key` in the home.",
        "`HEAD` works wherever `GET` does. A chat platform in webhook mode adds a path of its own,",
        "which needs no key, because the platform signs its requests.",
        "",
    )
    yield from _headers()
    yield from _bodies()
    yield from _streams()
    yield from _approvals()
    yield from _errors()
    yield from ("## Limits", "")
    yield from table(("subject", "limit", "beyond it"), list(_limits()))


def _headers() -> Iterator[str]:
    for title, headers in (
        ("Request headers", REQUEST_HEADERS),
        ("Response headers", RESPONSE_HEADERS),
    ):
        yield from (f"## {title}", "")
        yield from table(
            ("header", "meaning"), [(f"`{name}`", text) for name, text in headers.items()]
        )
        yield ""


def _bodies() -> Iterator[str]:
    yield from _fields(
        "POST /v1/chat/completions: the request",
        ChatCompletionRequest,
        "Only `messages` is required. Fields that are not in this table have no effect, and the"
        " header `X-Hermes-Ignored` names them.",
    )
    yield from _fields(
        "POST /v1/chat/completions: the answer",
        Completion,
        "Status 200. `tool_calls` is absent if there are none.",
    )
    yield from _fields(
        "GET /v1/models", ModelListing, "`GET /v1/models/{model_id}` returns one item of `data`."
    )
    yield from _fields("GET /health and GET /v1/health", Health, "Status 200.")
    yield from _fields(
        "GET /ready",
        Readiness,
        "Status 200, or 503 if the gateway accepts no messages at the moment. If a chat account is"
        " down, the status is 200 and `degraded`, because the API and the other accounts work.",
    )


def _approvals() -> Iterator[str]:
    path = "POST /v1/runs/{run_id}/approval"
    yield from _fields(
        f"{path}: the request",
        ApprovalRequestBody,
        "Decides about an action that the run waits to do. The event `approval.request` has the id"
        " of the approval and the possible choices. The run then goes on without a reader: read its"
        " events after the last one that you have.",
    )
    yield from _fields(
        f"{path}: the answer",
        ApprovalResponse,
        "Status 200, after the decision is stored.",
    )


def _streams() -> Iterator[str]:
    yield from _fields(
        "Streams: chunks",
        Chunk,
        "With `stream: true` the answer is a stream of server-sent events. The data of an event is"
        " a chunk, and the id of the event is its number in the run. After the last chunk comes"
        f" `data: [DONE]`. After {KEEPALIVE_SECONDS:g} seconds of silence the comment"
        f" `: keepalive` is sent. A run that fails within {EARLY_SECONDS:g} seconds, before its"
        " first event, has an error status instead of a stream.",
    )
    for name, news in (("hermes.tool.progress", ToolUpdate), ("hermes.notice", NoticeUpdate)):
        yield from _fields(
            f"Streams: the event `{name}`",
            news,
            f"{struct_text(news)} The event has a name. It is also a chunk without text, so that"
            " clients which ignore names can read it. Besides the fields of a chunk it has:",
        )
    yield from _fields(
        "Streams: errors",
        ErrorChunk,
        "A run that fails after its first event ends the stream with this event, followed by"
        " `data: [DONE]`.",
    )
    yield from (
        "## GET /v1/runs/{run_id}/events",
        "",
        "Streams the events of the run, from the first event or from the event after",
        "`Last-Event-ID`. The request works during the run, after a restart of the gateway, and",
        "until `retention.stateless_hours` after the end of the run. The stream ends with the run.",
        "The ids of the events rise, with gaps. The data of every event has the fields `event`,",
        "which is the name of the event, and `run_id`.",
        "",
    )
    for event in RunEvent.__subclasses__():
        yield from (f"### `{event.__struct_config__.tag}`", "", struct_text(event), "")
        if rows := [row for row in field_rows(event) if row[0] != "`run_id`"]:
            yield from (*table(FIELDS, rows), "")


def _errors() -> Iterator[str]:
    yield from _fields(
        "Errors",
        ErrorResponseBody,
        "An error has a status from 400 on and this body. Compare the `code`; messages may change.",
    )
    rows = sorted((statuses, code) for code, statuses in error_codes().items())
    yield from table(
        ("status", "code", "meaning"),
        [(_statuses(statuses), f"`{code}`", ERRORS[code]) for statuses, code in rows],
    )
    yield ""


def _statuses(statuses: list[int]) -> str:
    if len(statuses) > 1:
        return " or ".join(map(str, statuses))
    return f"{statuses[0]} {HTTPStatus(statuses[0]).phrase}"


def _fields(title: str, struct: Struct, text: str) -> Iterator[str]:
    yield from (f"## {title}", "", *textwrap.wrap(text, 100, break_on_hyphens=False), "")
    yield from (*table(FIELDS, field_rows(struct)), "")


def _limits() -> Iterator[tuple[str, str, str]]:
    """Yields each limit for clients, and what happens to a client that exceeds it."""
    limits = ClientLimits()
    yield "request line and headers", f"{HEADER_BYTES // 1024} kB", "431, and the connection closes"
    yield "body", "`api_server.max_body_bytes`", "413"
    yield "messages of a request", f"{MOST_REQUEST_MESSAGES:,}", "400"
    yield "content parts of a message", f"{MOST_PARTS:,}", "400"
    yield "files of a request", f"{MOST_ATTACHMENTS}", "400"
    yield (
        "bytes of a file, and of all files of a request",
        f"{LARGEST_ATTACHMENT:,} and {MOST_ATTACHED_BYTES:,}",
        "400",
    )
    yield "client tools of a request", f"{MOST_TOOLS}, {MOST_TOOL_BYTES // 1024} kB", "400"
    yield "requests that run at once", "`api_server.max_concurrent_runs`", "429"
    yield "seconds to complete a header", f"{limits.sending:g}", "the connection closes"
    yield (
        "seconds without a part of the body",
        f"{limits.body:g}",
        f"408; the whole body may take {WHOLE_BODY_SECONDS:g} s",
    )
    yield "seconds without a request", f"{limits.idle:g}", "the connection closes"
    yield (
        "seconds without reading a response",
        f"{limits.unread:g}",
        "the connection is reset; a stream can be resumed with `Last-Event-ID`",
    )
    yield "requests sent ahead on one connection", f"{PIPELINED}", "the connection is reset"
    yield (
        "connections",
        "half of the file descriptors of the process",
        "the connection that has been idle longest closes; if no connection is idle, 503",
    )
    yield (
        "wrong keys from one address",
        f"{GUESSES}; forgotten after {FORGET_SECONDS:g} s without a wrong key",
        f"each further wrong key gets 429 after {DELAY_SECONDS:g} s; at most {DELAYED} answers are"
        " delayed at a time, and others are sent at once",
    )
