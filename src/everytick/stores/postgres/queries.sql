-- The statements of the PostgreSQL store. Each has a name and says what it guarantees.
--
-- Locks are taken in one order everywhere: job, job_state, occurrence, job_tally, each by rising key, so that no two
-- statements wait for each other. A row of `claimable` or `active` is written under the lock of its occurrence. The
-- time is everytick_now(), read once per statement.
--
-- What comes in batches is found by key one by one, whatever the server believes about its tables: in a lateral part
-- that ends in `offset 0` or takes a lock, or by an array of the keys beside the join that brings the values.
--
-- What several of them say alike stands in parts.sql, and its name in «» where it is said. Parameters are named; an
-- array has a plural for its name.

-- now --
-- Returns the store's time.
select everytick.everytick_now();

-- ring --
-- Tells every node that something changed, at the commit and once per commit.
select everytick.ring();

-- pulse --
-- Returns how often the bell was rung, for those who cannot listen.
select case when is_called then last_value else 0 end from everytick.pulse;

-- ahead --
-- Returns the store's time and what comes next after it of the needs `needs`: the earliest look at a job that nothing makes
-- due already, and the earliest occurrence that needs a node and nothing but time; and every text of needs, unless
-- there are `seen`. A fact lies ahead where the clock was set back by too little to be corrected. It
-- says whether limits hold, of which the verb `opens_at` knows more.
with moment as materialized (
    select everytick.everytick_now() as now
)
select moment.now,
       (select min(least(s.wake_at, f.wake_at))
          from unnest(:needs::text[]) n(needs)
          left join lateral (select s.wake_at from everytick.job_state s
                              where s.needs = n.needs and s.wake_at > moment.now
                                and not exists (select from everytick.wake w where w.job_key = s.job_key offset 0)
                              order by s.wake_at limit 1) s on true
          left join lateral (select w.wake_at from everytick.wake w
                              where w.needs = n.needs and w.wake_at > moment.now
                                and not exists (select from everytick.wake e
                                                 where e.job_key = w.job_key and e.wake_key > w.wake_key offset 0)
                              order by w.wake_at limit 1) f on true) as wake_at,
       (select min(r.ready_at)
          from unnest(:needs::text[]) n(needs)
         cross join lateral (select e.ready_at from everytick.claimable e
                              where e.is_early and e.needs = n.needs and e.ready_at > moment.now
                              order by e.ready_at limit 1) r) as ready_at,
       case when (select count(*) from everytick.needs) <> :seen then array(select text from everytick.needs) end as needs,
       exists (select from everytick.reach) as is_limited,
       coalesce((select max(change_key) from everytick.limit_change), 0) as limit_changes
  from moment;

-- add_needs --
-- Lets these texts of needs be known to nodes.
insert into everytick.needs (text) select t.text from unnest(:texts::text[]) t(text) order by t.text on conflict do nothing;

-- relabel_wakes --
-- Gives facts the needs that their job has now; one that was written beside an edit may have the needs of before.
update everytick.wake w set needs = s.needs
  from everytick.job_state s
 where s.job_key = w.job_key and w.needs <> s.needs;

-- ------------------------------------------------------------------------------------- the planner

-- hold_due --
-- Locks due jobs until the transaction ends, and returns them: those whose time has come by `until_at`, or by now if that is null.
-- Skips jobs that another planner has locked. Only the row in `job` is locked: a pause or an edit does not wait, the revision settles it.
-- It looks at the `window` jobs that have waited longest. One row more has the store's time and, if fewer than `limit` could be locked,
-- how many it looked at: with a full window others have locked most of them, and the caller asks for a larger one.
-- It begins after (`after_wake_at`, `after_id`), where the batch before ended: the index still has entries of jobs planned since.
-- A job with waiting facts is `told`. These come from the oldest thousand facts, or `window`.
-- Skips the jobs in `left_out` and `unknown_ids`, which this node cannot read or run, and jobs with other needs than `needs`.
with moment as materialized (
    select m.now, coalesce(:until_at::timestamptz, m.now) as until from (select everytick.everytick_now() as now offset 0) m
), strange as materialized (
    select :left_out::int[] || array(select j.job_key from everytick.job j where j.id = any(:unknown_ids::text[])) as jobs
), seen as materialized (
    select s.job_key
      from unnest(:needs::text[]) n(needs)
     cross join lateral (
           select s.job_key, s.wake_at, s.id
             from everytick.job_state s
            where s.needs = n.needs and s.wake_at <= (select until from moment) and (s.wake_at, s.id) > (:after_wake_at, :after_id)
              and not exists (select from everytick.wake w where w.job_key = s.job_key offset 0)
              and s.job_key <> all((select jobs from strange)::int[])
            order by s.wake_at, s.id
            limit :window) s
     order by s.wake_at, s.id
     limit :window
), due as materialized (
    select s.job_key
      from seen s
     cross join lateral (select from everytick.job j where j.job_key = s.job_key for no key update skip locked) j
     limit :limit
), told as (
    select w.job_key
      from (select w.job_key
              from (select w.job_key, max(w.wake_at) as wake_at
                      from unnest(:needs::text[]) n(needs)
                     cross join lateral (select w.job_key, w.wake_at from everytick.wake w
                                          where w.needs = n.needs and w.wake_at <= (select until from moment)
                                            and w.job_key <> all((select jobs from strange)::int[])
                                          order by w.wake_at limit greatest(:window, 1000)) w
                     group by w.job_key) w
             cross join lateral (select j.id from everytick.job j where j.job_key = w.job_key offset 0) j
             order by w.wake_at, j.id) w
     cross join lateral (select from everytick.job j where j.job_key = w.job_key for no key update skip locked) j
     limit :limit
)
select job_key, false as told, null::timestamptz as now from due
union all
select job_key, true, null from told
union all
select count(*)::int, null, (select now from moment) from seen where (select count(*) from due) < :limit;

-- few_due --
-- Returns the rows of all jobs that are due by `until_at`, or by now if that is null, facts included, if there are at most `limit`;
-- else more than `limit` rows. Locks nothing. Each row has the store's time. A job with a single request has that in its row, unless
-- the request is for a time of its own.
-- Skips the jobs in `left_out` and `unknown_ids`, and jobs with other needs than `needs`.
with moment as materialized (
    select m.now, coalesce(:until_at::timestamptz, m.now) as until from (select everytick.everytick_now() as now offset 0) m
), strange as materialized (
    select :left_out::int[] || array(select j.job_key from everytick.job j where j.id = any(:unknown_ids::text[])) as jobs
)
select «standing»
       v.key is not null as has_requests,
       v.key, v.cause, v.requested_at, v.payload, v.overlap, v.reason, v.requested_by, v.replay_of, v.scheduled_for,
       v.covers_after, v.covers_through, v.keeps, v.nth, v.due_at,
       v.is_only,
       moment.now
  from moment
  left join lateral (
       select *
         from ((select s.job_key
                  from unnest(:needs::text[]) n(needs)
                 cross join lateral (
                       select s.job_key, s.wake_at
                         from everytick.job_state s
                        where s.needs = n.needs and s.wake_at <= moment.until
                          and not exists (select from everytick.wake w where w.job_key = s.job_key offset 0)
                          and s.job_key <> all((select jobs from strange)::int[])
                        order by s.wake_at
                        limit :limit + 1) s
                 order by s.wake_at
                 limit :limit + 1)
               union all
               (select distinct w.job_key
                  from unnest(:needs::text[]) n(needs)
                 cross join lateral (select w.job_key from everytick.wake w
                                      where w.needs = n.needs and w.wake_at <= moment.until
                                        and w.job_key <> all((select jobs from strange)::int[])
                                      order by w.wake_at limit 1000) w
                 limit :limit + 1)) a(due)
        cross join lateral (select * from everytick.job_standing v
                             where v.job_key = a.due and v.wake_at <= moment.until offset 0) v
         left join lateral (select r.key, r.cause, r.requested_at, r.payload, r.overlap, r.reason, r.requested_by,
                                   r.replay_of, r.scheduled_for, r.covers_after, r.covers_through, r.keeps,
                                   r.nth,
                                   r.due_at,
                                   r.due_at = 'epoch'
                                   and not exists (select from everytick.request o
                                                    where o.job_key = r.job_key and o.request_key <> r.request_key offset 0) as is_only
                              from everytick.request r where r.job_key = a.due limit 1) r on true) v on true;

-- planned_by --
-- Returns those of these jobs whose last plan was written by the batch of this token.
select s.job_key
  from unnest(:job_keys::int[]) a(job_key)
 cross join lateral (select s.job_key from everytick.job_state s where s.job_key = a.job_key and s.plan_token = :token offset 0) s;

-- standing_of_due --
-- Returns where these jobs stand, of which no facts are waiting and whose time has come, and whether there is more to
-- know of them; one that another planner has just been at is left out.
select «standing»
       exists (select from everytick.request f where f.job_key = v.job_key offset 0) as has_requests
  from unnest(:job_keys::int[]) a(job_key)
 cross join lateral (select s.*, e.last_end_scheduled_for, e.last_end_started_at, e.last_end_at, e.last_end_id,
                            e.last_success_scheduled_for, e.last_success_started_at, e.last_success_at, e.last_success_id,
                            e.other_success_scheduled_for, e.other_success_started_at, e.other_success_at, e.other_success_id
                       from everytick.job_state s
                       left join lateral (select * from everytick.job_ends e where e.job_key = s.job_key offset 0) e on true
                      where s.job_key = a.job_key and s.wake_at <= :until_at offset 0) v;

-- standing_of_told --
-- Returns where these jobs stand, facts that no plan has seen included, if their time has come.
select «standing»
       exists (select from everytick.request f where f.job_key = v.job_key offset 0) as has_requests
  from unnest(:job_keys::int[]) a(job_key)
 cross join lateral (select * from everytick.job_standing v where v.job_key = a.job_key and v.wake_at <= :until_at offset 0) v;

-- standing_by_id --
-- Returns where the jobs of these ids stand, due or not.
select «standing»
       exists (select from everytick.request f where f.job_key = v.job_key offset 0) as has_requests
  from unnest(:job_ids::text[]) a(id)
 cross join lateral (select * from everytick.job_standing v where v.id = a.id offset 0) v;

-- definitions --
-- Returns the versions asked for that exist, their times in microseconds: the connection may be the caller's.
select d.job_key, d.version, d.definition, (extract(epoch from d.in_force_after) * 1000000)::bigint as in_force_after,
       (extract(epoch from d.edited_at) * 1000000)::bigint as updated_at, d.edited_by, d.follows, d.rollout, j.id,
       (extract(epoch from j.created_at) * 1000000)::bigint as created_at
  from unnest(:job_keys::int[], :versions::int[]) a(job_key, version)
 cross join lateral (select * from everytick.job_version d where d.job_key = a.job_key and d.version = a.version offset 0) d
 cross join lateral (select j.id, j.created_at from everytick.job j where j.job_key = a.job_key offset 0) j;

-- active --
-- Returns of each job the first 100 that are busy, the first 100 that wait, the last and the last of the schedule's
-- own, and how many there are.
-- A pause holds the schedule and not people: while it lasts, what they asked for is shown of those that wait, and of
-- the schedule's own only one, not `shown`, that tells how many there are.
select *
  from (select s.*, row_number() over place as place,
               row_number() over (partition by s.job_key, s.waits, s.cause = {cause.schedule}
                                  order by s.line_at desc, s.id desc) as newest,
               count(*) over (partition by s.job_key, s.waits, s.shown) as alike,
               count(*) over (partition by s.job_key, s.waits) as of,
               bool_and(s.awaited) over (partition by s.job_key, s.waits) as all_awaited
          from (select o.job_key, o.id, o.line_at, o.scheduled_for, o.status, o.cause, o.superseded_by_next, o.awaited, o.late,
                       o.status = {queued} as waits,
                       not (o.status = {queued} and o.cause = {cause.schedule} and o.job_key = any(array(
                           select p.job_key from everytick.pause p
                            where p.job_key = any(array(select unnest(:job_keys::int[])))
                              and (p.until_at is null or everytick.everytick_now() < p.until_at)))) as shown
                  from unnest(:job_keys::int[]) a(job_key)
                 cross join lateral (select n.handle from everytick.active n where n.job_key = a.job_key offset 0) n
                 cross join lateral (select * from everytick.occurrence o
                                      where o.handle = n.handle and o.status < {first_ended} offset 0) o) s
        window place as (partition by s.job_key, s.waits, s.shown order by s.line_at, s.id)) a
 where case when a.shown then a.place <= 100
                              or (a.waits and (a.place = a.alike or (a.cause = {cause.schedule} and a.newest = 1)))
            else a.place = 1 end
 order by a.job_key, a.place;

-- pauses --
-- Returns the pauses of these jobs in the order they were made.
select * from everytick.pause where job_key = any(:job_keys::int[]) order by job_key, pause_key;

-- adjustments --
-- Returns the adjustments of these jobs, in the order in which they were made.
select * from everytick.adjustment where job_key = any(:job_keys::int[]) order by job_key, adjustment_key;

-- requests --
-- Returns of each job, which retires at `retires`, the oldest 101 open requests that a plan of the moment `until_at`, or of now, sees:
-- one more than it may answer. The next one that is still to come follows. Of a job that has retired it sees all.
with moment as materialized (
    select coalesce(:until_at::timestamptz, everytick.everytick_now()) as until
)
select r.*
  from unnest(:job_keys::int[], :retires::timestamptz[]) a(job_key, retire_at)
 cross join lateral (select case when a.retire_at <= moment.until then 'infinity' else moment.until end as until
                       from moment offset 0) m
 cross join lateral (
       (select r.*, false as is_to_come from everytick.request r
         where r.job_key = a.job_key and r.due_at = 'epoch' order by r.request_key limit 101)
       union all
       (select r.*, false from everytick.request r
         where r.job_key = a.job_key and r.due_at > 'epoch' and r.due_at <= m.until
         order by r.due_at, r.request_key limit 101)
       union all
       (select r.*, true from everytick.request r
         where r.job_key = a.job_key and r.due_at > 'epoch' and r.due_at > m.until
         order by r.due_at, r.request_key limit 1)) r
 order by r.job_key, r.due_at, r.request_key;

-- park_job --
-- Says why the definition of a job cannot be read by some node; those that can go on with it, and an edit ends it.
update everytick.job_state set unreadable_reason = :reason where job_key = :job_key and unreadable_reason is distinct from :reason;

-- park_plan --
-- Says why the plan of a job was refused; the next plan that is written clears it.
update everytick.job_state set parked_reason = :reason where job_key = (select j.job_key from everytick.job j where j.id = :job_id);

-- job_keys --
-- Returns the inner keys of jobs.
select j.id, j.job_key
  from unnest(:job_ids::text[]) a(id)
 cross join lateral (select j.id, j.job_key from everytick.job j where j.id = a.id offset 0) j;

-- hold_plans --
-- Locks the jobs that still are as their snapshot was, in order, and returns them with the store's time.
with moment as materialized (
    select everytick.everytick_now() as now
)
select p.job_key, s.woken, moment.now
  from moment
 cross join (select a.job_key, everytick.throughout(:revisions, a.revision) as revision
               from unnest(:job_keys::int[], :revisions::bigint[]) a(job_key, revision)
              order by a.job_key) p
 cross join lateral (select s.woken from everytick.job_state s
                      where s.job_key = p.job_key and s.revision = p.revision
                        for no key update) s;

-- fold_wakes --
-- Takes the facts away that the plan answers, and returns how many there were of each job; later ones cause a new look.
with gone as (delete from everytick.wake where job_key = any(:job_keys::int[]) returning job_key)
select job_key, count(*)::int as facts from gone group by job_key;

-- create_occurrences --
-- Absent ones only: the id is made of job and instant, so a repeated commit is harmless.
with made as (
insert into everytick.occurrence (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                                  covers_after, covers_through, needs, reason, overrides, payload, replay_of,
                                  awaited, execution_timeout, created_at, updated_at, ended_at, is_early)
select c.*, :now::timestamptz, :now, case when c.status >= {first_ended} then :now end, coalesce(c.ready_at > :now, false)
  from (select c.id, everytick.throughout(:job_keys, c.job_key) as job_key, everytick.throughout(:versions, c.version) as version,
               everytick.throughout(:instants, c.scheduled_for) as scheduled_for,
               everytick.throughout(:statuses, c.status) as status, everytick.throughout(:causes, c.cause) as cause,
               everytick.throughout(:priorities, c.priority) as priority, everytick.throughout(:lates, c.late) as late,
               everytick.throughout(:lines, c.line_at) as line_at, everytick.throughout(:readies, c.ready_at) as ready_at,
               everytick.throughout(:covers_afters, c.covers_after) as covers_after,
               everytick.throughout(:covers_throughs, c.covers_through) as covers_through,
               everytick.throughout(:needs, c.needs) as needs, everytick.throughout(:reasons, c.reason) as reason,
               everytick.throughout(:overrides, c.overrides) as overrides, everytick.throughout(:payloads, c.payload) as payload,
               everytick.throughout(:replays, c.replay_of) as replay_of,
               everytick.throughout(:awaits, c.awaited) as awaited,
               everytick.throughout(:timeouts, c.execution_timeout) as execution_timeout
          from unnest(:ids::uuid[], :job_keys::int[], :versions::int[], :instants::timestamptz[], :statuses::smallint[], :causes::smallint[], :priorities::int[],
                      :lates::bool[], :lines::timestamptz[], :readies::timestamptz[], :covers_afters::timestamptz[], :covers_throughs::timestamptz[],
                      :needs::text[], :reasons::text[], :overrides::text[], :payloads::text[], :replays::text[], :awaits::bool[], :timeouts::bigint[])
               c(id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at, covers_after,
                 covers_through, needs, reason, overrides, payload, replay_of, awaited, execution_timeout)) c
on conflict (id) do nothing
returning handle, job_key, status, id, line_at, ready_at, priority, is_early, needs
), actives as (
    insert into everytick.active (job_key, handle) select job_key, handle from made where status < {first_ended}
)
insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
select handle, id, line_at, ready_at, priority, is_early, needs from made where status = {pending};

-- hold_occurrences --
-- Locks in order, before a plan changes some of them, these occurrences, the busy ones of these jobs that stood in
-- line before a moment, and of other jobs all that are active and not awaited yet.
select handle from everytick.occurrence
 where handle = any(array(
       select o.handle
         from unnest(:ids::uuid[]) i(id)
        cross join lateral (select o.handle from everytick.occurrence o where o.id = i.id offset 0) o
       union
       select a.handle
         from unnest(:stopped_keys::int[], :befores::timestamptz[]) p(job_key, before)
        cross join lateral (select n.handle from everytick.active n where n.job_key = p.job_key offset 0) n
        cross join lateral (select a.handle from everytick.occurrence a
                             where a.handle = n.handle and a.status < {first_ended} and a.status <> {queued}
                               and a.line_at < p.before offset 0) a
       union
       select a.handle
         from unnest(:awaiting_keys::int[]) p(job_key)
        cross join lateral (select n.handle from everytick.active n where n.job_key = p.job_key offset 0) n
        cross join lateral (select a.handle from everytick.occurrence a
                             where a.handle = n.handle and a.status < {first_ended} and not a.awaited offset 0) a))
 order by handle
   for no key update;

-- ask_all_to_stop --
-- Asks the owners of all busy occurrences of these jobs with a line_at before a moment to stop. A reason that is there
-- stays.
update everytick.occurrence o set cancel_reason = :reason
  from unnest(:job_keys::int[], :befores::timestamptz[]) p(job_key, before)
 where o.job_key = p.job_key and o.status < {first_ended} and o.status <> {queued} and o.cancel_reason is null
   and o.line_at < p.before and o.handle = any(array(
       select n.handle
         from unnest(:job_keys::int[]) u(job_key)
        cross join lateral (select n.handle from everytick.active n where n.job_key = u.job_key offset 0) n));

-- mark_awaited --
-- From now on the end of everything that is active of these jobs wakes them; an end under way is waited for.
update everytick.occurrence o set awaited = true
 where o.handle = any(array(
       select a.handle
         from unnest(:job_keys::int[]) p(job_key)
        cross join lateral (select n.handle from everytick.active n where n.job_key = p.job_key offset 0) n
        cross join lateral (select a.handle from everytick.occurrence a
                             where a.handle = n.handle and a.status < {first_ended} and not a.awaited
                               for no key update) a));

-- release --
-- Makes queued occurrences pending. One that was canceled meanwhile stays canceled.
update everytick.occurrence set status = {pending}, is_early = coalesce(ready_at > :now, false), updated_at = :now
 where handle = any(array(
       select o.handle
         from unnest(:ids::uuid[]) i(id)
        cross join lateral (select o.handle from everytick.occurrence o
                             where o.id = i.id and o.status = {queued} for no key update) o));

-- end_unowned --
-- Ends occurrences that no node runs, and fences out an owner that waits for its retry. One that has ended or was claimed
-- meanwhile stays as it is. Their jobs note the ends in this order.
with ended as (
    update everytick.occurrence o
       set status = e.status, error = e.error, ended_at = :now, updated_at = :now, owner = null, fence = o.fence + 1
      from unnest(:ids::uuid[], :statuses::smallint[], :errors::text[]) with ordinality e(id, status, error, place)
     where o.id = e.id and o.handle = any(array(
           select a.handle
             from unnest(:ids::uuid[]) i(id)
            cross join lateral (select a.handle from everytick.occurrence a
                                 where a.id = i.id and a.status in ({pending}, {queued}, {awaiting_retry}) for no key update) a))
    returning o.handle, o.job_key, o.version, o.id, o.status, o.scheduled_for, o.started_at, o.ended_at, o.step_number, o.needs,
              e.place
), told as (
    select job_key, place, true as is_end, status in ({completed}, {completed_with_errors}) as is_success, scheduled_for,
           started_at, ended_at, id, null::text as error, null::timestamptz as failed_at
      from ended
), «ends_of_told», «tallied», owed as (
    insert into everytick.report (needs, ended_at, handle)
    select e.needs, e.ended_at, e.handle
      from ended e
     cross join lateral (select from everytick.job_version d
                          where d.job_key = e.job_key and d.version = e.version and d.reports offset 0) d
)
select * from ended;

-- close_runs --
-- Ends runs of occurrences that ended while none of their attempts was open; one that never began is written now.
insert into everytick.task_run (handle, task, status, attempts, retries, out_of_time, ended_at)
select c.handle, c.task, c.status, 0, 0, false, :now
  from unnest(:handles::bigint[], :tasks::text[], :statuses::smallint[]) c(handle, task, status)
on conflict (handle, task) do update
   set status = excluded.status, resume_at = null, ended_at = excluded.ended_at;

-- ask_to_stop --
-- Asks the owners of these occurrences to stop; the next beat tells them. Only a person (`is_person`) replaces a reason that is
-- there.
update everytick.occurrence set cancel_reason = :reason
 where handle = any(array(
       select o.handle
         from unnest(:ids::uuid[]) i(id)
        cross join lateral (select o.handle from everytick.occurrence o
                             where o.id = i.id and o.status < {first_ended} and (:is_person or o.cancel_reason is null)
                               for no key update) o));

-- tell_dependents --
-- Makes every job worth a look that depends on one of these and has an occurrence in line.
insert into everytick.wake (job_key, wake_at, needs)
select d.job_key, :now, s.needs
  from (select distinct j.job_key as needed_key, d.job_key
          from unnest(:job_keys::int[]) a(job_key)
         cross join lateral (select j.job_key, j.id from everytick.job j where j.job_key = a.job_key offset 0) j
         cross join lateral (select d.job_key from everytick.dependency d where d.needed_id = j.id offset 0) d) d
 cross join lateral (select s.needs from everytick.job_state s where s.job_key = d.job_key offset 0) s
 where exists (select from everytick.active n
                cross join lateral (select from everytick.occurrence o
                                     where o.handle = n.handle and o.status = {queued} offset 0) o
                where n.job_key = d.job_key offset 0);

-- add_spans --
-- Keeps the instants that did not run, in order.
insert into everytick.span (job_key, status, why, detail, span_after, span_through, version, count)
select s.* from unnest(:job_keys::int[], :statuses::smallint[], :whys::text[], :details::text[], :afters::timestamptz[], :throughs::timestamptz[],
                       :versions::int[], :counts::int[]) s;

-- forget_requests --
-- Forgets requests that were dealt with.
delete from everytick.request r
 using unnest(:job_keys::int[], :causes::smallint[], :keys::text[]) a(job_key, cause, key)
 where r.job_key = a.job_key and r.cause = a.cause and r.key = a.key and r.job_key = any(array(select unnest(:job_keys::int[])));

-- use_adjustments --
-- Notes that the moved instants have their occurrences.
update everytick.adjustment a set is_done = true
  from unnest(:job_keys::int[], :instants::timestamptz[]) u(job_key, instant_at)
 where a.job_key = u.job_key and a.instant_at = u.instant_at and a.job_key = any(array(select unnest(:job_keys::int[])));

-- forget_adjustments --
-- Forgets adjustments of instants at or before the watermark, but not one that still moves its instant to another time.
delete from everytick.adjustment a
 using unnest(:job_keys::int[], :watermarks::timestamptz[]) p(job_key, watermark)
 where a.job_key = p.job_key and a.job_key = any(array(select unnest(:job_keys::int[]))) and a.instant_at <= p.watermark and (a.kind <> 'move' or a.is_done or a.moved_to_at = a.instant_at);

-- forget_narrowing --
-- Notes that nothing waits any more that an edit of recovery left no reason for.
update everytick.job_state set narrowed_at = null where job_key = any(:job_keys::int[]);

-- note_stops --
-- Notes the instants of stop and restart schedules that were obeyed while the watermark is still before them.
update everytick.job_state s set stopped_at = p.stopped_at
  from unnest(:job_keys::int[], :moments::timestamptz[]) p(job_key, stopped_at)
 where s.job_key = p.job_key and s.job_key = any(array(select unnest(:job_keys::int[])));

-- forget_pauses --
-- Forgets pauses whose instants are all decided.
delete from everytick.pause a
 using unnest(:job_keys::int[], :watermarks::timestamptz[]) p(job_key, watermark)
 where a.job_key = p.job_key and a.job_key = any(array(select unnest(:job_keys::int[]))) and a.until_at <= p.watermark;

-- move_watermarks --
-- Moves the watermark on under the lock that hold_plans took; the revision makes every older snapshot stale.
update everytick.job_state s
   set revision = s.revision + 1, woken = p.woken, watermark = p.watermark, wake_at = p.wake_at,
       next_run_at = p.next_run_at, plan_token = :token,
       «moved_on»
  from (select u.job_key, everytick.throughout(:wokens, u.woken) as woken, everytick.throughout(:watermarks, u.watermark) as watermark,
               everytick.throughout(:wakes, u.wake_at) as wake_at,
               everytick.throughout(:reschedules, u.rescheduled) as rescheduled,
               everytick.throughout(:next_runs, u.next_run_at) as next_run_at
          from unnest(:job_keys::int[], :wokens::bigint[], :watermarks::timestamptz[], :wakes::timestamptz[], :reschedules::bool[], :next_runs::timestamptz[])
               u(job_key, woken, watermark, wake_at, rescheduled, next_run_at)) p
 where s.job_key = p.job_key and s.job_key = any(array(select unnest(:job_keys::int[])));

-- settle_few --
-- Writes a few plans whole that only create, mark, answer requests and move on, each on the condition that its job's revision
-- is still the snapshot's; returns those jobs, and rings where another node may have something to do. Facts that come
-- while it waits for a job are not seen and stay: they make the job due again.
-- Where nothing of the needs `met` is ready and no limit holds, it gives what it makes and `wanted` marks to the node `node`, in the columns of a
-- claim with the token `claim_token`: each would be the first in line.
with moment as materialized (
    select everytick.everytick_now() as now
), held as materialized (
    select p.*, f.*, s.wake_at as known_wake_at
      from (select * from unnest(:job_keys::int[], :revisions::bigint[], :wokens::bigint[], :watermarks::timestamptz[], :wakes::timestamptz[],
                                 :reschedules::bool[], :next_runs::timestamptz[])
                     u(job_key, revision, woken, watermark, wake_at, rescheduled, next_run_at)
             order by u.job_key) p
     cross join lateral (select s.wake_at from everytick.job_state s
                          where s.job_key = p.job_key and s.revision = p.revision
                            for no key update) s
     cross join lateral (select count(*) as facts from everytick.wake w where w.job_key = p.job_key) f
), line as materialized (
    select :node::text is not null
           and not exists (select from everytick.reach)
           and not exists (
               select from unnest(:met::text[]) n(needs)
                cross join lateral (select from everytick.claimable r
                                     where not r.is_early and r.needs = n.needs
                                     order by r.priority desc, r.line_at, r.id limit 1) r)
           and not exists (
               select from unnest(:met::text[]) n(needs)
                cross join lateral (select from everytick.claimable e
                                     where e.is_early and e.needs = n.needs
                                       and e.ready_at <= (select now from moment)
                                     order by e.ready_at limit 1) e) as is_empty
), folded as (
    delete from everytick.wake where job_key = any(array(select job_key from held))
), made as (
    insert into everytick.occurrence as o (id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at,
                                      covers_after, covers_through, needs, reason, overrides, payload, replay_of,
                                      awaited, created_at, updated_at, ended_at, is_early, owner, fence, started_at,
                                      claimed_at, execution_timeout, node, claim_token)
    select c.id, c.job_key, c.version, c.scheduled_for, case when c.is_taken then {running} else c.status end, c.cause, c.priority,
           c.late, c.line_at, c.ready_at, c.covers_after, c.covers_through, c.needs, c.reason, c.overrides, c.payload,
           c.replay_of, c.awaited, moment.now, moment.now, case when c.status >= {first_ended} then moment.now end,
           coalesce(c.ready_at > moment.now, false), case when c.is_taken then :node end,
           case when c.is_taken then 1 else 0 end, case when c.is_taken then moment.now end,
           case when c.is_taken then moment.now end, c.execution_timeout, case when c.is_taken then :node end,
           case when c.is_taken then :claim_token::bigint else 0 end
      from moment,
           (select c.*, c.wanted and line.is_empty and coalesce(c.ready_at <= moment.now, true) as is_taken
              from moment, line,
                   unnest(:ids::uuid[], :created_keys::int[], :versions::int[], :instants::timestamptz[], :statuses::smallint[], :causes::smallint[],
                          :priorities::int[], :lates::bool[], :lines::timestamptz[], :readies::timestamptz[], :covers_afters::timestamptz[],
                          :covers_throughs::timestamptz[], :needs::text[], :reasons::text[], :overrides::text[], :payloads::text[], :replays::text[],
                          :awaits::bool[], :timeouts::bigint[], :wanted::bool[])
                   c(id, job_key, version, scheduled_for, status, cause, priority, late, line_at, ready_at, covers_after,
                     covers_through, needs, reason, overrides, payload, replay_of, awaited, execution_timeout,
                     wanted)) c
     where c.job_key = any(array(select job_key from held))
    on conflict (id) do nothing
    returning «claim», o.needs, o.is_early
), actives as (
    insert into everytick.active (job_key, handle) select job_key, handle from made where status < {first_ended}
), claimables as (
    insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
    select handle, id, line_at, ready_at, priority, is_early, needs from made where status = {pending}
), known as (
    insert into everytick.node as n (id, beat_at, beats)
    select :node, moment.now, 1 from moment where exists (select from made where owner is not null)
    on conflict (id) do update set beat_at = excluded.beat_at, beats = n.beats + 1
), answered as (
    delete from everytick.request r
     using unnest(:answered_keys::int[], :request_keys::text[], :request_causes::smallint[]) a(job_key, key, cause)
     where r.job_key = a.job_key and r.cause = a.cause and r.key = a.key and r.job_key = any(array(select job_key from held))
), marked as (
    update everytick.occurrence o set awaited = true
     where o.handle = any(array(
           select a.handle
             from everytick.occurrence a
            where a.handle = any(array(
                  select n.handle
                    from unnest(:awaiting_keys::int[]) p(job_key)
                   cross join lateral (select n.handle from everytick.active n where n.job_key = p.job_key offset 0) n
                   where p.job_key = any(array(select job_key from held))))
              and a.status < {first_ended} and not a.awaited
            order by a.handle
              for no key update))
), settled as (
    update everytick.job_state s
       set revision = s.revision + 1, woken = s.woken + p.facts, watermark = p.watermark,
           wake_at = case when s.woken + p.facts = p.woken then p.wake_at else moment.now end,
           next_run_at = p.next_run_at,
           «moved_on», plan_token = :token
      from moment, held p
     where s.job_key = p.job_key and s.job_key = any(array(select job_key from held))
    returning s.job_key, s.wake_at is distinct from p.known_wake_at as is_moved
), bell as (
    select everytick.ring()
     where exists (select from settled where is_moved) or exists (select from made where owner is null)
        or not exists (select from made)
)
select made.*, settled.job_key as settled, (select count(*) from bell)
  from settled left join made on made.job_key = settled.job_key and made.owner is not null;

-- ------------------------------------------------------------------------------------ claims and steps

-- claim --
-- Gives ready occurrences to one node, by priority, then age; what another claims at this moment is passed over.
-- Each text of needs has its own part of the index, so nothing that this node cannot run is walked past.
-- A retry that the next instant supersedes waits while its job is due: the plan comes before it. A retry of a disabled
-- job waits too: a step that began before the disable has written it as if the job were enabled.
-- It is a sign of life: a node that was silent for long must not lose at once what it just took.
-- Where the ready_at of early occurrences has come, it gives nothing and says so: `release_early` moves them to the ready
-- ones, and the claim that follows is told that they are (`is_released`).
-- Where a limit or brake holds it gives nothing too and says so: another verb claims then.
with moment as materialized (
    select everytick.everytick_now() as now
), line as materialized (
    select not :is_released::bool and exists (
           select from everytick.claimable e
            where e.is_early and e.needs = any(:needs::text[]) and e.ready_at <= (select now from moment)) as found,
           exists (select from everytick.reach) as is_limited
), picked as materialized (
    select r.place, r.handle
      from unnest(:needs::text[]) n(needs)
     cross join lateral (
           select c.ctid as place, c.handle, c.priority, c.line_at, c.id
             from everytick.claimable c
            cross join lateral (
                  select from everytick.occurrence r
                   where r.handle = c.handle
                     and not r.is_early and (r.status = {pending} or (r.status = {awaiting_retry} and r.owner is null))
                     and r.job_key <> all(array(select j.job_key from everytick.job j where j.id = any(:unknown_ids::text[])))
                     and (r.status = {pending} or not exists (
                          select from everytick.job_version d
                           where d.job_key = r.job_key and not d.enabled
                             and d.version = (select s.version from everytick.job_state s where s.job_key = r.job_key)
                          offset 0))
                     and (not r.superseded_by_next or not (
                          exists (select from everytick.job_state s
                                   where s.job_key = r.job_key and s.wake_at <= (select now from moment) offset 0)
                          or exists (select from everytick.wake w where w.job_key = r.job_key offset 0)))
                     for update skip locked) r
            where not (select found or is_limited from line) and not c.is_early and c.needs = n.needs
            order by c.priority desc, c.line_at, c.id
            limit :limit
              for update of c skip locked) r
     order by r.priority desc, r.line_at, r.id
     limit :limit
), unlisted as (
    delete from everytick.claimable where ctid = any(array(select place from picked))
), taken as (
    update everytick.occurrence o
       set found = o.status, status = {running}, owner = :node, node = :node, fence = o.fence + 1, claim_token = :token,
           started_at = coalesce(o.started_at, moment.now), claimed_at = moment.now, updated_at = moment.now
      from moment
     where o.handle = any(array(select handle from picked))
    returning «claim»
), known as (
    insert into everytick.node as n (id, beat_at, beats)
    select :node, moment.now, 1 from moment where exists (select from taken)
    on conflict (id) do update set beat_at = excluded.beat_at, beats = n.beats + 1
)
select taken.*, line.found as has_early_due, line.is_limited from line left join taken on true;

-- release_early --
-- Moves early occurrences to the ready ones once their ready_at has come, the longest-waiting first. Skips what another
-- transaction holds.
with moment as materialized (
    select everytick.everytick_now() as now
), due as materialized (
    select c.ctid as place, c.handle
      from everytick.claimable c
     cross join lateral (select from everytick.occurrence e where e.handle = c.handle for no key update skip locked) e
     where c.is_early and c.needs = any(:needs::text[]) and c.ready_at <= (select now from moment)
     order by c.ready_at
     limit 5000
       for update of c skip locked
), unlisted as (
    delete from everytick.claimable where ctid = any(array(select place from due))
    returning handle, id, line_at, ready_at, priority, needs
), listed as (
    insert into everytick.claimable (handle, id, line_at, ready_at, priority, is_early, needs)
    select handle, id, line_at, ready_at, priority, false, needs from unlisted
)
update everytick.occurrence o set is_early = false where o.handle = any(array(select handle from due));

-- runs --
-- Returns the runs of the tasks of these occurrences.
select r.*
  from unnest(:handles::bigint[]) a(handle)
 cross join lateral (select * from everytick.task_run r where r.handle = a.handle offset 0) r
 order by r.handle, r.task;

-- give_back --
-- Queues claimed occurrences again whose definition cannot be read: an edit makes them pending. One that never began has
-- no start.
update everytick.occurrence o
   set status = {queued}, owner = null, updated_at = everytick.everytick_now(),
       started_at = case when exists (select from everytick.attempt a where a.handle = o.handle) then o.started_at end,
       node = (select a.node from everytick.attempt a where a.handle = o.handle and a.started_at is not null
                order by a.started_at desc, a.task collate "C" desc, a.number desc limit 1)
 where handle = any(:handles::bigint[]) and owner = :node;

-- hold_jobs_of --
-- Locks the jobs of these occurrences: no pause, edit or removal comes before the transaction ends.
select s.job_key
  from everytick.job_state s
 where s.job_key = any(array(
       select o.job_key
         from unnest(:handles::bigint[]) a(handle)
        cross join lateral (select o.job_key from everytick.occurrence o where o.handle = a.handle offset 0) o))
 order by s.job_key
   for share;

-- retired_of --
-- Returns those of these occurrences that no node holds and whose job has retired, with the store's time.
select o.id, o.job_key, moment.now
  from (select everytick.everytick_now() as now) moment
 cross join unnest(:handles::bigint[]) a(handle)
 cross join lateral (select o.id, o.job_key from everytick.occurrence o
                      where o.handle = a.handle and o.status < {first_ended} and o.owner is null offset 0) o
 cross join lateral (select from everytick.job_state s where s.job_key = o.job_key and s.retire_at <= moment.now offset 0) s
 order by a.handle;

-- hold_given_back --
-- Queues those of these occurrences that a pause or a disable of their job holds.
update everytick.occurrence o set status = {queued}
 where o.status = {pending} and o.handle = any(array(
       select h.handle
         from unnest(:handles::bigint[]) a(handle)
        cross join lateral (select o.handle, o.job_key, o.cause from everytick.occurrence o
                             where o.handle = a.handle and o.status = {pending} and o.owner is null offset 0) h
        cross join lateral (select s.version from everytick.job_state s where s.job_key = h.job_key offset 0) s
        cross join lateral (select d.enabled from everytick.job_version d
                             where d.job_key = h.job_key and d.version = s.version offset 0) d
        where not d.enabled or (h.cause = {cause.schedule} and exists (
              select from everytick.pause p
               where p.job_key = h.job_key and (p.until_at is null or everytick.everytick_now() < p.until_at) offset 0))));

-- commit_steps --
-- Writes each step whose claim still holds fence and token and whose number is new, and returns those: the rest is
-- either known already or stale. One row per task, by rising key; what concerns the occurrence stands on the first
-- of a step, whose `move` says whether it keeps its owner (0), is given back (1), parked (2), ended (3), or given back
-- before an attempt began: as one that had started before (4), or never (5). Its node is then that of the last attempt.
-- The lateral lock and the array of keys find each row by its key whatever the statistics say. A column that is
-- null throughout may be left out, as unnest fills it up; one that is the same throughout may be sent as one value.
-- An end that is awaited wakes its job, as the row says under its lock. Every end, and every attempt that failed, is
-- noted in the tally of its job.
with sent as (
    select s.handle, everytick.throughout(:fences, s.fence) as fence, everytick.throughout(:numbers, s.number) as number,
           everytick.throughout(:moves, s.move) as move, everytick.throughout(:statuses, s.status) as status,
           everytick.throughout(:readies, s.ready_at) as ready_at, everytick.throughout(:ends, s.ended_at) as ended_at,
           everytick.throughout(:errors, s.error) as error, everytick.throughout(:losts, s.lost) as lost,
           everytick.throughout(:supersedings, s.superseded_by_next) as superseded_by_next,
           everytick.throughout(:tasks, s.task) as task, everytick.throughout(:run_statuses, s.run_status) as run_status,
           everytick.throughout(:attempt_counts, s.attempts) as attempts, everytick.throughout(:retries, s.retries) as retries,
           everytick.throughout(:last_statuses, s.last_attempt_status) as last_attempt_status, everytick.throughout(:out_of_times, s.out_of_time) as out_of_time,
           everytick.throughout(:resumes, s.resume_at) as resume_at,
           everytick.throughout(:run_starts, s.run_started_at) as run_started_at,
           everytick.throughout(:attempt_starts, s.attempt_started_at) as attempt_started_at,
           everytick.throughout(:run_ends, s.run_ended_at) as run_ended_at,
           everytick.throughout(:run_errors, s.run_error) as run_error, everytick.throughout(:causes, s.because_of) as because_of,
           everytick.throughout(:results, s.result) as result, everytick.throughout(:waits, s.waits) as waits,
           everytick.throughout(:attempts, s.attempt) as attempt,
           everytick.throughout(:attempt_statuses, s.attempt_status) as attempt_status,
           everytick.throughout(:starts, s.started_at) as started_at,
           everytick.throughout(:attempt_ends, s.attempt_ended_at) as attempt_ended_at,
           everytick.throughout(:attempt_errors, s.attempt_error) as attempt_error, everytick.throughout(:owed, s.owed) as owed,
           everytick.throughout(:failures, s.failure) as failure, everytick.throughout(:tokens, s.token) as token
      from unnest(:handles::bigint[], :fences::int[], :numbers::int[], :moves::smallint[], :statuses::smallint[],
                  :readies::timestamptz[], :ends::timestamptz[], :errors::text[], :losts::int[], :supersedings::bool[],
                  :tasks::text[], :run_statuses::smallint[], :attempt_counts::int[], :retries::int[], :last_statuses::smallint[], :out_of_times::bool[],
                  :resumes::timestamptz[], :run_starts::timestamptz[], :attempt_starts::timestamptz[], :run_ends::timestamptz[], :run_errors::text[],
                  :causes::text[], :results::text[], :waits::text[],
                  :attempts::int[], :attempt_statuses::smallint[], :starts::timestamptz[], :attempt_ends::timestamptz[], :attempt_errors::text[], :owed::bool[],
                  :failures::text[], :tokens::bigint[])
           s(handle, fence, number, move, status,
             ready_at, ended_at, error, lost, superseded_by_next,
             task, run_status, attempts, retries, last_attempt_status, out_of_time,
             resume_at, run_started_at, attempt_started_at, run_ended_at, run_error,
             because_of, result, waits,
             attempt, attempt_status, started_at, attempt_ended_at, attempt_error, owed, failure, token)
), held as materialized (
    select s.*, o.awaited, o.node, o.job_key
      from sent s
     cross join lateral (
           select o.awaited, o.node, o.job_key from everytick.occurrence o
            where o.handle = s.handle and o.fence = s.fence and o.claim_token = s.token and o.step_number < s.number
              for no key update) o
), run as (
    insert into everytick.task_run (handle, task, status, attempts, retries, last_attempt_status, out_of_time, resume_at,
                                    started_at, attempt_started_at, ended_at, error, because_of, result, waits)
    select handle, task, run_status, attempts, coalesce(retries, 0), last_attempt_status, coalesce(out_of_time, false), resume_at,
           run_started_at, attempt_started_at, run_ended_at, run_error, because_of, result, waits
      from held where task is not null
    on conflict (handle, task) do update
       set status = excluded.status, attempts = excluded.attempts, retries = excluded.retries,
           last_attempt_status = excluded.last_attempt_status, out_of_time = excluded.out_of_time, resume_at = excluded.resume_at,
           started_at = excluded.started_at, attempt_started_at = excluded.attempt_started_at,
           ended_at = excluded.ended_at, error = excluded.error, because_of = excluded.because_of,
           result = excluded.result, waits = excluded.waits
), try as (
    insert into everytick.attempt as a (handle, task, number, status, started_at, ended_at, error, node)
    select handle, task, attempt, attempt_status, started_at, attempt_ended_at, attempt_error, node
      from held where attempt_status is not null
    on conflict (handle, task, number) do update
       set status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at,
           error = excluded.error
     where a.status < {attempt.first_ended}
), moved as (
    update everytick.occurrence o
       set status = h.status, step_number = h.number, has_rows = true, lost = coalesce(h.lost, 0),
           superseded_by_next = coalesce(h.superseded_by_next, false),
           owner = case when h.move = 0 then o.owner end,
           started_at = case when h.move < 5 then o.started_at end,
           node = case when h.move < 4 then o.node else
                  (select a.node from everytick.attempt a where a.handle = o.handle and a.started_at is not null
                    order by a.started_at desc, a.task collate "C" desc, a.number desc limit 1) end,
           ready_at = coalesce(h.ready_at, o.ready_at),
           is_early = case when h.move in (1, 2, 4, 5) and «disabled» then null
                        else h.move <> 3 and coalesce(coalesce(h.ready_at, o.ready_at) > everytick.everytick_now(), false)
                   end,
           fence = case when h.move = 3 then o.fence + 1 else o.fence end,
           ended_at = h.ended_at, error = h.error, updated_at = everytick.everytick_now()
      from held h
     where h.move is not null and o.handle = h.handle and o.handle = any(array(select handle from held))
    returning o.handle, o.job_key, h.move, h.owed, h.awaited, h.failure, o.status, o.scheduled_for, o.started_at, o.ended_at,
              o.updated_at, o.id, o.needs, o.holds_place
), told as (
    select m.job_key, m.handle as place, true as is_end,
           m.status in ({completed}, {completed_with_errors}) as is_success, m.scheduled_for, m.started_at, m.ended_at, m.id,
           m.failure as error, null::timestamptz as failed_at
      from moved m where m.move = 3
    union all
    select h.job_key, h.handle, false, false, null, null, null, null, null, h.attempt_ended_at
      from held h where h.attempt_status in ({attempt.failed}, {attempt.timeout})
), «ends_of_told», «tallied», woken as (
    insert into everytick.wake (job_key, wake_at, needs)
    select m.job_key, m.updated_at, «needs_of_job» from moved m where m.awaited and m.move in (2, 3) order by m.handle
), inactive as (
    delete from everytick.active where ctid = any(array(
           select a.place
             from moved m
            cross join lateral (select a.ctid as place from everytick.active a
                                 where a.job_key = m.job_key and a.handle = m.handle offset 0) a
            where m.move = 3))
), owed as (
    insert into everytick.report (needs, ended_at, handle) select needs, ended_at, handle from moved where owed
), bell as (
    select everytick.ring() where exists (select from moved where move in (1, 2, 4, 5) or (move = 3 and (awaited or holds_place)))
)
select handle from held where move is not null
union all
select null from bell;

-- commit_plain --
-- Does the same, in less time, where every step is that one task has succeeded at its first try: the occurrence goes on
-- or is completed. One row per step, by rising key, which is the order in which it locks, as our own sessions plan it.
with sent as (
    select s.handle, everytick.throughout(:fences, s.fence) as fence, everytick.throughout(:numbers, s.number) as number,
           everytick.throughout(:is_ends, s.is_end) as is_end, everytick.throughout(:tasks, s.task) as task,
           everytick.throughout(:starts, s.started_at) as started_at, everytick.throughout(:ends, s.ended_at) as ended_at,
           everytick.throughout(:results, s.result) as result, everytick.throughout(:owed, s.owed) as owed,
           everytick.throughout(:tokens, s.token) as token
      from unnest(:handles::bigint[], :fences::int[], :numbers::int[], :is_ends::bool[], :tasks::text[], :starts::timestamptz[], :ends::timestamptz[],
                  :results::text[], :owed::bool[], :tokens::bigint[])
           s(handle, fence, number, is_end, task, started_at, ended_at, result, owed, token)
), moved as (
    update everytick.occurrence o
       set status = case when s.is_end then {completed} else {running} end, step_number = s.number, lost = 0, superseded_by_next = false,
           owner = case when not s.is_end then o.owner end, is_early = false,
           fence = case when s.is_end then o.fence + 1 else o.fence end,
           ended_at = case when s.is_end then s.ended_at end, error = null, updated_at = everytick.everytick_now()
      from sent s
     where o.handle = s.handle and o.fence = s.fence and o.claim_token = s.token and o.step_number < s.number
       and o.handle = any(:handles)
    returning o.handle, o.job_key, s.is_end, s.owed, o.awaited, o.node, o.scheduled_for, o.started_at as begun_at, o.updated_at,
              o.id, o.needs, o.has_rows, o.holds_place, s.task, s.started_at, s.ended_at, s.result
), run as (
    insert into everytick.task_run (handle, task, status, attempts, retries, last_attempt_status, out_of_time, started_at,
                                    ended_at, result)
    select handle, task, {run.success}, 1, 0, {attempt.success}, false, started_at, ended_at, result from moved
     where not has_rows
), try as (
    insert into everytick.attempt (handle, task, number, status, started_at, ended_at, node)
    select handle, task, 1, {attempt.success}, started_at, ended_at, node from moved where not has_rows
), known_run as (
    insert into everytick.task_run (handle, task, status, attempts, retries, last_attempt_status, out_of_time, started_at,
                                    ended_at, result)
    select handle, task, {run.success}, 1, 0, {attempt.success}, false, started_at, ended_at, result from moved
     where has_rows
    on conflict (handle, task) do update
       set status = excluded.status, attempts = excluded.attempts, retries = excluded.retries, last_attempt_status = excluded.last_attempt_status,
           out_of_time = excluded.out_of_time, resume_at = null, started_at = excluded.started_at,
           attempt_started_at = null, ended_at = excluded.ended_at, error = null, because_of = null,
           result = excluded.result, waits = null
), known_try as (
    insert into everytick.attempt as a (handle, task, number, status, started_at, ended_at, node)
    select handle, task, 1, {attempt.success}, started_at, ended_at, node from moved where has_rows
    on conflict (handle, task, number) do update
       set status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at, error = null
     where a.status < {attempt.first_ended}
), ends as (
    select job_key, runs, null::timestamptz as failed_at, null::text as error, ended as last_end, ended as last_success,
           other_success
      from (select job_key, ended, lead(ended) over newest as other_success, row_number() over newest as nth,
                   count(*) over (partition by job_key) as runs
              from (select job_key, handle, row(scheduled_for, begun_at, ended_at, id)::everytick.ended as ended
                      from moved where is_end) e
            window newest as (partition by job_key order by handle desc)) e
     where nth = 1
), «tallied», woken as (
    insert into everytick.wake (job_key, wake_at, needs)
    select job_key, updated_at, «needs_of_job» from moved m where is_end and awaited order by handle
), inactive as (
    delete from everytick.active where ctid = any(array(
           select a.place
             from moved m
            cross join lateral (select a.ctid as place from everytick.active a
                                 where a.job_key = m.job_key and a.handle = m.handle offset 0) a
            where m.is_end))
), owed as (
    insert into everytick.report (needs, ended_at, handle) select needs, ended_at, handle from moved where owed
), bell as (
    select everytick.ring() where exists (select from moved where is_end and (awaited or holds_place))
)
select handle from moved
union all
select null from bell;

-- step_marks --
-- Returns the columns by which a repeated commit is told from a lost race.
select handle, fence, claim_token, step_number, status from everytick.occurrence where handle = any(:handles::bigint[]);

-- wait_for_mark --
-- Returns the same of one occurrence, once no other transaction is writing it.
select handle, fence, claim_token, step_number, status from everytick.occurrence where handle = :handle for no key update;

-- claims_of --
-- Returns these occurrences as their owner needs them, in the columns of a claim.
select «claim»
  from everytick.occurrence o
 where o.handle = any(:handles::bigint[])
 order by o.handle;

-- ---------------------------------------------------------------------------------------- the jobs

-- identity --
-- Returns what tells these tables from any others: those of another server, and a copy of these in another database.
select everytick.identity();

-- stand_within --
-- Returns where the connection leads, and where a job stands there, if it does; locks nothing.
select everytick.identity() as identity, current_database()::text as database, s.job_key, s.version, j.name,
       s.removed_at is not null as is_removed
  from (values (1)) one
  left join (everytick.job j join everytick.job_state s on s.job_key = j.job_key) on j.id = :job_id;

-- wake_job --
-- Makes a job worth a look now.
insert into everytick.wake (job_key, wake_at, needs)
select m.job_key, :now, «needs_of_job» from (values (:job_key::int)) m(job_key);

-- ask --
-- Keeps a request, as of now at the latest, and makes its job worth a look, all in one, and returns a row, where
-- everything is as expected: no other transaction asks by this key, the job is in service, its newest version is the one
-- that is known, no plan has come in between since the statement began, and the key is new. Else it writes nothing, and
-- the caller looks closer. A key that the caller named (`call` is the call's number) is noted as used.
with free as materialized (
    select pg_try_advisory_xact_lock(everytick.request_key(:job_id, :key)) as is_free
), held as materialized (
    select s.job_key, s.revision, everytick.everytick_now() as now
      from everytick.job j join everytick.job_state s on s.job_key = j.job_key
     where (select is_free from free) and j.id = :job_id and j.job_key = :job_key and s.version = :version and s.removed_at is null
       for no key update of s
), asked as (
    insert into everytick.request (job_key, key, cause, requested_at, payload, overlap, reason, requested_by, replay_of,
                                   scheduled_for, covers_after, covers_through, keeps, nth, id, due_at)
    select h.job_key, :key, :cause_code, least(:requested_at, h.now), :payload, :overlap, :reason, :requested_by,
           :replay_of, :scheduled_for, :covers_after, :covers_through, :keeps,
           :nth, :id,
           :due_at
      from held h
     where h.revision = (select s.revision from everytick.job_state s where s.job_key = :job_key)
       and not exists (select from everytick.occurrence o where o.id = :made_id::uuid)
       and not exists (select from everytick.request_key k where k.job_key = :job_key and k.cause = :cause_code and k.key = :key)
    on conflict (job_key, cause, key) do nothing
    returning job_key
), used as (
    insert into everytick.request_key (job_key, cause, key, nth, call, id)
    select asked.job_key, :cause_code, :key, :nth, :call::bigint, :id from asked where :call::bigint is not null
), woken as (
    insert into everytick.wake (job_key, wake_at, needs)
    select m.job_key, m.now, «needs_of_job» from held m where exists (select from asked)
)
select everytick.ring() from asked;

-- hold_key --
-- Holds the key of a request until the transaction ends: another request by this key comes before or after.
select pg_advisory_xact_lock(everytick.request_key(:job_id, :key));

-- wait_for_key --
-- Does the same, and fails after `patience`.
with before as materialized (
    select current_setting('lock_timeout') as lock_timeout
)
select set_config('lock_timeout', :patience, true), pg_advisory_xact_lock(everytick.request_key(:job_id, :key)),
       set_config('lock_timeout', before.lock_timeout, true)
  from before;

-- ask_within --
-- Keeps a request, as of now at the latest, and makes its job worth a look, in a transaction that holds its key. Times
-- come in words.
with moment as materialized (
    select everytick.everytick_now() as now
), asked as (
    insert into everytick.request (job_key, key, cause, requested_at, payload, overlap, reason, requested_by, replay_of,
                                   scheduled_for, covers_after, covers_through, keeps, nth, id, due_at)
    select :job_key, :key, :cause_code, least(:requested_at::text::timestamptz, moment.now), :payload, :overlap,
           :reason, :requested_by, :replay_of, :scheduled_for::text::timestamptz,
           :covers_after::text::timestamptz, :covers_through::text::timestamptz, :keeps, :nth, :id::text::uuid, :due_at::text::timestamptz
      from moment
    on conflict (job_key, cause, key) do nothing
    returning job_key
), woken as (
    insert into everytick.wake (job_key, wake_at, needs) select m.job_key, moment.now, «needs_of_job» from asked m, moment
)
select everytick.ring() from asked;

-- ------------------------------------------------------------------------------------- the history

-- past_versions --
-- Returns for each backfill, by its place in the list, the versions of its job before `befores`, from that in force right
-- after a moment on, and since when each was; at most `limit` of them.
select a.place::int, d.version, d.in_force_after
  from unnest(:job_keys::int[], :afters::timestamptz[], :befores::int[]) with ordinality a(job_key, after_at, before, place)
 cross join lateral (
       select d.version, d.in_force_after from everytick.job_version d
        where d.job_key = a.job_key and d.version < a.before
          and d.version >= coalesce((select max(p.version) from everytick.job_version p
                                      where p.job_key = a.job_key and p.version < a.before
                                        and (p.in_force_after is null or p.in_force_after <= a.after_at)), 1)
        order by d.version limit :limit) d
 order by a.place, d.version;

-- keep_runs --
-- Takes the results of these tasks over from one occurrence to another, which will not run them; returns how many.
with made as (
    update everytick.occurrence set step_number = 1, has_rows = true
     where id = :id and fence = 0 and step_number = 0
    returning handle
), kept as (
    insert into everytick.task_run (handle, task, status, attempts, retries, out_of_time, started_at, ended_at,
                                    result)
    select made.handle, r.task, r.status, 0, 0, false, r.started_at, r.ended_at, r.result
      from made, everytick.occurrence o join everytick.task_run r on r.handle = o.handle
     where o.id = :original_id and r.status = {run.success} and r.task = any(:tasks::text[])
    returning task
)
select count(*)::int from kept having exists (select from made);

-- aged --
-- Returns ended occurrences that their job's retention no longer keeps: never a live one, never the newest `keep_last` of
-- a job, never one whose report is due.
select o.handle
  from everytick.job_state s
 cross join lateral (select h.scheduled_for, h.id from everytick.occurrence h
                      where h.job_key = s.job_key and h.status >= {first_ended}
                      order by h.scheduled_for desc, h.id desc offset s.keep_last limit 1) b
 cross join lateral (select h.handle from everytick.occurrence h
                      where h.job_key = s.job_key and h.status >= {first_ended}
                        and not exists (select from everytick.report r
                                         where r.needs = h.needs and r.ended_at = h.ended_at
                                           and r.handle = h.handle)
                        and (h.scheduled_for, h.id) <= (b.scheduled_for, b.id)
                        and everytick.everytick_now() - h.ended_at >
                            case when h.status in ({completed}, {completed_with_errors}, {skipped}) then s.keep_success else s.keep_failure end * interval '1 microsecond'
                      order by h.scheduled_for, h.id limit :limit) o
 limit :limit;

-- forget_occurrences --
-- Forgets these occurrences, with their runs and attempts, and returns how many there were.
with attempts as (
    delete from everytick.attempt where handle = any(:handles::bigint[])
), runs as (
    delete from everytick.task_run where handle = any(:handles::bigint[])
), keys as (
    delete from everytick.request_key
     where id = any(array(select o.id from everytick.occurrence o where o.handle = any(:handles::bigint[])))
), gone as (
    delete from everytick.occurrence where handle = any(:handles::bigint[]) and status >= {first_ended} returning handle
)
select count(*)::int from gone;
