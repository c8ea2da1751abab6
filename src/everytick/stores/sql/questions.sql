-- The statements that answer questions of pages and pictures, for both stores; see verbs/questions.py. Each has a limit
-- and finds its rows by an index.

-- window_runs --
-- Returns the newest occurrences with their instant in a span of time, newest first.
select o.id as occurrence_id, (select s.id from {schema}.job_state s where s.job_key = o.job_key) as job_id,
       o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at, o.reason, o.error, o.node
  from {schema}.occurrence o {using occurrence_by_time}
 where o.scheduled_for > :begin_after and o.scheduled_for <= :end_through
 order by o.scheduled_for desc, o.id desc limit :limit;

-- counted --
-- Returns how many of the newest occurrences in a span of time have which status and cause.
select newest.status, newest.cause, count(*) as count
  from (select r.status, r.cause from {schema}.occurrence r {using occurrence_by_time}
         where r.scheduled_for > :begin_after and r.scheduled_for <= :end_through
         order by r.scheduled_for desc, r.id desc limit :limit) newest
 group by newest.status, newest.cause;

-- counted_of --
-- Returns the same of one job.
select newest.status, newest.cause, count(*) as count
  from (select r.status, r.cause from {schema}.occurrence r {using occurrence_of_job}
         where (r.job_key, r.scheduled_for) > ((select k.job_key from {schema}.job k where k.id = :job_id), :begin_after)
           and (r.job_key, r.scheduled_for) <= ((select k.job_key from {schema}.job k where k.id = :job_id), :end_through)
         order by r.job_key desc, r.scheduled_for desc, r.id desc limit :limit) newest
 group by newest.status, newest.cause;

-- covered_runs --
-- Returns the oldest occurrences of a job in a span of time, oldest first, and the instants that they stand for.
select o.id as occurrence_id, o.covers_after, o.covers_through, o.status, o.cause, o.scheduled_for
  from {schema}.occurrence o {using occurrence_of_job}
 where (o.job_key, o.scheduled_for) > ((select k.job_key from {schema}.job k where k.id = :job_id), :begin_after)
   and (o.job_key, o.scheduled_for) <= ((select k.job_key from {schema}.job k where k.id = :job_id), :end_through)
 order by o.job_key, o.scheduled_for, o.id limit :limit;

-- statuses_of --
-- Returns the statuses of these occurrences.
select o.id as occurrence_id, o.status from {schema}.occurrence o where o.id {in_ids occurrence_ids};

-- errors_of --
-- Returns the errors of these occurrences.
select o.id as occurrence_id, o.error from {schema}.occurrence o where o.id {in_ids occurrence_ids};
