-- What several statements of queries.sql say alike. Each has a name and says what it stands for.

-- standing --
-- Where a job `v` stands, in the columns that a snapshot is made from, up to whether anybody asks for it.
v.job_key, v.id, v.revision, v.woken, v.watermark, v.wake_at, v.oldest_version, v.version, v.retire_at,
       v.reschedule_made_at, v.reschedule_for, v.reschedule_by, v.last_end_scheduled_for, v.last_end_started_at, v.last_end_at,
       v.last_end_id, v.last_success_scheduled_for, v.last_success_started_at, v.last_success_at, v.last_success_id,
       v.other_success_scheduled_for, v.other_success_started_at, v.other_success_at, v.other_success_id, v.narrowed_at,
       exists (select from everytick.occurrence o where o.job_key = v.job_key and o.status < {first_ended} offset 0) as is_active,
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

-- noted_ends --
-- The last end and the last two successes that a plan `p` found, for its job `s`.
last_end_scheduled_for = case when p.last_end_at is null then s.last_end_scheduled_for else p.last_end_scheduled_for end,
       last_end_started_at = case when p.last_end_at is null then s.last_end_started_at else p.last_end_started_at end,
       last_end_at = coalesce(p.last_end_at, s.last_end_at),
       last_end_id = coalesce(p.last_end_id, s.last_end_id),
       last_success_scheduled_for =
           case when p.last_success_at is null then s.last_success_scheduled_for else p.last_success_scheduled_for end,
       last_success_started_at = case when p.last_success_at is null then s.last_success_started_at else p.last_success_started_at end,
       last_success_at = coalesce(p.last_success_at, s.last_success_at),
       last_success_id = coalesce(p.last_success_id, s.last_success_id),
       other_success_scheduled_for = case when p.last_success_at is null then s.other_success_scheduled_for
                                  else coalesce(p.other_success_scheduled_for, s.last_success_scheduled_for) end,
       other_success_started_at = case when p.last_success_at is null then s.other_success_started_at
                               when p.other_success_at is null then s.last_success_started_at else p.other_success_started_at end,
       other_success_at = case when p.last_success_at is null then s.other_success_at else coalesce(p.other_success_at, s.last_success_at) end,
       other_success_id = case when p.last_success_at is null then s.other_success_id else coalesce(p.other_success_id, s.last_success_id) end,
       run_count = s.run_count + coalesce(p.runs, 0), last_error = coalesce(p.error, s.last_error),
       last_failure_at = greatest(s.last_failure_at, p.failed_at)

-- disabled --
-- Whether the job of an occurrence `o` is disabled: then nobody goes on with what is nobody's.
exists (select from everytick.job_version d
         where d.job_key = o.job_key and d.version = (select j.version from everytick.job_state j where j.job_key = o.job_key)
           and not d.enabled offset 0)

-- claim --
-- The columns of a claim of an occurrence `o`, which are read by their place.
o.handle, o.id, o.job_key, o.version, o.scheduled_for, o.status, o.cause, o.late, o.covers_after, o.covers_through,
       o.line_at, o.ready_at, o.owner, o.fence, o.started_at, o.ended_at, o.error, o.overrides, o.payload, o.replay_of,
       o.reason, o.created_at, o.updated_at, o.step_number, o.claimed_at, o.lost, o.cancel_reason, o.priority,
       o.claim_token, o.node, o.found

-- needs_of_job --
-- The needs of the job of a row `m`, as they stand when the statement begins.
(select s.needs from everytick.job_state s where s.job_key = m.job_key)
