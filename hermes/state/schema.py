"""The tables, as numbered migrations. Never edit a released migration: append a new one.

Add few indexes, because each commit must write one more page for each index. Ids begin with a time,
so old rows can be found by id. The newest rows of a table are never deleted, so that their row
numbers are not reused.
"""

from hermes.state.approval_tables import APPROVALS

APPLICATION_ID = 0x48524D53
"""The `application_id` of our databases: `HRMS` in ASCII. Earlier versions did not set it."""
MIGRATIONS: list[tuple[str, str]] = []
"""The name and the script of each migration, in order. `pragma user_version` is the number of
migrations that have run."""


MIGRATIONS.append(
    (
        "m001_spine",
        """
create table owners (
    id text primary key, kind text not null, pid integer not null, started_at real not null
);
create table leases (
    name text primary key, owner text not null, epoch integer not null, taken_at real not null
);
create table sessions (
    key text primary key, agent text not null, platform text not null, account text not null,
    chat_kind text not null, chat_id text not null, thread_id text, user_id text, person text,
    generation integer not null default 0, title text,
    created_at real not null, updated_at real not null
);
create table inbox (
    seq integer primary key,
    id text not null unique, dedupe_key text not null unique, fingerprint text not null,
    session text not null, agent text not null, person text,
    account text not null, chat_id text not null, user_id text not null,
    state text not null check (state in ('pending', 'bound', 'done')),
    turn text, owner text, event blob not null, received_at real not null
);
create index inbox_pending on inbox (session, seq) where state = 'pending';

create table turns (
    id text primary key, session text not null, agent text not null, person text,
    account text not null, chat_id text not null,
    state text not null
        check (state in ('running', 'suspended', 'completed', 'stopped', 'failed')),
    owner text, epoch integer not null, trigger_kind text not null,
    transient integer not null, generation integer not null,
    steps integer not null default 0, seq integer not null default 0,
    shown integer not null default 0, stop_requested text, code text, reason text,
    prompt_tokens integer, completion_tokens integer,
    started_at real not null, finished_at real
) without rowid;
-- One open turn in a session: the rule that lanes, terminals and gateways all lean on.
create unique index one_open_turn on turns (session) where state in ('running', 'suspended');

create table messages (
    id integer primary key,
    session text not null, generation integer not null, turn text not null,
    step integer not null, idx integer not null, role text not null,
    body blob not null, text text not null, transient integer not null,
    agent text not null, person text, account text not null, chat_id text not null,
    at real not null,
    unique (turn, step, idx)
);
create index messages_session on messages (session, generation, id) where transient = 0;

create table calls (
    id text primary key, turn text not null, process blob, started_at real not null
);
create index calls_turn on calls (turn);

create table questions (
    id text primary key, turn text not null, call text not null, session text not null,
    agent text not null, person text, kind text not null, prompt text not null,
    choices blob not null, digest text not null,
    state text not null check (state in ('open', 'approved', 'denied', 'expired', 'answered')),
    answer text, decided_by text, asked_at real not null, expires_at real not null,
    decided_at real
);
create index questions_turn on questions (turn);
create index questions_open on questions (expires_at) where state = 'open';

create table deliveries (
    seq integer primary key, id text not null unique,
    turn text, session text, agent text not null,
    account text not null, chat_id text not null, thread_id text,
    state text not null
        check (state in ('open', 'ready', 'sending', 'delivered', 'dead')),
    content blob not null, placed blob not null, attempts integer not null default 0,
    not_before real not null default 0, doubtful integer not null default 0,
    error text, created_at real not null, finished_at real
);
create index deliveries_owed on deliveries (account, chat_id, seq)
    where state in ('ready', 'sending');
create index deliveries_turn on deliveries (turn) where state = 'open';
create table freezes (
    account text not null, chat_id text not null, until real not null,
    primary key (account, chat_id)
);

create table run_events (
    turn text not null, first_seq integer not null, last_seq integer not null,
    body blob not null, primary key (turn, first_seq)
) without rowid;

create table jobs (
    id text primary key, agent text not null, person text, name text not null,
    schedule text not null, timezone text not null, prompt text not null, target text,
    enabled integer not null, next_at real, owner text, epoch integer not null default 0,
    created_at real not null, updated_at real not null
);
create table access (
    platform text not null, user_id text not null, person text not null, role text not null,
    granted_by text not null, granted_at real not null,
    primary key (platform, user_id)
);

create virtual table messages_fts using fts5 (text, content = 'messages', content_rowid = 'id');
create trigger messages_index after insert on messages
    when new.transient = 0 and new.text <> '' begin
    insert into messages_fts (rowid, text) values (new.id, new.text);
end;
create trigger messages_unindex after delete on messages
    when old.transient = 0 and old.text <> '' begin
    insert into messages_fts (messages_fts, rowid, text) values ('delete', old.id, old.text);
end;
""",
    )
)


MIGRATIONS.append(
    (
        "m002_core",
        """
alter table sessions add column used_before real;
alter table sessions add column prompt text;
alter table sessions add column compaction integer not null default 0;
alter table turns add column cached_tokens integer;
alter table turns add column cost real;
alter table turns add column workspace text;

-- What a provider was told, so that an epoch's prompt stays the same across restarts.
create table prompts (hash text primary key, body blob not null) without rowid;
create table compactions (
    id integer primary key autoincrement, session text not null, generation integer not null,
    first integer not null, last integer not null, summary blob not null,
    turn text not null, at real not null
);
create index compactions_session on compactions (session, generation);
create table endings (
    session text not null, generation integer not null, ended_at real not null, taken_at real,
    primary key (session, generation)
) without rowid;
""",
    )
)


MIGRATIONS.append(
    (
        "m003_origin",
        """
-- Messages that wait for their turn are read again by this version, which wants their origin.
update inbox set event = cast(json_set(
    cast(event as text), '$.origin',
    case json_extract(cast(event as text), '$.source.platform')
        when 'api' then json_object('trigger', 'api',
            'principal', json_object('name', account, 'person', 'owner'))
        when 'cli' then json_object('principal', json_object('name', 'cli', 'person', 'owner'))
        when 'embedded' then
            json_object('principal', json_object('name', 'embedded', 'person', 'owner'))
        else json_object('reply_to', json_object(
            'account', account, 'chat_id', chat_id,
            'thread_id', json_extract(cast(event as text), '$.source.thread_id')))
    end
) as blob) where state <> 'done';
""",
    )
)


MIGRATIONS.append(
    (
        "m004_handles",
        """
-- The handle of a started command is text that only its execution backend understands. Earlier
-- rows have a process group as JSON, which becomes a handle of the local backend without boot id.
-- The column `process` stays: earlier versions of SQLite can't drop a column.
alter table calls add column handle text;
update calls set handle = 'local::' || json_extract(cast(process as text), '$.group') || ':'
    || json_extract(cast(process as text), '$.started') || ':' || id
    where process is not null;
""",
    )
)


MIGRATIONS.append(
    (
        "m005_cursors",
        """
-- The sync token or offset at which an account continues to read its platform.
create table cursors (account text primary key, value text not null) without rowid;
""",
    )
)


MIGRATIONS.append(
    (
        "m006_client_calls",
        """
-- Results of client tools resume a turn: their request replaces the options of the one before.
alter table turns add column request text;
-- The answer to such a request begins after this event of the turn.
alter table inbox add column after_seq integer not null default 0;
""",
    )
)


MIGRATIONS.append(
    (
        "m007_temporary_failures",
        """
-- Whether a turn failed for a reason that may be gone when its request is repeated.
alter table turns add column temporary integer not null default 0;
""",
    )
)


MIGRATIONS.append(
    (
        "m008_checksums",
        """
-- CRC-32 of the body beside it; null in rows of earlier versions, which are not checked.
alter table messages add column crc integer;
alter table inbox add column crc integer;
alter table compactions add column crc integer;
""",
    )
)


MIGRATIONS.append(
    (
        "m009_conversations",
        """
-- The model that a person has chosen for one session, as `provider/model`.
create table session_models (session text primary key, model text not null) without rowid;
-- Conversations that were ended with /new. The current one of a session is in its own row.
create table past_conversations (
    session text not null, generation integer not null, title text not null,
    created_at real not null, updated_at real not null, primary key (session, generation)
) without rowid;
insert into past_conversations (session, generation, title, created_at, updated_at)
    select said.session, said.generation,
        coalesce((select substr(first.text, 1, 60) from messages first
            where first.session = said.session and first.generation = said.generation
                and first.transient = 0 and first.role = 'user' order by first.id limit 1), ''),
        min(said.at), max(said.at)
    from messages said join sessions on sessions.key = said.session
    where said.transient = 0 and said.generation < sessions.generation
    group by said.session, said.generation;
""",
    )
)


MIGRATIONS.append(
    (
        "m010_heartbeats",
        """
-- When the process last wrote to the database, by the database's clock; null on SQLite, where the
-- lock file alone proves that a process is alive.
alter table owners add column beat_at real;
-- The backend that holds the process's lock, so that it can be ended.
alter table owners add column backend integer;
""",
    )
)


MIGRATIONS.append(
    (
        "m011_long_bodies",
        """
-- Long bodies are stored in pieces, named by a hash of the whole. SQLite would write a long body
-- again whenever another column of its row changes.
create table body_pieces (
    body text not null, idx integer not null, piece blob not null, primary key (body, idx)
);
alter table inbox add column body_name text;
alter table messages add column body_name text;
create index inbox_long on inbox (body_name) where body_name is not null;
create index messages_long on messages (body_name) where body_name is not null;
-- Requests that resumed a turn have the id of the turn, and are deleted with it.
create index inbox_resuming on inbox (turn) where turn <> id;
""",
    )
)


MIGRATIONS.append(
    (
        "m012_hosts",
        """
-- The name of the machine on which the process runs.
alter table owners add column host text not null default '';
""",
    )
)


MIGRATIONS.append(
    (
        "m013_folders",
        """
-- The id of the folder with the files that a conversation has used; null if it has used none.
alter table sessions add column folder text;
alter table past_conversations add column folder text;
alter table endings add column folder text;
-- The same for a turn, which may have no session.
alter table turns add column folder text;
-- The folder with the attachments of the message; null if it has none.
alter table inbox add column folder text;
-- The folder that the process has.
alter table owners add column folder text;
-- The process that used each folder last, so that people can be told where their files are.
create table folders (
    id text primary key, node text not null, host text not null, path text not null,
    used_at real not null
);
""",
    )
)


MIGRATIONS.append(
    (
        "m014_chats",
        """
-- The chats from which messages have come.
create table chats (
    account text not null, chat_id text not null, platform text not null, kind text not null,
    name text, seen_at real not null, primary key (account, chat_id)
) without rowid;
-- The chats to which nothing can be sent, because they are deleted or we were removed from them.
create table gone_chats (
    account text not null, chat_id text not null, reason text not null, since real not null,
    primary key (account, chat_id)
) without rowid;
-- The chat of each account in which /sethome was used last.
create table home_chats (
    account text primary key, chat_id text not null, thread_id text, set_at real not null
) without rowid;
-- The idempotency key of a message that is no answer to a turn.
alter table deliveries add column send_key text;
create unique index deliveries_send_key on deliveries (send_key) where send_key is not null;
""",
    )
)


MIGRATIONS.append(
    (
        "m015_people",
        """
-- The users who were admitted to an account by pairing. The table `access` of earlier versions was
-- always empty. It stays, because processes of earlier versions read it during an upgrade.
create table pairings (
    account text not null, user_id text not null, user_name text, role text not null,
    granted_by text not null, granted_at real not null, primary key (account, user_id)
) without rowid;
-- The hashes of pairing codes. A code without a user is handed out by an admin. Any other code was
-- shown to the user who asked for it.
create table pairing_codes (
    hash text primary key, account text not null, user_id text, user_name text, chat_id text,
    made_by text not null, made_at real not null
) without rowid;
create unique index pairing_requests on pairing_codes (account, user_id)
    where user_id is not null;
-- Wrong codes of each user of an account. The operator at the command line has the empty user id.
create table wrong_codes (
    account text not null, user_id text not null, tries integer not null, since real not null,
    primary key (account, user_id)
) without rowid;
-- The ids that belong to another person than the one whom the id itself names.
create table linked_ids (
    platform text not null, user_id text not null, person text not null, linked_at real not null,
    primary key (platform, user_id)
) without rowid;
""",
    )
)

MIGRATIONS.append(
    (
        "m016_session_choices",
        """
-- The reasoning effort and the personality that a person has chosen for the session.
alter table sessions add column reasoning text;
alter table sessions add column personality text;
-- Whether the next turn summarises the conversation first.
alter table sessions add column summarise integer not null default 0;
""",
    )
)

MIGRATIONS.append(
    (
        "m017_steering",
        """
-- The platform's id of the message, so that an edit finds the message.
alter table inbox add column message_id text;
-- A message whose further parts may still arrive: 'cut' if the next message may continue it,
-- 'album:' and an id if it is a part of an album, 'complete' when all parts have arrived. Null for
-- a message that has no parts. Its turn is not opened before the time in `not_before`. The other
-- parts are rows of their own, which are bound to the turn of the first part.
alter table inbox add column awaits text;
alter table inbox add column not_before real not null default 0;
-- The turn that the message is to enter. If the turn ends first, the message gets its own turn.
alter table inbox add column steers text;
-- The turn that was stopped because its message was edited. This message has the new text.
alter table inbox add column replaces text;
-- Whether the rows were removed from the conversation with /undo or /retry. They have no summary.
alter table compactions add column removed integer not null default 0;
create index inbox_replacing on inbox (session) where state = 'pending' and replaces is not null;
""",
    )
)

MIGRATIONS.append(APPROVALS)
