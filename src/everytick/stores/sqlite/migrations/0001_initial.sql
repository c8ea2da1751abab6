-- May run while old nodes are up: there is nothing yet that they could read.
--
-- Times are whole microseconds since 1970 in UTC. Statuses and causes are small numbers, so that an
-- occurrence stays a short row; the views at the end say everything in words. Of statuses and causes the tables check
-- the range: a foreign key would look each one up again.

create table occurrence_status (code integer primary key, name text not null unique) strict;
insert into occurrence_status values
  (0, 'pending'), (1, 'queued'), (2, 'running'), (3, 'awaiting_retry'),
  (10, 'completed'), (11, 'completed_with_errors'), (12, 'failed'), (13, 'canceled'), (14, 'failed_stale'),
  (15, 'skipped'), (16, 'missed'), (17, 'superseded');

create table run_status (code integer primary key, name text not null unique) strict;
insert into run_status values
  (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'skipped');

create table attempt_status (code integer primary key, name text not null unique) strict;
insert into attempt_status values
  (0, 'pending'), (1, 'running'), (2, 'success'), (3, 'failed'), (4, 'timeout'), (5, 'canceled'), (6, 'lost');

create table cause (code integer primary key, name text not null unique) strict;
insert into cause values
  (0, 'schedule'), (1, 'trigger'), (2, 'replay'), (3, 'backfill'), (4, 'create'), (5, 'restart');

-- Every text of needs that any job or occurrence has had. There are few; a node notes those that it meets.
create table needs (text text primary key) strict, without rowid;

-- Who a job is: written by people, seldom.
create table job (
  job_key integer primary key autoincrement,
  id text not null unique,
  name text not null unique,
  created_at integer not null
) strict;

-- One row per version, never changed: an occurrence names the one it runs under. in_force_after is its moment, follows
-- the version whose window ends before it, or whose rollout was rolled back, rollout the stages of one on trial.
create table job_version (
  job_key integer not null references job,
  version integer not null,
  kind text not null constraint kind_valid check (kind in ('task', 'flow')),
  schedule text not null,
  enabled integer not null check (enabled in (0, 1)),
  definition text not null,
  effective text not null,
  reports integer not null check (reports in (0, 1)),
  in_force_after integer,
  edited_at integer not null,
  edited_by text not null,
  follows integer,
  rollout text,
  primary key (job_key, version)
) strict, without rowid;

-- Where a job's planning stands: narrow, written by every plan and every end. planned_woken is the woken that the last
-- plan had seen: where they differ, wake_at is when a verb woke the job. unreadable_reason says why a node could not read
-- its definition, parked_reason why its last plan was refused. Durations are in microseconds.
create table job_state (
  job_key integer primary key references job,
  id text not null unique,
  needs text not null,
  version integer not null,
  oldest_version integer not null,
  revision integer not null,
  woken integer not null,
  planned_woken integer not null default 0,
  watermark integer not null,
  wake_at integer,
  next_run_at integer,
  run_count integer not null default 0,
  last_error text,
  last_failure_at integer,
  removed_at integer,
  removed_by text not null default '',
  retire_at integer,
  undefined_since integer,
  reschedule_made_at integer,
  reschedule_for integer,
  reschedule_by text,
  last_end_scheduled_for integer,
  last_end_started_at integer,
  last_end_at integer,
  last_end_id blob,
  last_success_scheduled_for integer,
  last_success_started_at integer,
  last_success_at integer,
  last_success_id blob,
  other_success_scheduled_for integer,
  other_success_started_at integer,
  other_success_at integer,
  other_success_id blob,
  narrowed_at integer,
  stopped_at integer,
  keep_success integer,
  keep_failure integer,
  keep_last integer not null,
  is_needed integer not null default 0,
  plan_token integer,
  unreadable_reason text,
  parked_reason text
) strict;
create index job_state_due on job_state (needs, wake_at, id) where wake_at is not null;
-- Jobs that a start of their owner has left out: hardly ever any.
create index job_state_undefined on job_state (undefined_since) where undefined_since is not null;

create table pause (
  pause_key integer primary key autoincrement,
  job_key integer not null references job,
  since_at integer not null,
  until_at integer,
  missed text not null check (missed in ('skip', 'catch_up', 'last')),
  reason text not null,
  paused_by text not null,
  resumed_by text
) strict;
create index pause_job on pause (job_key);

-- What jobs depend on. The definition names another job, which is followed by its id. is_needed of job_state says that
-- some job depends on this one, or did so before its last edit.
create table dependency (
  job_key integer not null references job,
  name text not null,
  needed_id text not null,
  primary key (job_key, name)
) strict, without rowid;
create index dependency_needed on dependency (needed_id);

create table adjustment (
  adjustment_key integer primary key autoincrement,
  job_key integer not null references job,
  instant_at integer not null,
  kind text not null check (kind in ('skip', 'move', 'amend')),
  moved_to_at integer,
  reason text not null,
  adjusted_by text not null,
  is_done integer not null,
  overrides text,
  payload text,
  told_at integer,
  unique (job_key, instant_at)
) strict;

-- The runs to come of jobs that have a horizon, for people: the last plan wrote them, and no plan reads them.
create table coming (
  job_key integer not null references job,
  instant_at integer not null,
  run_at integer not null,
  id blob not null,
  mark text,
  detail text not null,
  overrides text,
  payload text,
  zone_data text not null,
  primary key (job_key, instant_at)
) strict, without rowid;

create table request (
  request_key integer primary key autoincrement,
  job_key integer not null references job,
  key text not null,
  cause integer not null check (cause between 0 and 5),
  requested_at integer not null,
  payload text,
  overlap text,
  reason text not null,
  requested_by text not null,
  replay_of text,
  scheduled_for integer,
  covers_after integer,
  covers_through integer,
  keeps text,
  nth integer not null,
  id blob not null,
  due_at integer not null,
  unique (job_key, cause, key)
) strict;
-- A plan sees a request from its due_at on, which is 0 for one that was asked for at once.
create index request_due on request (job_key, due_at);
-- By the id of what it asks for it is seen and canceled before a plan has answered it.
create index request_id on request (id);

-- How often a key that a caller named was used, for which occurrence and by which call; forgotten with the occurrence.
create table request_key (
  job_key integer not null references job,
  cause integer not null references cause,
  key text not null,
  nth integer not null,
  call integer not null,
  id blob not null,
  primary key (job_key, cause, key)
) strict, without rowid;
create index request_key_id on request_key (id);

-- A backfill: the instants in (fill_after, fill_through] that it asks for, those in (left_after, left_through] that are
-- left, and how it goes. One that is running has a request of its key too, without an instant: so a plan finds it, and a
-- job without one is not asked about it. They run in the order of place.
create table backfill (
  backfill_key integer primary key autoincrement,
  job_key integer not null references job,
  id text not null unique,
  key text not null,
  status text not null check (status in ('planned', 'running', 'paused', 'filled', 'canceled')),
  place integer not null default 0,
  fill_after integer not null,
  fill_through integer not null,
  left_after integer not null,
  left_through integer not null,
  again integer not null,
  as_of_now integer not null,
  newest_first integer not null,
  overlap text,
  rate integer not null,
  pace integer not null,
  count integer,
  created integer not null default 0,
  reason text not null,
  planned_at integer not null,
  planned_by text not null,
  approved_at integer,
  approved_by text not null default '',
  changed_by text not null default '',
  paced_at integer not null,
  filled_at integer,
  ended_at integer,
  unique (job_key, key)
) strict;

-- The occurrences that a backfill has made, in order; status is the one that an occurrence had when it was forgotten.
create table filled (
  backfill_key integer not null references backfill,
  place integer not null,
  id blob not null,
  status integer,
  primary key (backfill_key, place)
) strict, without rowid;
create index filled_id on filled (id);

-- Instants that did not run, all of one reason; covers_through is the last of them.
create table span (
  span_key integer primary key autoincrement,
  job_key integer not null references job,
  version integer not null,
  status integer not null check (status in (15, 16)),
  why text not null,
  detail text not null,
  span_after integer not null,
  span_through integer not null,
  count integer
) strict;
create index span_job on span (job_key, span_through);
create index span_missed on span (span_through, span_after) where status = 16;

-- Where each promise of a job stands; only jobs with promises have rows. check_at is when the next breach could be there,
-- broken_for names the breach that goes on.
create table promise (
  job_key integer not null references job,
  kind text not null check (kind in ('success_within', 'start_by', 'finish_by')),
  judged_through integer not null,
  check_at integer,
  held_after integer,
  held_through integer,
  broken_for integer,
  revision integer not null default 1,
  primary key (job_key, kind)
) strict, without rowid;
create index promise_due on promise (check_at) where check_at is not null;

-- Promises that were broken: one row from the first instant that was not kept to the end of it.
create table breach (
  job_key integer not null references job,
  kind text not null check (kind in ('success_within', 'start_by', 'finish_by')),
  broken_for integer not null,
  due_at integer not null,
  found_at integer not null,
  last_for integer not null,
  count integer not null,
  reason text not null,
  occurrence_id blob,
  ended_at integer,
  is_withdrawn integer not null,
  is_begin_owed integer not null,
  is_end_owed integer not null,
  primary key (job_key, kind, broken_for)
) strict, without rowid;
create index breach_owed on breach (found_at) where is_begin_owed or is_end_owed;

-- Owners write by the handle: autoincrement, since a zombie's handle must never name another row. A file
-- that was restored from a copy hands the same ones out again: so each claim draws a token, which its owner names too.
-- owner is the node that holds it now, node the last one that ran it; found is the status that the last claim found.
create table occurrence (
  handle integer primary key autoincrement,
  id blob not null unique,
  job_key integer not null references job,
  version integer not null,
  scheduled_for integer not null,
  status integer not null check (status between 0 and 3 or status between 10 and 17),
  cause integer not null check (cause between 0 and 5),
  late integer not null,
  covers_after integer,
  covers_through integer,
  line_at integer,
  ready_at integer,
  owner text,
  node text,
  fence integer not null default 0,
  claim_token integer not null default 0,
  found integer not null default 0 references occurrence_status,
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
  needs text not null,
  step_number integer not null default 0,
  claimed_at integer,
  lost integer not null default 0,
  cancel_reason text,
  superseded_by_next integer not null default 0,
  is_early integer default 0,
  awaited integer not null default 0,
  holds_place integer not null default 0,
  execution_timeout integer,
  deadline_at integer generated always as (started_at + execution_timeout) virtual,
  check ((status < 10) = (ended_at is null))
) strict;
-- holds_place: a limit counts its last claim, and its end rings the bell.
-- is_early = 1: ready_at was still to come when the row was written. Such a row stands apart until its time has come,
-- so that thousands of parked retries are not walked past to find what is ready.
-- is_early is null: its job is disabled. Such a row stands in neither index and waits until the job is enabled.
create index occurrence_ready on occurrence (needs, priority desc, line_at, id)
  where is_early = 0 and (status = 0 or (status = 3 and owner is null));
create index occurrence_early on occurrence (needs, ready_at) where is_early = 1;
-- Active is what has no end. Its index says so by ended_at, which a claim does not touch, though it changes the status.
create index occurrence_active on occurrence (job_key, line_at, id) where ended_at is null;
create index occurrence_held on occurrence (owner) where owner is not null;
-- What may be out of time while a node holds it; the deadline is that of the version it was first claimed under.
create index occurrence_deadline on occurrence (deadline_at) where owner is not null and execution_timeout is not null;
create index occurrence_of_job on occurrence (job_key, scheduled_for, id);
create index occurrence_by_time on occurrence (scheduled_for, id);
-- What ended well is kept for another time than what did not; each can then be found by its age alone.
create index occurrence_ended on occurrence (job_key, status, ended_at) where ended_at is not null;

-- A backfill knows what became of its occurrences also when they are forgotten. 3 is the cause backfill.
create trigger fills_are_kept after delete on occurrence when old.cause = 3 begin
  update filled set status = old.status where id = old.id;
end;

-- Ended occurrences whose report was not delivered yet.
create table report (
  needs text not null,
  ended_at integer not null,
  handle integer not null,
  primary key (needs, ended_at, handle)
) strict, without rowid;

-- What ended occurrences add up to, for pages. It is written behind, in the order of handles: all up to last_handle are
-- counted but those in `unfolded`, which had not ended when they were passed. swept_key and swept_handle are the last of
-- these that was looked at.
create table rollup (
  only_row integer primary key check (only_row = 1),
  last_handle integer not null,
  swept_key integer not null,
  swept_handle integer not null
) strict;
insert into rollup values (1, 0, 0, 0);

create table unfolded (
  job_key integer not null,
  handle integer not null,
  scheduled_for integer not null,
  primary key (job_key, handle)
) strict, without rowid;
create index unfolded_by_time on unfolded (scheduled_for);

-- The band of each version of a job, that pictures count its occurrences in. Apart from the version, whose texts are long:
-- a fold reads the band of every end.
create table version_band (
  job_key integer not null references job,
  version integer not null,
  band text not null,
  primary key (job_key, version)
) strict, without rowid;

-- How many ended in each step of time: steps of five minutes for some days, and whole days for good. kept says how many
-- of them retention has not deleted.
create table bucket (
  is_day integer not null,
  step_at integer not null,
  band text not null,
  status integer not null,
  count integer not null,
  kept integer not null,
  primary key (is_day, step_at, band, status)
) strict, without rowid;

-- The same for each job by UTC day; took is how long those that completed took together, in microseconds.
create table job_day (
  job_key integer not null references job,
  day_at integer not null,
  status integer not null,
  count integer not null,
  kept integer not null,
  took integer not null,
  primary key (job_key, day_at, status)
) strict, without rowid;

-- How long the latest runs of a job that completed took, in microseconds. is_stale: runs have ended since.
create table job_length (
  job_key integer primary key references job,
  count integer not null default 0,
  p5 integer not null default 0,
  p50 integer not null default 0,
  p95 integer not null default 0,
  is_stale integer not null default 1
) strict;
create index job_length_stale on job_length (job_key) where is_stale;

-- Occurrences that failed, by the kind of their error.
create table failure (
  handle integer primary key,
  job_key integer not null,
  id blob not null,
  ended_at integer not null,
  fingerprint text not null
) strict;
create index failure_by_time on failure (ended_at);
create index failure_alike on failure (fingerprint, ended_at);

create table task_run (
  handle integer not null references occurrence,
  task text not null,
  status integer not null check (status between 0 and 6),
  attempts integer not null,
  retries integer not null,
  last_attempt_status integer check (last_attempt_status between 0 and 6),
  resume_at integer,
  started_at integer,
  attempt_started_at integer,
  ended_at integer,
  error text,
  result text,
  waits text,
  because_of text,
  out_of_time integer not null,
  primary key (handle, task)
) strict, without rowid;

create table attempt (
  handle integer not null references occurrence,
  task text not null,
  number integer not null,
  status integer not null check (status between 0 and 6),
  started_at integer,
  ended_at integer,
  error text,
  progress_done real,
  progress_total real,
  progress_text text,
  log_node text,
  log_path text,
  handed_to text,
  node text,
  primary key (handle, task, number)
) strict, without rowid;

-- beats counts signs of life: whether a node is silent is judged by those who watch this number, on their own clocks.
-- 0 says that it has left.
create table node (
  id text primary key,
  beat_at integer not null,
  facts text,
  beats integer not null default 0
) strict, without rowid;

-- The names of the jobs that one start defines, once for all nodes that define the same. A node's facts name the hash.
create table name_set (
  hash text primary key,
  names text not null,
  stored_at integer not null
) strict, without rowid;

-- Limits and brakes. A reach is `all`, `queue:…`, `tag:…` or `job:…`; its row is there while a limit, a brake or a release
-- holds for it: without any row, claims look at nothing else of these tables. A rate is so many starts in so many
-- microseconds. What a brake held back is released at a rate, until release_left have started.
create table reach (
  reach text primary key,
  most integer,
  rate_count integer,
  rate_per integer,
  is_burst integer,
  reason text not null,
  set_by text not null,
  set_at integer,
  release_count integer,
  release_per integer,
  is_release_burst integer,
  release_left integer,
  released_at integer,
  released_by text not null
) strict, without rowid;

create table brake (
  brake_key integer primary key autoincrement,
  reach text not null,
  since_at integer not null,
  until_at integer,
  reason text not null,
  braked_by text not null,
  begins text,
  ends text
) strict;

-- Claims that a limit counts: as running while the occurrence has an owner, and as starts while a rate looks back at them.
create table limit_start (
  reach text not null,
  handle integer not null,
  fence integer not null,
  started_at integer not null,
  primary key (reach, handle, fence)
) strict, without rowid;
create index limit_start_by_time on limit_start (reach, started_at);

-- Who has changed a limit or brake, when and why.
create table limit_change (
  change_key integer primary key autoincrement,
  changed_at integer not null,
  reach text not null,
  what text not null,
  reason text not null,
  changed_by text not null
) strict;

-- ---------------------------------------------------------------------------------------------------- people

-- Who may use the service. grants is a JSON object from tags to roles.
create table user_account (
  name text primary key,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  grants text not null,
  password_hash text,
  added_at integer not null,
  added_by text not null
) strict, without rowid;

-- Secrets of programs: only their hash is here. One that is revoked stays, and its name is free again.
create table token (
  id text primary key,
  name text not null,
  hash text not null,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  grants text not null,
  owner text not null,
  expires_at integer,
  added_at integer not null,
  added_by text not null,
  used_at integer,
  revoked_at integer
) strict, without rowid;
create unique index token_name on token (name) where revoked_at is null;

-- Browsers that are signed in, and links to the first sign-in, by the hash of their secret.
create table session (
  hash text primary key,
  kind text not null check (kind in ('cookie', 'link')),
  name text not null,
  began_at integer not null,
  expires_at integer not null,
  seen_at integer not null,
  address text not null
) strict, without rowid;
create index session_name on session (name);

-- Names with which signing in went wrong lately, of users and of others.
create table sign_in_failure (
  name text primary key,
  count integer not null,
  failed_at integer not null
) strict, without rowid;

-- Who did what to which, why, when and from where: written with the change, never changed and never deleted.
create table deed (
  deed_key integer primary key autoincrement,
  done_at integer not null,
  done_by text not null,
  came_by text not null,
  address text not null,
  did text not null,
  subject text not null,
  detail text not null,
  reason text not null,
  job_id text
) strict;
create index deed_by on deed (done_by, deed_key);
create index deed_job on deed (job_id, deed_key) where job_id is not null;
create trigger deeds_are_not_changed before update on deed begin
  select raise(abort, 'a deed never changes');
end;
create trigger deeds_are_not_deleted before delete on deed begin
  select raise(abort, 'a deed is never deleted');
end;

-- ------------------------------------------------------------------------------------------------ for people
--
-- The same names and columns as in PostgreSQL. Times are text in UTC; 1 is true and 0 is false. SQL knows the host's time
-- in whole milliseconds, and the store's may be ahead of it: so a pause is over also by what is said of it.

-- Where a job stands, for the statements of everytick.
create view job_standing as
select s.job_key, s.id, j.name, s.version, s.revision, s.watermark, s.wake_at, s.removed_at, s.removed_by, s.retire_at,
       s.next_run_at, s.run_count, s.last_error, s.last_failure_at, s.needs,
       coalesce(s.unreadable_reason, s.parked_reason) as parked_reason,
       s.last_end_scheduled_for, s.last_end_started_at, s.last_end_at, s.last_end_id,
       s.last_success_scheduled_for, s.last_success_started_at, s.last_success_at, s.last_success_id
  from job j join job_state s on s.job_key = j.job_key;

create view jobs as
select j.id, j.name, v.kind, v.schedule, v.enabled and s.removed_at is null as enabled,
       p.pause_key is not null as paused, «utc p.since_at» as paused_since,
       «utc p.until_at» as paused_until,
       s.version, s.revision,
       case when v.enabled and s.removed_at is null and (p.pause_key is null or p.until_at is not null)
            then «utc s.next_run_at» end as next_run,
       «utc s.last_end_started_at» as last_run,
       «utc s.last_end_at» as last_end,
       «utc s.last_success_at» as last_success,
       «utc s.last_failure_at» as last_failure,
       s.run_count, s.last_error,
       (select «utc max(o.created_at)»
          from occurrence o where o.job_key = j.job_key and o.status not in (15, 16)) as last_enqueued,
       «utc s.watermark» as watermark,
       «utc s.removed_at» as removed_at,
       coalesce(s.unreadable_reason, s.parked_reason) as parked_reason,
       «utc j.created_at» as created_at,
       «utc v.edited_at» as updated_at
  from job j join job_state s on s.job_key = j.job_key
  join job_version v on v.job_key = s.job_key and v.version = s.version
  left join pause p on p.pause_key = (select min(h.pause_key) from pause h
                                 where h.job_key = j.job_key and h.resumed_by is null
                                   and (h.until_at is null or h.until_at > «now»));

create view occurrences as
select 'occ_' || lower(substr(hex(o.id), 1, 8) || '-' || substr(hex(o.id), 9, 4) || '-' || substr(hex(o.id), 13, 4)
         || '-' || substr(hex(o.id), 17, 4) || '-' || substr(hex(o.id), 21)) as id,
       j.id as job_id, j.name as job, o.version,
       «utc o.scheduled_for» as scheduled_for,
       s.name as status, c.name as cause, o.late, o.priority,
       case when instr(char(10) || o.needs, char(10) || 'queue:') = 0 then 'default'
            else substr(o.needs, instr(char(10) || o.needs, char(10) || 'queue:') + 6) end as queue,
       o.owner, o.node, o.fence,
       «utc o.ready_at» as ready_at,
       «utc o.started_at» as started_at,
       «utc o.deadline_at» as deadline_at,
       «utc o.ended_at» as ended_at,
       «utc o.covers_after» as covers_after,
       «utc o.covers_through» as covers_through,
       o.error, o.reason, o.payload, o.overrides, o.replay_of,
       exists (select 1 from report d
                where d.needs = o.needs and d.ended_at = o.ended_at and d.handle = o.handle) as report_due,
       «utc o.created_at» as created_at,
       «utc o.updated_at» as updated_at
  from occurrence o join job j on j.job_key = o.job_key
  join occurrence_status s on s.code = o.status join cause c on c.code = o.cause;

-- A run is there from its occurrence on; it changed last when it began an attempt or ended.
create view task_runs as
select 'occ_' || lower(substr(hex(o.id), 1, 8) || '-' || substr(hex(o.id), 9, 4) || '-' || substr(hex(o.id), 13, 4)
         || '-' || substr(hex(o.id), 17, 4) || '-' || substr(hex(o.id), 21)) as occurrence_id,
       j.name as job, r.task, s.name as status, r.attempts, r.retries,
       «utc r.started_at» as started_at,
       «utc r.ended_at» as ended_at,
       «utc r.resume_at» as resume_at,
       r.error, r.because_of, r.result,
       «utc o.created_at» as created_at,
       «utc r.changed_at» as updated_at
  from (select r.*, max(n.created_at, coalesce(r.started_at, 0), coalesce(r.ended_at, 0),
                        (select coalesce(max(coalesce(a.ended_at, a.started_at)), 0) from attempt a
                          where a.handle = r.handle and a.task = r.task)) as changed_at
          from task_run r join occurrence n on n.handle = r.handle) r
  join occurrence o on o.handle = r.handle join job j on j.job_key = o.job_key
  join run_status s on s.code = r.status;

-- An attempt after the first is there from the end of the one before it.
create view attempts as
select 'occ_' || lower(substr(hex(o.id), 1, 8) || '-' || substr(hex(o.id), 9, 4) || '-' || substr(hex(o.id), 13, 4)
         || '-' || substr(hex(o.id), 17, 4) || '-' || substr(hex(o.id), 21)) as occurrence_id,
       j.name as job, a.task, a.number, s.name as status,
       «utc a.started_at» as started_at,
       «utc a.ended_at» as ended_at,
       a.error, a.node, a.progress_done, a.progress_total, a.progress_text, a.log_node, a.log_path, a.handed_to,
       «utc coalesce(b.ended_at, a.started_at)» as created_at
  from attempt a join occurrence o on o.handle = a.handle join job j on j.job_key = o.job_key
  join attempt_status s on s.code = a.status
  left join attempt b on b.handle = a.handle and b.task = a.task and b.number = a.number - 1;

create view skipped_spans as
select j.id as job_id, j.name as job, s.name as status, p.why, p.detail,
       «utc p.span_after» as span_after,
       «utc p.span_through» as span_through,
       p.version, p.count
  from span p join job j on j.job_key = p.job_key join occurrence_status s on s.code = p.status;

-- What the jobs in service promise. broken_since is by when it was promised, if it is broken now.
create view promises as
select j.id as job_id, j.name as job, p.kind as promise, json_extract(v.effective, '$.' || p.kind || '.value') as promised,
       «utc b.due_at» as broken_since, b.reason, «utc p.check_at» as check_at
  from promise p join job j on j.job_key = p.job_key
  join job_state s on s.job_key = p.job_key and s.removed_at is null
  join job_version v on v.job_key = s.job_key and v.version = s.version
  left join breach b on b.job_key = p.job_key and b.kind = p.kind and b.broken_for = p.broken_for;

create view breaches as
select j.id as job_id, j.name as job, b.kind as promise, «utc b.broken_for» as broken_for, «utc b.due_at» as due_at,
       «utc b.found_at» as found_at, «utc b.last_for» as last_for, b.count, b.reason,
       iif(b.occurrence_id is null, null, 'occ_' || lower(substr(hex(b.occurrence_id), 1, 8) || '-' || substr(hex(b.occurrence_id), 9, 4) || '-'
         || substr(hex(b.occurrence_id), 13, 4) || '-' || substr(hex(b.occurrence_id), 17, 4) || '-'
         || substr(hex(b.occurrence_id), 21))) as occurrence_id,
       «utc b.ended_at» as ended_at, b.is_withdrawn as withdrawn
  from breach b join job j on j.job_key = b.job_key;

-- The runs to come: of the schedule, for jobs that have a horizon, and those that were asked for at a time.
create view coming_runs as
select 'occ_' || lower(substr(hex(c.id), 1, 8) || '-' || substr(hex(c.id), 9, 4) || '-' || substr(hex(c.id), 13, 4)
         || '-' || substr(hex(c.id), 17, 4) || '-' || substr(hex(c.id), 21)) as id,
       j.id as job_id, j.name as job, «utc c.run_at» as scheduled_for, «utc c.instant_at» as instant,
       c.cause, c.mark, c.detail, c.payload, c.overrides, c.zone_data
  from (select job_key, id, run_at, instant_at, 'schedule' as cause, mark, detail, payload, overrides, zone_data
          from coming
         union all
        select job_key, id, due_at, null, 'trigger', iif(key like 'added:%', 'added', null),
               iif(requested_by = '', '', 'by ' || requested_by) || iif(requested_by = '' or reason = '', '', ' ')
                 || iif(reason = '', '', '(' || reason || ')'), payload, null, null
          from request where due_at > 0) c
  join job j on j.job_key = c.job_key;

-- Adjustments of instants that are not decided yet.
create view adjustments as
select j.id as job_id, j.name as job, «utc a.instant_at» as instant, a.kind,
       «utc a.moved_to_at» as moved_to, a.payload, a.overrides, a.reason, a.adjusted_by, «utc a.told_at» as told_at
  from adjustment a join job j on j.job_key = a.job_key;

-- Backfills with what became of their occurrences.
create view backfills as
select b.id, j.id as job_id, j.name as job,
       case when b.status <> 'filled' then b.status when coalesce(f.waiting + f.running, 0) > 0 then 'running'
            else 'completed' end as status,
       «utc b.fill_after» as fill_after,
       «utc b.fill_through» as fill_through,
       «utc b.left_after» as left_after,
       «utc b.left_through» as left_through,
       b.again, b.newest_first, b.rate, b.pace,
       b.count, b.created, coalesce(f.done, 0) as done, coalesce(f.failed, 0) as failed,
       coalesce(f.canceled, 0) as canceled, coalesce(f.running, 0) as running, coalesce(f.waiting, 0) as waiting,
       b.reason,
       «utc b.planned_at» as planned_at, b.planned_by,
       «utc b.approved_at» as approved_at, b.approved_by,
       «utc b.ended_at» as ended_at
  from backfill b
  join job j on j.job_key = b.job_key
  left join (select f.backfill_key,
                    sum(case when f.status = 10 then 1 else 0 end) as done,
                    sum(case when f.status in (11, 12, 14) then 1 else 0 end) as failed,
                    sum(case when f.status = 13 or f.status > 14 then 1 else 0 end) as canceled,
                    sum(case when f.status in (2, 3) then 1 else 0 end) as running,
                    sum(case when f.status in (0, 1) then 1 else 0 end) as waiting
               from (select f.backfill_key, coalesce(o.status, f.status, 13) as status
                       from filled f left join occurrence o on o.id = f.id) f
              group by f.backfill_key) f on f.backfill_key = b.backfill_key;

-- The config an occurrence runs with, whole; who set what in its version; and what it sets itself.
create view effective_config as
select 'occ_' || lower(substr(hex(o.id), 1, 8) || '-' || substr(hex(o.id), 9, 4) || '-' || substr(hex(o.id), 13, 4)
         || '-' || substr(hex(o.id), 17, 4) || '-' || substr(hex(o.id), 21)) as occurrence_id,
       j.name as job, o.version,
       (select json_group_object(c.key, json(case c.type when 'text' then json_quote(c.value) when 'true' then 'true'
                                                         when 'false' then 'false' when 'null' then 'null'
                                                         else c.value end))
          from (select e.key, coalesce(json_type(o.own, '$.' || e.key), json_type(e.value, '$.value')) as type,
                       iif(json_type(o.own, '$.' || e.key) is null, json_extract(e.value, '$.value'),
                           json_extract(o.own, '$.' || e.key)) as value
                  from json_each(v.effective) e) c) as config,
       v.effective, coalesce(o.overrides, '{}') as own_overrides, o.payload as own_payload
  from (select *, iif(payload is null, coalesce(overrides, '{}'),
                      json_set(coalesce(overrides, '{}'), '$.payload', json(payload))) as own from occurrence) o
  join job j on j.job_key = o.job_key
  join job_version v on v.job_key = o.job_key and v.version = o.version;

create view nodes as
select n.id, «utc n.beat_at» as beat_at, n.beats,
       (select count(*) from occurrence o where o.owner = n.id) as holds, n.facts
  from node n;

-- What people may write: enabled and paused of a job, which do what disable, enable, pause and resume do. A test holds
-- the rows that they leave equal.

create view limits as
select r.reach, r.most, r.rate_count, r.rate_per / 1000000.0 as rate_seconds, r.is_burst as burst,
       (select count(distinct s.handle) from limit_start s join occurrence o on o.handle = s.handle
         where s.reach = r.reach and o.owner is not null) as running,
       exists (select 1 from brake b where b.reach = r.reach and b.since_at <= «now»
                                       and (b.until_at is null or b.until_at > «now»)) as braked,
       r.release_left, r.reason, nullif(r.set_by, '') as set_by, «utc r.set_at» as set_at
  from reach r;

create view brakes as
select b.reach, «utc b.since_at» as since, «utc b.until_at» as until, b.reason, b.braked_by,
       b.begins, b.ends
  from brake b;

create view limit_changes as
select «utc c.changed_at» as changed_at, c.reach, c.what, c.reason, c.changed_by from limit_change c;

create view deeds as
select d.deed_key as number, «utc d.done_at» as done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail,
       d.reason, j.name as job
  from deed d left join job j on j.id = d.job_id;

create trigger jobs_are_defined instead of insert on jobs begin
  select raise(abort, 'a job is defined in code, in a file or with everytick apply, not by an insert');
end;

create trigger jobs_are_removed instead of delete on jobs begin
  select raise(abort, 'a job is removed with everytick remove, not by a delete');
end;

create trigger a_version_never_changes before update of kind, schedule, enabled on job_version begin
  select raise(abort, 'a version never changes: write enabled through the view jobs');
end;

create trigger jobs_are_switched instead of update on jobs begin
  select raise(abort, 'only enabled and paused of a job can be written by SQL: for the rest there are commands')
   where (new.id, new.name, new.kind, new.schedule, new.version, new.revision) is not
         (old.id, old.name, old.kind, old.schedule, old.version, old.revision)
      or (new.paused_since, new.paused_until, new.next_run, new.last_run, new.last_end, new.last_success) is not
         (old.paused_since, old.paused_until, old.next_run, old.last_run, old.last_end, old.last_success)
      or (new.last_failure, new.run_count, new.last_error) is not (old.last_failure, old.run_count, old.last_error)
      or (new.last_enqueued, new.watermark, new.removed_at, new.parked_reason, new.created_at, new.updated_at) is not
         (old.last_enqueued, old.watermark, old.removed_at, old.parked_reason, old.created_at, old.updated_at);
  select raise(abort, 'enabled and paused of a job are true or false')
   where new.enabled is null or new.enabled not in (0, 1) or new.paused is null or new.paused not in (0, 1);
  select raise(abort, 'the job is removed: define it again first') where old.removed_at is not null;
  select raise(abort, 'too many versions of the job wait to be decided: try again once a node has looked at it')
    from job_state s
   where s.id = old.id and new.enabled <> old.enabled and s.version - s.oldest_version + 1 >= 15 + new.enabled;

  insert into job_version (job_key, version, kind, schedule, enabled, definition, effective, reports, in_force_after,
                           edited_at, edited_by)
  select v.job_key, s.version + 1, v.kind, v.schedule, new.enabled,
         json_set(v.definition, '$.policies', json((
           select json_group_object(e.key, json(case e.type when 'text' then json_quote(e.value) when 'true' then 'true'
                                                            when 'false' then 'false' when 'null' then 'null'
                                                            else e.value end))
             from (select key, type, value from json_each(v.definition, '$.policies') where key <> 'enabled'
                   union all select 'enabled', iif(new.enabled, 'true', 'false'), null order by key limit -1) e))),
         json_set(v.effective, '$.enabled', json(iif(new.enabled, '{"origin":"job","value":true}',
                                                                 '{"origin":"job","value":false}'))),
         v.reports, «now»,
         «now», 'sql'
    from job_state s join job_version v on v.job_key = s.job_key
   where s.id = old.id and new.enabled <> old.enabled
     and v.version = (select max(w.version) from job_version w where w.job_key = s.job_key and w.rollout is null);
  insert into version_band (job_key, version, band)
  select b.job_key, s.version + 1, b.band
    from job_state s join version_band b on b.job_key = s.job_key
   where s.id = old.id and new.enabled <> old.enabled
     and b.version = (select max(w.version) from job_version w
                       where w.job_key = s.job_key and w.version <= s.version and w.rollout is null);
  update occurrence set version = old.version + 1
   where job_key = (select job_key from job_state where id = old.id) and new.enabled <> old.enabled
     and ended_at is null and status in (0, 1) and not exists (select 1 from task_run r where r.handle = occurrence.handle);
  update occurrence set status = 1, updated_at = «now»
   where job_key = (select job_key from job_state where id = old.id) and old.enabled and not new.enabled
     and ended_at is null and status = 0;
  update occurrence set is_early = null
   where job_key = (select job_key from job_state where id = old.id) and old.enabled and not new.enabled
     and ended_at is null and status = 3 and owner is null;
  update occurrence set is_early = coalesce(ready_at > «now», 0)
   where job_key = (select job_key from job_state where id = old.id) and new.enabled and not old.enabled
     and ended_at is null and is_early is null;
  update job_state
     set oldest_version = iif(unreadable_reason is null, oldest_version, version + 1), unreadable_reason = null,
         version = version + 1, retire_at = null, undefined_since = null, revision = revision + 1, woken = woken + 1,
         wake_at = «now»,
         next_run_at = iif(next_run_at > «now», next_run_at, null)
   where id = old.id and new.enabled <> old.enabled;

  insert into pause (job_key, since_at, missed, reason, paused_by)
  select job_key, «now», 'skip', '', 'sql'
    from job_state where id = old.id and new.paused and not old.paused;
  update occurrence set status = 1, updated_at = «now»
   where job_key = (select job_key from job_state where id = old.id) and new.paused and not old.paused
     and ended_at is null and status = 0 and cause = 0;
  update pause set until_at = «now», resumed_by = 'sql'
   where pause_key = (select min(h.pause_key) from pause h join job_state s on s.job_key = h.job_key
                 where s.id = old.id and h.resumed_by is null and (h.until_at is null or h.until_at > «now»))
     and old.paused and not new.paused;
  update job_state
     set revision = revision + 1, woken = woken + 1, wake_at = «now»,
         next_run_at = iif(next_run_at > «now» and old.paused_until is null, next_run_at, null)
   where id = old.id and new.paused <> old.paused;
  update promise set check_at = «now», revision = revision + 1
   where job_key = (select job_key from job_state where id = old.id)
     and (new.paused <> old.paused or new.enabled <> old.enabled);
end;
