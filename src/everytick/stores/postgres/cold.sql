-- The statements of the shared verbs that PostgreSQL says in its own way; see stores/sql/queries.sql.

-- held_of_job --
-- Returns how many occurrences of a job a node holds.
select count(*)::int as held
  from {schema}.occurrence o
 where o.handle = any(array(select a.handle from {schema}.active a where a.job_key = :job_key))
   and o.status < {first_ended} and o.owner is not null;

-- purgeable --
-- Locks and returns occurrences of a job that no node holds, ended or not, up to twice the limit.
with old as materialized (
    select o.handle from {schema}.occurrence o where o.job_key = :job_key and o.status >= {first_ended} limit :limit
), live as materialized (
    select o.handle from {schema}.occurrence o
     where o.handle = any(array(select a.handle from {schema}.active a where a.job_key = :job_key))
       and o.status < {first_ended} and o.owner is null
     limit :limit for update
)
select handle from old union all select handle from live;

-- purge_state --
-- Forgets where a job stands, what makes it worth a look, and what its ends left.
with told as (delete from {schema}.wake where job_key = :job_key),
     tally as (delete from {schema}.job_tally where job_key = :job_key)
delete from {schema}.job_state where job_key = :job_key;

-- forget_reports --
-- Forgets that reports of these occurrences are due.
with told as materialized (
    select o.needs, o.ended_at, o.handle from {schema}.occurrence o where o.handle {in handles}
)
delete from {schema}.report r
 using told
 where r.needs = told.needs and r.ended_at = told.ended_at and r.handle = told.handle
   and r.needs = any(array(select needs from told)) and r.ended_at = any(array(select ended_at from told));

-- nodes --
-- Returns the nodes that were heard of and every other owner, and how much each holds, by id.
with held as materialized (
    select o.owner, count(*)::int as holds, max(o.updated_at) as heard_at
      from {schema}.active a join {schema}.occurrence o on o.handle = a.handle
     where o.status < {first_ended} and o.owner is not null
     group by o.owner
)
select coalesce(n.id, h.owner) as node_id, coalesce(n.beat_at, h.heard_at) as beat_at, coalesce(h.holds, 0) as holds,
       n.facts, coalesce(n.beats, 0) as beats
  from {schema}.node n full join held h on h.owner = n.id
 order by coalesce(n.id, h.owner) collate "C";

-- overdue --
-- Returns the occurrences that a node holds past their deadline.
select o.owner, o.handle, o.fence, o.claim_token
  from {schema}.active a join {schema}.occurrence o on o.handle = a.handle
 where o.status < {first_ended} and o.owner is not null and o.deadline_at <= :now
 order by o.handle;

-- held_by --
-- Returns what the store counts as this node's, why it shall stop, and whether its job is disabled or removed for good.
select o.handle, o.fence, o.claim_token, o.cancel_reason,
       exists (select from {schema}.job_state s
                 join {schema}.job_version d on d.job_key = s.job_key and d.version = s.version
                where s.job_key = o.job_key and (not d.enabled or s.retire_at <= :now) offset 0) as parks
  from {schema}.active a
 cross join lateral (select * from {schema}.occurrence o
                      where o.handle = a.handle and o.status < {first_ended} and o.owner = :node_id offset 0) o
 order by o.handle;

-- forget_nodes --
-- Forgets nodes that have been silent since then and hold nothing; what another forgets at this moment is passed over.
delete from {schema}.node
 where id in (select n.id from {schema}.node n
               where n.beat_at < :silent_at
                 and not exists (select from {schema}.active a join {schema}.occurrence o on o.handle = a.handle
                                  where o.status < {first_ended} and o.owner = n.id)
                 for update skip locked);

-- orphaned --
-- Returns what belongs to one of these nodes, as long as it has not beaten since it had so many beats, and what is held
-- under one of these claims, by rising handle; and whether an open attempt of it was handed over to an engine.
with gone as materialized (
    select silent.node
      from {rows silent: node text, beats bigint} left join {schema}.node n on n.id = silent.node
     where silent.beats = coalesce(n.beats, 0)
)
select o.handle, o.fence, o.claim_token, o.status, o.job_key, o.version, o.needs,
       o.status = {running} and exists (
           select from {schema}.attempt t where t.handle = o.handle and t.handed_to is not null and t.status = {attempt.running}
           offset 0) as is_handed
  from {schema}.active a
 cross join lateral (select * from {schema}.occurrence o
                      where o.handle = a.handle and o.status < {first_ended}
                        and o.owner = any(array(select node from gone)) offset 0) o
 where exists (select from gone)
union
select o.handle, o.fence, o.claim_token, o.status, o.job_key, o.version, o.needs, false
  from {rows keys: handle bigint, fence int, claim_token bigint}
 cross join lateral (select * from {schema}.occurrence o
                      where o.handle = keys.handle and o.fence = keys.fence and o.claim_token = keys.claim_token
                        and o.status < {first_ended} and o.owner is not null offset 0) o
 order by handle;

-- take_orphans --
-- Gives these to the reaper, with a new fence and token: the old owner is fenced out before anything is decided. A wait
-- belongs to no node from then on, and of a disabled job no node goes on with it. A node that beats at this moment is
-- passed over, and so is what another session writes about. `node` is the one that goes on with them, if one does.
-- Returns what was taken.
with known as materialized (
    select n.id
      from {rows silent: node text, beats bigint}
      join {schema}.node n on n.id = silent.node and n.beats = silent.beats
       for no key update of n skip locked
), gone as materialized (
    select id from known
    union all
    select silent.node
      from {rows silent: node text, beats bigint}
     where silent.beats = 0 and silent.node <> all(array(select n.id from {schema}.node n))
)
update {schema}.occurrence o
   set owner = case when o.status <> {awaiting_retry} then :reaper::text end, fence = o.fence + 1,
       claim_token = :token, node = coalesce(:node::text, o.node),
       is_early = case when o.status <> {awaiting_retry} then false
                    when not exists (select from {schema}.job_version d
                                      where d.job_key = o.job_key and not d.enabled and d.version =
                                            (select s.version from {schema}.job_state s where s.job_key = o.job_key)
                                     offset 0)
                    then coalesce(o.ready_at > :now, false) end,
       updated_at = :now
 where o.handle = any(array(
       select w.handle
         from {rows chosen: handle bigint, fence int, claim_token bigint, is_named bool}
         join {schema}.occurrence w
           on w.handle = chosen.handle and w.fence = chosen.fence and w.claim_token = chosen.claim_token
        where w.status < {first_ended} and w.owner is not null
          and (chosen.is_named or w.owner = any(array(select id from gone)))
        order by w.handle
          for update of w skip locked))
returning o.handle, o.owner;

-- note --
-- Makes or changes the rows of attempts that run, under their claim's fence; one that is over only takes what is
-- added, and an occurrence that is over gets no row more. A fence that is gone finds nothing. Returns which notes were
-- written.
with held as materialized (
    select notes.*, o.node, o.is_over
      from {rows notes: handle bigint, fence int, claim_token bigint, task text, number int, started_at timestamptz,
            progress_done float8, progress_total float8, progress_text text, log_node text, log_path text,
            handed_to text}
     cross join lateral (
           select o.status >= {first_ended} as is_over, o.node from {schema}.occurrence o
            where o.handle = notes.handle and o.claim_token = notes.claim_token
              and (o.fence = notes.fence or (o.fence = notes.fence + 1 and o.status >= {first_ended}))
              for no key update) o
     where not o.is_over or exists (select from {schema}.attempt a where a.handle = notes.handle
                                       and a.task = notes.task and a.number = notes.number)
), shown as (
    insert into {schema}.attempt as a (handle, task, number, status, started_at, progress_done, progress_total,
                                       progress_text, log_node, log_path, handed_to, node)
    select handle, task, number, {attempt.running}, started_at, progress_done, progress_total, progress_text, log_node,
           log_path, handed_to, node
      from held
    on conflict (handle, task, number) do update
       set progress_done = coalesce(excluded.progress_done, a.progress_done),
           progress_total = case when excluded.progress_done is null then a.progress_total
                                 else excluded.progress_total end,
           progress_text = coalesce(excluded.progress_text, a.progress_text),
           log_node = coalesce(excluded.log_node, a.log_node), log_path = coalesce(excluded.log_path, a.log_path),
           handed_to = coalesce(excluded.handed_to, a.handed_to)
), marked as (
    update {schema}.occurrence set has_rows = true
     where handle = any(array(select handle from held where not is_over)) and not has_rows
)
select handle, claim_token, task, number from held;

-- owed_reports --
-- Returns ended occurrences of one text of needs whose report was not delivered, oldest end first: none of these jobs,
-- and none of these handles.
select o.handle, o.job_key, o.version, o.ended_at, o.id as occurrence_id
  from {schema}.report r
  join {schema}.occurrence o on o.handle = r.handle
 where r.needs = :needs and not r.handle {in handles}
   and o.job_key <> all(array(select j.job_key from {schema}.job j where j.id {in job_ids}))
 order by r.ended_at, o.id
 limit :limit;

-- reported --
-- Notes that these reports were delivered.
with told as materialized (
    select o.needs, o.ended_at, o.handle from {schema}.occurrence o where o.id {in_ids occurrence_ids}
)
delete from {schema}.report r
 using told
 where r.needs = told.needs and r.ended_at = told.ended_at and r.handle = told.handle
   and r.needs = any(array(select needs from told)) and r.ended_at = any(array(select ended_at from told));

-- ------------------------------------------------------------------------------------------------ jobs and facts

-- wake --
-- Makes a job worth a look now.
insert into {schema}.wake (job_key, wake_at, needs)
select m.job_key, :now::timestamptz, (select s.needs from {schema}.job_state s where s.job_key = m.job_key)
  from (values (:job_key::int)) m(job_key);

-- hold_dependencies --
-- Lets one transaction at a time say what jobs depend on: two of them together could make a circle.
select pg_advisory_xact_lock(hashtextextended('everytick dependencies {schema}', 0));

-- runs_at --
-- Returns the occurrences of these jobs that stand at these times.
select o.job_key, o.status, o.ended_at, o.covers_through
  from {rows asked: job_key int, scheduled_for timestamptz}
 cross join lateral (select o.job_key, o.status, o.ended_at, o.covers_through from {schema}.occurrence o
                      where o.job_key = asked.job_key and o.scheduled_for = asked.scheduled_for offset 0) o;

-- put_back_in_line --
-- Queues what the schedule made and no node has claimed: no claim of it commits after the pause.
update {schema}.occurrence o set status = {queued}, updated_at = :now
 where o.handle = any(array(
       select a.handle from {schema}.occurrence a
        where a.handle = any(array(select n.handle from {schema}.active n where n.job_key = :job_key))
          and a.status = {pending} and a.cause = {cause.schedule}
        order by a.handle
          for no key update))
   and o.status = {pending};

-- put_all_back_in_line --
-- Lets what no node claimed of a disabled job wait until it is enabled, whatever made it, and keeps its retries from
-- being claimed.
update {schema}.occurrence o
   set status = case when o.status = {pending} then {queued} else o.status end,
       is_early = case when o.status = {pending} then o.is_early end,
       updated_at = case when o.status = {pending} then :now else o.updated_at end
 where o.handle = any(array(
       select a.handle from {schema}.occurrence a
        where a.handle = any(array(select n.handle from {schema}.active n where n.job_key = :job_key))
          and (a.status = {pending} or (a.status = {awaiting_retry} and a.owner is null))
        order by a.handle
          for no key update))
   and (o.status = {pending} or (o.status = {awaiting_retry} and o.owner is null));

-- let_waits_go --
-- Lets be claimed, once its time has come, what could not be while its job was disabled.
update {schema}.occurrence o set is_early = coalesce(o.ready_at > :now, false)
 where o.handle = any(array(
       select a.handle from {schema}.occurrence a
        where a.handle = any(array(select n.handle from {schema}.active n where n.job_key = :job_key))
          and a.status < {first_ended} and a.is_early is null
        order by a.handle
          for no key update));

-- rewind --
-- Lets a job that lies ahead be decided through this moment, by its newest definition from then on. What was to be
-- looked at beyond now is to be looked at now.
with woken as (
    update {schema}.wake set wake_at = :now where job_key = :job_key and wake_at > :now
), tallied as (
    update {schema}.job_tally
       set last_end = case when (last_end).ended_at > :now
                           then row((last_end).scheduled_for, (last_end).started_at, :now, (last_end).id)::{schema}.ended
                           else last_end end,
           last_failure_at = case when last_failure_at > :now then :now else last_failure_at end
     where job_key = :job_key
)
update {schema}.job_state s
   set watermark = :watermark,
       oldest_version = (select case when v.edited_at > :now
                                     then coalesce((select max(w.version) from {schema}.job_version w
                                                     where w.job_key = v.job_key and w.rollout is null
                                                       and w.version between s.oldest_version
                                                                         and coalesce(v.follows, v.version)), v.version)
                                     else s.oldest_version end
                           from {schema}.job_version v where v.job_key = s.job_key and v.version = s.version),
       reschedule_made_at = case when s.reschedule_made_at > :now then :now else s.reschedule_made_at end,
       stopped_at = case when s.stopped_at > :now then :now else s.stopped_at end,
       narrowed_at = case when s.narrowed_at > :now then :now else s.narrowed_at end
 where s.job_key = :job_key;

-- use_key --
-- Notes that the key is used once more, by this call and for this occurrence.
insert into {schema}.request_key (job_key, cause, key, nth, call, id)
values (:job_key, :cause, :key, :nth, :call, :occurrence_id::text::uuid)
on conflict (job_key, cause, key) do update set nth = excluded.nth, call = excluded.call, id = excluded.id;

-- occurrence_payload --
-- Returns where an occurrence stands and the payload it was made with, if it exists.
select status, payload from {schema}.occurrence where id = :occurrence_id::text::uuid;

-- later_requests --
-- Returns the open requests of these jobs that were asked for at a time, soonest first.
select r.job_key, j.id as job_id, r.key, r.cause, r.requested_at, r.payload, r.overlap, r.reason, r.requested_by,
       r.replay_of, r.scheduled_for, r.covers_after, r.covers_through, r.keeps, r.nth, r.due_at
  from unnest({list job_ids}::text[]) a(id)
 cross join lateral (select j.job_key, j.id from {schema}.job j where j.id = a.id offset 0) j
 cross join lateral (select * from {schema}.request r where r.job_key = j.job_key and r.due_at > 'epoch'
                      order by r.due_at, r.request_key limit :most) r
 order by r.due_at, r.request_key limit :most;

-- coming_of --
-- Returns the runs to come of these jobs that are written down, soonest first.
select j.id as job_id, c.instant_at, c.run_at, c.mark, c.detail, c.overrides, c.payload, c.zone_data
  from unnest({list job_ids}::text[]) a(id)
 cross join lateral (select j.job_key, j.id from {schema}.job j where j.id = a.id offset 0) j
 cross join lateral (select * from {schema}.coming c where c.job_key = j.job_key offset 0) c
 order by j.id, c.run_at, c.instant_at;

-- know_needs --
-- Lets these texts of needs be known to nodes.
insert into {schema}.needs (text)
select t.text from unnest({list texts}::text[]) t(text) order by t.text on conflict do nothing;

-- add_needs_of_active --
-- So are those of a job's active occurrences, which may wait in a queue of their own.
insert into {schema}.needs (text)
select distinct o.needs
  from {schema}.occurrence o
 where o.handle = any(array(select a.handle from {schema}.active a where a.job_key = :job_key))
 order by o.needs
on conflict do nothing;

-- edit_state --
-- Makes a version the newest one and older snapshots stale. Facts that wake the job get its needs.
with relabeled as (
    update {schema}.wake set needs = :needs where job_key = :job_key and needs <> :needs
)
update {schema}.job_state
   set version = :version, oldest_version = :oldest_version, revision = revision + 1, retire_at = null,
       undefined_since = null, narrowed_at = coalesce(:narrowed_at, narrowed_at), needs = :needs,
       is_needed = exists (select from {schema}.dependency d where d.needed_id = job_state.id collate "default")
 where job_key = :job_key;

-- turn_state --
-- Lets a version that has waited be in force. Facts that wake the job get its needs.
with relabeled as (
    update {schema}.wake set needs = :needs where job_key = :job_key and needs <> :needs
)
update {schema}.job_state set needs = :needs, narrowed_at = coalesce(:narrowed_at, narrowed_at) where job_key = :job_key;

-- edit_unclaimed --
-- Gives occurrences that have not started the new version; what an occurrence sets itself stays.
update {schema}.occurrence o
   set version = :version, priority = coalesce((o.overrides::json ->> 'priority')::int, :priority),
       needs = trim(trailing chr(10) from
               case when chr(10) || o.needs || chr(10) like '%' || chr(10) || 'lane:late' || chr(10) || '%'
                    then 'lane:late' || chr(10) else '' end
               || case coalesce(o.overrides::json ->> 'queue', :queue) when 'default' then :labels
                  else case :labels when '' then '' else :labels || chr(10) end || 'queue:'
                       || coalesce(o.overrides::json ->> 'queue', :queue) end),
       execution_timeout = case when o.overrides::jsonb ? 'execution_timeout' then o.execution_timeout
                                else :execution_timeout::bigint end
 where o.handle = any(array(
       select a.handle from {schema}.occurrence a
        where a.handle = any(array(select n.handle from {schema}.active n where n.job_key = :job_key))
          and a.status < {running}
          and not exists (select from {schema}.task_run r where r.handle = a.handle offset 0)
        order by a.handle
          for no key update));

-- lift_late --
-- Lets what no node has claimed of a job out of the lane for what is late.
update {schema}.occurrence o
   set needs = trim(both chr(10) from replace(chr(10) || o.needs || chr(10), chr(10) || 'lane:late' || chr(10), chr(10)))
 where o.handle = any(array(
       select a.handle from {schema}.occurrence a
        where a.handle = any(array(select n.handle from {schema}.active n where n.job_key = :job_key))
          and a.status < {first_ended} and a.owner is null
          and chr(10) || a.needs || chr(10) like '%' || chr(10) || 'lane:late' || chr(10) || '%'
        order by a.handle
          for no key update));

-- retire_job --
-- From this moment on a plan cancels what no node has claimed; older snapshots are stale.
with relabeled as (
    update {schema}.wake set needs = :needs where job_key = :job_key and needs <> :needs
)
update {schema}.job_state set retire_at = :retire_at, needs = :needs, revision = revision + 1 where job_key = :job_key;

-- take_marks --
-- Notes that the jobs of these names are defined again.
update {schema}.job_state set undefined_since = null
 where job_key = any(array(
       select s.job_key from {schema}.job_state s join {schema}.job j on j.job_key = s.job_key
        where s.undefined_since is not null and j.name {in names}
        order by s.job_key for no key update of s));

-- ---------------------------------------------------------------------------------- after a clock was ahead

-- mark_undefined --
-- Notes that a start has left the jobs of these names out, which are locked. A job that was left out before keeps its
-- mark.
update {schema}.job_state set undefined_since = :now
 where undefined_since is null and removed_at is null
   and job_key = any(array(select j.job_key from {schema}.job j where j.name {in names}));

-- bring_retries_back --
-- A retry that was parked while the clock was ahead waits as long as it was to wait, from now on. Reads all that are
-- parked: asked at a start, and when the clock was set back.
update {schema}.occurrence set ready_at = :now::timestamptz + (ready_at - updated_at), updated_at = :now
 where handle = any(array(select c.handle from {schema}.claimable c where c.is_early))
   and is_early and status = {awaiting_retry} and owner is null and updated_at > :step_at;

-- bring_runs_back --
-- The same for their runs; comes before it.
update {schema}.task_run r set resume_at = :now::timestamptz + (r.resume_at - o.updated_at)
  from {schema}.occurrence o
 where o.handle = any(array(select c.handle from {schema}.claimable c where c.is_early))
   and o.is_early and o.status = {awaiting_retry} and o.owner is null and o.updated_at > :step_at
   and r.handle = o.handle and r.resume_at is not null;

-- bring_waiting_back --
-- What was planned while the clock was ahead and waits for a claim or for its turn is ready now. Reads all that are
-- active: asked at a start, and when the clock was set back.
update {schema}.occurrence set ready_at = :now, is_early = case when is_early then false else is_early end
 where handle = any(array(select a.handle from {schema}.active a))
   and status in ({pending}, {queued}) and created_at > :step_at and ready_at > :now;

-- was_ahead --
-- Returns whether a node was heard of, or a job was decided or woken, while the clock was ahead. Of several wakes of a
-- job the newest counts: one that was brought back has a newer wake.
select exists (select from {schema}.node where beat_at > :step_at)
    or exists (select from {schema}.job_state where watermark > :step_at)
    or exists (select from {schema}.wake w
                where w.wake_at > :step_at
                  and not exists (select from {schema}.wake n
                                   where n.job_key = w.job_key and n.wake_key > w.wake_key)) as was_ahead;

-- wake_jobs_ahead --
-- Makes every job worth a look now that would be only later, by its newest wake or else by its last plan.
with brought_back as (update {schema}.wake set wake_at = :now where wake_at > :now)
insert into {schema}.wake (job_key, wake_at, needs)
select s.job_key, :now, s.needs
  from {schema}.job_state s
 where coalesce((select w.wake_at from {schema}.wake w where w.job_key = s.job_key
                  order by w.wake_key desc limit 1), s.wake_at) > :now;

-- ------------------------------------------------------------------------------------------------- the history

-- history_page --
-- Returns the handles of a page of occurrences of all jobs, newest first, after the place where the last page ended.
select o.handle
  from {schema}.occurrence o
 where (o.scheduled_for, o.id) < (coalesce(:cursor_for, 'infinity'::timestamptz), :cursor_occurrence_id::uuid)
   and o.scheduled_for > coalesce(:begin_after, '-infinity'::timestamptz)
   and o.scheduled_for <= coalesce(:end_through, 'infinity'::timestamptz)
   and (cardinality({list statuses}::smallint[]) = 0 or o.status = any({list statuses}::smallint[]))
   and (:cause::smallint is null or o.cause = :cause)
 order by o.scheduled_for desc, o.id desc
 limit :limit;

-- history_page_of --
-- Returns the same of one job.
select o.handle
  from {schema}.occurrence o
 where o.job_key = (select k.job_key from {schema}.job k where k.id = :job_id)
   and (o.scheduled_for, o.id) < (coalesce(:cursor_for, 'infinity'::timestamptz), :cursor_occurrence_id::uuid)
   and o.scheduled_for > coalesce(:begin_after, '-infinity'::timestamptz)
   and o.scheduled_for <= coalesce(:end_through, 'infinity'::timestamptz)
   and (cardinality({list statuses}::smallint[]) = 0 or o.status = any({list statuses}::smallint[]))
   and (:cause::smallint is null or o.cause = :cause)
 order by o.scheduled_for desc, o.id desc
 limit :limit;

-- history_page_active --
-- Returns a page of those of all jobs that are under way. Only what has no end is read, however long the past.
select o.handle
  from {schema}.active a
 cross join lateral (select * from {schema}.occurrence f where f.handle = a.handle offset 0) o
 where (o.scheduled_for, o.id) < (coalesce(:cursor_for, 'infinity'::timestamptz), :cursor_occurrence_id::uuid)
   and o.scheduled_for > coalesce(:begin_after, '-infinity'::timestamptz)
   and o.scheduled_for <= coalesce(:end_through, 'infinity'::timestamptz)
   and o.status = any({list statuses}::smallint[])
   and (:cause::smallint is null or o.cause = :cause)
 order by o.scheduled_for desc, o.id desc
 limit :limit;

-- history_page_active_of --
-- Returns the same of one job.
select o.handle
  from {schema}.active a
 cross join lateral (select * from {schema}.occurrence f where f.handle = a.handle offset 0) o
 where a.job_key = (select k.job_key from {schema}.job k where k.id = :job_id)
   and (o.scheduled_for, o.id) < (coalesce(:cursor_for, 'infinity'::timestamptz), :cursor_occurrence_id::uuid)
   and o.scheduled_for > coalesce(:begin_after, '-infinity'::timestamptz)
   and o.scheduled_for <= coalesce(:end_through, 'infinity'::timestamptz)
   and o.status = any({list statuses}::smallint[])
   and (:cause::smallint is null or o.cause = :cause)
 order by o.scheduled_for desc, o.id desc
 limit :limit;

-- ------------------------------------------------------------------------------------- what was fired without the store

-- record_occurrence --
-- Writes down what was created without this store, as it stands now, and returns its handle; not if it is here already,
-- unless it was begun there and by no node here.
with before as materialized (
    select o as was from {schema}.occurrence o where o.id = :occurrence_id for no key update
), told as (
insert into {schema}.occurrence (id, job_key, version, scheduled_for, status, cause, late, covers_after, covers_through,
                                 line_at, ready_at, started_at, ended_at, error, overrides, payload, reason, priority,
                                 needs, created_at, updated_at, owner, fence, step_number, claimed_at, lost,
                                 superseded_by_next, execution_timeout, claim_token, node, is_early, has_rows)
values (:occurrence_id, :job_key, :version, :scheduled_for, :status, :cause, :late, :covers_after, :covers_through,
        :line_at, :ready_at, :started_at, :ended_at, :error, :overrides, :payload, :reason, :priority, :needs, :now, :now,
        :owner, :fence, :step_number, :claimed_at, :lost, :superseded_by_next, :execution_timeout, :claim_token, :node,
        :is_early, true)
on conflict (id) do update
   set version = excluded.version, status = excluded.status, late = excluded.late, covers_after = excluded.covers_after,
       covers_through = excluded.covers_through, line_at = excluded.line_at, ready_at = excluded.ready_at,
       started_at = excluded.started_at, ended_at = excluded.ended_at, error = excluded.error,
       overrides = excluded.overrides, payload = excluded.payload, reason = excluded.reason,
       priority = excluded.priority, needs = excluded.needs, created_at = excluded.created_at,
       updated_at = excluded.updated_at, owner = excluded.owner, fence = excluded.fence,
       step_number = excluded.step_number, claimed_at = excluded.claimed_at, lost = excluded.lost,
       superseded_by_next = excluded.superseded_by_next, execution_timeout = excluded.execution_timeout,
       claim_token = excluded.claim_token, node = excluded.node, is_early = excluded.is_early, has_rows = true
 where occurrence.started_at is null and occurrence.status in ({pending}, {queued}) and excluded.fence > 0
returning handle, job_key, status, owner, id, line_at, ready_at, priority, is_early, needs
), actives as (
    insert into {schema}.active (job_key, handle)
    select job_key, handle from told where status < {first_ended} and not exists (select from before)
), claimables as (
    insert into {schema}.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
    select handle, id, line_at, ready_at, priority, is_early, needs from told
     where (status = {pending} or (status = {awaiting_retry} and owner is null)) and not exists (select from before)
)
select told.handle, (select {schema}.unlist(before.was) from before where told.status = {running}) as unlisted from told;

-- record_ends --
-- Lets the job be decided through this moment, and notes its last end and its last failure, if there are any. Older
-- snapshots are stale.
with decided as (
    update {schema}.job_state set watermark = :watermark, revision = revision + 1 where job_key = :job_key
)
insert into {schema}.job_tally as t (job_key, last_end, run_count, last_error, last_failure_at)
values (:job_key,
        case when :end_at::timestamptz is not null
             then row(:end_for, :end_started_at, :end_at, :end_occurrence_id)::{schema}.ended end,
        :runs, :error, :failed_at)
on conflict (job_key) do update
   set last_end = coalesce(excluded.last_end, t.last_end), run_count = t.run_count + excluded.run_count,
       last_error = coalesce(excluded.last_error, t.last_error),
       last_failure_at = greatest(t.last_failure_at, excluded.last_failure_at);

-- record_success --
-- Notes the last success of a job; the one that was the last stays known, unless it is the same.
update {schema}.job_tally
   set last_success = row(:scheduled_for, :started_at, :ended_at, :occurrence_id)::{schema}.ended,
       other_success = last_success
 where job_key = :job_key and (last_success).id is distinct from :occurrence_id::uuid;

-- stop_claims --
-- Lets no occurrence be written by others before the transaction ends, once those have committed who write one now: a
-- claim takes its snapshot once it has this lock, so it comes wholly before or sees what this transaction writes.
lock table {schema}.occurrence in share row exclusive mode;

-- stop_limited_claims --
-- The same for claims that look at limits; it comes first, as these take their locks in this order.
lock table {schema}.reach in exclusive mode;

-- begin_limited_claim --
-- No session changes a limit before the transaction ends.
lock table {schema}.reach in row share mode;

-- owned --
-- Returns everything that a node owns, by rising handle.
select o.handle, o.fence, o.job_key, o.version, o.needs, o.claimed_at
  from {schema}.active a
 cross join lateral (select * from {schema}.occurrence o
                      where o.handle = a.handle and o.status < {first_ended} and o.owner is not null offset 0) o
 order by o.handle;

-- release_early_in_lanes --
-- Moves early occurrences to the ready ones once their ready_at has come, the longest-waiting first. Skips what another
-- transaction holds.
with due as materialized (
    select c.ctid as place, c.handle
      from {schema}.claimable c
     cross join lateral (select from {schema}.occurrence e where e.handle = c.handle for no key update skip locked) e
     where c.is_early and c.needs {in needs} and c.ready_at <= :now
     order by c.ready_at
     limit 5000
       for update of c skip locked
), unlisted as (
    delete from {schema}.claimable where ctid = any(array(select place from due))
    returning handle, id, line_at, ready_at, priority, needs
), listed as (
    insert into {schema}.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
    select handle, id, line_at, ready_at, priority, false, needs from unlisted
)
update {schema}.occurrence o set is_early = false where o.handle = any(array(select handle from due));

-- ready_in_lanes --
-- Returns what `ready_in_lane` does, of many texts of needs at once.
select f.handle, f.job_key, f.version, f.priority, f.line_at, f.occurrence_id, lanes.needs
  from {rows lanes: needs text}
 cross join lateral (
       select r.handle, r.job_key, r.version, c.priority, c.line_at, c.id as occurrence_id
         from {schema}.claimable c
        cross join lateral (
              select r.handle, r.job_key, r.version from {schema}.occurrence r
               where r.handle = c.handle
                 and not r.is_early and (r.status = {pending} or (r.status = {awaiting_retry} and r.owner is null))
                 and r.job_key <> all(array(select j.job_key from {schema}.job j where j.id {in job_ids}))
                 and (r.status = {pending} or not exists (
                      select from {schema}.job_version d
                       where d.job_key = r.job_key and not d.enabled
                         and d.version = (select s.version from {schema}.job_state s where s.job_key = r.job_key)
                      offset 0))
                 and (not r.superseded_by_next or not (
                      exists (select from {schema}.job_state s
                               where s.job_key = r.job_key and s.wake_at <= :now offset 0)
                      or exists (select from {schema}.wake w where w.job_key = r.job_key offset 0)))
              offset 0) r
        where not c.is_early and c.needs = lanes.needs
        order by c.priority desc, c.line_at, c.id
        limit :limit) f;

-- ready_in_lane --
-- Returns what may start now of one text of needs, higher priority first, then the oldest in line; without some jobs, and
-- without some occurrences. A retry that the next instant supersedes waits while its job is due, and one of a disabled
-- job waits too.
select r.handle, r.job_key, r.version, c.priority, c.line_at, c.id as occurrence_id
  from {schema}.claimable c
 cross join lateral (
       select r.handle, r.job_key, r.version from {schema}.occurrence r
        where r.handle = c.handle
          and not r.is_early and (r.status = {pending} or (r.status = {awaiting_retry} and r.owner is null))
          and r.job_key <> all(array(select j.job_key from {schema}.job j where j.id {in job_ids}))
          and r.handle <> all(:handles::bigint[])
          and (r.status = {pending} or not exists (
               select from {schema}.job_version d
                where d.job_key = r.job_key and not d.enabled
                  and d.version = (select s.version from {schema}.job_state s where s.job_key = r.job_key)
               offset 0))
          and (not r.superseded_by_next or not (
               exists (select from {schema}.job_state s where s.job_key = r.job_key and s.wake_at <= :now offset 0)
               or exists (select from {schema}.wake w where w.job_key = r.job_key offset 0)))
       offset 0) r
 where not c.is_early and c.needs = :needs
 order by c.priority desc, c.line_at, c.id
 limit :limit;

-- move_lanes --
-- Lets these wait in other lanes; what another claims or changes at this moment is passed over.
update {schema}.occurrence o set needs = moves.needs
  from {rows moves: handle bigint, needs text}
 where o.handle = moves.handle and o.handle = any(array(
       select r.handle
         from {schema}.occurrence r
        where r.handle = any(:moves_handle::bigint[])
          and (r.status = {pending} or (r.status = {awaiting_retry} and r.owner is null))
        order by r.handle
          for update skip locked));

-- waiting_in_lanes --
-- Returns how many are ready of each text of needs.
select c.needs, count(*)::int as count from {schema}.claimable c where c.ready_at is null or c.ready_at <= :now group by c.needs;

-- pick_ready --
-- Locks and returns those of these that may still be claimed and that no other claim takes at this moment.
select o.handle, o.fence from {schema}.occurrence o
 where o.handle {in handles} and not o.is_early
   and (o.status = {pending} or (o.status = {awaiting_retry} and o.owner is null))
 order by o.handle
   for update skip locked;

-- unlist_claimed --
-- Takes these, which are locked, out of the claimable ones.
select {schema}.unlist(o) from {schema}.occurrence o where o.handle {in handles};
