-- Lists are given as one JSON text and read by json_each, so that every statement has one text and one plan.
-- Where rows come by the thousand, nothing is given as -9223372036854775808 or as char(0) instead of null, since the
-- driver takes longer over one null than the statement over the rest of its row. `{rows} e` is a table of as many rows as
-- there are (row_statements.py), whose columns are declared in rows_written.py. The columns in the place of «claim» and
-- its like are declared in claims.py and rows_read.py.
-- `indexed by` stands where the planner would rather read a job's whole history than the few that are active.

-- due_jobs --
-- Jobs of one text of needs whose wake_at has come, longest-waiting first; without some jobs, and without those whose
-- definition this process cannot read.
select «due_job»
  from job_state s
 where s.needs = :needs and s.wake_at <= :until_at and (:knows_all or not s.id {in unknown})
   and (:reads_all or (s.job_key || ':' || s.version) not in (select value from json_each(:refused)))
 order by s.wake_at, s.id limit :limit;

-- standing_by_id --
-- Returns the same columns for these jobs, due or not.
select «due_job»
  from job_state s where s.id {in job_ids};

-- next_wake --
-- Returns the earliest wake_at still to come of one text of needs.
select min(wake_at) as wake_at from job_state where needs = :needs and wake_at > :now;

-- count_needs --
-- How many texts of needs there are, and whether limits hold.
select count(*) as count, exists (select 1 from reach) as is_limited,
       coalesce((select max(change_key) from limit_change), 0) as limit_changes
  from needs;

-- all_needs --
-- Returns every text of needs.
select text from needs order by text;

-- add_needs --
-- Writes a text of needs, so that nodes ask for it.
insert into needs (text) values (:text) on conflict do nothing;

-- next_ready --
-- Returns the earliest ready_at still to come of one text of needs.
select ready_at from occurrence
 where is_early = 1 and needs = :needs and ready_at > :now and (status = {pending} or (status = {awaiting_retry} and owner is null))
 order by ready_at limit 1;

-- active --
-- Returns of each job the first 100 busy and the first 100 queued occurrences in line, the newest queued one, and the
-- newest queued one of the schedule. The counts are of all of them, and so is whether all are awaited.
-- What the schedule of a paused job has queued is hidden, but for one row that has the count.
select «active»
  from (select *, row_number() over (partition by job_key, status = {queued}, hidden order by line_at, id) as place,
               row_number() over (partition by job_key, status = {queued}, cause = {cause.schedule} order by line_at desc, id desc) as newest,
               min(awaited) over (partition by job_key, status = {queued}) as all_awaited,
               count(*) over (partition by job_key, status = {queued}) as total,
               count(*) over (partition by job_key, status = {queued}, hidden) as alike
          from (select job_key, id, line_at, scheduled_for, status, cause, superseded_by_next, awaited, late,
                       status = {queued} and cause = {cause.schedule} and exists (
                         select 1 from pause p
                          where p.job_key = o.job_key and (p.until_at is null or p.until_at > :now)) as hidden
                  from occurrence o indexed by occurrence_active
                 where job_key {in job_keys} and ended_at is null))
 where iif(hidden, place = 1, place <= 100 or (status = {queued} and (place = alike or (cause = {cause.schedule} and newest = 1))))
 order by job_key, hidden, place;

-- pauses --
-- Returns the pauses that are not decided yet, in the order in which they were made.
select job_key, since_at, until_at, missed, reason, paused_by, resumed_by
  from pause where job_key {in job_keys} order by pause_key;

-- adjustments --
-- Returns the adjustments of single instants, in the order in which they were made.
select job_key, instant_at, kind, moved_to_at, reason, adjusted_by, is_done, overrides, payload, told_at
  from adjustment where job_key {in job_keys} order by adjustment_key;

-- requests --
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
-- Returns one version's text and times. A version never changes.
select v.definition, j.id, j.created_at, v.edited_at, v.in_force_after, v.edited_by, v.follows, v.rollout
  from job_version v join job j on j.job_key = v.job_key where v.job_key = :job_key and v.version = :version;

-- past_versions --
-- Versions of a job before this one, from that in force right after a moment on, and since when each was.
select version, in_force_after from job_version
 where job_key = :job_key and version < :oldest_version
   and version >= coalesce((select max(p.version) from job_version p
                             where p.job_key = :job_key and p.version < :oldest_version
                               and (p.in_force_after is null or p.in_force_after <= :fill_after)), 1)
 order by version limit :limit;

-- states_of_jobs --
-- Returns what the commit of plans depends on. Under the write lock no other process changes it in between.
select «planned_job»
  from job_state where id {in job_ids};

-- move_watermark --
-- Writes where a job stands after its plan. A wake after the plan's snapshot makes the job due at once.
update job_state
   set revision = revision + 1, watermark = :watermark,
       wake_at = case when woken = :woken then nullif(:wake_at, -9223372036854775808) else :now end,
       next_run_at = nullif(:next_run_at, -9223372036854775808), plan_token = :plan_token, parked_reason = null,
       planned_woken = :woken
 where job_key = :job_key;

-- park_plan --
-- Writes why the plan of a job was refused. The next plan that is written clears it.
update job_state set parked_reason = :reason where id = :job_id;

-- create_occurrence --
-- Creates the occurrence if it is not there. Its id follows from job and instant, so a repeated commit is harmless.
insert into occurrence (id, job_key, version, scheduled_for, status, cause, late, covers_after, covers_through, line_at,
                        ready_at, ended_at, overrides, payload, replay_of, reason, created_at, updated_at, priority,
                        needs, is_early, execution_timeout)
values (:id, :job_key, :version, :scheduled_for, :status, :cause, :late, nullif(:covers_after, -9223372036854775808),
        :covers_through, :line_at, :ready_at, nullif(:ended_at, -9223372036854775808), nullif(:overrides, char(0)),
        nullif(:payload, char(0)), nullif(:replay_of, char(0)), :reason, :created_at, :updated_at, :priority, :needs,
        :is_early, nullif(:execution_timeout, -9223372036854775808))
on conflict (id) do nothing;

-- release --
-- Makes a queued occurrence pending. One that was canceled meanwhile stays canceled.
update occurrence set status = {pending}, updated_at = :now,
       is_early = iif(is_early is null, null, coalesce(ready_at > :now, 0))
 where id = :occurrence_id and status = {queued};

-- end_unowned --
-- Ends an occurrence that does not run, and fences out an owner that waits for its retry. One that a node has begun
-- or ended meanwhile stays as it is.
update occurrence
   set status = :status, owner = null, fence = fence + 1, ended_at = :now, error = :reason, updated_at = :now, is_early = 0
 where id = :occurrence_id and status < {first_ended} and status <> {running}
returning job_key, scheduled_for, started_at, handle, version, step_number,
          (select v.reports from job_version v
            where v.job_key = occurrence.job_key and v.version = occurrence.version) as reports;

-- owe_reports --
-- Notes that the reports of these ended occurrences are to be delivered.
insert into report (needs, ended_at, handle)
select needs, ended_at, handle from occurrence where handle {in handles};

-- ask_to_stop --
-- Asks the owner of an occurrence to stop; its next beat tells it. A reason that is there stays.
update occurrence set cancel_reason = :reason
 where id = :occurrence_id and status < {first_ended} and cancel_reason is null;

-- ask_all_to_stop --
-- Asks the owners of all busy occurrences of a job with a line_at before a moment to stop, whether the snapshot showed
-- them or not. A reason that is there stays.
update occurrence indexed by occurrence_active set cancel_reason = :reason
 where job_key = :job_key and status <> {queued} and ended_at is null and cancel_reason is null and line_at < :before_at;

-- mark_awaited --
-- Marks the active occurrences of the job as awaited: the end of each will wake the job.
update occurrence indexed by occurrence_active set awaited = 1 where job_key = :job_key and ended_at is null and awaited = 0;

-- tell_dependents --
-- Makes every job due that depends on this one and has an occurrence in line.
update job_state set woken = woken + 1, wake_at = :now
 where job_key in (select d.job_key from dependency d where d.needed_id = :job_id)
   and exists (select 1 from occurrence o indexed by occurrence_active
                where o.job_key = job_state.job_key and o.ended_at is null and o.status = {queued});

-- add_span --
-- Writes instants that do not run, with the reason.
insert into span (job_key, version, status, why, detail, span_after, span_through, count)
values (:job_key, :version, :status, :why, :detail, :span_after, :span_through, :count);

-- use_adjustment --
-- Notes that the moved instant has its occurrence.
update adjustment set is_done = 1 where job_key = :job_key and instant_at = :instant_at;

-- forget_adjustments --
-- Forgets adjustments of instants at or before the watermark, but not one that still moves its instant to another time.
delete from adjustment
 where job_key = :job_key and instant_at <= :watermark and not (kind = 'move' and is_done = 0 and moved_to_at is not instant_at);

-- forget_reschedule --
-- Notes that the rescheduled run has its occurrence.
update job_state set reschedule_made_at = null, reschedule_for = null, reschedule_by = null where job_key = :job_key;

-- forget_narrowing --
-- Notes that every waiting occurrence that an edit of recovery no longer keeps has ended.
update job_state set narrowed_at = null where job_key = :job_key;

-- note_stop --
-- Notes an obeyed instant of the stop or restart schedule that the watermark has not passed yet.
update job_state set stopped_at = :stopped_at where job_key = :job_key;

-- forget_pauses --
-- Deletes the pauses whose instants are all decided.
delete from pause where job_key = :job_key and until_at <= :watermark;

-- forget_editions --
-- Notes the oldest version that plans still need: the one in force at the watermark.
update job_state
   set oldest_version = coalesce(
         (select max(v.version) from job_version v
           where v.job_key = job_state.job_key and v.version >= job_state.oldest_version
             and (v.in_force_after is null or v.in_force_after <= job_state.watermark)),
         oldest_version)
 where job_key = :job_key;

-- release_early --
-- Moves early occurrences to the ready ones once their ready_at has come.
update occurrence set is_early = 0 where is_early = 1 and needs = :needs and ready_at <= :now;

-- ready_occurrences --
-- What may start now of one text of needs, higher priority first, then the oldest in line; without some jobs, and versions.
-- A retry that the next instant supersedes waits while its job is due: the plan comes before it.
-- Where a limit or brake holds it returns nothing: another verb claims then.
-- A plain one begins for the first time, at its instant, as defined: the columns then say all of it.
select «ready»,
       fence = 0 and step_number = 0 and covers_through = scheduled_for and line_at = scheduled_for
         and ready_at = scheduled_for and coalesce(started_at, error, overrides, payload, replay_of, cancel_reason) is null
         as is_plain
  from occurrence
 where needs = :needs and is_early = 0 and (status = {pending} or (status = {awaiting_retry} and owner is null))
   and (:knows_all or job_key not in (select j.job_key from job j where j.id {in unknown}))
   and (:reads_all or (job_key || ':' || version) not in (select value from json_each(:refused)))
   and (superseded_by_next = 0 or not exists (
         select 1 from job_state s where s.job_key = occurrence.job_key and s.wake_at <= :now))
   and not exists (select 1 from reach)
 order by priority desc, line_at, id limit :limit;

-- limits_hold --
-- Returns whether a limit or brake holds.
select exists (select 1 from reach) as is_limited;

-- own_occurrences --
-- Makes this node the owner: from now on only it writes these occurrences, under a new fence.
update occurrence
   set found = status, status = {running}, owner = :node, node = :node, fence = fence + 1, claim_token = :token, claimed_at = :now,
       started_at = coalesce(started_at, :now), updated_at = :now
 where handle {in handles} and status < {first_ended};

-- claims_of --
-- Returns occurrences by their handles, in the columns of a claim.
select «claim» from occurrence where handle {in handles};

-- step_marks --
-- Returns what steps depend on. Under the write lock no other process changes it in between.
select handle, fence, claim_token, step_number, status from occurrence where handle {in handles};

-- advance_occurrence --
-- One step of the owner that is not its last, by key, fence and token; one that was written before changes nothing.
update occurrence
   set status = :status, owner = iif(:is_free, null, owner),
       ready_at = coalesce(nullif(:ready_at, -9223372036854775808), ready_at),
       is_early = iif(:is_free and exists (
                        select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                         where s.job_key = occurrence.job_key and v.enabled = 0), null,
                   coalesce(nullif(:ready_at, -9223372036854775808), ready_at, 0) > :now),
       error = nullif(:error, char(0)), step_number = :step_number,
       lost = :lost, superseded_by_next = :superseded_by_next, updated_at = :now
 where handle = :handle and fence = :fence and claim_token = :claim_token and step_number < :step_number
   and status < {first_ended};

-- forget_claims --
-- The claims of these were given back before an attempt began: some of them had not started before, and the node of
-- all is that of their last attempt.
update occurrence
   set started_at = iif(handle {in unstarted}, null, started_at),
       node = (select a.node from attempt a where a.handle = occurrence.handle and a.started_at is not null
                order by a.started_at desc, a.task desc, a.number desc limit 1)
 where handle {in handles};

-- hold_given_back --
-- Queues those of these occurrences that a pause or a disable of their job holds.
update occurrence set status = {queued}
 where handle {in handles} and status = {pending} and owner is null
   and ((cause = {cause.schedule} and exists (select 1 from pause p where p.job_key = occurrence.job_key
                                 and (p.until_at is null or p.until_at > :now)))
        or exists (select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                    where s.job_key = occurrence.job_key and v.enabled = 0));

-- retired_of --
-- Returns those of these occurrences that no node holds and whose job has retired.
select o.id as occurrence_id, o.job_key from occurrence o join job_state s on s.job_key = o.job_key
 where o.handle {in handles} and o.status < {first_ended} and o.owner is null and s.retire_at <= :now;

-- end_owned --
-- The owner's last step, by key, fence and token: it raises the fence, so that a finished row matches no owner.
update occurrence
   set status = e.status, owner = null, ready_at = coalesce(nullif(e.ready_at, -9223372036854775808), ready_at), is_early = 0,
       ended_at = e.ended_at, error = nullif(e.error, char(0)), step_number = e.step_number, lost = e.lost,
       superseded_by_next = e.superseded_by_next, updated_at = :now, fence = fence + 1
  from {rows} e
 where handle = e.handle and fence = e.fence and claim_token = e.claim_token and step_number < e.step_number
   and status < {first_ended};

-- write_run --
-- Writes the state of a task's run.
insert into task_run (handle, task, status, attempts, retries, last_attempt_status, resume_at, started_at,
                      attempt_started_at, ended_at, error, result, waits, because_of, out_of_time)
select e.handle, e.task, e.status, e.attempts, e.retries, nullif(e.last_attempt_status, -9223372036854775808),
       nullif(e.resume_at, -9223372036854775808), nullif(e.started_at, -9223372036854775808),
       nullif(e.attempt_started_at, -9223372036854775808), nullif(e.ended_at, -9223372036854775808), nullif(e.error, char(0)),
       nullif(e.result, char(0)), nullif(e.waits, char(0)), nullif(e.because_of, char(0)), e.out_of_time
  from {rows} e where true
on conflict (handle, task) do update
   set status = excluded.status, attempts = excluded.attempts, retries = excluded.retries, last_attempt_status = excluded.last_attempt_status,
       resume_at = excluded.resume_at, started_at = excluded.started_at,
       attempt_started_at = excluded.attempt_started_at, ended_at = excluded.ended_at, error = excluded.error,
       result = excluded.result, waits = excluded.waits, because_of = excluded.because_of,
       out_of_time = excluded.out_of_time;

-- write_attempt --
-- Writes one attempt, by the last node that had the occurrence. An ended attempt and its notes are never overwritten.
insert into attempt (handle, task, number, status, started_at, ended_at, error, node)
select e.handle, e.task, e.number, e.status, nullif(e.started_at, -9223372036854775808), nullif(e.ended_at, -9223372036854775808),
       nullif(e.error, char(0)), (select o.node from occurrence o where o.handle = e.handle)
  from {rows} e where true
on conflict (handle, task, number) do update
   set status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error
 where attempt.status < {attempt.first_ended};

-- wake_job --
-- Makes the job due. A plan from an older snapshot cannot undo that.
update job_state set woken = woken + 1, wake_at = :now where job_key = :job_key;

-- note_end --
-- Writes the job's last end.
update job_state
   set run_count = run_count + iif(:started_at is null, 0, 1), last_end_scheduled_for = :scheduled_for,
       last_end_started_at = :started_at, last_end_at = :now, last_end_id = :occurrence_id
 where job_key = :job_key;

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
         where handle {in handles}) o
 where job_state.job_key = o.job_key;

-- note_last_successes --
-- The last success of each job before its last end, of these occurrences; the success before it stays known.
update job_state
   set last_success_scheduled_for = o.scheduled_for, last_success_started_at = o.started_at, last_success_at = o.ended_at,
       last_success_id = o.id, other_success_scheduled_for = last_success_scheduled_for,
       other_success_started_at = last_success_started_at, other_success_at = last_success_at,
       other_success_id = last_success_id
  from occurrence o where o.handle {in handles} and job_state.job_key = o.job_key;

-- count_runs --
-- Adds to how many runs of the job have begun and ended.
update job_state set run_count = run_count + :count where id = :job_id;

-- note_failure --
-- Notes the error of the job's last failure.
update job_state set last_error = :error where id = :job_id;

-- note_failed_attempt --
-- Writes when an attempt of the job last failed, also one that is tried again.
update job_state set last_failure_at = max(coalesce(last_failure_at, 0), :failed_at) where id = :job_id;

-- wake_jobs_of --
-- Wakes the jobs of the awaited ones among these occurrences, once for each that ended or was parked.
update job_state set woken = woken + e.count, wake_at = :now
  from (select job_key, count(*) as count from occurrence
         where handle {in handles} and awaited = 1 group by job_key) e
 where job_state.job_key = e.job_key;

-- beat --
-- Notes that the node lives.
insert into node (id, beat_at, beats) values (:node, :now, 1)
    on conflict (id) do update set beat_at = excluded.beat_at, beats = beats + 1;

-- forget_request --
-- Deletes an answered request.
delete from request where job_key = :job_key and cause = :cause and key = :key;

-- begin_kept --
-- Notes that a replay has kept results before its first step.
update occurrence set step_number = 1 where id = :occurrence_id and fence = 0 and step_number = 0;

-- keep_runs --
-- Copies the results of these tasks from one occurrence to another, which will not run them.
insert into task_run (handle, task, status, attempts, retries, started_at, ended_at, result, out_of_time)
select n.handle, r.task, r.status, 0, 0, r.started_at, r.ended_at, r.result, 0
  from occurrence o join task_run r on r.handle = o.handle join occurrence n on n.id = :occurrence_id
 where o.id = :original_occurrence_id and r.status = {run.success} and r.task {in tasks};

-- jobs_with_aged --
-- Returns, of some jobs in the order of their keys, those with an occurrence old enough to be deleted.
select j.job_key, j.keep_success, j.keep_failure, j.keep_last
  from (select job_key, keep_success, keep_failure, keep_last from job_state where job_key > :after_key order by job_key limit :limit) j
 where exists (select 1 from occurrence o indexed by occurrence_ended
                where o.job_key = j.job_key and o.status in ({completed}, {completed_with_errors}, {skipped})
                  and o.ended_at < :now - j.keep_success)
    or exists (select 1 from occurrence o indexed by occurrence_ended
                where o.job_key = j.job_key and o.status in ({failed}, {canceled}, {failed_stale}, {missed}, {superseded})
                  and o.ended_at < :now - j.keep_failure);

-- last_kept --
-- Returns the place of the oldest of the newest occurrences that a job keeps at any age. No row if it has no more.
select scheduled_for, id as occurrence_id from occurrence indexed by occurrence_of_job
 where job_key = :job_key and status >= {first_ended} order by scheduled_for desc, id desc limit 1 offset :offset;

-- aged --
-- Returns ended and reported occurrences before this moment and this place, the oldest end first.
select handle from occurrence indexed by occurrence_ended
 where job_key = :job_key and status = :status and ended_at < :now - :kept
   and (:keeps_none or (scheduled_for, id) < (:scheduled_for, :occurrence_id)) and not exists (
       select 1 from report r
        where r.needs = occurrence.needs and r.ended_at = occurrence.ended_at and r.handle = occurrence.handle)
 order by ended_at limit :limit;

-- last_of_jobs --
-- Returns the last of as many jobs as one call looks at. No row if there are fewer.
select job_key from job where job_key > :after_key order by job_key limit 1 offset :offset;

-- forget_keys --
-- Deletes the keys whose newest use is deleted with its occurrence.
delete from request_key
 where id in (select o.id from occurrence o
               where o.handle {in handles} and o.cause in ({cause.trigger}, {cause.replay}));

-- forgettable_of --
-- Returns those of these occurrences that have ended and whose report was delivered: only they may be deleted.
select handle from occurrence
 where handle {in handles} and status >= {first_ended} and not exists (
       select 1 from report r
        where r.needs = occurrence.needs and r.ended_at = occurrence.ended_at and r.handle = occurrence.handle);

-- forget_occurrences --
-- Deletes these occurrences.
delete from occurrence where handle {in handles};
