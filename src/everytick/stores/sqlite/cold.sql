-- The statements of the shared verbs that SQLite says in its own way; see stores/sql/queries.sql.

-- held_of_job --
-- Returns how many occurrences of a job a node holds.
select count(*) as held from occurrence indexed by occurrence_active
 where job_key = :job_key and ended_at is null and owner is not null;

-- purgeable --
-- Returns occurrences of a job, whatever became of them.
select handle from occurrence indexed by occurrence_of_job where job_key = :job_key limit :limit;

-- purge_state --
-- Forgets where a job stands.
delete from job_state where job_key = :job_key;

-- forget_reports --
-- Forgets that reports of these occurrences are due.
delete from report
 where (needs, ended_at, handle) in (select o.needs, o.ended_at, o.handle from occurrence o where o.handle {in handles});

-- nodes --
-- Returns the nodes that were heard of and every other owner, and how much each holds, by id.
select n.id as node_id, n.beat_at, (select count(*) from occurrence o where o.owner = n.id) as holds, n.facts, n.beats
  from node n
union all
select o.owner, max(o.updated_at), count(*), null, 0
  from occurrence o indexed by occurrence_held
 where o.owner is not null and not exists (select 1 from node n where n.id = o.owner)
 group by o.owner
 order by node_id;

-- overdue --
-- Returns the occurrences that a node holds past their deadline.
select owner, handle, fence, claim_token from occurrence indexed by occurrence_deadline
 where owner is not null and execution_timeout is not null and deadline_at <= :now order by handle;

-- held_by --
-- Returns what the store counts as this node's, why it shall stop, and whether its job is disabled or removed for good.
select handle, fence, claim_token, cancel_reason,
       exists (select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                where s.job_key = occurrence.job_key and (v.enabled = 0 or s.retire_at <= :now)) as parks
  from occurrence where owner = :node_id order by handle;

-- forget_nodes --
-- Forgets nodes that have been silent since then and hold nothing.
delete from node where beat_at < :silent_at and not exists (select 1 from occurrence o where o.owner = node.id);

-- orphaned --
-- Returns what belongs to one of these nodes, as long as it has not beaten since it had so many beats, and what is held
-- under one of these claims, by rising handle; and whether an open attempt of it was handed over to an engine.
select o.handle, o.fence, o.claim_token, o.status, o.job_key, o.version, o.needs,
       o.status = {running} and exists (
           select 1 from attempt a where a.handle = o.handle and a.handed_to is not null
                                     and a.status = {attempt.running}) as is_handed
  from {rows silent: node text, beats bigint}
  cross join occurrence o indexed by occurrence_held on o.owner = silent.node
 where o.owner is not null and silent.beats = coalesce((select n.beats from node n where n.id = silent.node), 0)
union
select o.handle, o.fence, o.claim_token, o.status, o.job_key, o.version, o.needs, 0
  from {rows keys: handle bigint, fence int, claim_token bigint}
  cross join occurrence o on o.handle = keys.handle and o.fence = keys.fence and o.claim_token = keys.claim_token
 where o.owner is not null
 order by handle;

-- take_orphans --
-- Gives these to the reaper, with a new fence and token: the old owner is fenced out before anything is decided. A wait
-- belongs to no node from then on, and of a disabled job no node goes on with it. `node` is the one that goes on with
-- them, if one does. Returns what was taken.
update occurrence
   set owner = iif(status = {awaiting_retry}, null, :reaper), fence = fence + 1, claim_token = :token, updated_at = :now,
       node = coalesce(:node, node),
       is_early = iif(status = {awaiting_retry} and exists (
                      select 1 from job_state s join job_version v on v.job_key = s.job_key and v.version = s.version
                       where s.job_key = occurrence.job_key and v.enabled = 0), null, is_early)
 where handle in (
       select o.handle
         from {rows chosen: handle bigint, fence int, claim_token bigint, is_named bool}
         cross join occurrence o
            on o.handle = chosen.handle and o.fence = chosen.fence and o.claim_token = chosen.claim_token
        where o.owner is not null and (chosen.is_named or exists (
              select 1 from {rows silent: node text, beats bigint}
               where silent.node = o.owner
                 and silent.beats = coalesce((select n.beats from node n where n.id = silent.node), 0))))
returning handle, owner;

-- note --
-- Makes or changes the rows of attempts that run, under their claim's fence; one that has ended keeps its status. An end
-- raises the fence once more: behind it the owner may still add to what it ran, and no other node may. Returns which
-- notes were written.
insert into attempt (handle, task, number, status, started_at, progress_done, progress_total, progress_text,
                     log_node, log_path, handed_to, node)
select o.handle, notes.task, notes.number, {attempt.running}, notes.started_at, notes.progress_done,
       notes.progress_total, notes.progress_text, notes.log_node, notes.log_path,
       notes.handed_to, o.node
  from {rows notes: handle bigint, fence int, claim_token bigint, task text, number int, started_at timestamptz,
        progress_done float8, progress_total float8, progress_text text, log_node text, log_path text,
        handed_to text}
  cross join occurrence o on o.handle = notes.handle and o.claim_token = notes.claim_token
 where o.fence = notes.fence or (o.fence = notes.fence + 1 and o.status >= {first_ended} and exists (
         select 1 from attempt a where a.handle = o.handle and a.task = notes.task and a.number = notes.number))
on conflict (handle, task, number) do update
   set progress_total = iif(excluded.progress_done is null, progress_total, excluded.progress_total),
       progress_text = coalesce(excluded.progress_text, progress_text),
       progress_done = coalesce(excluded.progress_done, progress_done),
       log_node = coalesce(excluded.log_node, log_node), log_path = coalesce(excluded.log_path, log_path),
       handed_to = coalesce(excluded.handed_to, handed_to)
returning handle, task, number, (select o.claim_token from occurrence o where o.handle = attempt.handle) as claim_token;

-- owed_reports --
-- Returns ended occurrences of one text of needs whose report was not delivered, oldest end first: none of these jobs,
-- and none of these handles.
select o.handle, o.job_key, o.version, r.ended_at, o.id as occurrence_id
  from report r cross join occurrence o on o.handle = r.handle
 where r.needs = :needs and not r.handle {in handles}
   and o.job_key not in (select j.job_key from job j where j.id {in job_ids})
 order by r.ended_at, o.id limit :limit;

-- reported --
-- Notes that these reports were delivered.
delete from report
 where (needs, ended_at, handle) in (
       select o.needs, o.ended_at, o.handle from occurrence o where o.id {in_ids occurrence_ids});

-- ------------------------------------------------------------------------------------------------ jobs and facts

-- wake --
-- Makes a job worth a look now; a plan from an older snapshot cannot sleep through it.
update job_state set woken = woken + 1, wake_at = :now where job_key = :job_key;

-- hold_dependencies --
-- Does nothing: one transaction at a time writes.
select 1;

-- runs_at --
-- Returns the occurrences of these jobs that stand at these times.
select o.job_key, o.status, o.ended_at, o.covers_through
  from {rows asked: job_key int, scheduled_for timestamptz}
  cross join occurrence o on o.job_key = asked.job_key and o.scheduled_for = asked.scheduled_for;

-- put_back_in_line --
-- Queues what the schedule made and no node has claimed: it waits for the end of the pause.
update occurrence indexed by occurrence_active set status = {queued}, updated_at = :now
 where job_key = :job_key and ended_at is null and status = {pending} and cause = {cause.schedule};

-- put_all_back_in_line --
-- Lets what no node claimed of a disabled job wait until it is enabled, whatever made it, and keeps its retries from
-- being claimed.
update occurrence indexed by occurrence_active
   set status = iif(status = {pending}, {queued}, status), is_early = iif(status = {pending}, is_early, null),
       updated_at = iif(status = {pending}, :now, updated_at)
 where job_key = :job_key and ended_at is null
   and (status = {pending} or (status = {awaiting_retry} and owner is null));

-- let_waits_go --
-- Lets be claimed, once its time has come, what could not be while its job was disabled.
update occurrence indexed by occurrence_active set is_early = ready_at > :now
 where job_key = :job_key and ended_at is null and is_early is null;

-- rewind --
-- Lets a job that lies ahead be decided through this moment, by its newest definition from then on if that lies ahead.
update job_state
   set watermark = :watermark,
       oldest_version = (select case when v.edited_at > :now
                                     then coalesce((select max(w.version) from job_version w
                                                     where w.job_key = v.job_key and w.rollout is null
                                                       and w.version between job_state.oldest_version
                                                                         and coalesce(v.follows, v.version)), v.version)
                                     else job_state.oldest_version end
                           from job_version v where v.job_key = job_state.job_key and v.version = job_state.version),
       reschedule_made_at = min(reschedule_made_at, :now), stopped_at = min(stopped_at, :now),
       narrowed_at = min(narrowed_at, :now),
       last_end_at = min(last_end_at, :now), last_failure_at = min(last_failure_at, :now)
 where job_key = :job_key;

-- use_key --
-- Notes that the key is used once more, by this call and for this occurrence.
insert into request_key (job_key, cause, key, nth, call, id)
values (:job_key, :cause, :key, :nth, :call, :occurrence_id)
on conflict (job_key, cause, key) do update set nth = excluded.nth, call = excluded.call, id = excluded.id;

-- occurrence_payload --
-- Returns where an occurrence stands and the payload it was made with, if it exists.
select status, payload from occurrence where id = :occurrence_id;

-- later_requests --
-- Returns the open requests of these jobs that were asked for at a time, soonest first.
select r.job_key, s.id as job_id, r.key, r.cause, r.requested_at, r.payload, r.overlap, r.reason, r.requested_by,
       r.replay_of, r.scheduled_for, r.covers_after, r.covers_through, r.keeps, r.nth, r.due_at
  from job_state s join request r on r.job_key = s.job_key and r.due_at > 0
 where s.id {in job_ids}
 order by r.due_at, r.request_key limit :most;

-- coming_of --
-- Returns the runs to come of these jobs that are written down, soonest first.
select s.id as job_id, c.instant_at, c.run_at, c.mark, c.detail, c.overrides, c.payload, c.zone_data
  from job_state s join coming c on c.job_key = s.job_key
 where s.id {in job_ids}
 order by s.id, c.run_at, c.instant_at;

-- know_needs --
-- Lets these texts of needs be known to nodes.
insert into needs (text) select value from json_each({list texts}) where true on conflict do nothing;

-- add_needs_of_active --
-- So are those of a job's active occurrences, which may wait in a queue of their own.
insert into needs (text)
select distinct needs from occurrence indexed by occurrence_active where job_key = :job_key and ended_at is null
on conflict do nothing;

-- edit_state --
-- Makes a version the newest one and older snapshots stale.
update job_state
   set version = :version, oldest_version = :oldest_version, revision = revision + 1, retire_at = null,
       undefined_since = null, narrowed_at = coalesce(:narrowed_at, narrowed_at), needs = :needs,
       is_needed = exists (select 1 from dependency d where d.needed_id = job_state.id)
 where job_key = :job_key;

-- turn_state --
-- Lets a version that has waited be in force.
update job_state set needs = :needs, narrowed_at = coalesce(:narrowed_at, narrowed_at) where job_key = :job_key;

-- edit_unclaimed --
-- Gives occurrences that have not started the new version; what an occurrence sets itself stays.
update occurrence indexed by occurrence_active
   set version = :version, priority = coalesce(json_extract(overrides, '$.priority'), :priority),
       needs = rtrim(iif(instr(char(10) || needs || char(10), char(10) || 'lane:late' || char(10)) > 0,
                         'lane:late' || char(10), '')
               || case coalesce(json_extract(overrides, '$.queue'), :queue)
                  when 'default' then :labels
                  else iif(:labels = '', '', :labels || char(10)) || 'queue:'
                       || coalesce(json_extract(overrides, '$.queue'), :queue) end, char(10)),
       execution_timeout = iif(json_type(overrides, '$.execution_timeout') is null, :execution_timeout,
                               execution_timeout)
 where job_key = :job_key and ended_at is null and status in ({pending}, {queued})
   and not exists (select 1 from task_run r where r.handle = occurrence.handle);

-- lift_late --
-- Lets what no node has claimed of a job out of the lane for what is late.
update occurrence indexed by occurrence_active
   set needs = trim(replace(char(10) || needs || char(10), char(10) || 'lane:late' || char(10), char(10)), char(10))
 where job_key = :job_key and ended_at is null and owner is null
   and instr(char(10) || needs || char(10), char(10) || 'lane:late' || char(10)) > 0;

-- retire_job --
-- From this moment on a plan cancels what no node has claimed; older snapshots are stale.
update job_state set retire_at = :retire_at, needs = :needs, revision = revision + 1 where job_key = :job_key;

-- take_marks --
-- Notes that the jobs of these names are defined again.
update job_state indexed by job_state_undefined set undefined_since = null
 where undefined_since is not null and (select j.name from job j where j.job_key = job_state.job_key) {in names};

-- ---------------------------------------------------------------------------------- after a clock was ahead

-- mark_undefined --
-- Notes that a start has left the jobs of these names out. A job that was left out before keeps its mark.
update job_state set undefined_since = :now
 where undefined_since is null and removed_at is null and job_key in (select job_key from job where name {in names});

-- bring_retries_back --
-- A retry that was parked while the clock was ahead waits as long as it was to wait, from now on. Reads all that are
-- parked: asked at a start, and when the clock was set back.
update occurrence set ready_at = :now + ready_at - updated_at, updated_at = :now
 where is_early = 1 and status = {awaiting_retry} and owner is null and updated_at > :step_at;

-- bring_runs_back --
-- The same for their runs; comes before it.
update task_run
   set resume_at = :now + resume_at - (select o.updated_at from occurrence o where o.handle = task_run.handle)
 where resume_at is not null and handle in (
       select handle from occurrence indexed by occurrence_early
        where is_early = 1 and status = {awaiting_retry} and owner is null and updated_at > :step_at);

-- bring_waiting_back --
-- What was planned while the clock was ahead and waits for a claim or for its turn is ready now. Reads all that are
-- active: asked at a start, and when the clock was set back.
update occurrence indexed by occurrence_active set ready_at = :now, is_early = iif(is_early = 1, 0, is_early)
 where ended_at is null and status in ({pending}, {queued}) and created_at > :step_at and ready_at > :now;

-- was_ahead --
-- Returns whether a node was heard of, or a job was decided or woken, while the clock was ahead.
select exists (select 1 from node where beat_at > :step_at)
    or exists (select 1 from job_state
                where watermark > :step_at or (wake_at > :step_at and woken <> planned_woken)) as was_ahead;

-- wake_jobs_ahead --
-- Makes every job worth a look now that would be only later.
update job_state set woken = woken + 1, wake_at = :now where wake_at > :now;

-- ------------------------------------------------------------------------------------------------- the history

-- history_page --
-- Returns the handles of a page of occurrences of all jobs, newest first, after the place where the last page ended.
select handle from occurrence
 where (scheduled_for, id) < (coalesce(:cursor_for, 9223372036854775807), coalesce(:cursor_occurrence_id, x''))
   and scheduled_for > coalesce(:begin_after, -9223372036854775808)
   and scheduled_for <= coalesce(:end_through, 9223372036854775807)
   and ({list statuses} = '[]' or status {in statuses}) and (:cause is null or cause = :cause)
 order by scheduled_for desc, id desc limit :limit;

-- history_page_of --
-- Returns the same of one job.
select handle from occurrence
 where job_key = (select j.job_key from job j where j.id = :job_id)
   and (scheduled_for, id) < (coalesce(:cursor_for, 9223372036854775807), coalesce(:cursor_occurrence_id, x''))
   and scheduled_for > coalesce(:begin_after, -9223372036854775808)
   and scheduled_for <= coalesce(:end_through, 9223372036854775807)
   and ({list statuses} = '[]' or status {in statuses}) and (:cause is null or cause = :cause)
 order by scheduled_for desc, id desc limit :limit;

-- history_page_active --
-- Returns a page of those of all jobs that are under way. Only what has no end is read, however long the past.
select handle from occurrence indexed by occurrence_active
 where ended_at is null
   and (scheduled_for, id) < (coalesce(:cursor_for, 9223372036854775807), coalesce(:cursor_occurrence_id, x''))
   and scheduled_for > coalesce(:begin_after, -9223372036854775808)
   and scheduled_for <= coalesce(:end_through, 9223372036854775807)
   and status {in statuses} and (:cause is null or cause = :cause)
 order by scheduled_for desc, id desc limit :limit;

-- history_page_active_of --
-- Returns the same of one job.
select handle from occurrence indexed by occurrence_active
 where job_key = (select j.job_key from job j where j.id = :job_id) and ended_at is null
   and (scheduled_for, id) < (coalesce(:cursor_for, 9223372036854775807), coalesce(:cursor_occurrence_id, x''))
   and scheduled_for > coalesce(:begin_after, -9223372036854775808)
   and scheduled_for <= coalesce(:end_through, 9223372036854775807)
   and status {in statuses} and (:cause is null or cause = :cause)
 order by scheduled_for desc, id desc limit :limit;

-- ------------------------------------------------------------------------------------- what was fired without the store

-- record_occurrence --
-- Writes down what was created without this store, as it stands now, and returns its handle; not if it is here already,
-- unless it was begun there and by no node here.
insert into {schema}.occurrence (id, job_key, version, scheduled_for, status, cause, late, covers_after, covers_through,
                                 line_at, ready_at, started_at, ended_at, error, overrides, payload, reason, priority,
                                 needs, created_at, updated_at, owner, fence, step_number, claimed_at, lost,
                                 superseded_by_next, execution_timeout, claim_token, node, is_early)
values (:occurrence_id, :job_key, :version, :scheduled_for, :status, :cause, :late, :covers_after, :covers_through,
        :line_at, :ready_at, :started_at, :ended_at, :error, :overrides, :payload, :reason, :priority, :needs, :now, :now,
        :owner, :fence, :step_number, :claimed_at, :lost, :superseded_by_next, :execution_timeout, :claim_token, :node,
        :is_early)
on conflict (id) do update
   set version = excluded.version, status = excluded.status, late = excluded.late, covers_after = excluded.covers_after,
       covers_through = excluded.covers_through, line_at = excluded.line_at, ready_at = excluded.ready_at,
       started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error,
       overrides = excluded.overrides, payload = excluded.payload, reason = excluded.reason,
       priority = excluded.priority, needs = excluded.needs, created_at = excluded.created_at,
       updated_at = excluded.updated_at, owner = excluded.owner, fence = excluded.fence,
       step_number = excluded.step_number, claimed_at = excluded.claimed_at, lost = excluded.lost,
       superseded_by_next = excluded.superseded_by_next, execution_timeout = excluded.execution_timeout,
       claim_token = excluded.claim_token, node = excluded.node, is_early = excluded.is_early
 where occurrence.started_at is null and occurrence.status in ({pending}, {queued}) and excluded.fence > 0
returning handle;

-- record_ends --
-- Lets the job be decided through this moment, and notes its last end and its last failure, if there are any. Older
-- snapshots are stale.
update {schema}.job_state
   set watermark = :watermark, revision = revision + 1,
       last_end_at = coalesce(:end_at, last_end_at), last_end_id = coalesce(:end_occurrence_id, last_end_id),
       last_end_scheduled_for = coalesce(:end_for, last_end_scheduled_for),
       last_end_started_at = case when :end_at is null then last_end_started_at else :end_started_at end,
       run_count = run_count + :runs, last_error = coalesce(:error, last_error),
       last_failure_at = case when last_failure_at >= :failed_at then last_failure_at
                              else coalesce(:failed_at, last_failure_at) end
 where job_key = :job_key;

-- record_success --
-- Notes the last success of a job; the one that was the last stays known, unless it is the same.
update {schema}.job_state
   set last_success_scheduled_for = :scheduled_for, last_success_started_at = :started_at, last_success_at = :ended_at,
       last_success_id = :occurrence_id, other_success_scheduled_for = last_success_scheduled_for,
       other_success_started_at = last_success_started_at, other_success_at = last_success_at,
       other_success_id = last_success_id
 where job_key = :job_key and (last_success_id is null or last_success_id <> :occurrence_id);

-- stop_claims --
-- Claims come before or after: the file has one writer.
select 1 as stopped;

-- stop_limited_claims --
-- So do those that look at limits.
select 1 as stopped;

-- begin_limited_claim --
-- No connection changes a limit before the transaction ends.
select 1 as begun;

-- owned --
-- Returns everything that a node owns, by rising handle.
select handle, fence, job_key, version, needs, claimed_at from occurrence indexed by occurrence_held
 where owner is not null order by handle;

-- release_early_in_lanes --
-- Moves early occurrences to the ready ones once their ready_at has come.
update occurrence set is_early = 0 where is_early = 1 and needs {in needs} and ready_at <= :now;

-- ready_in_lanes --
-- Returns what `ready_in_lane` does, of many texts of needs at once.
select o.handle, o.job_key, o.version, o.priority, o.line_at, o.id as occurrence_id, o.needs
  from {rows lanes: needs text}
  cross join occurrence o
 where o.handle in (
       select r.handle
         from occurrence r
        where r.needs = lanes.needs and r.is_early = 0
          and (r.status = {pending} or (r.status = {awaiting_retry} and r.owner is null))
          and r.job_key not in (select j.job_key from job j where j.id {in job_ids})
          and (r.superseded_by_next = 0 or not exists (
                select 1 from job_state s where s.job_key = r.job_key and s.wake_at <= :now))
        order by r.priority desc, r.line_at, r.id limit :limit);

-- ready_in_lane --
-- Returns what may start now of one text of needs, higher priority first, then the oldest in line; without some jobs, and
-- without some occurrences. A retry that the next instant supersedes waits while its job is due.
select handle, job_key, version, priority, line_at, id as occurrence_id
  from occurrence
 where needs = :needs and is_early = 0 and (status = {pending} or (status = {awaiting_retry} and owner is null))
   and job_key not in (select j.job_key from job j where j.id {in job_ids})
   and handle not {in handles}
   and (superseded_by_next = 0 or not exists (
         select 1 from job_state s where s.job_key = occurrence.job_key and s.wake_at <= :now))
 order by priority desc, line_at, id limit :limit;

-- move_lanes --
-- Lets these wait in other lanes.
update occurrence set needs = moves.needs
  from {rows moves: handle bigint, needs text}
 where occurrence.handle = moves.handle;

-- waiting_in_lanes --
-- Returns how many are ready of each text of needs.
select needs, count(*) as count
  from (select needs, ready_at from occurrence indexed by occurrence_ready
         where is_early = 0 and (status = {pending} or (status = {awaiting_retry} and owner is null))
        union all
        select needs, ready_at from occurrence indexed by occurrence_early
         where is_early = 1 and (status = {pending} or (status = {awaiting_retry} and owner is null)))
 where ready_at is null or ready_at <= :now
 group by needs;

-- pick_ready --
-- Returns those of these that may still be claimed, with the fence of each.
select handle, fence from occurrence
 where handle {in handles} and is_early = 0 and (status = {pending} or (status = {awaiting_retry} and owner is null));

-- unlist_claimed --
-- An index follows its row.
select handle from occurrence where handle {in handles} limit 0;
