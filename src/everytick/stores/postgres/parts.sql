-- What several statements of queries.sql say alike. Each has a name and says what it stands for.

-- standing --
-- Where a job `v` stands, in the columns that a snapshot is made from, up to whether anybody asks for it.
v.job, v.id, v.revision, v.woken, v.watermark, v.wake_at, v.first_version, v.version, v.retire_at,
       v.reschedule_made_at, v.reschedule_to, v.reschedule_by, v.end_scheduled_for, v.end_started_at, v.end_at,
       v.end_id, v.success_scheduled_for, v.success_started_at, v.success_at, v.success_id,
       v.other_scheduled_for, v.other_started_at, v.other_at, v.other_id, v.narrowed_at,
       exists (select from everytick.occurrence o where o.job = v.job and o.status < {first_ended} offset 0) as is_active,
       exists (select from everytick.pause f where f.job = v.job offset 0) as has_pauses,
       exists (select from everytick.adjustment f where f.job = v.job offset 0) as has_adjustments,

-- moved_on --
-- What a plan `p` says of where its job `s` stands, besides the watermark: the versions that are still to be decided, and
-- whether the next run was set for the last time.
first_version = case when s.first_version = s.version then s.version else
           coalesce((select max(d.version) from everytick.definition d
                      where d.job = s.job and d.version >= s.first_version
                        and (d.in_force_after is null or d.in_force_after <= p.watermark)), s.first_version) end,
       reschedule_made_at = case when p.rescheduled then null else s.reschedule_made_at end,
       reschedule_to = case when p.rescheduled then null else s.reschedule_to end,
       reschedule_by = case when p.rescheduled then null else s.reschedule_by end,
       parked_reason = null

-- noted_ends --
-- The last end and the last two successes that a plan `p` found, for its job `s`.
end_scheduled_for = case when p.end_at is null then s.end_scheduled_for else p.end_scheduled_for end,
       end_started_at = case when p.end_at is null then s.end_started_at else p.end_started_at end,
       end_at = coalesce(p.end_at, s.end_at),
       end_id = coalesce(p.end_id, s.end_id),
       success_scheduled_for =
           case when p.success_at is null then s.success_scheduled_for else p.success_scheduled_for end,
       success_started_at = case when p.success_at is null then s.success_started_at else p.success_started_at end,
       success_at = coalesce(p.success_at, s.success_at),
       success_id = coalesce(p.success_id, s.success_id),
       other_scheduled_for = case when p.success_at is null then s.other_scheduled_for
                                  else coalesce(p.other_scheduled_for, s.success_scheduled_for) end,
       other_started_at = case when p.success_at is null then s.other_started_at
                               when p.other_at is null then s.success_started_at else p.other_started_at end,
       other_at = case when p.success_at is null then s.other_at else coalesce(p.other_at, s.success_at) end,
       other_id = case when p.success_at is null then s.other_id else coalesce(p.other_id, s.success_id) end,
       run_count = s.run_count + coalesce(p.runs, 0), last_error = coalesce(p.error, s.last_error),
       last_failure_at = greatest(s.last_failure_at, p.failed_at)

-- disabled --
-- Whether the job of an occurrence `o` is disabled: then nobody goes on with what is nobody's.
exists (select from everytick.definition d
         where d.job = o.job and d.version = (select j.version from everytick.job_state j where j.job = o.job)
           and not d.enabled offset 0)

-- claim --
-- The columns of a claim of an occurrence `o`, which are read by their place.
o.seq, o.id, o.job, o.version, o.scheduled_for, o.status, o.cause, o.late, o.covers_after, o.covers_through,
       o.line_at, o.ready_at, o.owner, o.fence, o.started_at, o.ended_at, o.error, o.overrides, o.payload, o.replay_of,
       o.reason, o.created_at, o.updated_at, o.number, o.claimed_at, o.lost, o.cancel, o.priority,
       o.claim_token, o.node, o.found

-- needs_of_job --
-- The needs of the job of a row `m`, as they stand when the statement begins.
(select s.needs from everytick.job_state s where s.job = m.job)
