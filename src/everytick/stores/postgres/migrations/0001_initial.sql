-- May run while old nodes are up: yes, there are none.
--
-- Everything lives in one schema. Statuses and causes are small numbers in the tables, which are
-- written thousands of times a second, and words in the views at the end, which are for people.
-- Keys inside are integers; public ids stand beside them, once.

-- The one source of time. Tests put another function in its place.
create function everytick.everytick_now() returns timestamptz
    language sql volatile as $$ select clock_timestamp() $$;

-- Counts rings, for nodes behind a proxy that cannot listen.
create sequence everytick.pulse;

-- A hint to look now: told once per commit, however often it is called in it.
create function everytick.ring() returns void
    language sql volatile as $$ select nextval('everytick.pulse'); select pg_notify('everytick.bell', '') $$;

-- The value of a column that was sent as one value where it is the same throughout.
create function everytick.throughout(sent anyarray, own anyelement) returns anyelement
    language sql immutable as $$ select case when cardinality(sent) = 1 then sent[1] else own end $$;

-- Which store this is. A copy of it elsewhere has the same number, and tables with other ones.
create table everytick.store (id uuid not null);
insert into everytick.store values (gen_random_uuid());

create function everytick.identity() returns text
    language sql stable as $$
    select concat_ws(' ', id, 'everytick.store'::regclass::oid, d.oid)
      from everytick.store, pg_database d where d.datname = current_database() $$;

-- When an occurrence is out of time: its first start and so many microseconds. Immutable, as a column made of it must be:
-- a length without days means the same in every time zone.
create function everytick.deadline(started_at timestamptz, timeout bigint) returns timestamptz
    language sql immutable strict as $$ select started_at + timeout * interval '1 microsecond' $$;

-- What stands for the key of a request where it is held: no row of it is there to lock before it is committed.
create function everytick.request_key(job text, key text) returns bigint
    language sql immutable as $$ select hashtextextended('everytick request ' || job || ' ' || key, 0) $$;

-- What the small numbers say in words.
create table everytick.occurrence_status (code smallint primary key, name text not null unique);
insert into everytick.occurrence_status values
    (0, 'pending'), (1, 'queued'), (2, 'running'), (3, 'awaiting_retry'),
    (10, 'completed'), (11, 'completed_with_errors'), (12, 'failed'), (13, 'canceled'), (14, 'failed_stale'),
    (15, 'skipped'), (16, 'missed'), (17, 'superseded');

create table everytick.run_status (code smallint primary key, name text not null unique);
insert into everytick.run_status values
    (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'skipped');

create table everytick.attempt_status (code smallint primary key, name text not null unique);
insert into everytick.attempt_status values
    (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'lost');

create table everytick.cause (code smallint primary key, name text not null unique);
insert into everytick.cause values
    (0, 'schedule'), (1, 'trigger'), (2, 'replay'), (3, 'backfill'), (4, 'create'), (5, 'restart');

-- --------------------------------------------------------------------------------------------- jobs

-- Every text of needs that any job or occurrence has had. There are few; a node notes those that it meets.
create table everytick.needs (text text collate "C" primary key);

-- The queue among the needs of an occurrence: its label is the last one.
create function everytick.queue_of(needs text) returns text language sql immutable as $$
    select coalesce(substring(needs from '(?:^|\n)queue:(.*)$'), 'default') $$;

-- Who a job is. A planner holds this row while it decides, so that verbs on job_state need not wait for it.
create table everytick.job (
    job_key    integer generated always as identity primary key,
    id         text not null unique,
    name       text collate "C" not null unique,
    created_at timestamptz not null
);

-- One row per version, never changed: together with its own overrides it is the config an occurrence ran with.
-- in_force_after is its moment, follows the version whose window ends before it, or whose rollout was rolled back,
-- rollout the stages of one on trial.
create table everytick.job_version (
    job_key        integer not null references everytick.job (job_key),
    version        integer not null,
    in_force_after timestamptz,
    kind           text not null constraint kind_valid check (kind in ('task', 'flow')),
    schedule       text not null,
    enabled        boolean not null,
    reports        boolean not null,
    definition     text not null,
    effective      json not null,
    edited_by      text not null,
    edited_at      timestamptz not null,
    follows        integer,
    rollout        text,
    primary key (job_key, version)
);

-- Where a job stands: narrow, and with room for updates in place. Its public id is here too, so that what is due at
-- one instant is read in its order. unreadable_reason says why a node could not read its definition, parked_reason why its
-- last plan was refused. Durations are in microseconds. By plan_token a planner that did not hear the
-- answer knows that its plan was written.
create table everytick.job_state (
    job_key                     integer primary key references everytick.job (job_key),
    id                          text collate "C" not null,
    needs                       text collate "C" not null,
    version                     integer not null,
    oldest_version              integer not null,
    revision                    bigint not null,
    woken                       bigint not null,
    watermark                   timestamptz not null,
    wake_at                     timestamptz,
    next_run_at                 timestamptz,
    removed_at                  timestamptz,
    removed_by                  text not null default '',
    retire_at                   timestamptz,
    undefined_since             timestamptz,
    reschedule_made_at          timestamptz,
    reschedule_for              timestamptz,
    reschedule_by               text,
    narrowed_at                 timestamptz,
    stopped_at                  timestamptz,
    keep_success                bigint,
    keep_failure                bigint,
    keep_last                   integer not null,
    is_needed                   boolean not null default false,
    plan_token                  bigint,
    unreadable_reason           text,
    parked_reason               text
) with (fillfactor = 70);

-- A paused, disabled or finished job is not in it and costs nothing.
create index job_state_due on everytick.job_state (needs, wake_at, id) where wake_at is not null;

-- Jobs that a start of their owner has left out: hardly ever any.
create index job_state_undefined on everytick.job_state (job_key) where undefined_since is not null;

-- An end as its job remembers it.
create type everytick.ended as (scheduled_for timestamptz, started_at timestamptz, ended_at timestamptz, id uuid);

-- What the ends of a job left, once it has had one: a row of its own, so that an end takes no lock on the job and leaves
-- no fact to fold. It is locked after the occurrences, by rising key, and written in place. It does not refer to the
-- job: that would lock the job.
create table everytick.job_tally (
    job_key         integer primary key,
    run_count       bigint not null default 0,
    last_failure_at timestamptz,
    last_error      text,
    last_end        everytick.ended,
    last_success    everytick.ended,
    other_success   everytick.ended
) with (fillfactor = 50);

-- What makes a job worth another look: appended by people, and by ends that the job awaits, so that neither takes a lock
-- on the job; a plan takes away what it has seen. Facts have the needs of their job, so that jobs that no living node can
-- plan are not in the way of other jobs.
create table everytick.wake (
    job_key  integer not null,
    wake_key bigint generated always as identity,
    wake_at  timestamptz not null,
    needs    text collate "C" not null,
    primary key (job_key, wake_key)
);

create index wake_due on everytick.wake (needs, wake_at);

create table everytick.pause (
    job_key    integer not null references everytick.job (job_key),
    pause_key  bigint generated always as identity,
    since_at   timestamptz not null,
    until_at   timestamptz,
    missed     text not null check (missed in ('skip', 'catch_up', 'last')),
    reason     text not null,
    paused_by  text not null,
    resumed_by text,
    primary key (job_key, pause_key)
);

-- What jobs depend on. The definition names another job, which is followed by its id. is_needed of job_state says that
-- some job depends on this one, or did so before its last edit.
create table everytick.dependency (
    job_key   integer not null references everytick.job (job_key),
    name      text not null,
    needed_id text not null,
    primary key (job_key, name)
);

create index dependency_needed on everytick.dependency (needed_id);

create table everytick.adjustment (
    job_key        integer not null references everytick.job (job_key),
    instant_at     timestamptz not null,
    adjustment_key bigint generated always as identity,
    kind           text not null check (kind in ('skip', 'move', 'amend')),
    moved_to_at    timestamptz,
    reason         text not null,
    adjusted_by    text not null,
    is_done        boolean not null,
    overrides      text,
    payload        text,
    told_at        timestamptz,
    primary key (job_key, instant_at)
);

-- The runs to come of jobs that have a horizon, for people: the last plan wrote them, and no plan reads them.
create table everytick.coming (
    job_key    integer not null references everytick.job (job_key),
    instant_at timestamptz not null,
    run_at     timestamptz not null,
    id         uuid not null,
    mark       text,
    detail     text not null,
    overrides  text,
    payload    text,
    zone_data  text not null,
    primary key (job_key, instant_at)
);

create table everytick.request (
    job_key        integer not null references everytick.job (job_key),
    key            text not null,
    request_key    bigint generated always as identity,
    cause          smallint not null check (cause between 0 and 5),
    requested_at   timestamptz not null,
    payload        text,
    overlap        text,
    reason         text not null,
    requested_by   text not null,
    replay_of      text,
    scheduled_for  timestamptz,
    covers_after   timestamptz,
    covers_through timestamptz,
    keeps          text,
    nth            integer not null default 1,
    id             uuid not null,
    due_at         timestamptz not null default 'epoch',
    primary key (job_key, cause, key)
);

-- A plan sees a request from its due_at on, which is the epoch for one that was asked for at once. One index for both would
-- be taken for the primary key.
create index request_at_once on everytick.request (job_key, request_key) where due_at = 'epoch';
create index request_due on everytick.request (job_key, due_at, request_key) where due_at > 'epoch';

-- By the id of what it asks for it is seen and canceled before a plan has answered it.
create index request_id on everytick.request (id);

-- How often a key that a caller named was used, for which occurrence and by which call; forgotten with the occurrence.
create table everytick.request_key (
    job_key integer not null references everytick.job (job_key),
    cause   smallint not null,
    key     text not null,
    nth     integer not null,
    call    bigint not null,
    id      uuid not null,
    primary key (job_key, cause, key)
);

create index request_key_id on everytick.request_key (id);

-- A backfill: the instants in (fill_after, fill_through] that it asks for, those in (left_after, left_through] that are
-- left, and how it goes. One that is running has a request of its key too, without an instant: so a plan finds it, and a
-- job without one is not asked about it. They run in the order of place.
create table everytick.backfill (
    backfill_key integer generated always as identity primary key,
    job_key      integer not null references everytick.job (job_key),
    id           text collate "C" not null unique,
    key          text not null,
    status       text not null check (status in ('planned', 'running', 'paused', 'filled', 'canceled')),
    place        integer not null default 0,
    fill_after   timestamptz not null,
    fill_through timestamptz not null,
    left_after   timestamptz not null,
    left_through timestamptz not null,
    again        boolean not null,
    as_of_now    boolean not null,
    newest_first boolean not null,
    overlap      text,
    rate         integer not null,
    pace         integer not null,
    count        integer,
    created      integer not null default 0,
    reason       text not null,
    planned_at   timestamptz not null,
    planned_by   text not null,
    approved_at  timestamptz,
    approved_by  text not null default '',
    changed_by   text not null default '',
    paced_at     timestamptz not null,
    filled_at    timestamptz,
    ended_at     timestamptz,
    unique (job_key, key)
);

-- The occurrences that a backfill has made, in order; status is the one that an occurrence had when it was forgotten.
create table everytick.filled (
    backfill_key integer not null references everytick.backfill (backfill_key),
    place        integer not null,
    id           uuid not null,
    status       smallint,
    primary key (backfill_key, place)
);

create index filled_id on everytick.filled (id);

-- Neighbouring instants that did not run, all for one reason.
create table everytick.span (
    job_key      integer not null references everytick.job (job_key),
    span_key     bigint generated always as identity,
    status       smallint not null check (status in (15, 16)),
    why          text not null,
    detail       text not null,
    span_after   timestamptz not null,
    span_through timestamptz not null,
    version      integer not null,
    count        integer,
    primary key (job_key, span_key)
);

create index span_missed on everytick.span (span_through, span_after) where status = 16;

-- Where each promise of a job stands; only jobs with promises have rows. check_at is when the next breach could be there,
-- broken_for names the breach that goes on. Neither table refers to the job: that would lock the job.
create table everytick.promise (
    job_key        integer not null,
    kind           text not null check (kind in ('success_within', 'start_by', 'finish_by')),
    judged_through timestamptz not null,
    check_at       timestamptz,
    held_after     timestamptz,
    held_through   timestamptz,
    broken_for     timestamptz,
    revision       bigint not null default 1,
    primary key (job_key, kind)
) with (fillfactor = 70);

create index promise_due on everytick.promise (check_at) where check_at is not null;

-- Promises that were broken: one row from the first instant that was not kept to the end of it.
create table everytick.breach (
    job_key       integer not null,
    kind          text not null check (kind in ('success_within', 'start_by', 'finish_by')),
    broken_for    timestamptz not null,
    due_at        timestamptz not null,
    found_at      timestamptz not null,
    last_for      timestamptz not null,
    count         integer not null,
    reason        text not null,
    occurrence_id uuid,
    ended_at      timestamptz,
    is_withdrawn  boolean not null,
    is_begin_owed boolean not null,
    is_end_owed   boolean not null,
    primary key (job_key, kind, broken_for)
);

create index breach_owed on everytick.breach (found_at) where is_begin_owed or is_end_owed;

-- -------------------------------------------------------------------------------------- occurrences

-- The token of a claim is drawn at random and is part of what its owner proves: a copy of these tables that was restored
-- from an older one hands out the same keys and fences again. owner is the node that holds an occurrence now, node the
-- last one that ran it, and found the status that the last claim found.
-- Status: 0 pending, 1 queued, 2 running, 3 awaiting_retry; from 10 on it is over and never changes again.
-- is_early: its ready_at had not come when it was written. Parked retries and jitter stand apart, so that a claim does
-- not walk past them; the claim that finds that their time has come ends it. It is null for a retry of a disabled job:
-- no node may claim that one until the job is enabled.
-- holds_place: a limit counts its last claim, and its end rings the bell.
-- has_rows: a run or an attempt of it may have been written before its task ended. An end without it inserts plainly.
-- The free half of each page is room for the claim and the end of its rows, which are then written in place.
create table everytick.occurrence (
    handle             bigint generated always as identity primary key,
    id                 uuid not null unique,
    job_key            integer not null,
    version            integer not null,
    scheduled_for      timestamptz not null,
    status             smallint not null check (status between 0 and 3 or status between 10 and 17),
    cause              smallint not null check (cause between 0 and 5),
    priority           integer not null,
    fence              integer not null default 0,
    step_number        integer not null default 0,
    lost               integer not null default 0,
    late               boolean not null,
    superseded_by_next boolean not null default false,
    awaited            boolean not null default false,
    holds_place        boolean not null default false,
    has_rows           boolean not null default false,
    is_early           boolean default false,
    found              smallint not null default 0,
    claim_token        bigint not null default 0,
    line_at            timestamptz not null,
    ready_at           timestamptz,
    started_at         timestamptz,
    claimed_at         timestamptz,
    ended_at           timestamptz,
    covers_after       timestamptz,
    covers_through     timestamptz,
    created_at         timestamptz not null,
    updated_at         timestamptz not null,
    needs              text collate "C" not null,
    owner              text,
    node               text,
    cancel_reason      text,
    error              text,
    reason             text,
    overrides          text,
    payload            text,
    replay_of          text,
    execution_timeout  bigint,
    deadline_at        timestamptz generated always as (everytick.deadline(started_at, execution_timeout)) stored
) with (fillfactor = 45);

-- No index names a column that changes: so a claim and an end are written in place (HOT), beside the row, and touch no
-- index. Two narrow tables say which occurrences are active and which a node may claim.
create index occurrence_of_job on everytick.occurrence (job_key, scheduled_for, id);
create index occurrence_by_time on everytick.occurrence (scheduled_for, id);

-- Occurrences that are not over. Its rows never change: a creation writes one, and the end takes it away.
create table everytick.active (
    job_key integer not null,
    handle  bigint not null,
    primary key (job_key, handle)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Occurrences that a node may claim, now or once their ready_at has come. A row is written only under the lock of its
-- occurrence, whose columns decide: a statement that finds an occurrence here looks there whether it still is so.
-- There is no index by handle: one entry less for every occurrence. A row is found by the columns of its occurrence.
create table everytick.claimable (
    handle   bigint not null,
    id       uuid not null,
    line_at  timestamptz not null,
    ready_at timestamptz,
    priority integer not null,
    is_early boolean not null,
    needs    text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index claimable_ready on everytick.claimable (needs, priority desc, line_at, id) where not is_early;
create index claimable_early on everytick.claimable (needs, ready_at) where is_early;

-- Takes an occurrence out of `claimable`, as it stood there.
create function everytick.unlist(old everytick.occurrence) returns void language plpgsql as $$
begin
    if old.is_early then
        delete from everytick.claimable c
         where c.is_early and c.needs = old.needs and c.ready_at = old.ready_at and c.handle = old.handle;
    else
        delete from everytick.claimable c
         where not c.is_early and c.needs = old.needs and c.priority = old.priority and c.line_at = old.line_at
           and c.id = old.id;
    end if;
end $$;

-- Lists an occurrence anew that has changed. A function and not a part of each statement: a statement that waited for
-- the lock of an occurrence does not see what the session before it has listed, and this one does.
create function everytick.list_changed() returns trigger language plpgsql as $$
begin
    if (old.status = 0 or (old.status = 3 and old.owner is null)) and old.is_early is not null then
        perform everytick.unlist(old);
    end if;
    if (new.status = 0 or (new.status = 3 and new.owner is null)) and new.is_early is not null then
        insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
        values (new.handle, new.id, new.line_at, new.ready_at, new.priority, new.is_early, new.needs);
    end if;
    if new.status >= 10 then
        delete from everytick.active a where a.job_key = new.job_key and a.handle = new.handle;
    end if;
    return null;
end $$;

-- What comes by the thousand does without it and writes the lists itself: claims and `release_early`, and the ends of what runs.
create trigger changes_are_listed after update on everytick.occurrence for each row
    when (new.status <> 2 and (old.status <> 2 or new.status < 10)
          and (new.status <> old.status or new.owner is distinct from old.owner
               or new.ready_at is distinct from old.ready_at or new.needs <> old.needs or new.priority <> old.priority or new.line_at <> old.line_at
               or (new.is_early is distinct from old.is_early
                   and (old.is_early, new.is_early) is distinct from (true, false))))
    execute function everytick.list_changed();

create function everytick.list_purged() returns trigger language plpgsql as $$
begin
    perform everytick.unlist(old);
    delete from everytick.active a where a.job_key = old.job_key and a.handle = old.handle;
    return null;
end $$;

create trigger purged_ones_are_unlisted after delete on everytick.occurrence for each row
    when (old.status < 10) execute function everytick.list_purged();

create function everytick.keep_fill() returns trigger language plpgsql as $$
begin
    update everytick.filled f set status = old.status where f.id = old.id;
    return null;
end $$;

-- A backfill knows what became of its occurrences also when they are forgotten. 3 is the cause backfill.
create trigger fills_are_kept after delete on everytick.occurrence for each row
    when (old.cause = 3) execute function everytick.keep_fill();

-- Ended occurrences whose report was not delivered yet. A table of its own: a delivery takes a narrow row away and
-- leaves the occurrence, with all its indexes, alone.
create table everytick.report (
    needs    text collate "C" not null,
    ended_at timestamptz not null,
    handle   bigint not null,
    primary key (needs, ended_at, handle)
);

-- What ended occurrences add up to, for pages. It is written behind, in the order of handles: all up to last_handle are
-- counted but those in `unfolded`, which had not ended when they were passed. A handle that no row had then stands there
-- too, with job_key 0 and the moment when it was passed: its transaction may still be under way. swept_key and
-- swept_handle are the last of these that was looked at. The one row is locked for every change of these tables.
create table everytick.rollup (
    only_row     integer primary key check (only_row = 1),
    last_handle  bigint not null,
    swept_key    integer not null,
    swept_handle bigint not null
) with (fillfactor = 20);
insert into everytick.rollup values (1, 0, 0, 0);

create table everytick.unfolded (
    job_key       integer not null,
    handle        bigint not null,
    scheduled_for timestamptz not null,
    primary key (job_key, handle)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index unfolded_by_time on everytick.unfolded (scheduled_for);

-- The band of each version of a job, that pictures count its occurrences in. Apart from the version, whose texts are long:
-- a fold reads the band of every end.
create table everytick.version_band (
    job_key integer not null,
    version integer not null,
    band    text collate "C" not null,
    primary key (job_key, version)
);

-- How many ended in each step of time: steps of five minutes for some days, and whole days for good. kept says how many
-- of them retention has not deleted.
create table everytick.bucket (
    is_day  boolean not null,
    step_at timestamptz not null,
    band    text collate "C" not null,
    status  smallint not null,
    count   bigint not null,
    kept    bigint not null,
    primary key (is_day, step_at, band, status)
) with (fillfactor = 50);

-- The same for each job by UTC day; took is how long those that completed took together, in microseconds.
create table everytick.job_day (
    job_key integer not null,
    day_at  timestamptz not null,
    status  smallint not null,
    count   bigint not null,
    kept    bigint not null,
    took    bigint not null,
    primary key (job_key, day_at, status)
) with (fillfactor = 50);

-- How long the latest runs of a job that completed took, in microseconds. is_stale: runs have ended since.
create table everytick.job_length (
    job_key  integer primary key,
    count    integer not null default 0,
    p5       bigint not null default 0,
    p50      bigint not null default 0,
    p95      bigint not null default 0,
    is_stale boolean not null default true
);
create index job_length_stale on everytick.job_length (job_key) where is_stale;

-- Occurrences that failed, by the kind of their error.
create table everytick.failure (
    handle      bigint primary key,
    job_key     integer not null,
    id          uuid not null,
    ended_at    timestamptz not null,
    fingerprint text collate "C" not null
);
create index failure_by_time on everytick.failure (ended_at);
create index failure_alike on everytick.failure (fingerprint, ended_at);

create table everytick.task_run (
    handle              bigint not null,
    task                text not null,
    status              smallint not null check (status between 0 and 6),
    attempts            integer not null,
    retries             integer not null,
    last_attempt_status smallint,
    out_of_time         boolean not null,
    resume_at           timestamptz,
    started_at          timestamptz,
    attempt_started_at  timestamptz,
    ended_at            timestamptz,
    error               text,
    because_of          text,
    result              text,
    waits               text,
    primary key (handle, task)
);

-- Progress and log are told while it runs and are for people: no decision looks at them. An attempt that was handed to
-- an engine, and is known there by this name, outlives its node.
create table everytick.attempt (
    handle         bigint not null,
    task           text not null,
    number         integer not null,
    status         smallint not null check (status between 0 and 6),
    started_at     timestamptz,
    ended_at       timestamptz,
    error          text,
    progress_done  double precision,
    progress_total double precision,
    progress_text  text,
    log_node       text,
    log_path       text,
    handed_to      text,
    node           text,
    primary key (handle, task, number)
);

-- One write per node and beat, in place. Beats count signs of life: whether a node is silent is judged by those who watch
-- this number, on their own clocks. 0 says that it has left.
create table everytick.node (
    id      text primary key,
    beat_at timestamptz not null,
    facts   text,
    beats   bigint not null default 0
) with (fillfactor = 50);

-- The names of the jobs that one start defines, once for all nodes that define the same. A node's facts name the hash.
create table everytick.name_set (
    hash      text primary key,
    names     text not null,
    stored_at timestamptz not null
);

-- Limits and brakes. A reach is `all`, `queue:…`, `tag:…` or `job:…`; its row is there while a limit, a brake or a release
-- holds for it: without any row, claims look at nothing else of these tables. A rate is so many starts in so many
-- microseconds. What a brake held back is released at a rate, until release_left have started.
create table everytick.reach (
    reach            text collate "C" primary key,
    most             integer,
    rate_count       integer,
    rate_per         bigint,
    is_burst         boolean,
    reason           text not null,
    set_by           text not null,
    set_at           timestamptz,
    release_count    integer,
    release_per      bigint,
    is_release_burst boolean,
    release_left     integer,
    released_at      timestamptz,
    released_by      text not null
) with (fillfactor = 50);

create table everytick.brake (
    brake_key bigint generated always as identity primary key,
    reach     text collate "C" not null,
    since_at  timestamptz not null,
    until_at  timestamptz,
    reason    text not null,
    braked_by text not null,
    begins    text,
    ends       text
);

-- Claims that a limit counts: as running while the occurrence has an owner, and as starts while a rate looks back at them.
create table everytick.limit_start (
    reach      text collate "C" not null,
    handle     bigint not null,
    fence      integer not null,
    started_at timestamptz not null,
    primary key (reach, handle, fence)
);

create index limit_start_by_time on everytick.limit_start (reach, started_at);

-- Who has changed a limit or brake, when and why.
create table everytick.limit_change (
    change_key bigint generated always as identity primary key,
    changed_at timestamptz not null,
    reach      text collate "C" not null,
    what       text not null,
    reason     text not null,
    changed_by text not null
);

-- ------------------------------------------------------------------------------------------- access

-- Who may use the service. grants is a JSON object from tags to roles.
create table everytick.user_account (
    name text collate "C" primary key,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    grants text not null,
    password_hash text,
    added_at timestamptz not null,
    added_by text not null
);

-- Secrets of programs: only their hash is here. One that is revoked stays, and its name is free again.
create table everytick.token (
    id text primary key,
    name text not null,
    hash text not null,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    grants text not null,
    owner text not null,
    expires_at timestamptz,
    added_at timestamptz not null,
    added_by text not null,
    used_at timestamptz,
    revoked_at timestamptz
);
create unique index token_name on everytick.token (name) where revoked_at is null;

-- Browsers that are signed in, and links to the first sign-in, by the hash of their secret.
create table everytick.session (
    hash text primary key,
    kind text not null check (kind in ('cookie', 'link')),
    name text not null,
    began_at timestamptz not null,
    expires_at timestamptz not null,
    seen_at timestamptz not null,
    address text not null
);
create index session_name on everytick.session (name);

-- Names with which signing in went wrong lately, of users and of others.
create table everytick.sign_in_failure (
    name text collate "C" primary key,
    count integer not null,
    failed_at timestamptz not null
);

-- Who did what to which, why, when and from where: written with the change, never changed and never deleted.
create table everytick.deed (
    deed_key bigint generated always as identity primary key,
    done_at timestamptz not null,
    done_by text not null,
    came_by text not null,
    address text not null,
    did text not null,
    subject text not null,
    detail text not null,
    reason text not null,
    job_id text
);
create index deed_by on everytick.deed (done_by, deed_key);
create index deed_job on everytick.deed (job_id, deed_key) where job_id is not null;

-- ------------------------------------------------------------------------------------------- people

-- What the ends of a job left, in columns.
create view everytick.job_ends as
select t.job_key, t.run_count, t.last_error, t.last_failure_at,
       (t.last_end).scheduled_for as last_end_scheduled_for, (t.last_end).started_at as last_end_started_at,
       (t.last_end).ended_at as last_end_at, (t.last_end).id as last_end_id,
       (t.last_success).scheduled_for as last_success_scheduled_for,
       (t.last_success).started_at as last_success_started_at,
       (t.last_success).ended_at as last_success_at, (t.last_success).id as last_success_id,
       (t.other_success).scheduled_for as other_success_scheduled_for,
       (t.other_success).started_at as other_success_started_at,
       (t.other_success).ended_at as other_success_at, (t.other_success).id as other_success_id
  from everytick.job_tally t;

-- A job with the facts that no plan has seen yet. It is due as its newest fact says: a verb makes it due at its own time,
-- which is before that of an older fact where the clock was set back between them.
create view everytick.job_standing as
select j.job_key, j.id, j.name, j.created_at, s.needs, s.version, s.oldest_version, s.revision, s.watermark,
       s.removed_at, s.removed_by, s.retire_at, s.reschedule_made_at, s.reschedule_for, s.reschedule_by, s.narrowed_at, s.stopped_at,
       s.is_needed,
       coalesce(s.unreadable_reason, s.parked_reason) as parked_reason,
       s.woken + w.facts as woken,
       coalesce(w.wake_at, s.wake_at) as wake_at, s.next_run_at,
       coalesce(e.run_count, 0) as run_count, e.last_error, e.last_failure_at,
       e.last_end_scheduled_for, e.last_end_started_at, e.last_end_at, e.last_end_id,
       e.last_success_scheduled_for, e.last_success_started_at, e.last_success_at, e.last_success_id,
       e.other_success_scheduled_for, e.other_success_started_at, e.other_success_at, e.other_success_id
  from everytick.job j
  join everytick.job_state s on s.job_key = j.job_key
  left join lateral (select * from everytick.job_ends e where e.job_key = j.job_key offset 0) e on true
  cross join lateral (select count(*) as facts, (array_agg(wake_at order by wake_key desc))[1] as wake_at
                        from everytick.wake where job_key = j.job_key) w;

-- The views have the same names and columns as in SQLite.

-- Jobs as people ask for them; parked_reason says why a definition cannot be read or a plan was refused, else it is
-- empty.
create view everytick.jobs as
select v.id, v.name, d.kind, d.schedule, d.enabled and v.removed_at is null as enabled,
       p.pause_key is not null as paused, p.since_at as paused_since, p.until_at as paused_until, v.version, v.revision,
       case when d.enabled and v.removed_at is null and (p.pause_key is null or p.until_at is not null)
            then v.next_run_at end as next_run,
       v.last_end_started_at as last_run, v.last_end_at as last_end, v.last_success_at as last_success,
       v.last_failure_at as last_failure,
       v.run_count, v.last_error,
       (select max(o.created_at) from everytick.occurrence o where o.job_key = v.job_key and o.status not in (15, 16))
           as last_enqueued,
       v.watermark, v.removed_at, v.parked_reason, v.created_at, d.edited_at as updated_at
  from everytick.job_standing v
  join everytick.job_version d on d.job_key = v.job_key and d.version = v.version
  left join lateral (select p.* from everytick.pause p
                      where p.job_key = v.job_key and (p.until_at is null or p.until_at > everytick.everytick_now())
                      order by p.pause_key limit 1) p on true;

create view everytick.occurrences as
select 'occ_' || o.id as id, j.id as job_id, j.name as job, o.version, o.scheduled_for,
       z.name as status, c.name as cause, o.late, o.priority,
       everytick.queue_of(o.needs) as queue, o.owner, o.node, o.fence, o.ready_at, o.started_at, o.deadline_at,
       o.ended_at, o.covers_after, o.covers_through, o.error, o.reason, o.payload, o.overrides, o.replay_of,
       exists (select from everytick.report r where r.needs = o.needs and r.ended_at = o.ended_at
                                                and r.handle = o.handle) as report_due,
       o.created_at, o.updated_at
  from everytick.occurrence o
  join everytick.job j on j.job_key = o.job_key
  join everytick.occurrence_status z on z.code = o.status
  join everytick.cause c on c.code = o.cause;

-- A run is there from its occurrence on; it changed last when it began an attempt or ended.
create view everytick.task_runs as
select 'occ_' || o.id as occurrence_id, j.name as job, r.task, z.name as status,
       r.attempts, r.retries, r.started_at, r.ended_at, r.resume_at, r.error, r.because_of, r.result, o.created_at,
       greatest(o.created_at, r.started_at, r.ended_at,
                (select max(coalesce(a.ended_at, a.started_at)) from everytick.attempt a
                  where a.handle = r.handle and a.task = r.task)) as updated_at
  from everytick.task_run r
  join everytick.occurrence o on o.handle = r.handle
  join everytick.job j on j.job_key = o.job_key
  join everytick.run_status z on z.code = r.status;

-- An attempt after the first is there from the end of the one before it.
create view everytick.attempts as
select 'occ_' || o.id as occurrence_id, j.name as job, a.task, a.number,
       z.name as status, a.started_at, a.ended_at, a.error, a.node,
       a.progress_done, a.progress_total, a.progress_text, a.log_node, a.log_path, a.handed_to,
       coalesce(b.ended_at, a.started_at) as created_at
  from everytick.attempt a
  join everytick.occurrence o on o.handle = a.handle
  join everytick.job j on j.job_key = o.job_key
  join everytick.attempt_status z on z.code = a.status
  left join everytick.attempt b on b.handle = a.handle and b.task = a.task and b.number = a.number - 1;

create view everytick.skipped_spans as
select j.id as job_id, j.name as job, z.name as status, s.why, s.detail,
       s.span_after as span_after, s.span_through as span_through, s.version, s.count
  from everytick.span s
  join everytick.job j on j.job_key = s.job_key
  join everytick.occurrence_status z on z.code = s.status;

-- What the jobs in service promise. broken_since is by when it was promised, if it is broken now.
create view everytick.promises as
select j.id as job_id, j.name as job, p.kind as promise, d.effective -> p.kind ->> 'value' as promised,
       b.due_at as broken_since, b.reason, p.check_at
  from everytick.promise p
  join everytick.job j on j.job_key = p.job_key
  join everytick.job_state s on s.job_key = p.job_key and s.removed_at is null
  join everytick.job_version d on d.job_key = s.job_key and d.version = s.version
  left join everytick.breach b on b.job_key = p.job_key and b.kind = p.kind and b.broken_for = p.broken_for;

create view everytick.breaches as
select j.id as job_id, j.name as job, b.kind as promise, b.broken_for, b.due_at, b.found_at, b.last_for, b.count,
       b.reason, 'occ_' || b.occurrence_id as occurrence_id, b.ended_at, b.is_withdrawn as withdrawn
  from everytick.breach b
  join everytick.job j on j.job_key = b.job_key;

-- The runs to come: of the schedule, for jobs that have a horizon, and those that were asked for at a time.
create view everytick.coming_runs as
select 'occ_' || c.id as id, j.id as job_id, j.name as job, c.run_at as scheduled_for, c.instant_at as instant,
       c.cause, c.mark, c.detail, c.payload, c.overrides, c.zone_data
  from (select job_key, id, run_at, instant_at, 'schedule' as cause, mark, detail, payload, overrides, zone_data
          from everytick.coming
         union all
        select job_key, id, due_at, null, 'trigger', case when key like 'added:%' then 'added' end,
               concat_ws(' ', 'by ' || nullif(requested_by, ''), '(' || nullif(reason, '') || ')'), payload, null, null
          from everytick.request where due_at > 'epoch') c
  join everytick.job j on j.job_key = c.job_key;

-- Adjustments of instants that are not decided yet.
create view everytick.adjustments as
select j.id as job_id, j.name as job, a.instant_at as instant, a.kind, a.moved_to_at as moved_to, a.payload,
       a.overrides, a.reason, a.adjusted_by, a.told_at
  from everytick.adjustment a join everytick.job j on j.job_key = a.job_key;

-- Backfills with what became of their occurrences.
create view everytick.backfills as
select b.id, j.id as job_id, j.name as job,
       case when b.status <> 'filled' then b.status when coalesce(f.waiting + f.running, 0) > 0 then 'running'
            else 'completed' end as status,
       b.fill_after, b.fill_through, b.left_after, b.left_through, b.again, b.newest_first, b.rate, b.pace,
       b.count, b.created, coalesce(f.done, 0) as done, coalesce(f.failed, 0) as failed,
       coalesce(f.canceled, 0) as canceled, coalesce(f.running, 0) as running, coalesce(f.waiting, 0) as waiting,
       b.reason, b.planned_at, b.planned_by, b.approved_at, b.approved_by, b.ended_at
  from everytick.backfill b
  join everytick.job j on j.job_key = b.job_key
  left join (select f.backfill_key,
                    sum(case when f.status = 10 then 1 else 0 end)::int as done,
                    sum(case when f.status in (11, 12, 14) then 1 else 0 end)::int as failed,
                    sum(case when f.status = 13 or f.status > 14 then 1 else 0 end)::int as canceled,
                    sum(case when f.status in (2, 3) then 1 else 0 end)::int as running,
                    sum(case when f.status in (0, 1) then 1 else 0 end)::int as waiting
               from (select f.backfill_key, coalesce(o.status, f.status, 13) as status
                       from everytick.filled f left join everytick.occurrence o on o.id = f.id) f
              group by f.backfill_key) f on f.backfill_key = b.backfill_key;

-- The config an occurrence runs with, whole; who set what in its version; and what it sets itself.
create view everytick.effective_config as
select 'occ_' || o.id as occurrence_id, j.name as job, o.version,
       (select ('{' || string_agg(to_json(e.key)::text || ':' ||
                                  case when e.key = 'payload' and o.payload is not null then o.payload
                                       else coalesce(f.value, e.value -> 'value')::text end, ',') || '}')::json
          from json_each(d.effective) e
          left join json_each(coalesce(o.overrides, '{}')::json) f on f.key = e.key) as config,
       d.effective, coalesce(o.overrides, '{}')::json as own_overrides, o.payload::json as own_payload
  from everytick.occurrence o
  join everytick.job j on j.job_key = o.job_key
  join everytick.job_version d on d.job_key = o.job_key and d.version = o.version;

create view everytick.nodes as
select n.id, n.beat_at, n.beats,
       (select count(*)::int from everytick.active a join everytick.occurrence o on o.handle = a.handle
         where o.status < 10 and o.owner = n.id) as holds, n.facts
  from everytick.node n;

create view everytick.limits as
select r.reach, r.most, r.rate_count, r.rate_per / 1000000.0 as rate_seconds, r.is_burst as burst,
       (select count(distinct s.handle)::int from everytick.limit_start s join everytick.occurrence o on o.handle = s.handle
         where s.reach = r.reach and o.owner is not null) as running,
       exists (select from everytick.brake b
                where b.reach = r.reach and b.since_at <= everytick.everytick_now()
                  and (b.until_at is null or b.until_at > everytick.everytick_now())) as braked,
       r.release_left, r.reason, nullif(r.set_by, '') as set_by, r.set_at
  from everytick.reach r;

create view everytick.brakes as
select b.reach, b.since_at as since, b.until_at as until, b.reason, b.braked_by, b.begins, b.ends
  from everytick.brake b;

create view everytick.limit_changes as
select c.changed_at, c.reach, c.what, c.reason, c.changed_by from everytick.limit_change c;

create view everytick.deeds as
select d.deed_key as number, d.done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail, d.reason,
       j.name as job
  from everytick.deed d left join everytick.job j on j.id = d.job_id;

-- What people may write: enabled and paused of a job, which do what disable, enable, pause and resume do. A test holds
-- the rows that they leave equal.

create function everytick.refuse() returns trigger language plpgsql as $$
begin
    raise exception '%', tg_argv[0];
end $$;

create trigger deeds_are_not_changed before update on everytick.deed for each row
    execute function everytick.refuse('a deed never changes');
create trigger deeds_are_not_deleted before delete on everytick.deed for each row
    execute function everytick.refuse('a deed is never deleted');

create trigger jobs_are_defined instead of insert on everytick.jobs for each row
    execute function everytick.refuse('a job is defined in code, in a file or with everytick apply, not by an insert');
create trigger jobs_are_removed instead of delete on everytick.jobs for each row
    execute function everytick.refuse('a job is removed with everytick remove, not by a delete');
create trigger a_version_never_changes before update of kind, schedule, enabled on everytick.job_version for each row
    execute function everytick.refuse('a version never changes: write enabled through the view jobs');

-- A JSON object with one key set, as everytick writes a definition: keys in order, no blanks.
create function everytick.with_key(object json, name text, value text) returns text language sql immutable as $$
    select '{' || string_agg(to_json(e.key)::text || ':' || e.value, ',' order by e.key collate "C") || '}'
      from (select e.key, e.value::text as value from json_each(object) e where e.key <> name
            union all select name, value) e $$;

create function everytick.switch_job() returns trigger language plpgsql as $$
declare
    held everytick.job_state;
    moment timestamptz;
begin
    if (to_jsonb(new) - 'enabled' - 'paused') <> (to_jsonb(old) - 'enabled' - 'paused') then
        raise exception 'only enabled and paused of a job can be written by SQL: for the rest there are commands';
    end if;
    if new.enabled is null or new.paused is null then
        raise exception 'enabled and paused of a job are true or false';
    end if;
    if old.removed_at is not null then
        raise exception 'the job is removed: define it again first';
    end if;
    select s.* into held from everytick.job j join everytick.job_state s on s.job_key = j.job_key
     where j.id = old.id for no key update of s;
    moment := everytick.everytick_now();
    if held.revision <> old.revision then
        raise exception 'another session changed the job at the same moment: try again';
    end if;
    if new.enabled <> old.enabled then
        if held.version - held.oldest_version + 1 >= 15 + new.enabled::int then
            raise exception
                'too many versions of the job wait to be decided: try again once a node has looked at it';
        end if;
        insert into everytick.job_version (job_key, version, in_force_after, kind, schedule, enabled, reports, definition,
                                          effective, edited_by, edited_at)
        select d.job_key, held.version + 1, moment, d.kind, d.schedule, new.enabled, d.reports,
               everytick.with_key(d.definition::json, 'policies', everytick.with_key(
                   d.definition::json -> 'policies', 'enabled', new.enabled::text)),
               everytick.with_key(d.effective, 'enabled',
                   json_build_object('origin', 'job', 'value', new.enabled)::text)::json, 'sql', moment
          from everytick.job_version d
         where d.job_key = held.job_key
           and d.version = (select max(w.version) from everytick.job_version w
                             where w.job_key = held.job_key and w.rollout is null);
        insert into everytick.version_band (job_key, version, band)
        select b.job_key, held.version + 1, b.band from everytick.version_band b
         where b.job_key = held.job_key
           and b.version = (select max(w.version) from everytick.job_version w
                             where w.job_key = held.job_key and w.version <= held.version and w.rollout is null);
        update everytick.job_state
           set version = version + 1, oldest_version = case when unreadable_reason is null then oldest_version else version + 1 end,
               revision = revision + 1, retire_at = null, undefined_since = null, unreadable_reason = null,
               next_run_at = case when next_run_at > moment then next_run_at end
         where job_key = held.job_key;
        update everytick.occurrence o set version = held.version + 1
         where o.handle = any(array(
               select a.handle from everytick.active n join everytick.occurrence a on a.handle = n.handle
                where n.job_key = held.job_key and a.status < 2
                  and not exists (select from everytick.task_run r where r.handle = a.handle)
                order by a.handle for no key update of a));
        update everytick.occurrence o
           set status = case when o.status = 0 and not new.enabled then 1 else o.status end,
               is_early = case when new.enabled then coalesce(o.ready_at > moment, false)
                            when o.status = 0 then o.is_early end,
               updated_at = case when o.status = 0 and not new.enabled then moment else o.updated_at end
         where o.handle = any(array(
               select a.handle from everytick.active n join everytick.occurrence a on a.handle = n.handle
                where n.job_key = held.job_key and a.status < 10
                  and case when new.enabled then a.is_early is null
                           else a.status = 0 or (a.status = 3 and a.owner is null) end
                order by a.handle for no key update of a))
           and (new.enabled or o.status = 0 or (o.status = 3 and o.owner is null));
    end if;
    if new.paused and not old.paused then
        insert into everytick.pause (job_key, since_at, missed, reason, paused_by)
        values (held.job_key, moment, 'skip', '', 'sql');
        update everytick.occurrence o set status = 1, updated_at = moment
         where o.handle = any(array(
               select a.handle from everytick.active n join everytick.occurrence a on a.handle = n.handle
                where n.job_key = held.job_key and a.status < 10 and a.status = 0 and a.cause = 0
                order by a.handle for no key update of a))
           and o.status = 0;
    elsif old.paused and not new.paused then
        update everytick.pause p set until_at = moment, resumed_by = 'sql'
         where p.job_key = held.job_key and p.pause_key = (
               select h.pause_key from everytick.pause h
                where h.job_key = held.job_key and (h.until_at is null or h.until_at > moment) order by h.pause_key limit 1);
    end if;
    if new.paused <> old.paused then
        update everytick.job_state
           set revision = revision + 1,
               next_run_at = case when next_run_at > moment and old.paused_until is null then next_run_at end
         where job_key = held.job_key;
    end if;
    if new.paused <> old.paused or new.enabled <> old.enabled then
        update everytick.promise set check_at = moment, revision = revision + 1 where job_key = held.job_key;
        insert into everytick.wake (job_key, wake_at, needs)
        select s.job_key, moment, s.needs from everytick.job_state s where s.job_key = held.job_key;
        perform everytick.ring();
    end if;
    return new;
end $$;

create trigger jobs_are_switched instead of update on everytick.jobs for each row
    execute function everytick.switch_job();
