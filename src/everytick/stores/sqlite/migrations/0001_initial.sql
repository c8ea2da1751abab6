-- May run while old nodes are up: there is nothing yet that they could read.
--
-- Times are whole microseconds since 1970 in UTC. Statuses and causes are small numbers, so that an
-- occurrence stays a short row; the views at the end say everything in words.

create table store_clock (
  one integer primary key check (one = 1),
  latest integer not null
) strict;
insert into store_clock values (1, -62135596800000000);

create table occurrence_status (code integer primary key, name text not null unique) strict;
insert into occurrence_status values
  (0, 'pending'), (1, 'running'), (2, 'awaiting_retry'), (3, 'queued'),
  (4, 'completed'), (5, 'completed_with_errors'), (6, 'failed'), (7, 'canceled'), (8, 'failed_stale'),
  (9, 'skipped'), (10, 'missed'), (11, 'superseded');

create table run_status (code integer primary key, name text not null unique) strict;
insert into run_status values
  (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'skipped');

create table attempt_status (code integer primary key, name text not null unique) strict;
insert into attempt_status values
  (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'lost');

create table cause (code integer primary key, name text not null unique) strict;
insert into cause values
  (0, 'schedule'), (1, 'trigger'), (2, 'replay'), (3, 'backfill'), (4, 'create'), (5, 'restart');

-- What a job is: written by people, seldom. The newest version's own words stand here for questions in SQL.
create table job (
  job integer primary key autoincrement,
  id text not null unique,
  name text not null unique,
  kind text not null,
  schedule text not null,
  enabled integer not null,
  keep_success integer,
  keep_failure integer,
  keep_last integer not null,
  created_at integer not null,
  removed_at integer,
  removed_by text not null default ''
) strict;

-- One row per version, never changed: an occurrence names the one it runs under.
create table job_version (
  job integer not null references job,
  version integer not null,
  definition text not null,
  config text not null,
  reports integer not null,
  in_force_after integer,
  made_at integer not null,
  edited_by text not null,
  primary key (job, version)
) strict, without rowid;

-- Where a job's planning stands: narrow, written by every plan and every end.
create table job_state (
  job integer primary key references job,
  id text not null unique,
  version integer not null,
  oldest_edition integer not null,
  revision integer not null,
  woken integer not null,
  watermark integer not null,
  wake_at integer,
  next_run_at integer,
  retire_at integer,
  rescheduled_at integer,
  rescheduled_for integer,
  rescheduled_by text,
  last_end_for integer,
  last_end_started_at integer,
  last_end_at integer,
  last_end_id blob,
  last_success_for integer,
  last_success_started_at integer,
  last_success_at integer,
  last_success_id blob,
  other_success_for integer,
  other_success_started_at integer,
  other_success_at integer,
  other_success_id blob
) strict;
create index job_due on job_state (wake_at, id) where wake_at is not null;

-- A definition that a node could not read: it waits here to be seen, and harms no other job.
create table parked_definition (
  job integer not null references job,
  version integer not null,
  reason text not null,
  parked_at integer not null,
  primary key (job, version)
) strict, without rowid;

create table pause (
  seq integer primary key autoincrement,
  job integer not null references job,
  since_at integer not null,
  until_at integer,
  missed text not null,
  reason text not null,
  paused_by text not null,
  resumed_by text not null default ''
) strict;
create index pause_job on pause (job);

create table adjustment (
  seq integer primary key autoincrement,
  job integer not null references job,
  instant_at integer not null,
  kind text not null,
  moved_to_at integer,
  reason text not null,
  adjusted_by text not null,
  done integer not null,
  overrides text,
  payload text,
  unique (job, instant_at)
) strict;

create table request (
  seq integer primary key autoincrement,
  job integer not null references job,
  key text not null,
  cause integer not null references cause,
  requested_at integer not null,
  payload text,
  overlap text,
  reason text not null,
  requested_by text not null,
  replay_of text,
  scheduled_for integer,
  covers_after integer,
  covers_through integer,
  fill_after integer,
  fill_through integer,
  again integer not null,
  keeps text,
  unique (job, key)
) strict;

-- Instants that did not run, all of one reason; covers_through is the last of them.
create table span (
  seq integer primary key autoincrement,
  job integer not null references job,
  version integer not null,
  status integer not null references occurrence_status,
  why text not null,
  detail text not null,
  covers_after integer not null,
  covers_through integer not null,
  count integer
) strict;
create index span_job on span (job, covers_through);

-- seq is the handle that owners write by: autoincrement, since a zombie's handle must never name another row.
create table occurrence (
  seq integer primary key autoincrement,
  id blob not null unique,
  job integer not null references job,
  version integer not null,
  scheduled_for integer not null,
  status integer not null references occurrence_status,
  cause integer not null references cause,
  late integer not null,
  covers_after integer,
  covers_through integer,
  line_at integer,
  ready_at integer,
  owner text,
  fence integer not null default 0,
  started_at integer,
  ended_at integer,
  error text,
  overrides text,
  payload text,
  replay_of text,
  reason text,
  created_at integer not null,
  updated_at integer not null,
  priority integer not null,
  queue text not null,
  number integer not null default 0,
  claimed_at integer,
  lost integer not null default 0,
  cancel text,
  superseded_by_next integer not null default 0,
  report_due integer not null default 0,
  later integer not null default 0,
  awaited integer not null default 0,
  execution_timeout integer,
  deadline_at integer generated always as (started_at + execution_timeout) virtual,
  check ((status < 4) = (ended_at is null))
) strict;
-- later = 1: ready_at was still to come when the row was written. Such a row stands apart until its time has come,
-- so that thousands of parked retries are not walked past to find what is ready.
create index occurrence_ready on occurrence (queue, priority desc, line_at, id)
  where later = 0 and (status = 0 or (status = 2 and owner is null));
create index occurrence_later on occurrence (queue, ready_at) where later = 1;
-- Active is what has no end. Its index says so by ended_at, which a claim does not touch, though it changes the status.
create index occurrence_active on occurrence (job, line_at, id) where ended_at is null;
create index occurrence_held on occurrence (owner) where owner is not null;
-- What may be out of time while a node holds it; the deadline is that of the version it was first claimed under.
create index occurrence_deadline on occurrence (deadline_at) where owner is not null and execution_timeout is not null;
create index occurrence_of_job on occurrence (job, scheduled_for, id);
create index occurrence_by_time on occurrence (scheduled_for, id);
-- What ended well is kept for another time than what did not; each can then be found by its age alone.
create index occurrence_ended on occurrence (job, status, ended_at) where ended_at is not null;
create index occurrence_report on occurrence (ended_at, id) where report_due = 1;

create table task_run (
  occurrence integer not null references occurrence,
  task text not null,
  place integer not null,
  status integer not null references run_status,
  attempts integer not null,
  retries integer not null,
  last integer references attempt_status,
  resume_at integer,
  started_at integer,
  attempt_started_at integer,
  ended_at integer,
  error text,
  result text,
  waits text,
  because_of text,
  out_of_time integer not null,
  primary key (occurrence, task)
) strict, without rowid;

create table attempt (
  occurrence integer not null references occurrence,
  task text not null,
  number integer not null,
  place integer not null,
  status integer not null references attempt_status,
  started_at integer,
  ended_at integer,
  error text,
  progress_done real,
  progress_total real,
  progress_text text,
  log_node text,
  log_path text,
  primary key (occurrence, task, number)
) strict, without rowid;

create index attempt_failed on attempt (occurrence) where status in (3, 4);

-- When an attempt of a job last failed, as far as its occurrence was forgotten.
create table forgotten_failure (
  job integer primary key references job,
  at integer not null
) strict;

-- beats counts signs of life: whether a node is silent is judged by those who watch this number, on their own clocks.
-- 0 says that it has left.
create table node (
  id text primary key,
  beat_at integer not null,
  facts text,
  beats integer not null default 0
) strict, without rowid;

-- An occurrence as the code reads it, with its job's public id.
create view occurrence_record as
select o.seq, o.id, j.id as job_id, o.version, o.scheduled_for, o.status, o.cause, o.late, o.covers_after,
       o.covers_through, o.line_at, o.ready_at, o.owner, o.fence, o.started_at, o.ended_at, o.error, o.overrides,
       o.payload, o.replay_of, o.reason, o.created_at, o.updated_at, o.number, o.claimed_at, o.lost, o.cancel, o.job
  from occurrence o join job j on j.job = o.job;

-- ------------------------------------------------------------------------------------------------ for people

create view jobs as
select j.id, j.name, j.kind, j.schedule, j.enabled, s.version, s.revision,
       datetime(s.next_run_at / 1000000, 'unixepoch') as next_run,
       datetime(s.last_end_started_at / 1000000, 'unixepoch') as last_run,
       datetime(s.last_success_at / 1000000, 'unixepoch') as last_success,
       (select datetime(o.created_at / 1000000, 'unixepoch') from occurrence o
         where o.job = j.job order by o.scheduled_for desc, o.id desc limit 1) as last_enqueued,
       datetime(s.watermark / 1000000, 'unixepoch') as watermark,
       exists (select 1 from pause p where p.job = j.job
                 and (p.until_at is null or p.until_at > (select latest from store_clock))) as paused,
       datetime(j.removed_at / 1000000, 'unixepoch') as removed_at,
       (select group_concat('version ' || d.version || ': ' || d.reason, '; ')
          from parked_definition d where d.job = j.job) as parked
  from job j join job_state s on s.job = j.job;

create view occurrences as
select 'occ_' || lower(substr(hex(o.id), 1, 8) || '-' || substr(hex(o.id), 9, 4) || '-' || substr(hex(o.id), 13, 4)
         || '-' || substr(hex(o.id), 17, 4) || '-' || substr(hex(o.id), 21)) as id,
       j.name as job, j.id as job_id, o.version,
       datetime(o.scheduled_for / 1000000, 'unixepoch') as scheduled_for,
       s.name as status, c.name as cause, o.late, o.reason, o.error, o.owner, o.fence, o.queue, o.priority,
       datetime(o.ready_at / 1000000, 'unixepoch') as ready_at,
       datetime(o.started_at / 1000000, 'unixepoch') as started_at,
       datetime(o.ended_at / 1000000, 'unixepoch') as ended_at,
       datetime(o.created_at / 1000000, 'unixepoch') as created_at,
       o.payload, o.overrides, o.replay_of, o.seq
  from occurrence o join job j on j.job = o.job
  join occurrence_status s on s.code = o.status join cause c on c.code = o.cause;

create view task_runs as
select o.id as occurrence_id, o.job, r.task, s.name as status, r.attempts, r.retries,
       datetime(r.started_at / 1000000, 'unixepoch') as started_at,
       datetime(r.ended_at / 1000000, 'unixepoch') as ended_at,
       r.error, r.result, r.because_of
  from task_run r join occurrences o on o.seq = r.occurrence join run_status s on s.code = r.status;

create view attempts as
select o.id as occurrence_id, o.job, a.task, a.number, s.name as status,
       datetime(a.started_at / 1000000, 'unixepoch') as started_at,
       datetime(a.ended_at / 1000000, 'unixepoch') as ended_at,
       a.error, a.progress_done, a.progress_total, a.progress_text, a.log_node, a.log_path
  from attempt a join occurrences o on o.seq = a.occurrence join attempt_status s on s.code = a.status;

create view skipped_spans as
select j.name as job, s.name as status, p.why, p.detail, p.version, p.count,
       datetime(p.covers_after / 1000000, 'unixepoch') as covers_after,
       datetime(p.covers_through / 1000000, 'unixepoch') as covers_through
  from span p join job j on j.job = p.job join occurrence_status s on s.code = p.status;

-- The config an occurrence runs with, whole: that of its version and its own overrides on top.
create view effective_config as
select o.id as occurrence_id, o.job, o.version,
       json_patch(v.config, json_patch(coalesce(o.overrides, '{}'),
         case when o.payload is null then '{}' else json_object('payload', json(o.payload)) end)) as config
  from occurrences o join job j on j.id = o.job_id join job_version v on v.job = j.job and v.version = o.version;

create view nodes as
select n.id, datetime(n.beat_at / 1000000, 'unixepoch') as beat_at,
       (select count(*) from occurrence o where o.owner = n.id) as holds, n.facts
  from node n;
