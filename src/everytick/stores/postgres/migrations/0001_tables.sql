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
    seq        integer generated always as identity primary key,
    id         text not null unique,
    name       text not null unique,
    created_at timestamptz not null
);

-- One row per version, never changed: together with its own overrides it is the config an occurrence ran with.
create table everytick.definition (
    job            integer not null references everytick.job (seq),
    version        integer not null,
    in_force_after timestamptz,
    kind           text not null constraint kind_valid check (kind in ('task', 'flow')),
    schedule       text not null,
    enabled        boolean not null,
    reports        boolean not null,
    definition     text not null,
    effective      json not null,
    changed_by     text not null,
    updated_at     timestamptz not null,
    primary key (job, version)
);

-- Where a job stands: narrow, and with room for updates in place. Its public id is here too, so that what is due at
-- one instant is read in its order. By plan_token a planner that did not hear the
-- answer knows that its plan was written.
create table everytick.job_state (
    job                    integer primary key references everytick.job (seq),
    id                     text collate "C" not null,
    needs                  text collate "C" not null,
    version                integer not null,
    first_version          integer not null,
    revision               bigint not null,
    woken                  bigint not null,
    watermark              timestamptz not null,
    wake_at                timestamptz,
    next_run_at            timestamptz,
    run_count              bigint not null default 0,
    last_error             text,
    last_failure_at        timestamptz,
    removed_at             timestamptz,
    removed_by             text not null default '',
    retire_at              timestamptz,
    undefined_since        timestamptz,
    reschedule_made_at     timestamptz,
    reschedule_to          timestamptz,
    reschedule_by          text,
    end_scheduled_for      timestamptz,
    end_started_at         timestamptz,
    end_at                 timestamptz,
    end_id                 uuid,
    success_scheduled_for  timestamptz,
    success_started_at     timestamptz,
    success_at             timestamptz,
    success_id             uuid,
    other_scheduled_for    timestamptz,
    other_started_at       timestamptz,
    other_at               timestamptz,
    other_id               uuid,
    narrowed_at            timestamptz,
    keep_success           interval,
    keep_failure           interval,
    keep_last              integer not null,
    parked                 text,
    plan_token             bigint,
    parked_reason          text
) with (fillfactor = 70);

-- A paused, disabled or finished job is not in it and costs nothing.
create index job_state_due on everytick.job_state (needs, wake_at, id) where wake_at is not null;

-- Jobs that a start of their owner has left out: hardly ever any.
create index job_state_undefined on everytick.job_state (job) where undefined_since is not null;

-- What makes a job worth another look: appended by endings and by people, so that an ending takes no lock
-- on its job; a plan folds what it finds here into job_state. An ending says whose it was, and failed_at when an attempt
-- failed, at an end or before a retry. An ending that nobody waits for
-- wakes nobody and is here for the next plan. Those that wake have the needs of their job, so that what nobody can plan
-- now is not in the way of other jobs.
create table everytick.wake (
    job           integer not null,
    seq           bigint generated always as identity,
    at            timestamptz not null,
    wakes         boolean not null default true,
    needs         text collate "C",
    scheduled_for timestamptz,
    started_at    timestamptz,
    ended_at      timestamptz,
    well          boolean,
    id            uuid,
    error         text,
    failed_at     timestamptz,
    primary key (job, seq)
);

create index wake_due on everytick.wake (needs, at) where wakes;

create table everytick.pause (
    job        integer not null references everytick.job (seq),
    seq        bigint generated always as identity,
    since      timestamptz not null,
    until      timestamptz,
    missed     text not null check (missed in ('skip', 'catch_up')),
    reason     text not null,
    paused_by  text not null,
    resumed_by text not null default '',
    primary key (job, seq)
);

create table everytick.adjustment (
    job         integer not null references everytick.job (seq),
    at          timestamptz not null,
    seq         bigint generated always as identity,
    kind        text not null check (kind in ('skip', 'move', 'amend')),
    moved_to    timestamptz,
    reason      text not null,
    adjusted_by text not null,
    done        boolean not null,
    overrides   text,
    payload     text,
    primary key (job, at)
);

create table everytick.request (
    job            integer not null references everytick.job (seq),
    key            text not null,
    seq            bigint generated always as identity,
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
    after_at       timestamptz,
    through_at     timestamptz,
    again          boolean not null,
    keeps          text[],
    as_of_now      boolean not null default false,
    nth            integer not null default 1,
    id             uuid not null,
    primary key (job, cause, key)
);

-- By the id of what it asks for it is seen and canceled before a plan has answered it.
create index request_id on everytick.request (id);

-- How often a key was used that somebody named, for which occurrence and by which call; forgotten with the occurrence.
create table everytick.request_key (
    job   integer not null references everytick.job (seq),
    cause smallint not null,
    key   text not null,
    nth   integer not null,
    call  bigint not null,
    id    uuid not null,
    primary key (job, cause, key)
);

create index request_key_id on everytick.request_key (id);

-- Neighbouring instants that did not run, all for one reason.
create table everytick.span (
    job        integer not null references everytick.job (seq),
    seq        bigint generated always as identity,
    status     smallint not null check (status in (15, 16)),
    why        text not null,
    detail     text not null,
    after_at   timestamptz not null,
    through_at timestamptz not null,
    version    integer not null,
    count      integer,
    primary key (job, seq)
);

-- -------------------------------------------------------------------------------------- occurrences

-- The token of a claim is drawn at random and is part of what its owner proves: a copy of these tables that was restored
-- from an older one hands out the same keys and fences again. owner is the node that holds an occurrence now, node the
-- last one that ran it, and found the status that the last claim found.
-- Status: 0 pending, 1 queued, 2 running, 3 awaiting_retry; from 10 on it is over and never changes again.
-- One is early when its ready_at had not come as it was written: parked retries and jitter stand apart, in an index
-- of their own, so that a claim does not walk past them; whoever finds that the time has come ends it.
-- Of a disabled job `early` is null for what waits for a node: it stands in neither index until the job is enabled.
-- There is room for the steps of an occurrence beside it: one that changes nothing an index knows is written in place.
create table everytick.occurrence (
    seq                bigint generated always as identity primary key,
    id                 uuid not null unique,
    job                integer not null,
    version            integer not null,
    scheduled_for      timestamptz not null,
    status             smallint not null check (status between 0 and 3 or status between 10 and 17),
    cause              smallint not null check (cause between 0 and 5),
    priority           integer not null,
    fence              integer not null default 0,
    number             integer not null default 0,
    lost               integer not null default 0,
    late               boolean not null,
    superseded_by_next boolean not null default false,
    awaited            boolean not null default false,
    early              boolean default false,
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
    cancel             text,
    error              text,
    reason             text,
    overrides          text,
    payload            text,
    replay_of          text,
    execution_timeout  bigint,
    deadline_at        timestamptz generated always as (everytick.deadline(started_at, execution_timeout)) stored
) with (fillfactor = 70);

create index occurrence_ready on everytick.occurrence (needs, priority desc, line_at, id)
    where not early and (status = 0 or (status = 3 and owner is null));
create index occurrence_early on everytick.occurrence (needs, ready_at)
    where early and (status = 0 or (status = 3 and owner is null));
create index occurrence_active on everytick.occurrence (job, line_at) where status < 10;
create index occurrence_history on everytick.occurrence (job, scheduled_for, id) where status >= 10;
create index occurrence_newest on everytick.occurrence (scheduled_for, id) where status >= 10;

-- Who still waits for the report of an ended occurrence. A table of its own: a delivery takes a narrow row away and
-- leaves the occurrence, with all its indexes, alone.
create table everytick.report (
    needs      text collate "C" not null,
    ended_at   timestamptz not null,
    occurrence bigint not null,
    primary key (needs, ended_at, occurrence)
);

create table everytick.task_run (
    occurrence         bigint not null,
    task               text not null,
    status             smallint not null check (status between 0 and 6),
    attempts           integer not null,
    retries            integer not null,
    last               smallint,
    out_of_time        boolean not null,
    resume_at          timestamptz,
    started_at         timestamptz,
    attempt_started_at timestamptz,
    ended_at           timestamptz,
    error              text,
    because_of         text,
    result             text,
    waits              bigint[],
    primary key (occurrence, task)
);

-- Progress and log are told while it runs and are for people: no decision looks at them.
create table everytick.attempt (
    occurrence     bigint not null,
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
    node           text,
    primary key (occurrence, task, number)
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
    names     text[] not null,
    stored_at timestamptz not null
);

-- ------------------------------------------------------------------------------------------- people

-- A job with the facts that no plan has folded in yet.
create view everytick.job_standing as
select j.seq as job, j.id, j.name, j.created_at, s.needs, s.version, s.first_version, s.revision, s.watermark,
       s.removed_at, s.removed_by, s.retire_at, s.reschedule_made_at, s.reschedule_to, s.reschedule_by, s.narrowed_at,
       coalesce(s.parked, s.parked_reason) as parked_reason,
       s.woken + w.facts as woken,
       coalesce(w.at, s.wake_at) as wake_at, s.next_run_at,
       s.run_count + w.runs as run_count, coalesce(w.error, s.last_error) as last_error,
       greatest(s.last_failure_at, w.failed_at) as last_failure_at,
       coalesce(e.scheduled_for, s.end_scheduled_for) as end_scheduled_for,
       case when e.ended_at is null then s.end_started_at else e.started_at end as end_started_at,
       coalesce(e.ended_at, s.end_at) as end_at,
       coalesce(e.id, s.end_id) as end_id,
       coalesce(g.scheduled_for, s.success_scheduled_for) as success_scheduled_for,
       case when g.ended_at is null then s.success_started_at else g.started_at end as success_started_at,
       coalesce(g.ended_at, s.success_at) as success_at,
       coalesce(g.id, s.success_id) as success_id,
       case when g.ended_at is null then s.other_scheduled_for
            else coalesce(b.scheduled_for, s.success_scheduled_for) end as other_scheduled_for,
       case when g.ended_at is null then s.other_started_at
            when b.ended_at is null then s.success_started_at else b.started_at end as other_started_at,
       case when g.ended_at is null then s.other_at else coalesce(b.ended_at, s.success_at) end as other_at,
       case when g.ended_at is null then s.other_id else coalesce(b.id, s.success_id) end as other_id
  from everytick.job j
  join everytick.job_state s on s.job = j.seq
  cross join lateral (select count(*) filter (where wakes) as facts, max(at) filter (where wakes) as at,
                             count(*) filter (where ended_at is not null and started_at is not null) as runs,
                             (array_agg(error order by seq desc) filter (where error is not null))[1] as error,
                             max(failed_at) as failed_at
                        from everytick.wake where job = j.seq) w
  left join lateral (select * from everytick.wake where job = j.seq and ended_at is not null
                      order by seq desc limit 1) e on true
  left join lateral (select * from everytick.wake where job = j.seq and well
                      order by seq desc limit 1) g on true
  left join lateral (select * from everytick.wake where job = j.seq and well and g.seq is not null
                      order by seq desc offset 1 limit 1) b on true;

-- The views have the same names and columns as in SQLite.

-- Jobs as people ask for them; parked_reason says why a definition cannot be read or a plan was refused, else it is
-- empty.
create view everytick.jobs as
select v.id, v.name, d.kind, d.schedule, d.enabled and v.removed_at is null as enabled,
       p.seq is not null as paused, p.since as paused_since, p.until as paused_until, v.version, v.revision,
       case when d.enabled and v.removed_at is null and (p.seq is null or p.until is not null)
            then v.next_run_at end as next_run,
       v.end_started_at as last_run, v.end_at as last_end, v.success_at as last_success,
       v.last_failure_at as last_failure,
       v.run_count, v.last_error,
       (select max(o.created_at) from everytick.occurrence o where o.job = v.job and o.status not in (15, 16))
           as last_enqueued,
       v.watermark, v.removed_at, v.parked_reason, v.created_at, d.updated_at
  from everytick.job_standing v
  join everytick.definition d on d.job = v.job and d.version = v.version
  left join lateral (select p.* from everytick.pause p
                      where p.job = v.job and (p.until is null or p.until > everytick.everytick_now())
                      order by p.seq limit 1) p on true;

create view everytick.occurrences as
select 'occ_' || o.id as id, j.id as job_id, j.name as job, o.version, o.scheduled_for,
       z.name as status, c.name as cause, o.late, o.priority,
       everytick.queue_of(o.needs) as queue, o.owner, o.node, o.fence, o.ready_at, o.started_at, o.deadline_at,
       o.ended_at, o.covers_after, o.covers_through, o.error, o.reason, o.payload, o.overrides, o.replay_of,
       exists (select from everytick.report r where r.needs = o.needs and r.ended_at = o.ended_at
                                                and r.occurrence = o.seq) as report_due,
       o.created_at, o.updated_at
  from everytick.occurrence o
  join everytick.job j on j.seq = o.job
  join everytick.occurrence_status z on z.code = o.status
  join everytick.cause c on c.code = o.cause;

-- A run is there from its occurrence on; it changed last when it began an attempt or ended.
create view everytick.task_runs as
select 'occ_' || o.id as occurrence_id, j.name as job, r.task, z.name as status,
       r.attempts, r.retries, r.started_at, r.ended_at, r.resume_at, r.error, r.because_of, r.result, o.created_at,
       greatest(o.created_at, r.started_at, r.ended_at,
                (select max(coalesce(a.ended_at, a.started_at)) from everytick.attempt a
                  where a.occurrence = r.occurrence and a.task = r.task)) as updated_at
  from everytick.task_run r
  join everytick.occurrence o on o.seq = r.occurrence
  join everytick.job j on j.seq = o.job
  join everytick.run_status z on z.code = r.status;

-- An attempt after the first is there from the end of the one before it.
create view everytick.attempts as
select 'occ_' || o.id as occurrence_id, j.name as job, a.task, a.number,
       z.name as status, a.started_at, a.ended_at, a.error, a.node,
       a.progress_done, a.progress_total, a.progress_text, a.log_node, a.log_path,
       coalesce(b.ended_at, a.started_at) as created_at
  from everytick.attempt a
  join everytick.occurrence o on o.seq = a.occurrence
  join everytick.job j on j.seq = o.job
  join everytick.attempt_status z on z.code = a.status
  left join everytick.attempt b on b.occurrence = a.occurrence and b.task = a.task and b.number = a.number - 1;

create view everytick.skipped_spans as
select j.id as job_id, j.name as job, z.name as status, s.why, s.detail,
       s.after_at as span_after, s.through_at as span_through, s.version, s.count
  from everytick.span s
  join everytick.job j on j.seq = s.job
  join everytick.occurrence_status z on z.code = s.status;

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
  join everytick.job j on j.seq = o.job
  join everytick.definition d on d.job = o.job and d.version = o.version;

create view everytick.nodes as
select n.id, n.beat_at, n.beats,
       (select count(*)::int from everytick.occurrence o where o.status < 10 and o.owner = n.id) as holds, n.facts
  from everytick.node n;

-- What people may write: enabled and paused of a job, which do what disable, enable, pause and resume do. A test holds
-- the rows that they leave equal.

create function everytick.refuse() returns trigger language plpgsql as $$
begin
    raise exception '%', tg_argv[0];
end $$;

create trigger jobs_are_defined instead of insert on everytick.jobs for each row
    execute function everytick.refuse('a job is defined in code, in a file or with everytick apply, not by an insert');
create trigger jobs_are_removed instead of delete on everytick.jobs for each row
    execute function everytick.refuse('a job is removed with everytick remove, not by a delete');
create trigger a_version_never_changes before update of kind, schedule, enabled on everytick.definition for each row
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
    select s.* into held from everytick.job j join everytick.job_state s on s.job = j.seq
     where j.id = old.id for no key update of s;
    moment := everytick.everytick_now();
    if held.revision <> old.revision then
        raise exception 'somebody else changed the job at the same moment: try again';
    end if;
    if new.enabled <> old.enabled then
        if held.version - held.first_version + 1 >= 15 + new.enabled::int then
            raise exception
                'too many versions of the job wait to be decided: try again once a node has looked at it';
        end if;
        insert into everytick.definition (job, version, in_force_after, kind, schedule, enabled, reports, definition,
                                          effective, changed_by, updated_at)
        select d.job, d.version + 1, moment, d.kind, d.schedule, new.enabled, d.reports,
               everytick.with_key(d.definition::json, 'policies', everytick.with_key(
                   d.definition::json -> 'policies', 'enabled', new.enabled::text)),
               everytick.with_key(d.effective, 'enabled',
                   json_build_object('origin', 'job', 'value', new.enabled)::text)::json, 'sql', moment
          from everytick.definition d where d.job = held.job and d.version = held.version;
        update everytick.job_state
           set version = version + 1, first_version = case when parked is null then first_version else version + 1 end,
               revision = revision + 1, retire_at = null, undefined_since = null, parked = null,
               next_run_at = case when next_run_at > moment then next_run_at end
         where job = held.job;
        update everytick.occurrence o set version = held.version + 1
         where o.seq = any(array(
               select a.seq from everytick.occurrence a
                where a.job = held.job and a.status < 2
                  and not exists (select from everytick.task_run r where r.occurrence = a.seq)
                order by a.seq for no key update));
        update everytick.occurrence o
           set status = case when o.status = 0 and not new.enabled then 1 else o.status end,
               early = case when new.enabled then coalesce(o.ready_at > moment, false)
                            when o.status = 0 then o.early end,
               updated_at = case when o.status = 0 and not new.enabled then moment else o.updated_at end
         where o.seq = any(array(
               select a.seq from everytick.occurrence a
                where a.job = held.job and a.status < 10
                  and case when new.enabled then a.early is null
                           else a.status = 0 or (a.status = 3 and a.owner is null) end
                order by a.seq for no key update))
           and (new.enabled or o.status = 0 or (o.status = 3 and o.owner is null));
    end if;
    if new.paused and not old.paused then
        insert into everytick.pause (job, since, missed, reason, paused_by)
        values (held.job, moment, 'skip', '', 'sql');
        update everytick.occurrence o set status = 1, updated_at = moment
         where o.seq = any(array(
               select a.seq from everytick.occurrence a
                where a.job = held.job and a.status < 10 and a.status = 0 and a.cause = 0
                order by a.seq for no key update))
           and o.status = 0;
    elsif old.paused and not new.paused then
        update everytick.pause p set until = moment, resumed_by = 'sql'
         where p.job = held.job and p.seq = (
               select h.seq from everytick.pause h
                where h.job = held.job and (h.until is null or h.until > moment) order by h.seq limit 1);
    end if;
    if new.paused <> old.paused then
        update everytick.job_state
           set revision = revision + 1,
               next_run_at = case when next_run_at > moment and old.paused_until is null then next_run_at end
         where job = held.job;
    end if;
    if new.paused <> old.paused or new.enabled <> old.enabled then
        insert into everytick.wake (job, at, needs)
        select s.job, moment, s.needs from everytick.job_state s where s.job = held.job;
        perform everytick.ring();
    end if;
    return new;
end $$;

create trigger jobs_are_switched instead of update on everytick.jobs for each row
    execute function everytick.switch_job();
