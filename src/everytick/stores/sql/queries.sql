-- The statements of the shared verbs whose text is the same in both stores. Each has a name and says what it
-- guarantees; statements.py says what `:name` and `{marker}` stand for. What differs stands in each store's cold.sql.

-- ------------------------------------------------------------------------------------------------------ jobs and facts

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
-- Says when a job runs next, by what is true now.
update {schema}.job_state set next_run_at = :next_run_at
 where job_key = (select j.job_key from {schema}.job j where j.id = :job_id);

-- end_pause --
-- Takes away the pause that holds a job now and returns it.
delete from {schema}.pause where job_key = :job_key and pause_key = (
       select p.pause_key from {schema}.pause p
        where p.job_key = :job_key and (p.until_at is null or p.until_at > :now) order by p.pause_key limit 1)
returning since_at;

-- resume_pause --
-- Ends the pause that holds a job now, and returns whether there was one.
update {schema}.pause set until_at = :now, resumed_by = :resumed_by where job_key = :job_key and pause_key = (
       select p.pause_key from {schema}.pause p
        where p.job_key = :job_key and (p.until_at is null or p.until_at > :now) order by p.pause_key limit 1)
returning pause_key;

-- add_pause --
-- Holds a job's schedule from then on.
insert into {schema}.pause (job_key, since_at, until_at, missed, reason, paused_by)
values (:job_key, :since_at, :until_at, :missed, :reason, :paused_by);

-- reschedule_job --
-- Sets the next run.
update {schema}.job_state
   set reschedule_made_at = :now, reschedule_for = :reschedule_for, reschedule_by = :reschedule_by
 where job_key = :job_key;

-- adjust --
-- Says what becomes of one instant; what was said before is replaced and keeps its place.
insert into {schema}.adjustment (job_key, instant_at, kind, moved_to_at, reason, adjusted_by, is_done, overrides,
                                 payload)
values (:job_key, :instant_at, :kind, :moved_to_at, :reason, :adjusted_by, :is_done, :overrides, :payload)
on conflict (job_key, instant_at) do update
   set kind = excluded.kind, moved_to_at = excluded.moved_to_at, reason = excluded.reason,
       adjusted_by = excluded.adjusted_by, is_done = excluded.is_done, overrides = excluded.overrides,
       payload = excluded.payload;

-- decided_through --
-- Returns how far a job is decided, and before what it was recorded as not run beyond this moment.
select s.watermark,
       (select min(p.span_after) from {schema}.span p
         where p.job_key = s.job_key and p.span_through > :now) as undone_after
  from {schema}.job_state s where s.job_key = :job_key;

-- undo_spans --
-- Forgets what was recorded as not run beyond this moment.
delete from {schema}.span where job_key = :job_key and span_through > :now;

-- rewind_pauses --
-- Lets a pause that begins, or was resumed, beyond this moment do so now.
update {schema}.pause
   set since_at = case when since_at > :now then :now else since_at end,
       until_at = case when resumed_by is not null and until_at > :now then :now else until_at end
 where job_key = :job_key and (since_at > :now or (resumed_by is not null and until_at > :now));

-- told_ahead --
-- Locks and returns the jobs that do not lie ahead and whose newest version, a pause, a resume or a reschedule was
-- written while the clock was.
select s.job_key, s.id as job_id
  from {schema}.job_state s
 where s.watermark <= :step_at
   and (exists (select 1 from {schema}.job_version v
                 where v.job_key = s.job_key and v.version = s.version and v.in_force_after > :step_at)
        or s.reschedule_made_at > :step_at
        or exists (select 1 from {schema}.pause p
                    where p.job_key = s.job_key
                      and (p.since_at > :step_at or (p.resumed_by is not null and p.until_at > :step_at))))
 order by s.job_key
   {lock s};

-- bring_told_back --
-- Lets the newest version of a job be in force now, and a reschedule hold from now on.
update {schema}.job_state
   set oldest_version = version,
       reschedule_made_at = case when reschedule_made_at > :now then :now else reschedule_made_at end
 where job_key = :job_key;

-- open_request --
-- Returns the number under its key and the payload of the open request of this key.
select nth, payload from {schema}.request where job_key = :job_key and cause = :cause and key = :key;

-- key_use --
-- Returns the newest use of a key that a caller has named.
select nth, call from {schema}.request_key where job_key = :job_key and cause = :cause and key = :key;

-- forget_asked_for --
-- Forgets every open request for the occurrence of this id.
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
                                  effective, edited_by, edited_at)
values (:job_key, :version, :in_force_after, :kind, :schedule, :enabled, :reports, :definition, :effective,
        :edited_by, :edited_at);

-- version_at --
-- Returns the version in force at a moment; what is named at the moment of an edit is named by the old one.
select version from {schema}.job_version
 where job_key = :job_key and (in_force_after is null or in_force_after < :instant_at)
 order by version desc limit 1;

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

-- attempts_of --
-- Returns every attempt at the tasks of one occurrence.
select task, number, status as attempt_status, started_at, ended_at, error, progress_done, progress_total,
       progress_text, log_node, log_path, node
  from {schema}.attempt where handle = :handle order by task, number;

-- spans_of --
-- Returns the spans of a job that touch an interval, in order.
select status, why, detail, span_after, span_through, version, count
  from {schema}.span
 where job_key = :job_key and span_through > :begin_after and span_after < :end_through
 order by span_key;

-- forget_attempts --
-- Forgets the attempts of these occurrences.
delete from {schema}.attempt where handle {in handles};

-- forget_runs --
-- Forgets the runs of these occurrences.
delete from {schema}.task_run where handle {in handles};

-- ------------------------------------------------------------------------------------------------------------- purging

-- purge_requests --
-- Forgets the open requests of a job.
delete from {schema}.request where job_key = :job_key;

-- purge_keys --
-- Frees every key that requests of the job have used.
delete from {schema}.request_key where job_key = :job_key;

-- purge_adjustments --
-- Forgets what was said about single instants of a job.
delete from {schema}.adjustment where job_key = :job_key;

-- purge_pauses --
-- Forgets the pauses of a job.
delete from {schema}.pause where job_key = :job_key;

-- purge_spans --
-- Forgets which instants of a job did not run.
delete from {schema}.span where job_key = :job_key;

-- purge_versions --
-- Forgets the definitions of a job.
delete from {schema}.job_version where job_key = :job_key;

-- purge_state --
-- Forgets where a job stands.
delete from {schema}.job_state where job_key = :job_key;

-- purge_job --
-- Forgets a job that nothing belongs to any more.
delete from {schema}.job where job_key = :job_key;

-- --------------------------------------------------------------------------------------------------------------- nodes

-- leave --
-- Notes that the node beats no more, and was heard of for the last time.
update {schema}.node set beats = 0, beat_at = :now where id = :node_id;

-- hear --
-- Notes that the node lives, and what it says of itself where it says anything.
insert into {schema}.node (id, beat_at, facts, beats) values (:node_id, :now, :facts, 1)
on conflict (id) do update
   set beat_at = excluded.beat_at, facts = coalesce(excluded.facts, node.facts), beats = node.beats + 1;

-- forget_name_sets --
-- Forgets sets of names that no start has told since then, and that no node names.
delete from {schema}.name_set
 where stored_at < :told_at
   and not exists (select 1 from {schema}.node n where n.facts like '%' || name_set.hash || '%');
