"""The migration that adds the tables of approvals."""

APPROVALS = (
    "m018_approvals",
    """
-- Questions get more outcomes, and what an approval permits: the text that was shown, and the hash
-- of the action without its session.
create table new_questions (
    id text primary key, turn text not null, call text not null, session text not null,
    agent text not null, person text, kind text not null, prompt text not null,
    choices blob not null, digest text not null,
    state text not null check (state in (
        'open', 'approved', 'denied', 'expired', 'undelivered', 'cancelled', 'answered'
    )),
    answer text, decided_by text, asked_at real not null, expires_at real not null,
    decided_at real, detail text not null default '', lasting_digest text not null default '',
    -- The name of the person who has decided, and the delivery whose messages show the question as
    -- open. Null if no message that can be edited shows it so.
    decided_name text, shown_in text
);
insert into new_questions (id, turn, call, session, agent, person, kind, prompt, choices, digest,
    state, answer, decided_by, asked_at, expires_at, decided_at)
select id, turn, call, session, agent, person, kind, prompt, choices, digest,
    state, answer, decided_by, asked_at, expires_at, decided_at from questions;
drop table questions;
alter table new_questions rename to questions;
create index questions_turn on questions (turn);
create index questions_open on questions (expires_at) where state = 'open';
create index questions_asked on questions (person) where state = 'open' and kind = 'approval';
-- Actions that a person has approved for a conversation, or for good if the session is null.
create table approval_rules (
    id text primary key, agent text not null, person text not null, session text,
    digest text not null, detail text not null, granted_by text not null, granted_at real not null
);
create unique index approval_rules_digest on approval_rules (agent, person, digest);
create index approval_rules_session on approval_rules (session) where session is not null;
""",
)
