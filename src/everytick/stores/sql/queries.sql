-- The statements of the shared verbs whose text is the same in both stores. Each has a name and says what it
-- guarantees; statements.py says what `:name` and `{marker}` stand for. What differs stands in each store's cold.sql.

-- ------------------------------------------------------------------------------------------------------ jobs and facts

-- hold_job --
-- Locks where a job stands, so that what people do to it and what plans do to it come one after the other.
select j.job_key, j.id as job_id, j.name, s.removed_at
  from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where j.id = :job_id
   {lock s};

-- job_in_service --
-- Returns the key of the job in service that has this name.
select j.job_key from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where j.name = :name and s.removed_at is null;

-- forgotten_jobs --
-- Returns the jobs that have one of these names and were removed before this moment.
select j.job_key, s.removed_at, j.name
  from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where j.name {in names} and s.removed_at < :forgotten_at;

-- lock_names --
-- Locks where the jobs of these names stand, by rising key. A statement that waited here for another's edit does not
-- see the newest definition: look for it afterwards.
select s.job_key
  from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where j.name {in names}
 order by j.job_key
   {lock s};

-- named_jobs --
-- Returns the jobs of these names with the newest definition of each.
select j.name, j.job_key, j.id as job_id, s.removed_at, v.definition, v.version, s.oldest_version, v.follows, v.rollout,
       (select w.in_force_after from {schema}.job_version w
         where w.job_key = s.job_key and w.version = v.follows + 1) as window_through
  from {schema}.job j
  join {schema}.job_state s on s.job_key = j.job_key
  join {schema}.job_version v on v.job_key = s.job_key and v.version = s.version
 where j.name {in names};

-- add_job --
-- Makes a job.
insert into {schema}.job (id, name, created_at) values (:job_id, :name, :now);

-- add_state --
-- Writes where a new job stands: at its first watermark.
insert into {schema}.job_state (job_key, id, needs, version, oldest_version, revision, woken, watermark, next_run_at,
                                keep_last, is_needed)
values (:job_key, :job_id, :needs, 1, 1, 1, 1, :watermark, :next_run_at, 0,
        exists (select 1 from {schema}.dependency d where d.needed_id = :job_id));

-- edit_job --
-- Sets how long a job's occurrences are kept. A removed job is in service again.
update {schema}.job_state
   set keep_success = :keep_success, keep_failure = :keep_failure, keep_last = :keep_last, removed_at = null,
       removed_by = ''
 where job_key = :job_key;

-- remove_job --
-- Takes a job out of service.
update {schema}.job_state set removed_at = :removed_at, removed_by = :removed_by where job_key = :job_key;

-- jobs_by_id --
-- Returns where these jobs stand, with the pause that holds each now.
select v.job_key, v.id as job_id, v.name, v.version, v.revision, v.watermark, v.wake_at, v.removed_at, v.removed_by,
       v.retire_at, v.next_run_at, v.run_count, v.last_error, v.last_failure_at, v.needs, v.parked_reason,
       v.last_end_scheduled_for, v.last_end_started_at, v.last_end_at, v.last_end_id as last_end_occurrence_id,
       v.last_success_scheduled_for, v.last_success_started_at, v.last_success_at,
       v.last_success_id as last_success_occurrence_id,
       p.since_at, p.until_at, p.missed, p.reason as pause_reason, p.paused_by, p.resumed_by
  from {schema}.job_standing v
  left join {schema}.pause p on p.job_key = v.job_key and p.pause_key = (
       select min(h.pause_key) from {schema}.pause h
        where h.job_key = v.job_key and (h.until_at is null or h.until_at > :now))
 where v.id {in job_ids};

-- jobs_by_name --
-- Returns jobs that are not removed, or all, by name, from those behind a name on.
select v.job_key, v.id as job_id, v.name, v.version, v.revision, v.watermark, v.wake_at, v.removed_at, v.removed_by,
       v.retire_at, v.next_run_at, v.run_count, v.last_error, v.last_failure_at, v.needs, v.parked_reason,
       v.last_end_scheduled_for, v.last_end_started_at, v.last_end_at, v.last_end_id as last_end_occurrence_id,
       v.last_success_scheduled_for, v.last_success_started_at, v.last_success_at,
       v.last_success_id as last_success_occurrence_id,
       p.since_at, p.until_at, p.missed, p.reason as pause_reason, p.paused_by, p.resumed_by
  from {schema}.job_standing v
  left join {schema}.pause p on p.job_key = v.job_key and p.pause_key = (
       select min(h.pause_key) from {schema}.pause h
        where h.job_key = v.job_key and (h.until_at is null or h.until_at > :now))
 where (v.removed_at is null or :is_any) and v.name {bytewise} > :after_name
 order by v.name {bytewise} limit :limit;

-- jobs_ahead --
-- Returns the jobs whose watermark lies ahead of this moment, by name.
select j.name, s.watermark
  from {schema}.job_state s join {schema}.job j on j.job_key = s.job_key
 where s.watermark > :ahead_at and s.removed_at is null
 order by j.name {bytewise};

-- add_name_set --
-- Notes that a start defines these names now.
insert into {schema}.name_set (hash, names, stored_at) values (:hash, :names_json, :now)
on conflict (hash) do update set stored_at = excluded.stored_at;

-- name_sets --
-- Returns every set of names that starts define, by hash.
select hash, names as names_json, stored_at from {schema}.name_set order by hash;

-- undefined_jobs --
-- Returns the jobs in service that a start has left out, by name.
select s.id as job_id, j.name, s.undefined_since as undefined_at
  from {schema}.job_state s {using job_state_undefined} join {schema}.job j on j.job_key = s.job_key
 where s.undefined_since is not null and s.removed_at is null
 order by j.name {bytewise};

-- hold_undefined --
-- Locks where those of these jobs stand that a start has left out, by rising key.
select s.job_key, s.id as job_id, s.undefined_since as undefined_at
  from {schema}.job_state s
 where s.undefined_since is not null and s.removed_at is null and s.id {in job_ids}
 order by s.job_key
   {lock s};

-- newest_version --
-- Returns the number of a job's newest version, and its name.
select s.version, j.name from {schema}.job_state s join {schema}.job j on j.job_key = s.job_key
 where s.job_key = :job_key;

-- keys_of_jobs --
-- Returns the inner keys of those of these jobs that exist.
select j.id as job_id, j.job_key from {schema}.job j where j.id {in job_ids};

-- revise --
-- Makes older snapshots of a job stale.
update {schema}.job_state set revision = revision + 1 where job_key = :job_key;

-- foretell --
-- Sets when a job runs next, as of now.
update {schema}.job_state set next_run_at = :next_run_at
 where job_key = (select j.job_key from {schema}.job j where j.id = :job_id);

-- dependencies_of --
-- Returns what these jobs depend on: the names in their definitions, and the ids that are followed.
select d.job_key, d.name, d.needed_id from {schema}.dependency d where d.job_key {in job_keys};

-- forget_dependencies --
-- Deletes what a job depends on.
delete from {schema}.dependency where job_key = :job_key;

-- add_dependency --
-- Notes that a job depends on another one.
insert into {schema}.dependency (job_key, name, needed_id) values (:job_key, :name, :needed_id);

-- need_jobs --
-- Notes that some job depends on these, which makes older snapshots of them stale. Returns those that were not noted.
update {schema}.job_state set is_needed = :is_needed, revision = revision + 1
 where job_key in (select j.job_key from {schema}.job j where j.id {in job_ids}) and is_needed <> :is_needed
returning job_key;

-- dependencies_above --
-- Returns what these jobs depend on, what those depend on, and so on, by the names that they have now.
with recursive above(id) as (
    select j.id from {schema}.job j where j.id {in job_ids}
    union
    select d.needed_id
      from above a join {schema}.job j on j.id = a.id join {schema}.dependency d on d.job_key = j.job_key
)
select j.name, n.name as needed_name
  from above a
  join {schema}.job j on j.id = a.id
  join {schema}.dependency d on d.job_key = j.job_key
  join {schema}.job n on n.id = d.needed_id;

-- names_in_service --
-- Returns the names of all jobs in service.
select j.name from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where s.removed_at is null
 order by j.name {bytewise};

-- upstreams --
-- Returns where the jobs stand on which these jobs depend.
select d.job_key, d.name, d.needed_id, u.job_key as needed_key, u.name as called, u.watermark,
       u.removed_at is not null as is_removed, v.enabled as is_enabled,
       exists (select 1 from {schema}.pause p
                where p.job_key = u.job_key and (p.until_at is null or p.until_at > :now)) as is_paused,
       u.last_success_scheduled_for, u.last_success_started_at, u.last_success_at,
       u.last_success_id as last_success_occurrence_id
  from {schema}.dependency d
  join {schema}.job_standing u on u.id = d.needed_id
  join {schema}.job_version v on v.job_key = u.job_key and v.version = u.version
 where d.job_key {in job_keys};

-- deleted_upstreams --
-- Returns the jobs that no longer exist and on which these jobs depend.
select d.job_key, d.name, d.needed_id from {schema}.dependency d
 where d.job_key {in job_keys} and not exists (select 1 from {schema}.job j where j.id = d.needed_id);

-- places_in_line --
-- Returns when these occurrences were created, and the instant that each stands for.
select o.id as occurrence_id, o.created_at, o.covers_through
  from {schema}.occurrence o where o.id {in_ids occurrence_ids};

-- own_runs --
-- Returns those of these occurrences that exist.
select o.id as occurrence_id, o.scheduled_for, o.status
  from {schema}.occurrence o where o.id {in_ids occurrence_ids};

-- end_pause --
-- Deletes the pause that holds a job now, and returns it.
delete from {schema}.pause where job_key = :job_key and pause_key = (
       select p.pause_key from {schema}.pause p
        where p.job_key = :job_key and (p.until_at is null or p.until_at > :now) order by p.pause_key limit 1)
returning since_at;

-- resume_pause --
-- Ends the pause that holds a job now, and returns whether there was one.
update {schema}.pause
   set until_at = :now, resumed_by = :resumed_by, missed = coalesce(:missed, missed)
 where job_key = :job_key and pause_key = (
       select p.pause_key from {schema}.pause p
        where p.job_key = :job_key and (p.until_at is null or p.until_at > :now) order by p.pause_key limit 1)
returning pause_key;

-- add_pause --
-- Begins a pause of a job's schedule.
insert into {schema}.pause (job_key, since_at, until_at, missed, reason, paused_by)
values (:job_key, :since_at, :until_at, :missed, :reason, :paused_by);

-- reschedule_job --
-- Sets the next run.
update {schema}.job_state
   set reschedule_made_at = :now, reschedule_for = :reschedule_for, reschedule_by = :reschedule_by
 where job_key = :job_key;

-- undo_reschedule --
-- Undoes a reschedule of the next run to this time, and returns whether there was one.
update {schema}.job_state set reschedule_made_at = null, reschedule_for = null, reschedule_by = null
 where job_key = :job_key and reschedule_for = :reschedule_for
returning job_key;

-- adjustment_at --
-- Returns the adjustment of one instant.
select instant_at, kind, moved_to_at, reason, adjusted_by, is_done, overrides, payload, told_at
  from {schema}.adjustment where job_key = :job_key and instant_at = :instant_at;

-- adjust --
-- Writes the adjustment of one instant. An earlier one is replaced, and its place in the order is kept.
insert into {schema}.adjustment (job_key, instant_at, kind, moved_to_at, reason, adjusted_by, is_done, overrides,
                                 payload, told_at)
values (:job_key, :instant_at, :kind, :moved_to_at, :reason, :adjusted_by, :is_done, :overrides, :payload, :told_at)
on conflict (job_key, instant_at) do update
   set kind = excluded.kind, moved_to_at = excluded.moved_to_at, reason = excluded.reason,
       adjusted_by = excluded.adjusted_by, is_done = excluded.is_done, overrides = excluded.overrides,
       payload = excluded.payload, told_at = excluded.told_at;

-- decided_through --
-- Returns the watermark of a job, and where its spans that end beyond this moment begin.
select s.watermark,
       (select min(p.span_after) from {schema}.span p
         where p.job_key = s.job_key and p.span_through > :now) as undone_after
  from {schema}.job_state s where s.job_key = :job_key;

-- undo_spans --
-- Deletes the spans beyond this moment.
delete from {schema}.span where job_key = :job_key and span_through > :now;

-- rewind_pauses --
-- Lets a pause that begins, or was resumed, beyond this moment do so now.
update {schema}.pause
   set since_at = case when since_at > :now then :now else since_at end,
       until_at = case when resumed_by is not null and until_at > :now then :now else until_at end
 where job_key = :job_key and (since_at > :now or (resumed_by is not null and until_at > :now));

-- told_ahead --
-- Locks and returns the jobs that do not lie ahead and whose newest version, a pause, a resume or a reschedule was
-- written while the clock was, or that obeyed a stop then.
select s.job_key, s.id as job_id
  from {schema}.job_state s
 where s.watermark <= :step_at
   and (exists (select 1 from {schema}.job_version v
                 where v.job_key = s.job_key and v.version = s.version and v.edited_at > :step_at)
        or s.reschedule_made_at > :step_at or s.stopped_at > :step_at
        or exists (select 1 from {schema}.pause p
                    where p.job_key = s.job_key
                      and (p.since_at > :step_at or (p.resumed_by is not null and p.until_at > :step_at))))
 order by s.job_key
   {lock s};

-- bring_told_back --
-- Lets the newest version of a job be in force now, if it was written ahead, and a reschedule hold from now on. A stop
-- that was obeyed ahead counts as obeyed now, and a window of recovery that was set ahead reaches back from now.
update {schema}.job_state
   set oldest_version = (select case when v.edited_at > :now
                                     then coalesce((select max(w.version) from {schema}.job_version w
                                                     where w.job_key = v.job_key and w.rollout is null
                                                       and w.version between job_state.oldest_version
                                                                         and coalesce(v.follows, v.version)), v.version)
                                     else job_state.oldest_version end
                           from {schema}.job_version v
                          where v.job_key = job_state.job_key and v.version = job_state.version),
       reschedule_made_at = case when reschedule_made_at > :now then :now else reschedule_made_at end,
       stopped_at = case when stopped_at > :now then :now else stopped_at end,
       narrowed_at = case when narrowed_at > :now then :now else narrowed_at end
 where job_key = :job_key;

-- open_request --
-- Returns the number under its key and the payload of the open request of this key.
select nth, payload from {schema}.request where job_key = :job_key and cause = :cause and key = :key;

-- key_use --
-- Returns the newest use of a key that a caller has named.
select nth, call from {schema}.request_key where job_key = :job_key and cause = :cause and key = :key;

-- asked_for --
-- Returns the oldest open request for the occurrence of this id, with the newest version of its job.
select r.job_key, s.id as job_id, s.version, r.key, r.cause, r.requested_at, r.payload, r.overlap, r.reason,
       r.requested_by, r.replay_of, r.scheduled_for, r.covers_after, r.covers_through, r.keeps,
       r.nth, r.due_at
  from {schema}.request r join {schema}.job_state s on s.job_key = r.job_key
 where r.id = :occurrence_id
 order by r.request_key limit 1;

-- keep_request --
-- Writes a request, behind the others. If its key is taken nothing changes.
insert into {schema}.request (job_key, key, cause, requested_at, payload, overlap, reason, requested_by, replay_of,
                              scheduled_for, covers_after, covers_through, keeps, nth, id, due_at)
values (:job_key, :key, :cause, :requested_at, :payload, :overlap, :reason, :requested_by, :replay_of,
        :scheduled_for, :covers_after, :covers_through, :keeps, :nth, :occurrence_id, :due_at)
on conflict (job_key, cause, key) do nothing;

-- forget_asked_for --
-- Deletes every open request for the occurrence of this id.
delete from {schema}.request where id = :occurrence_id;

-- hold_occurrence --
-- Locks one occurrence and returns where it stands.
select o.job_key, o.status, o.owner from {schema}.occurrence o where o.id = :occurrence_id {lock o};

-- ask_owner_to_stop --
-- Notes that the owner of an active occurrence shall stop; its next beat tells it.
update {schema}.occurrence set cancel_reason = :reason where id = :occurrence_id and status < {first_ended};

-- rename_job --
-- Gives the job another name and returns its key, unless another job has the name. Comes before job_state is locked.
update {schema}.job set name = :name
 where job_key = :job_key
   and not exists (select 1 from {schema}.job o where o.name = :name and o.job_key <> :job_key)
returning job_key;

-- add_version --
-- Keeps a version for ever.
insert into {schema}.job_version (job_key, version, in_force_after, kind, schedule, enabled, reports, definition,
                                  effective, edited_by, edited_at, follows, rollout)
values (:job_key, :version, :in_force_after, :kind, :schedule, :enabled, :reports, :definition, :effective,
        :edited_by, :edited_at, :follows, :rollout);

-- add_coming --
-- Makes a version the newest one that is not in force yet, and older snapshots stale.
update {schema}.job_state
   set version = :version, oldest_version = :oldest_version, revision = revision + 1, undefined_since = null,
       is_needed = exists (select 1 from {schema}.dependency d where d.needed_id = :job_id)
 where job_key = :job_key;

-- unpark --
-- Clears the reason why some node could not read a job.
update {schema}.job_state set unreadable_reason = null where job_key = :job_key and unreadable_reason is not null;

-- show_unreadable --
-- Writes why some node cannot read a job. Nodes that can read it plan it, and an edit clears the reason.
update {schema}.job_state set unreadable_reason = :reason
 where job_key = :job_key and (unreadable_reason is null or unreadable_reason <> :reason);

-- unreadable_jobs --
-- Returns of each job that some node could not read the versions that it is still planned by.
select job_key, oldest_version, version from {schema}.job_state where unreadable_reason is not null;

-- parked_jobs --
-- Returns the jobs in service that are parked and why, by name.
select j.name, coalesce(s.unreadable_reason, s.parked_reason) as parked_reason
  from {schema}.job_state s join {schema}.job j on j.job_key = s.job_key
 where (s.unreadable_reason is not null or s.parked_reason is not null) and s.removed_at is null
 order by j.name {bytewise};

-- coming_of_keys --
-- Returns the stored runs to come of these jobs.
select job_key, instant_at, run_at, mark, detail, overrides, payload, zone_data
  from {schema}.coming where job_key {in job_keys};

-- forget_coming --
-- Deletes one run to come.
delete from {schema}.coming where job_key = :job_key and instant_at = :instant_at;

-- keep_coming --
-- Writes one run to come.
insert into {schema}.coming (job_key, instant_at, run_at, id, mark, detail, overrides, payload, zone_data)
values (:job_key, :instant_at, :run_at, :occurrence_id, :mark, :detail, :overrides, :payload, :zone_data)
on conflict (job_key, instant_at) do update
   set run_at = excluded.run_at, mark = excluded.mark, detail = excluded.detail, overrides = excluded.overrides,
       payload = excluded.payload, zone_data = excluded.zone_data;

-- purge_coming --
-- Deletes the runs to come of a job.
delete from {schema}.coming where job_key = :job_key;

-- version_at --
-- Returns the version in force at a moment. An instant at the moment of an edit belongs to the old version.
select version from {schema}.job_version
 where job_key = :job_key and (in_force_after is null or in_force_after < :instant_at)
 order by version desc limit 1;

-- ------------------------------------------------------------------------------------------------------------ backfills

-- backfill_of_key --
-- Returns the backfill of a job that has this key.
select backfill_key, id as backfill_id, status as backfill_status, created
  from {schema}.backfill where job_key = :job_key and key = :key;

-- backfill_of_id --
-- Returns the backfill of a job that has this id.
select backfill_key, key, status as backfill_status
  from {schema}.backfill where job_key = :job_key and id = :backfill_id;

-- count_open_backfills --
-- Returns how many backfills of a job are running.
select count(*) as open_count from {schema}.backfill where job_key = :job_key and status = 'running';

-- add_backfill --
-- Writes a backfill that is not approved yet.
insert into {schema}.backfill (job_key, id, key, status, fill_after, fill_through, left_after, left_through, again,
                               as_of_now, newest_first, overlap, rate, pace, count, reason, planned_at, planned_by,
                               paced_at)
values (:job_key, :backfill_id, :key, 'planned', :fill_after, :fill_through, :fill_after, :fill_through, :again,
        :as_of_now, :newest_first, :overlap, :rate, :rate, :count, :reason, :now, :planned_by, :now);

-- approve_backfill --
-- Starts a backfill, behind the others of its job. The first approval is kept.
update {schema}.backfill
   set status = 'running', paced_at = :now, changed_by = :changed_by,
       approved_by = case when approved_at is null then :changed_by else approved_by end,
       approved_at = coalesce(approved_at, :now),
       place = 1 + (select max(o.place) from {schema}.backfill o where o.job_key = :job_key)
 where job_key = :job_key and key = :key;

-- stop_backfill --
-- Pauses or ends a backfill.
update {schema}.backfill set status = :backfill_status, changed_by = :changed_by, ended_at = :ended_at
 where job_key = :job_key and key = :key;

-- show_backfill --
-- Lets plans find a running backfill: they see a request with its key, without an instant.
insert into {schema}.request (job_key, key, cause, requested_at, reason, requested_by, nth, id, due_at)
values (:job_key, :key, :cause, :now, '', '', 1, :occurrence_id, :due_at)
on conflict (job_key, cause, key) do nothing;

-- hide_backfill --
-- Deletes the request by which plans find a backfill.
delete from {schema}.request
 where job_key = :job_key and cause = {cause.backfill} and key = :key and scheduled_for is null;

-- unclaimed_fills --
-- Returns the occurrences of a backfill that no node has claimed.
select o.id as occurrence_id
  from {schema}.filled f join {schema}.occurrence o on o.id = f.id
 where f.backfill_key = :backfill_key and o.owner is null and o.status in ({pending}, {queued}, {awaiting_retry})
 order by f.place;

-- open_backfills --
-- Returns the running backfills of these jobs, in their order.
select b.job_key, b.backfill_key, b.id as backfill_id, b.key, b.fill_after, b.fill_through, b.left_after, b.left_through,
       b.again, b.as_of_now, b.newest_first, b.overlap, b.rate, b.pace, b.count, b.created, b.reason, b.planned_by,
       b.paced_at, b.filled_at
  from {schema}.backfill b
 where b.job_key {in job_keys} and b.status = 'running'
 order by b.job_key, b.place;

-- recent_fills --
-- Returns the statuses of the newest occurrences of a backfill.
select count(case when o.status in ({pending}, {queued}) then 1 end) as unstarted,
       count(case when o.started_at > :window_at then 1 end) as started,
       count(case when o.ended_at > :paced_at then 1 end) as ended,
       count(case when o.ended_at > :paced_at and o.status in ({completed_with_errors}, {failed}, {failed_stale}) then 1
             end) as failed
  from (select f.id from {schema}.filled f where f.backfill_key = :backfill_key order by f.place desc limit :limit) f
  join {schema}.occurrence o on o.id = f.id;

-- trial_counts --
-- Returns how the occurrences of a rollout's stage ended: those of its version, and how many were created in all.
select count(case when o.version = :version and o.status = {completed} then 1 end) as well,
       count(case when o.version = :version and o.status in ({completed_with_errors}, {failed}, {failed_stale}) then 1
             end) as failed,
       count(*) as created
  from {schema}.occurrence o {using occurrence_of_job}
 where o.job_key = :job_key and o.scheduled_for > :left_after and o.cause in ({cause.schedule}, {cause.trigger});

-- existing_fills --
-- Returns the oldest occurrences of a job in a stretch of time.
select o.id as occurrence_id, o.scheduled_for
  from {schema}.occurrence o {using occurrence_of_job}
 where o.job_key = :job_key and o.scheduled_for > :left_after and o.scheduled_for <= :left_through
 order by o.scheduled_for limit :limit;

-- existing_fills_back --
-- Returns the newest occurrences of a job in a stretch of time.
select o.id as occurrence_id, o.scheduled_for
  from {schema}.occurrence o {using occurrence_of_job}
 where o.job_key = :job_key and o.scheduled_for > :left_after and o.scheduled_for <= :left_through
 order by o.scheduled_for desc limit :limit;

-- newest_past_versions --
-- Returns the versions of a job before this one that were in force between two moments, the newest first.
select version, in_force_after from {schema}.job_version
 where job_key = :job_key and version < :oldest_version and (in_force_after is null or in_force_after < :left_through)
   and version >= coalesce((select max(p.version) from {schema}.job_version p
                             where p.job_key = :job_key and p.version < :oldest_version
                               and (p.in_force_after is null or p.in_force_after <= :left_after)), 1)
 order by version desc limit :limit;

-- add_fill --
-- Notes that an occurrence belongs to a backfill.
insert into {schema}.filled (backfill_key, place, id) values (:backfill_key, :place, :occurrence_id);

-- move_backfill --
-- Writes what is left of a backfill, and how it goes on.
update {schema}.backfill
   set left_after = :left_after, left_through = :left_through, pace = :pace, paced_at = :paced_at,
       filled_at = :filled_at, created = :created, status = :backfill_status, ended_at = :ended_at
 where backfill_key = :backfill_key;

-- list_backfills --
-- Returns the newest backfills, of one job or of all.
select b.job_key, b.backfill_key, b.id as backfill_id, s.id as job_id, j.name, b.key, b.status as backfill_status,
       b.fill_after, b.fill_through, b.left_after, b.left_through, b.again, b.as_of_now, b.newest_first, b.overlap,
       b.rate, b.pace, b.count, b.created, b.reason, b.planned_at, b.planned_by, b.approved_at, b.approved_by,
       b.changed_by, b.ended_at,
       (select o.id from {schema}.backfill o
         where o.job_key = b.job_key and o.status = 'running' and o.place < b.place and b.status = 'running'
         order by o.place limit 1) as behind
  from {schema}.backfill b
  join {schema}.job j on j.job_key = b.job_key
  join {schema}.job_state s on s.job_key = b.job_key
 where :is_any or s.id = :job_id
 order by b.planned_at desc, b.id desc limit :limit;

-- count_fills --
-- Returns how many occurrences of these backfills have each status. Deleted ones count with their last status.
select f.backfill_key, coalesce(o.status, f.status, {canceled}) as status, count(*) as count
  from {schema}.filled f left join {schema}.occurrence o on o.id = f.id
 where f.backfill_key {in backfill_keys}
 group by f.backfill_key, coalesce(o.status, f.status, {canceled});

-- purge_fills --
-- Deletes the notes about the occurrences of a job's backfills.
delete from {schema}.filled
 where backfill_key in (select b.backfill_key from {schema}.backfill b where b.job_key = :job_key);

-- purge_backfills --
-- Deletes the backfills of a job.
delete from {schema}.backfill where job_key = :job_key;

-- ---------------------------------------------------------------------------------------------------------- the history

-- handle_of --
-- Returns the handle of an occurrence, if it exists.
select handle from {schema}.occurrence where id = :occurrence_id;

-- occurrences_of --
-- Returns these occurrences as people see them.
select o.handle, o.id as occurrence_id, o.job_key, s.id as job_id, o.version, o.scheduled_for, o.status, o.cause,
       o.late, o.covers_after, o.covers_through, o.line_at, o.ready_at, o.owner, o.fence, o.started_at, o.ended_at,
       o.error, o.overrides, o.payload, o.replay_of, o.reason, o.created_at, o.updated_at, o.node
  from {schema}.occurrence o join {schema}.job_state s on s.job_key = o.job_key
 where o.handle {in handles};

-- existing --
-- Returns those of these ids that an occurrence has.
select o.id as occurrence_id from {schema}.occurrence o where o.id {in_ids occurrence_ids};

-- existing_between --
-- Returns the first ids in a range that an occurrence has or an open request asks for.
select o.id as occurrence_id from {schema}.occurrence o
 where o.id between :first_occurrence_id and :last_occurrence_id
 union
select r.id from {schema}.request r
 where r.id between :first_occurrence_id and :last_occurrence_id
   and (r.cause <> {cause.backfill} or r.scheduled_for is not null)
 order by 1 limit :limit;

-- runs_of --
-- Returns the runs of the tasks of these occurrences.
select handle, task, status as run_status, attempts, retries, last_attempt_status, out_of_time, resume_at, started_at,
       attempt_started_at, ended_at, error, because_of, result, waits
  from {schema}.task_run where handle {in handles};

-- attempts_of --
-- Returns every attempt at the tasks of one occurrence.
select task, number, status as attempt_status, started_at, ended_at, error, progress_done, progress_total,
       progress_text, log_node, log_path, node, handed_to
  from {schema}.attempt where handle = :handle order by task, number;

-- handed_of --
-- Returns the open attempts of these occurrences that were handed over to engines.
select handle, task, number, handed_to
  from {schema}.attempt
 where handle {in handles} and handed_to is not null and status = {attempt.running} order by handle, task, number;

-- spans_of --
-- Returns the spans of a job that touch an interval, in order.
select status, why, detail, span_after, span_through, version, count
  from {schema}.span
 where job_key = :job_key and span_through > :begin_after and span_after < :end_through
 order by span_key;

-- spans_of_jobs --
-- Returns the spans of these jobs that touch an interval, in order.
select job_key, status, why, detail, span_after, span_through, version, count
  from {schema}.span
 where job_key {in job_keys} and span_through > :begin_after and span_after < :end_through
 order by span_key;

-- missed_spans --
-- Returns the newest spans of missed instants that overlap these bounds, of all jobs.
select (select s.id from {schema}.job_state s where s.job_key = p.job_key) as job_id,
       p.status, p.why, p.detail, p.span_after, p.span_through, p.version, p.count
  from {schema}.span p {using span_missed}
 where p.status = {missed} and p.span_through > :begin_after and p.span_after < :end_through
 order by p.span_through desc, job_id limit :limit;

-- forget_attempts --
-- Deletes the attempts of these occurrences.
delete from {schema}.attempt where handle {in handles};

-- forget_runs --
-- Deletes the runs of these occurrences.
delete from {schema}.task_run where handle {in handles};

-- ------------------------------------------------------------------------------------------------------------- purging

-- purge_occurrences --
-- Deletes these occurrences, ended or not. No node holds one of them.
delete from {schema}.occurrence where handle {in handles} and owner is null;

-- purge_requests --
-- Deletes the open requests of a job.
delete from {schema}.request where job_key = :job_key;

-- purge_keys --
-- Frees every key that requests of the job have used.
delete from {schema}.request_key where job_key = :job_key;

-- purge_adjustments --
-- Deletes the adjustments of a job.
delete from {schema}.adjustment where job_key = :job_key;

-- purge_pauses --
-- Deletes the pauses of a job.
delete from {schema}.pause where job_key = :job_key;

-- purge_spans --
-- Deletes the spans of a job.
delete from {schema}.span where job_key = :job_key;

-- purge_versions --
-- Deletes the definitions of a job.
delete from {schema}.job_version where job_key = :job_key;

-- purge_job --
-- Deletes a job to which no other row belongs.
delete from {schema}.job where job_key = :job_key;

-- --------------------------------------------------------------------------------------------------------------- nodes

-- leave --
-- Notes that the node beats no more, and was heard of for the last time.
update {schema}.node set beats = 0, beat_at = :now where id = :node_id;

-- hear --
-- Notes that the node lives, and its facts if it sends any.
insert into {schema}.node (id, beat_at, facts, beats) values (:node_id, :now, :facts, 1)
on conflict (id) do update
   set beat_at = excluded.beat_at, facts = coalesce(excluded.facts, node.facts), beats = node.beats + 1;

-- forget_name_sets --
-- Deletes sets of names that no start has sent since then, and that no node names.
delete from {schema}.name_set
 where stored_at < :told_at
   and not exists (select 1 from {schema}.node n where n.facts like '%' || name_set.hash || '%');

-- ------------------------------------------------------------------------------------- what was fired without the store

-- recorded_before --
-- Returns the handle of a fired run that was recorded before.
select handle from {schema}.occurrence where id = :occurrence_id and reason = :reason;

-- owe_report --
-- Lets the report of an occurrence, which has ended, be delivered.
insert into {schema}.report (needs, ended_at, handle)
select o.needs, o.ended_at, o.handle from {schema}.occurrence o where o.handle = :handle;

-- record_run --
-- Writes the state of one task of a fired run.
insert into {schema}.task_run (handle, task, status, attempts, retries, last_attempt_status, out_of_time, resume_at,
                               started_at, attempt_started_at, ended_at, error, because_of, result, waits)
values (:handle, :task, :run_status, :attempts, :retries, :last_attempt_status, :out_of_time, :resume_at, :started_at,
        :attempt_started_at, :ended_at, :error, :because_of, :result, :waits)
on conflict (handle, task) do update
   set status = excluded.status, attempts = excluded.attempts, retries = excluded.retries,
       last_attempt_status = excluded.last_attempt_status, out_of_time = excluded.out_of_time,
       resume_at = excluded.resume_at, started_at = excluded.started_at,
       attempt_started_at = excluded.attempt_started_at, ended_at = excluded.ended_at, error = excluded.error,
       because_of = excluded.because_of, result = excluded.result, waits = excluded.waits;

-- record_attempt --
-- Writes one attempt at the task.
insert into {schema}.attempt (handle, task, number, status, started_at, ended_at, error, node)
values (:handle, :task, :number, :attempt_status, :started_at, :ended_at, :error, :node);

-- add_span --
-- Writes a span, behind the others.
insert into {schema}.span (job_key, status, why, detail, span_after, span_through, version, count)
values (:job_key, :status, :why, :detail, :span_after, :span_through, :version, :count);

-- ------------------------------------------------------------------------------------------------------------ promises

-- keep_promise --
-- Lets a promise hold from now on, a success from the creation of the job on; one that was made before is looked at now.
insert into {schema}.promise (job_key, kind, judged_through, check_at)
select j.job_key, :kind, case when :kind = 'success_within' then j.created_at else :now end, :now
  from {schema}.job j where j.job_key = :job_key
on conflict (job_key, kind) do update set check_at = excluded.check_at, revision = promise.revision + 1;

-- withdraw_breaches --
-- Ends the breaches of promises that a job makes no more.
update {schema}.breach set ended_at = :now, is_withdrawn = :is_withdrawn
 where job_key = :job_key and ended_at is null and not kind {in kinds};

-- drop_promises --
-- Deletes the promises that a job makes no more.
delete from {schema}.promise where job_key = :job_key and not kind {in kinds};

-- recheck_promises --
-- Makes the promises of a job due now.
update {schema}.promise set check_at = :now, revision = revision + 1 where job_key = :job_key;

-- bring_promises_back --
-- Lets promises that were judged while the clock was ahead be judged from now on.
update {schema}.promise set judged_through = :now, check_at = :now, revision = revision + 1
 where judged_through > :step_at;

-- promises_due --
-- Returns the promises that may be broken now, longest-waiting first, without those of these jobs. Those of jobs with
-- other needs than these come only once they have waited for a while.
select p.job_key, s.id as job_id, p.kind, p.judged_through, p.check_at, p.held_after, p.held_through, p.revision,
       b.broken_for, b.due_at, b.found_at, b.last_for, b.count, b.reason, b.occurrence_id, b.ended_at, b.is_withdrawn
  from {schema}.promise p
  join {schema}.job_state s on s.job_key = p.job_key
  left join {schema}.breach b on b.job_key = p.job_key and b.kind = p.kind and b.broken_for = p.broken_for
 where p.check_at <= :now and (s.needs {in met} or p.check_at <= :patient_at) and not s.id {in job_ids}
 order by p.check_at, s.id {bytewise}, p.kind limit :limit;

-- promised_runs --
-- Returns the occurrences of a job after this instant and through now, oldest first.
select o.id as occurrence_id, o.scheduled_for, o.status, o.cause, o.started_at, o.ended_at, o.covers_after,
       o.covers_through, o.reason
  from {schema}.occurrence o
 where (o.job_key, o.scheduled_for) > (:job_key, :begin_after) and (o.job_key, o.scheduled_for) <= (:job_key, :now)
 order by o.job_key, o.scheduled_for, o.id limit :limit;

-- promised_spans --
-- Returns the spans of a job after this instant, oldest first.
select p.status, p.why, p.detail, p.span_after, p.span_through, p.version, p.count
  from {schema}.span p
 where p.job_key = :job_key and p.span_through > :begin_after
 order by p.span_through, p.span_key limit :limit;

-- hold_promises --
-- Locks the promises that still stand as they were judged. One that another session changes right now is left out.
select p.job_key, j.id as job_id, p.kind
  from {rows judged: job_id text, kind text, revision bigint}
  join {schema}.job j on j.id = judged.job_id
  join {schema}.promise p on p.job_key = j.job_key and p.kind = judged.kind and p.revision = judged.revision
   {lock p} {skip};

-- settle_promise --
-- Writes the state of a promise.
update {schema}.promise
   set judged_through = :judged_through, check_at = :check_at, held_after = :held_after, held_through = :held_through,
       broken_for = :broken_for, revision = revision + 1
 where job_key = :job_key and kind = :kind;

-- write_breach --
-- Keeps a breach. A new one is to be told of, and so is the end of one. A promise that was withdrawn and is made again may
-- be broken for the same instant, and is found so later.
insert into {schema}.breach (job_key, kind, broken_for, due_at, found_at, last_for, count, reason, occurrence_id,
                             ended_at, is_withdrawn, is_begin_owed, is_end_owed)
values (:job_key, :kind, :broken_for, :due_at, :found_at, :last_for, :count, :reason, :occurrence_id, :ended_at,
        :is_withdrawn, :is_begin_owed, :is_end_owed)
on conflict (job_key, kind, broken_for) do update
   set due_at = excluded.due_at, found_at = excluded.found_at, last_for = excluded.last_for, count = excluded.count,
       reason = excluded.reason, ended_at = excluded.ended_at, is_withdrawn = excluded.is_withdrawn,
       is_end_owed = excluded.is_end_owed;

-- forget_breaches --
-- Deletes the breaches of a job that ended long ago.
delete from {schema}.breach where job_key = :job_key and ended_at < :forgotten_at;

-- owed_breaches --
-- Returns breaches that were found before this moment and are not told to the receivers, oldest first.
select s.id as job_id, b.kind, b.broken_for, b.due_at, b.found_at, b.last_for, b.count, b.reason, b.occurrence_id,
       b.ended_at, b.is_withdrawn, b.is_begin_owed, b.is_end_owed
  from {schema}.breach b join {schema}.job_state s on s.job_key = b.job_key
 where (b.is_begin_owed or b.is_end_owed) and b.found_at <= :patient_at
 order by b.found_at, s.id {bytewise}, b.kind, b.broken_for limit :limit;

-- tell_breach --
-- Notes what the receivers were told of a breach.
update {schema}.breach
   set is_begin_owed = is_begin_owed and not :is_begin_told, is_end_owed = is_end_owed and not :is_end_told
 where job_key = (select j.job_key from {schema}.job j where j.id = :job_id) and kind = :kind
   and broken_for = :broken_for;

-- promise_records --
-- Returns the promises of the jobs in service, of all or of these jobs. Those that are judged soonest come first.
select j.id as job_id, j.name, p.kind, p.judged_through, p.check_at, p.held_after, p.held_through, p.revision,
       b.broken_for, b.due_at, b.found_at, b.last_for, b.count, b.reason, b.occurrence_id, b.ended_at, b.is_withdrawn
  from {schema}.promise p
  join {schema}.job j on j.job_key = p.job_key
  join {schema}.job_state s on s.job_key = p.job_key
  left join {schema}.breach b on b.job_key = p.job_key and b.kind = p.kind and b.broken_for = p.broken_for
 where s.removed_at is null and (:is_any or j.id {in job_ids})
 order by p.check_at is null, p.check_at, j.name {bytewise}, p.kind limit :limit;

-- breach_records --
-- Returns breaches, newest first: of all or of one job, all or those that go on.
select j.id as job_id, j.name, b.kind, b.broken_for, b.due_at, b.found_at, b.last_for, b.count, b.reason,
       b.occurrence_id, b.ended_at, b.is_withdrawn
  from {schema}.breach b join {schema}.job j on j.job_key = b.job_key
 where (:is_any or j.id = :job_id) and (:is_past or b.ended_at is null)
 order by b.due_at desc, j.name {bytewise}, b.kind, b.broken_for limit :limit;

-- purge_promises --
-- Deletes the promises of a job.
delete from {schema}.promise where job_key = :job_key;

-- purge_breaches --
-- Deletes the breaches of a job.
delete from {schema}.breach where job_key = :job_key;

-- ---------------------------------------------------------------------------------------------------------- limits

-- reaches --
-- Returns every reach for which a limit, a brake or a release holds, by name.
select reach, most, rate_count, rate_per, is_burst, reason, set_by, set_at, release_count, release_per,
       is_release_burst, release_left, released_at, released_by, exists (select 1 from {schema}.brake) as has_brakes
  from {schema}.reach order by reach;

-- brakes --
-- Returns every brake, by its beginning.
select reach, since_at, until_at, reason, braked_by, begins, ends from {schema}.brake order by reach, since_at, brake_key;

-- hold_reaches --
-- Locks these reaches and returns them: no other claim counts or takes their places before the transaction ends.
select r.reach, r.most, r.rate_count, r.rate_per, r.is_burst, r.reason, r.set_by, r.set_at, r.release_count,
       r.release_per, r.is_release_burst, r.release_left, r.released_at, r.released_by,
       exists (select 1 from {schema}.brake) as has_brakes
  from {schema}.reach r where r.reach {in reaches} order by r.reach {lock r};

-- keep_reach --
-- Writes the limit and the release of a reach.
insert into {schema}.reach (reach, most, rate_count, rate_per, is_burst, reason, set_by, set_at, release_count,
                            release_per, is_release_burst, release_left, released_at, released_by)
values (:reach, :most, :rate_count, :rate_per, :is_burst, :reason, :set_by, :set_at, :release_count, :release_per,
        :is_release_burst, :release_left, :released_at, :released_by)
on conflict (reach) do update
   set most = excluded.most, rate_count = excluded.rate_count, rate_per = excluded.rate_per,
       is_burst = excluded.is_burst, reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at,
       release_count = excluded.release_count, release_per = excluded.release_per,
       is_release_burst = excluded.is_release_burst, release_left = excluded.release_left,
       released_at = excluded.released_at, released_by = excluded.released_by;

-- forget_reach --
-- Deletes a reach that has no limit, brake or release any more.
delete from {schema}.reach where reach = :reach;

-- forget_brakes --
-- Deletes the brakes of a reach.
delete from {schema}.brake where reach = :reach;

-- add_brake --
-- Writes one brake.
insert into {schema}.brake (reach, since_at, until_at, reason, braked_by, begins, ends)
values (:reach, :since_at, :until_at, :reason, :braked_by, :begins, :ends);

-- add_limit_change --
-- Notes who changed what of a reach, and why.
insert into {schema}.limit_change (changed_at, reach, what, reason, changed_by)
values (:changed_at, :reach, :what, :reason, :changed_by);

-- limit_changes --
-- Returns the newest changes of limits and brakes, newest first.
select change_key, changed_at, reach, what, reason, changed_by from {schema}.limit_change order by change_key desc limit :limit;

-- add_starts --
-- Notes claims that limits count.
insert into {schema}.limit_start (reach, handle, fence, started_at)
select starts.reach, starts.handle, starts.fence, starts.started_at
  from {rows starts: reach text, handle bigint, fence int, started_at timestamptz}
 where true
on conflict do nothing;

-- forget_starts --
-- Deletes the starts of each reach up to its moment whose occurrence no node holds any more.
delete from {schema}.limit_start
 where (reach, handle, fence) in (
       select s.reach, s.handle, s.fence
         from {rows overs: reach text, over_at timestamptz}
         cross join {schema}.limit_start s
        where s.reach = overs.reach and s.started_at <= overs.over_at
          and not exists (select 1 from {schema}.occurrence o where o.handle = s.handle and o.owner is not null));

-- forget_starts_of --
-- Deletes every start of a reach.
delete from {schema}.limit_start where reach = :reach;

-- running_in --
-- Returns how many occurrences of each of these reaches a node owns.
select s.reach, count(distinct s.handle) as running
  from {schema}.limit_start s join {schema}.occurrence o on o.handle = s.handle
 where s.reach {in reaches} and o.owner is not null
 group by s.reach;

-- started_in --
-- Returns for each of these spans of a reach how many have started in it, and when the nth of the newest has started.
-- A start that lies ahead was written before the clock was set back.
select spans.place,
       (select count(*) from {schema}.limit_start s
         where s.reach = spans.reach and s.started_at > spans.since_at and s.started_at <= :ahead_at) as count,
       (select n.started_at
          from (select s.started_at, row_number() over (order by s.started_at desc) as nth
                  from {schema}.limit_start s where s.reach = spans.reach and s.started_at <= :ahead_at) n
         where n.nth = spans.nth) as nth_started_at
  from {rows spans: place int, reach text, nth int, since_at timestamptz};

-- known_lanes --
-- Returns the needs of every lane.
select text as needs from {schema}.needs where text >= 'limit:' and text < 'limit;';

-- hold_places --
-- Notes that these occurrences hold places: their ends ring.
update {schema}.occurrence set holds_place = true where handle {in handles};

-- own_in_lanes --
-- The durable start, where limits hold: `places` are those that a limit counts.
update {schema}.occurrence
   set found = status, status = {running}, owner = :node, node = :node, fence = fence + 1, claim_token = :token,
       claimed_at = :now, started_at = coalesce(started_at, :now), updated_at = :now,
       holds_place = handle {in places}
 where handle {in handles};
