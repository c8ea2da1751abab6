-- The statements of stores/sql/verbs/questions.py that PostgreSQL says in its own way. Job and instant are compared as one
-- row, and the job stands first in the order: so no plan, on tables however empty, takes the index by time alone.

-- window_runs_of --
-- Returns the newest occurrences of these jobs with their instant in a span of time, newest first.
select o.id as occurrence_id, j.id as job_id, o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at,
       o.reason, o.error, o.node
  from {schema}.job j
 cross join lateral (select r.* from {schema}.occurrence r
                      where (r.job_key, r.scheduled_for) > (j.job_key, :begin_after)
                        and (r.job_key, r.scheduled_for) <= (j.job_key, :end_through)
                      order by r.job_key desc, r.scheduled_for desc, r.id desc limit :limit) o
 where j.id {in job_ids}
 order by o.scheduled_for desc, o.id desc limit :limit;

-- held_earlier --
-- Returns occurrences with an earlier instant that a node holds now, newest first.
select o.id as occurrence_id, (select s.id from {schema}.job_state s where s.job_key = o.job_key) as job_id,
       o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at, o.reason, o.error, o.node
  from (select h.* from {schema}.occurrence h
         where h.handle = any(array(select a.handle from {schema}.active a))
           and h.status < {first_ended} and h.owner is not null offset 0) o
 where o.scheduled_for <= :begin_after
 order by o.scheduled_for desc, o.id desc limit :limit;

-- held_earlier_of --
-- Returns the same of these jobs.
select o.id as occurrence_id, (select s.id from {schema}.job_state s where s.job_key = o.job_key) as job_id,
       o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at, o.reason, o.error, o.node
  from (select h.* from {schema}.occurrence h
         where h.handle = any(array(select a.handle from {schema}.active a where a.job_key = any(array(
                              select j.job_key from {schema}.job j where j.id {in job_ids}))))
           and h.status < {first_ended} and h.owner is not null offset 0) o
 where o.scheduled_for <= :begin_after
 order by o.scheduled_for desc, o.id desc limit :limit;

-- last_runs --
-- Returns the last occurrences of each of these jobs, newest first.
select o.id as occurrence_id, j.id as job_id, o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at,
       o.reason, o.error, o.node
  from {schema}.job j
 cross join lateral (select r.* from {schema}.occurrence r
                      where (r.job_key, r.scheduled_for) >= (j.job_key, '-infinity')
                        and (r.job_key, r.scheduled_for) <= (j.job_key, 'infinity')
                      order by r.job_key desc, r.scheduled_for desc, r.id desc limit :count) o
 where j.id {in job_ids};

-- waiting_by_needs --
-- Returns how many pending occurrences are ready of each text of needs and priority, and since when the first is. Those
-- whose time had not come when they were written stand in a lane of their own. A lane is read on into lower priorities,
-- which are left out again: only so does every plan take its rows in the order of the index.
with recursive lanes as (
    select n.text as needs,
           (select c.priority from {schema}.claimable c
             where not c.is_early and c.needs = n.text order by c.priority desc limit 1) as priority
      from {schema}.needs n
    union all
    select l.needs,
           (select c.priority from {schema}.claimable c
             where not c.is_early and c.needs = l.needs and c.priority < l.priority order by c.priority desc limit 1)
      from lanes l where l.priority is not null
)
select l.needs, count(*)::int as count, min(w.since) as since_at
  from lanes l
 cross join lateral (
       select c.priority, coalesce(r.ready_at, r.scheduled_for) as since
         from {schema}.claimable c
        cross join lateral (select r.ready_at, r.scheduled_for from {schema}.occurrence r
                             where r.handle = c.handle and r.status = {pending} offset 0) r
        where not c.is_early and c.needs = l.needs and c.priority <= l.priority
          and coalesce(r.ready_at, r.scheduled_for) <= :now
        order by c.priority desc, c.line_at, c.id limit :limit) w
 where w.priority = l.priority
 group by l.needs, l.priority
union all
select n.text, count(*)::int, min(w.ready_at)
  from {schema}.needs n
 cross join lateral (
       select c.ready_at
         from {schema}.claimable c
        cross join lateral (select from {schema}.occurrence r
                             where r.handle = c.handle and r.status = {pending} offset 0) r
        where c.is_early and c.needs = n.text and c.ready_at <= :now
        order by c.ready_at limit :limit) w
 group by n.text;

-- latest_lengths --
-- Returns how long the latest runs of each of these jobs that completed took, in microseconds: a list for each job.
select j.id as job_id,
       array(select (date_part('epoch', w.ended_at - w.started_at) * 1000000)::bigint
               from (select r.status, r.started_at, r.ended_at from {schema}.occurrence r
                      where (r.job_key, r.scheduled_for) >= (j.job_key, '-infinity')
                        and (r.job_key, r.scheduled_for) <= (j.job_key, 'infinity')
                      order by r.job_key desc, r.scheduled_for desc, r.id desc limit :most) w
              where w.status = {completed} and w.started_at is not null limit :latest) as took
  from {schema}.job j where j.id {in job_ids};

-- steps_of_jobs --
-- Returns how many of the newest occurrences of these jobs each step of time has, by job and status.
select n.job_id, date_bin(:step * interval '1 microsecond', n.scheduled_for, 'epoch'::timestamptz) as step_at,
       n.status, count(*) as count
  from (select j.id as job_id, o.scheduled_for, o.status
          from {schema}.job j
         cross join lateral (select r.scheduled_for, r.id, r.status from {schema}.occurrence r
                              where (r.job_key, r.scheduled_for) >= (j.job_key, :first_at)
                                and (r.job_key, r.scheduled_for) < (j.job_key, :end_at)
                              order by r.job_key desc, r.scheduled_for desc, r.id desc limit :limit) o
         where j.id {in job_ids}
         order by o.scheduled_for desc, o.id desc limit :limit) n
 group by 1, 2, 3;
