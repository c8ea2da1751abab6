-- Lists are given as one JSON text and read by json_each, so that every statement has one text and one plan.
-- Where rows come by the thousand, nothing is given as -9223372036854775808 or as char(0) instead of null, since the
-- driver takes longer over one null than the statement over the rest of its row. `(values (?, …))` is one row of as
-- many as there are (bulk.py).
-- `indexed by` stands where the planner would rather read a job's whole history than the few that are active.

-- due_jobs --
-- Jobs of one text of needs whose wake_at has come, longest-waiting first; without some jobs, and without those whose
-- definition this process cannot read.
select s.job_key, s.id, s.version, s.oldest_version, s.revision, s.woken, s.watermark, s.wake_at, s.retire_at,
       s.reschedule_made_at, s.reschedule_for, s.reschedule_by, s.last_end_scheduled_for, s.last_end_started_at,
       s.last_end_at, s.last_end_id, s.last_success_scheduled_for, s.last_success_started_at,
       s.last_success_at, s.last_success_id, s.other_success_scheduled_for,
       s.other_success_started_at, s.other_success_at, s.other_success_id, s.narrowed_at, s.is_needed
  from job_state s
 where s.needs = :needs and s.wake_at <= :until_at and (:knows_all or not s.id {in unknown})
   and (:reads_all or (s.job_key || ':' || s.version) not in (select value from json_each(:refused)))
 order by s.wake_at, s.id limit :limit;

-- look_at_jobs --
-- The same columns for these jobs, due or not.
select s.job_key, s.id, s.version, s.oldest_version, s.revision, s.woken, s.watermark, s.wake_at, s.retire_at,
       s.reschedule_made_at, s.reschedule_for, s.reschedule_by, s.last_end_scheduled_for, s.last_end_started_at,
       s.last_end_at, s.last_end_id, s.last_success_scheduled_for, s.last_success_started_at,
       s.last_success_at, s.last_success_id, s.other_success_scheduled_for,
       s.other_success_started_at, s.other_success_at, s.other_success_id, s.narrowed_at, s.is_needed
  from job_state s where s.id {in job_ids};

-- next_wake --
-- The earliest wake_at of one text of needs that is still to come.
select min(wake_at) as wake_at from job_state where needs = :needs and wake_at > :now;

-- count_needs --
-- How many texts of needs there are, and whether limits hold.
select count(*) as count, exists (select 1 from reach) as is_limited,
       coalesce((select max(change_key) from limit_change), 0) as limit_changes
  from needs;

-- all_needs --
-- Every text of needs.
select text from needs order by text;

-- add_needs --
-- A text of needs is known from now on.
insert into needs (text) values (?) on conflict do nothing;

-- next_ready --
-- The earliest moment still to come at which something of one text of needs may start.
select ready_at from occurrence
 where is_early = 1 and needs = :needs and ready_at > :now and (status = {pending} or (status = {awaiting_retry} and owner is null))
 order by ready_at limit 1;

-- active_of_jobs --
-- Everybody busy or waiting of these jobs, in line; one more than is wanted says that it is a crowd.
select job_key, id, line_at, scheduled_for, status, cause, superseded_by_next, awaited, late
  from occurrence indexed by occurrence_active
 where job_key in (select value from json_each(?)) and ended_at is null
 order by job_key, line_at, id limit ?;

-- active_counts --
-- How many of each of these jobs are active.
select job_key, count(*) from occurrence indexed by occurrence_active
 where job_key in (select value from json_each(?)) and ended_at is null group by job_key;

-- crowds_of_jobs --
-- Of each job's busy and waiting ones the first hundred in line, and the newest that waits, of the schedule's own and
-- of all; the counts are whole, and so is whether all of them are awaited.
-- What the schedule of a paused job put in line is hidden, but for one that brings the count along.
select job_key, id, line_at, scheduled_for, status, cause, superseded_by_next, all_awaited, late, total, hidden
  from (select *, row_number() over (partition by job_key, status = {queued}, hidden order by line_at, id) as place,
               row_number() over (partition by job_key, status = {queued}, cause = {cause.schedule} order by line_at desc, id desc) as newest,
               min(awaited) over (partition by job_key, status = {queued}) as all_awaited,
               count(*) over (partition by job_key, status = {queued}) as total,
               count(*) over (partition by job_key, status = {queued}, hidden) as alike
          from (select job_key, id, line_at, scheduled_for, status, cause, superseded_by_next, awaited, late,
                       status = {queued} and cause = {cause.schedule} and exists (
                         select 1 from pause p
                          where p.job_key = o.job_key and (p.until_at is null or p.until_at > ?)) as hidden
                  from occurrence o indexed by occurrence_active
                 where job_key in (select value from json_each(?)) and ended_at is null))
 where iif(hidden, place = 1, place <= 100 or (status = {queued} and (place = alike or (cause = {cause.schedule} and newest = 1))))
 order by job_key, hidden, place;

-- pauses_of_jobs --
-- The pauses still to be decided, in the order in which they were made.
select job_key, since_at, until_at, missed, reason, paused_by, resumed_by
  from pause where job_key {in job_keys} order by pause_key;

-- adjustments_of_jobs --
-- What people want of single instants, in the order in which they said so.
select job_key, instant_at, kind, moved_to_at, reason, adjusted_by, is_done, overrides, payload, told_at
  from adjustment where job_key {in job_keys} order by adjustment_key;

-- requests_of_jobs --
-- The oldest 101 open requests of each job that a plan of a moment sees: one more than it may answer. The next one that is
-- still to come follows. Jobs and moments come in pairs.
select r.job_key, r.key, r.cause, r.requested_at, r.payload, r.overlap, r.reason, r.requested_by, r.replay_of,
       r.scheduled_for, r.covers_after, r.covers_through, r.keeps,
       r.nth, r.due_at, r.due_at > seen.until as is_to_come
  from {rows seen: job_key int, until bigint}
 cross join request r on r.request_key in (
       select request_key
         from (select q.request_key from request q
                where q.job_key = seen.job_key and q.due_at <= seen.until order by q.due_at, q.request_key limit 101)
       union all
       select request_key
         from (select q.request_key from request q
                where q.job_key = seen.job_key and q.due_at > seen.until order by q.due_at, q.request_key limit 1))
 where exists (select 1 from request q where q.job_key = seen.job_key)
 order by r.due_at, r.request_key;

-- definition --
-- One version's text and times; a version never changes.
select v.definition, j.id, j.created_at, v.edited_at, v.in_force_after, v.edited_by, v.follows, v.rollout
  from job_version v join job j on j.job_key = v.job_key where v.job_key = ? and v.version = ?;

-- past_versions --
-- Versions of a job before this one, from that in force right after a moment on, and since when each was.
select version, in_force_after from job_version
 where job_key = :job_key and version < :oldest_version
   and version >= coalesce((select max(p.version) from job_version p
                             where p.job_key = :job_key and p.version < :oldest_version
                               and (p.in_force_after is null or p.in_force_after <= :fill_after)), 1)
 order by version limit :limit;

-- states_of_jobs --
-- What the commit of plans is conditional on; under the write lock no other process can change it before we write.
select id, job_key, revision, watermark, version, oldest_version, plan_token
  from job_state where id in (select value from json_each(?));

-- move_watermark --
-- The plan is decided; a wake after its snapshot was read is not slept through.
update job_state
   set revision = revision + 1, watermark = ?,
       wake_at = case when woken = ? then nullif(?, -9223372036854775808) else ? end,
       next_run_at = nullif(?, -9223372036854775808), plan_token = ?, parked_reason = null, planned_woken = ?
 where job_key = ?;

-- park_plan --
-- Says why the plan of a job was refused; the next plan that is written clears it.
update job_state set parked_reason = :reason where id = :job_id;

-- create_occurrence --
-- Absent ones only: the id is made of job and instant, so a repeated commit is harmless.
insert into occurrence (id, job_key, version, scheduled_for, status, cause, late, covers_after, covers_through, line_at,
                        ready_at, ended_at, overrides, payload, replay_of, reason, created_at, updated_at, priority,
                        needs, is_early, execution_timeout)
values (?, ?, ?, ?, ?, ?, ?, nullif(?, -9223372036854775808), ?, ?, ?, nullif(?, -9223372036854775808),
        nullif(?, char(0)), nullif(?, char(0)), nullif(?, char(0)), ?, ?, ?, ?, ?, ?, nullif(?, -9223372036854775808))
on conflict (id) do nothing;

-- release_occurrence --
-- What still stands in line has a place now; what was canceled meanwhile stays so.
update occurrence set status = {pending}, updated_at = :now,
       is_early = iif(is_early is null, null, coalesce(ready_at > :now, 0))
 where id = :occurrence_id and status = {queued};

-- end_occurrence --
-- Ends an occurrence that does not run, and fences out an owner that waits for its retry. One that a node has begun
-- or ended meanwhile stays as it is.
update occurrence
   set status = ?, owner = null, fence = fence + 1, ended_at = ?, error = ?, updated_at = ?, is_early = 0
 where id = ? and status < {first_ended} and status <> {running}
returning job_key, scheduled_for, started_at, handle, version, step_number,
          (select v.reports from job_version v
            where v.job_key = occurrence.job_key and v.version = occurrence.version);

-- owe_reports --
-- The reports of these, which have ended, are to be delivered.
insert into report (needs, ended_at, handle)
select needs, ended_at, handle from occurrence where handle in (select value from json_each(?));

-- ask_to_cancel --
-- The owner is told by its next beat; what has ended is not asked. A reason that is there stays.
update occurrence set cancel_reason = :reason
 where id = :occurrence_id and status < {first_ended} and cancel_reason is null;

-- ask_all_to_cancel --
-- Everybody of the job who is busy and stood in line before this moment is asked, whom a snapshot named or not.
update occurrence indexed by occurrence_active set cancel_reason = :reason
 where job_key = :job_key and status <> {queued} and ended_at is null and cancel_reason is null and line_at < :before_at;

-- await_ends --
-- Marks the active occurrences of the job as awaited: the end of each will wake the job.
update occurrence indexed by occurrence_active set awaited = 1 where job_key = ? and ended_at is null and awaited = 0;

-- tell_dependents --
-- Makes every job worth a look now that depends on this one and has an occurrence in line.
update job_state set woken = woken + 1, wake_at = ?
 where job_key in (select d.job_key from dependency d where d.needed_id = ?)
   and exists (select 1 from occurrence o indexed by occurrence_active
                where o.job_key = job_state.job_key and o.ended_at is null and o.status = {queued});

-- add_span --
-- Instants that do not run, with their reason.
insert into span (job_key, version, status, why, detail, span_after, span_through, count)
values (?, ?, ?, ?, ?, ?, ?, ?);

-- use_adjustment --
-- What was moved exists at its new time.
update adjustment set is_done = 1 where job_key = :job_key and instant_at = :instant_at;

-- forget_adjustments --
-- Nothing at or before the watermark is asked about again, but a move to another time waits for that time.
delete from adjustment
 where job_key = :job_key and instant_at <= :watermark and not (kind = 'move' and is_done = 0 and moved_to_at is not instant_at);

-- forget_reschedule --
-- The rescheduled run exists.
update job_state set reschedule_made_at = null, reschedule_for = null, reschedule_by = null where job_key = :job_key;

-- forget_narrowing --
-- Nothing waits any more that the edit of recovery left no reason for.
update job_state set narrowed_at = null where job_key = :job_key;

-- forget_pauses --
-- A pause that is decided through needs no answer any more.
delete from pause where job_key = :job_key and until_at <= :watermark;

-- forget_editions --
-- The newest version in force at the watermark, and those after it, are what is left to decide by.
update job_state
   set oldest_version = coalesce(
         (select max(v.version) from job_version v
           where v.job_key = job_state.job_key and v.version >= job_state.oldest_version
             and (v.in_force_after is null or v.in_force_after <= job_state.watermark)),
         oldest_version)
 where job_key = ?;

-- come_of_age --
-- What had to wait for its ready_at stands among the ready ones from then on.
update occurrence set is_early = 0 where is_early = 1 and needs = ? and ready_at <= ?;

-- ready_occurrences --
-- What may start now of one text of needs, higher priority first, then the oldest in line; without some jobs, and versions.
-- A retry that the next instant supersedes waits while its job is due: the plan comes before it.
-- Where a limit or brake holds it returns nothing: another verb claims then.
-- The last column says that the others tell all there is: it begins for the first time, at its instant, as defined.
select handle, job_key, version, id, scheduled_for, cause, late, covers_after, reason, created_at, line_at, priority,
       fence = 0 and step_number = 0 and covers_through = scheduled_for and line_at = scheduled_for
         and ready_at = scheduled_for and coalesce(started_at, error, overrides, payload, replay_of, cancel_reason) is null
  from occurrence
 where needs = ? and is_early = 0 and (status = {pending} or (status = {awaiting_retry} and owner is null))
   and (? or job_key not in (select j.job_key from job j where j.id in (select value from json_each(?))))
   and (? or (job_key || ':' || version) not in (select value from json_each(?)))
   and (superseded_by_next = 0 or not exists (
         select 1 from job_state s where s.job_key = occurrence.job_key and s.wake_at <= ?))
   and not exists (select 1 from reach)
 order by priority desc, line_at, id limit ?;

-- limits_hold --
-- Whether a limit or brake holds.
select exists (select 1 from reach);

-- own_occurrences --
-- The durable start: from now on only this node writes, under a fence that no owner had before.
update occurrence
   set found = status, status = {running}, owner = :node, node = :node, fence = fence + 1, claim_token = :token, claimed_at = :now,
       started_at = coalesce(started_at, :now), updated_at = :now
 where handle {in handles} and status < {first_ended};

-- held_occurrences --
-- Occurrences by their handles, whole; it begins as ready_occurrences does.
select handle, job_key, version, id, scheduled_for, status, cause, late, covers_after, covers_through, line_at, ready_at,
       owner, fence, started_at, ended_at, error, overrides, payload, replay_of, reason, created_at, updated_at,
       step_number, claimed_at, lost, cancel_reason, claim_token, node, found, holds_place
  from occurrence where handle in (select value from json_each(?));

-- fences --
-- What the steps of owners are conditional on; under the write lock no other process can change it before we write.
select handle, fence, claim_token, step_number, status from occurrence where handle in (select value from json_each(?));

-- advance_occurrence --
-- One step of the owner that is not its last, by key, fence and token; one that was written before changes nothing.
update occurrence
   set status = ?, owner = iif(?, null, owner), ready_at = coalesce(nullif(?, -9223372036854775808), ready_at),
       is_early = iif(? and exists (select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                              where s.job_key = occurrence.job_key and v.enabled = 0), null,
                   coalesce(nullif(?, -9223372036854775808), ready_at, 0) > ?),
       error = nullif(?, char(0)), step_number = ?,
       lost = ?, superseded_by_next = ?, updated_at = ?
 where handle = ? and fence = ? and claim_token = ? and step_number < ? and status < {first_ended};

-- forget_claims --
-- The claims of these were given back before an attempt began: some of them had not started before, and the node of
-- all is that of their last attempt.
update occurrence
   set started_at = iif(handle {in unstarted}, null, started_at),
       node = (select a.node from attempt a where a.handle = occurrence.handle and a.started_at is not null
                order by a.started_at desc, a.task desc, a.number desc limit 1)
 where handle {in handles};

-- hold_given_back --
-- Of these, what a pause or a disable holds stands in line again.
update occurrence set status = {queued}
 where handle {in handles} and status = {pending} and owner is null
   and ((cause = {cause.schedule} and exists (select 1 from pause p where p.job_key = occurrence.job_key
                                 and (p.until_at is null or p.until_at > :now)))
        or exists (select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                    where s.job_key = occurrence.job_key and v.enabled = 0));

-- retired_of --
-- Those of these whose job has retired.
select o.id as occurrence_id, o.job_key from occurrence o join job_state s on s.job_key = o.job_key
 where o.handle {in handles} and o.status < {first_ended} and o.owner is null and s.retire_at <= :now;

-- end_owned --
-- The owner's last step, by key, fence and token: it raises the fence, so that a finished row matches no owner.
update occurrence
   set status = e.column5, owner = null, ready_at = coalesce(nullif(e.column6, -9223372036854775808), ready_at), is_early = 0,
       ended_at = e.column7, error = nullif(e.column8, char(0)), step_number = e.column4, lost = e.column9,
       superseded_by_next = e.column10, updated_at = ?, fence = fence + 1
  from (values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) e
 where handle = e.column1 and fence = e.column2 and claim_token = e.column3 and step_number < e.column4 and status < {first_ended};

-- write_run --
-- Where a task's run stands now.
insert into task_run (handle, task, status, attempts, retries, last_attempt_status, resume_at, started_at,
                      attempt_started_at, ended_at, error, result, waits, because_of, out_of_time)
select column1, column2, column3, column4, column5, nullif(column6, -9223372036854775808),
       nullif(column7, -9223372036854775808), nullif(column8, -9223372036854775808),
       nullif(column9, -9223372036854775808), nullif(column10, -9223372036854775808), nullif(column11, char(0)),
       nullif(column12, char(0)), nullif(column13, char(0)), nullif(column14, char(0)), column15
  from (values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) where true
on conflict (handle, task) do update
   set status = excluded.status, attempts = excluded.attempts, retries = excluded.retries, last_attempt_status = excluded.last_attempt_status,
       resume_at = excluded.resume_at, started_at = excluded.started_at,
       attempt_started_at = excluded.attempt_started_at, ended_at = excluded.ended_at, error = excluded.error,
       result = excluded.result, waits = excluded.waits, because_of = excluded.because_of,
       out_of_time = excluded.out_of_time;

-- write_attempt --
-- One try, by the last node that had the occurrence; what has ended is never overwritten, and what was noted of it stays.
insert into attempt (handle, task, number, status, started_at, ended_at, error, node)
select column1, column2, column3, column4, nullif(column5, -9223372036854775808), nullif(column6, -9223372036854775808),
       nullif(column7, char(0)), (select o.node from occurrence o where o.handle = column1)
  from (values (?, ?, ?, ?, ?, ?, ?)) where true
on conflict (handle, task, number) do update
   set status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error
 where attempt.status < {attempt.first_ended};

-- wake_job --
-- The job is looked at again; a plan from an older snapshot cannot sleep through it.
update job_state set woken = woken + ?, wake_at = ? where job_key = ?;

-- note_end --
-- The job's last end.
update job_state set run_count = run_count + iif(? is null, 0, 1), last_end_scheduled_for = ?, last_end_started_at = ?, last_end_at = ?, last_end_id = ? where job_key = ?;

-- note_last_ends --
-- The last end of each job, of these occurrences, which had begun. If it is a good one it is the last success too, and the
-- success before it stays known.
update job_state
   set run_count = run_count + 1, last_end_scheduled_for = o.scheduled_for, last_end_started_at = o.started_at,
       last_end_at = o.ended_at, last_end_id = o.id,
       last_success_scheduled_for = iif(o.is_good, o.scheduled_for, last_success_scheduled_for),
       last_success_started_at = iif(o.is_good, o.started_at, last_success_started_at),
       last_success_at = iif(o.is_good, o.ended_at, last_success_at),
       last_success_id = iif(o.is_good, o.id, last_success_id),
       other_success_scheduled_for = iif(o.is_good, last_success_scheduled_for, other_success_scheduled_for),
       other_success_started_at = iif(o.is_good, last_success_started_at, other_success_started_at),
       other_success_at = iif(o.is_good, last_success_at, other_success_at),
       other_success_id = iif(o.is_good, last_success_id, other_success_id)
  from (select *, status in ({completed}, {completed_with_errors}) as is_good from occurrence
         where handle in (select value from json_each(?))) o
 where job_state.job_key = o.job_key;

-- note_last_successes --
-- The last success of each job before its last end, of these occurrences; the success before it stays known.
update job_state
   set last_success_scheduled_for = o.scheduled_for, last_success_started_at = o.started_at, last_success_at = o.ended_at,
       last_success_id = o.id, other_success_scheduled_for = last_success_scheduled_for,
       other_success_started_at = last_success_started_at, other_success_at = last_success_at,
       other_success_id = last_success_id
  from occurrence o where o.handle in (select value from json_each(?)) and job_state.job_key = o.job_key;

-- count_runs --
-- So many more of the job have begun and ended.
update job_state set run_count = run_count + ? where id = ?;

-- note_failure --
-- What the last failure of the job said.
update job_state set last_error = ? where id = ?;

-- note_failed_attempt --
-- When an attempt of the job last failed, also one that is tried again.
update job_state set last_failure_at = max(coalesce(last_failure_at, 0), ?) where id = ?;

-- wake_jobs_of --
-- Wakes the jobs of the awaited ones among these occurrences, once for each that ended or was parked.
update job_state set woken = woken + e.count, wake_at = ?
  from (select job_key, count(*) as count from occurrence
         where handle in (select value from json_each(?)) and awaited = 1 group by job_key) e
 where job_state.job_key = e.job_key;

-- beat --
-- The node was heard of.
insert into node (id, beat_at, beats) values (?, ?, 1)
    on conflict (id) do update set beat_at = excluded.beat_at, beats = beats + 1;

-- forget_request --
-- The request is answered.
delete from request where job_key = :job_key and cause = :cause and key = :key;

-- begin_kept --
-- A replay that keeps results has something written about it before its first step.
update occurrence set step_number = 1 where id = :occurrence_id and fence = 0 and step_number = 0;

-- keep_runs --
-- The results of these tasks are taken over from one occurrence to another, which will not run them.
insert into task_run (handle, task, status, attempts, retries, started_at, ended_at, result, out_of_time)
select n.handle, r.task, r.status, 0, 0, r.started_at, r.ended_at, r.result, 0
  from occurrence o join task_run r on r.handle = o.handle join occurrence n on n.id = :occurrence_id
 where o.id = :original_occurrence_id and r.status = {run.success} and r.task {in tasks};

-- jobs_with_aged --
-- Of some jobs in the order of their keys: those that have something old enough to be forgotten.
select j.job_key, j.keep_success, j.keep_failure, j.keep_last
  from (select job_key, keep_success, keep_failure, keep_last from job_state where job_key > :after_key order by job_key limit :limit) j
 where exists (select 1 from occurrence o indexed by occurrence_ended
                where o.job_key = j.job_key and o.status in ({completed}, {completed_with_errors}, {skipped})
                  and o.ended_at < :now - j.keep_success)
    or exists (select 1 from occurrence o indexed by occurrence_ended
                where o.job_key = j.job_key and o.status in ({failed}, {canceled}, {failed_stale}, {missed}, {superseded})
                  and o.ended_at < :now - j.keep_failure);

-- last_kept --
-- The place of the oldest among the newest that a job keeps whatever their age; none if it has no more than those.
select scheduled_for, id as occurrence_id from occurrence indexed by occurrence_of_job
 where job_key = :job_key and status >= {first_ended} order by scheduled_for desc, id desc limit 1 offset :offset;

-- aged_of_job --
-- What ended so before this moment, was reported, and stands before this place; the oldest end first.
select handle from occurrence indexed by occurrence_ended
 where job_key = :job_key and status = :status and ended_at < :now - :kept
   and (:keeps_none or (scheduled_for, id) < (:scheduled_for, :occurrence_id)) and not exists (
       select 1 from report r
        where r.needs = occurrence.needs and r.ended_at = occurrence.ended_at and r.handle = occurrence.handle)
 order by ended_at limit :limit;

-- last_of_jobs --
-- The last of as many jobs as are looked through at once; none if there are fewer.
select job_key from job where job_key > :after_key order by job_key limit 1 offset :offset;

-- forget_keys --
-- A key whose newest use is forgotten with its occurrence.
delete from request_key
 where id in (select o.id from occurrence o
               where o.handle {in handles} and o.cause in ({cause.trigger}, {cause.replay}));

-- forgettable_of --
-- Of these, only what has ended and was reported may go.
select handle from occurrence
 where handle {in handles} and status >= {first_ended} and not exists (
       select 1 from report r
        where r.needs = occurrence.needs and r.ended_at = occurrence.ended_at and r.handle = occurrence.handle);

-- forget_occurrences --
-- Forgets these.
delete from occurrence where handle {in handles};
