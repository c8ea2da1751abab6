-- The statements of stores/sql/verbs/questions.py that SQLite says in its own way. It has no lateral join: a JSON array
-- of handles for each job does the same.

-- window_runs_of --
-- Returns the newest occurrences of these jobs with their instant in a span of time, newest first.
select o.id as occurrence_id, chosen.job_id, o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at,
       o.reason, o.error, o.node
  from (select r.handle, j.id as job_id
          from job j cross join json_each((
               select json_group_array(newest.handle)
                 from (select w.handle from occurrence w indexed by occurrence_of_job
                        where w.job_key = j.job_key and w.scheduled_for > :begin_after
                          and w.scheduled_for <= :end_through
                        order by w.scheduled_for desc, w.id desc limit :limit) newest)) h
          cross join occurrence r on r.handle = h.value
         where j.id {in job_ids}
         order by r.scheduled_for desc, r.id desc limit :limit) chosen
  cross join occurrence o on o.handle = chosen.handle
 order by o.scheduled_for desc, o.id desc;

-- held_earlier --
-- Returns occurrences with an earlier instant that a node holds now, newest first.
select o.id as occurrence_id, (select s.id from job_state s where s.job_key = o.job_key) as job_id,
       o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at, o.reason, o.error, o.node
  from occurrence o indexed by occurrence_held
 where o.owner is not null and o.scheduled_for <= :begin_after
 order by o.scheduled_for desc, o.id desc limit :limit;

-- held_earlier_of --
-- Returns the same of these jobs.
select o.id as occurrence_id, j.id as job_id, o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at,
       o.reason, o.error, o.node
  from occurrence o indexed by occurrence_held cross join job j on j.job_key = o.job_key
 where o.owner is not null and o.scheduled_for <= :begin_after and j.id {in job_ids}
 order by o.scheduled_for desc, o.id desc limit :limit;

-- last_runs --
-- Returns the last occurrences of each of these jobs, newest first.
select o.id as occurrence_id, j.id as job_id, o.scheduled_for, o.status, o.cause, o.late, o.started_at, o.ended_at,
       o.reason, o.error, o.node
  from job j cross join json_each((
       select json_group_array(newest.handle)
         from (select w.handle from occurrence w indexed by occurrence_of_job
                where w.job_key = j.job_key order by w.scheduled_for desc, w.id desc limit :count) newest)) h
  cross join occurrence o on o.handle = h.value
 where j.id {in job_ids};

-- waiting_by_needs --
-- Returns how many pending occurrences are ready of each text of needs and priority, and since when the first is. Those
-- whose time had not come when they were written stand in a lane of their own.
with recursive lanes(needs, priority) as (
    select n.text,
           (select o.priority from occurrence o indexed by occurrence_ready
             where o.needs = n.text and o.is_early = 0 and (o.status = {pending} or (o.status = {awaiting_retry} and o.owner is null))
             order by o.priority desc limit 1)
      from needs n
    union all
    select l.needs,
           (select o.priority from occurrence o indexed by occurrence_ready
             where o.needs = l.needs and o.priority < l.priority
               and o.is_early = 0 and (o.status = {pending} or (o.status = {awaiting_retry} and o.owner is null))
             order by o.priority desc limit 1)
      from lanes l where l.priority is not null
)
select l.needs, count(*) as count, min(w.value) as since_at
  from lanes l cross join json_each((
       select json_group_array(waiting.since)
         from (select coalesce(o.ready_at, o.scheduled_for) as since from occurrence o indexed by occurrence_ready
                where o.needs = l.needs and o.priority = l.priority
                  and o.is_early = 0 and (o.status = {pending} or (o.status = {awaiting_retry} and o.owner is null))
                  and o.status = {pending} and coalesce(o.ready_at, o.scheduled_for) <= :now
                order by o.line_at, o.id limit :limit) waiting)) w
 where l.priority is not null
 group by l.needs, l.priority
union all
select n.text, count(*), min(w.value)
  from needs n cross join json_each((
       select json_group_array(waiting.ready_at)
         from (select o.ready_at from occurrence o indexed by occurrence_early
                where o.needs = n.text and o.is_early = 1 and o.ready_at <= :now and o.status = {pending}
                order by o.ready_at limit :limit) waiting)) w
 group by n.text;

-- latest_lengths --
-- Returns how long the latest runs of each of these jobs that completed took, in microseconds: a list for each job.
select j.id as job_id,
       (select json_group_array(newest.took)
          from (select last.ended_at - last.started_at as took
                  from (select r.status, r.started_at, r.ended_at from occurrence r indexed by occurrence_of_job
                         where r.job_key = j.job_key order by r.scheduled_for desc, r.id desc limit :most) last
                 where last.status = {completed} and last.started_at is not null limit :latest) newest) as took
  from job j where j.id {in job_ids};

-- steps_of_jobs --
-- Returns how many of the newest occurrences of these jobs each step of time has, by job and status.
select chosen.job_id, o.scheduled_for - (o.scheduled_for % :step + :step) % :step as step_at, o.status,
       count(*) as count
  from (select r.handle, j.id as job_id
          from job j cross join json_each((
               select json_group_array(newest.handle)
                 from (select w.handle from occurrence w indexed by occurrence_of_job
                        where w.job_key = j.job_key and w.scheduled_for >= :first_at and w.scheduled_for < :end_at
                        order by w.scheduled_for desc, w.id desc limit :limit) newest)) h
          cross join occurrence r on r.handle = h.value
         where j.id {in job_ids}
         order by r.scheduled_for desc, r.id desc limit :limit) chosen
  cross join occurrence o on o.handle = chosen.handle
 group by 1, 2, 3;
