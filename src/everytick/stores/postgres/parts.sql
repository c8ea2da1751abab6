-- What several statements of queries.sql say alike. Each has a name and says what it stands for.

-- standing --
-- Where a job `v` stands, in the columns that a snapshot is made from, up to whether it has requests.
v.job_key, v.id, v.revision, v.woken, v.watermark, v.wake_at, v.oldest_version, v.version, v.retire_at,
       v.reschedule_made_at, v.reschedule_for, v.reschedule_by, v.last_end_scheduled_for, v.last_end_started_at, v.last_end_at,
       v.last_end_id, v.last_success_scheduled_for, v.last_success_started_at, v.last_success_at, v.last_success_id,
       v.other_success_scheduled_for, v.other_success_started_at, v.other_success_at, v.other_success_id, v.narrowed_at,
       v.stopped_at, v.is_needed,
       exists (select from everytick.active o where o.job_key = v.job_key offset 0) as is_active,
       exists (select from everytick.pause f where f.job_key = v.job_key offset 0) as has_pauses,
       exists (select from everytick.adjustment f where f.job_key = v.job_key offset 0) as has_adjustments,

-- moved_on --
-- What a plan `p` says of where its job `s` stands, besides the watermark: the versions that are still to be decided, and
-- whether the next run was set for the last time.
oldest_version = case when s.oldest_version = s.version then s.version else
           coalesce((select max(d.version) from everytick.job_version d
                      where d.job_key = s.job_key and d.version >= s.oldest_version
                        and (d.in_force_after is null or d.in_force_after <= p.watermark)), s.oldest_version) end,
       reschedule_made_at = case when p.rescheduled then null else s.reschedule_made_at end,
       reschedule_for = case when p.rescheduled then null else s.reschedule_for end,
       reschedule_by = case when p.rescheduled then null else s.reschedule_by end,
       parked_reason = null

-- ends_of_told --
-- What the ends and failures of `told` mean for each job; `place` is their order.
ends as (
    select e.job_key, count(*) filter (where e.is_end and e.started_at is not null) as runs,
           max(e.failed_at) as failed_at, (array_agg(e.error) filter (where e.error is not null))[1] as error,
           (array_agg(e.ended) filter (where e.is_end))[1] as last_end,
           (array_agg(e.ended) filter (where e.is_success))[1] as last_success,
           (array_agg(e.ended) filter (where e.is_success))[2] as other_success
      from (select n.*, row(n.scheduled_for, n.started_at, n.ended_at, n.id)::everytick.ended as ended
              from told n order by n.job_key, n.place desc) e
     group by e.job_key)

-- tallied --
-- Notes `ends`, one row for each job. It finds each tally by its key, and locks by rising key.
tallied as (
    insert into everytick.job_tally as t (job_key, run_count, last_failure_at, last_error, last_end, last_success, other_success)
    select job_key, runs, failed_at, error, last_end, last_success, other_success from ends order by job_key
    on conflict (job_key) do update
       set run_count = t.run_count + excluded.run_count,
           last_failure_at = greatest(t.last_failure_at, excluded.last_failure_at),
           last_error = coalesce(excluded.last_error, t.last_error), last_end = coalesce(excluded.last_end, t.last_end),
           last_success = coalesce(excluded.last_success, t.last_success),
           other_success = case when excluded.last_success is distinct from null
                                then coalesce(excluded.other_success, t.last_success) else t.other_success end)

-- disabled --
-- Whether the job of an occurrence `o` is disabled: then no node may claim the occurrence.
exists (select from everytick.job_version d
         where d.job_key = o.job_key and d.version = (select j.version from everytick.job_state j where j.job_key = o.job_key)
           and not d.enabled offset 0)

-- needs_of_job --
-- The needs of the job of a row `m`, as they stand when the statement begins.
(select s.needs from everytick.job_state s where s.job_key = m.job_key)
