"""Writes the log lines of messages and turns."""

import logging
import time

from hermes.control.turn_transactions import Claim
from hermes.text.redact import FixedFields
from hermes.types.events import UsageReported
from hermes.types.identity import SessionKey
from hermes.types.messages import Accepted, Edited, MessageEvent, Receipt, Refused
from hermes.types.turns import Completed, Failed, Outcome, Stopped, Suspended

log = logging.getLogger(__name__)

ACCEPTED_LINE = FixedFields("accepted message %(message_id)s of %(session)s for turn %(turn)s")
FINISHED = FixedFields(
    "turn %(turn)s of %(session)s %(outcome)s in %(seconds).1f s: %(steps)d steps,"
    " %(tokens_in)d tokens in, %(tokens_out)d out"
)
PRICED = FixedFields(f"{FINISHED}, $%(cost).4f")
ONE_STEP = {line: FixedFields(line.replace(" steps,", " step,")) for line in (FINISHED, PRICED)}
"""Maps each of the two log lines to the log line for a turn with a single step."""
FAILED_LINE = f"%(code)s: {FINISHED}: %(reason)s"
"""The log line for a turn that failed. The reason can contain any text, so the line has no
`FixedFields`."""


def log_receipt(event: MessageEvent, key: SessionKey, receipt: Receipt) -> None:
    """Logs a message that was accepted or refused. A repeated message is not logged again."""
    match receipt:
        case Accepted(id=id, turn=turn):
            if log.isEnabledFor(logging.INFO):
                log.info(
                    ACCEPTED_LINE, {"message_id": id, "session": str(key), "turn": turn or "none"}
                )
        case Refused(reason=reason):
            # Most of the refused edits change messages that are already answered. This is normal,
            # so a refused edit is logged at level DEBUG only.
            level = logging.DEBUG if isinstance(event.body, Edited) else logging.INFO
            log.log(level, "refused a message of %s: %s", event.source.account, reason)


def log_finished(claim: Claim, outcome: Outcome, steps: int, usage: UsageReported) -> None:
    """Logs a turn that has ended or waits for a person."""
    if not isinstance(outcome, Failed) and not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "turn": claim.turn.id,
        "session": claim.row.session,
        "outcome": _name(outcome),
        "seconds": round(time.time() - claim.row.started_at, 3),
        "steps": steps,
        "tokens_in": usage.prompt_tokens,
        "tokens_out": usage.completion_tokens,
    }
    if usage.cost is not None:
        fields["cost"] = usage.cost
    if isinstance(outcome, Failed):
        line = FAILED_LINE.replace(" steps,", " step,") if steps == 1 else FAILED_LINE
        # During a fault, every turn fails. So only one warning a minute is logged for each error
        # code, which is the first field.
        log.warning(line, {"code": outcome.code, **fields, "reason": outcome.reason})
        return
    line = FINISHED if usage.cost is None else PRICED
    log.info(ONE_STEP[line] if steps == 1 else line, fields)


def _name(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return "completed"
        case Suspended():
            return "suspended"
        case Stopped():
            return "stopped"
        case Failed():
            return "failed"
