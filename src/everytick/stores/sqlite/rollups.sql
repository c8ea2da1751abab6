-- The statements of stores/sql/verbs/rollups.py that SQLite says in its own way. A step begins at its first microsecond:
-- the remainder of a division is taken off, twice, since that of a moment before 1970 is negative.

-- note_gaps --
-- A handle that no row has will never have one: one transaction at a time writes.
select value from json_each({list handles}) where :now is null limit 0;

-- unseen --
-- Returns the last of the next occurrences in the order of handles that may be passed, how many they are, which of them
-- have not ended, and whether others than completed ones have. What was made after young_at and has not ended is waited
-- for.
with edge as materialized (
  select coalesce((select e.handle from occurrence e where e.handle > :last_handle
                    order by e.handle limit 1 offset :limit - 1),
                  (select e.handle from occurrence e order by e.handle desc limit 1), 0) as handle),
reach as materialized (
  select coalesce((select y.handle - 1 from occurrence y
                    where y.handle > :last_handle and y.handle <= edge.handle
                      and y.status < {first_ended} and y.created_at > :young_at
                    order by y.handle limit 1), edge.handle) as top
    from edge)
select (select top from reach) as top, count(*) as count,
       json_group_array(o.handle) filter (where o.status < {first_ended}) as waiting, '[]' as gaps,
       coalesce(sum(o.status > {completed}), 0) > 0 as has_others
  from occurrence o where o.handle > :last_handle and o.handle <= (select top from reach);

-- sweep --
-- Looks at some of those that were passed before they ended, in their order: returns how many, the last of them, which
-- are over, and which are not there.
with looked as materialized (
  select u.job_key, u.handle, (select o.status from occurrence o where o.handle = u.handle) as status
    from unfolded u where (u.job_key, u.handle) > (:swept_key, :swept_handle)
   order by u.job_key, u.handle limit :limit)
select count(*) as count, (select job_key from looked order by job_key desc, handle desc limit 1) as last_key,
       (select handle from looked order by job_key desc, handle desc limit 1) as last_handle,
       json_group_array(handle) filter (where status >= {first_ended}) as over,
       json_group_array(handle) filter (where status is null and :given_up_at is not null) as gone
  from looked;

-- fold_between --
-- Adds those between two handles that have ended, without some, to the steps of five minutes and to the days. The step,
-- counted from a million days before 1970, and the status in its last five bits are one number, by which rows are sorted
-- sooner than by two.
insert into bucket (is_day, step_at, band, status, count, kept)
with cell as materialized (
    select (o.scheduled_for + 86400000000000000) / 300000000 << 5 | o.status as step_and_status, v.band, count(*) as count
      from occurrence o cross join version_band v on v.job_key = o.job_key and v.version = o.version
     where o.handle > :first_handle and o.handle <= :last_handle and o.status >= {first_ended}
       and (:is_whole or not o.handle {among left_out})
     group by 1, 2
), step as materialized (
    select (step_and_status >> 5) * 300000000 - 86400000000000000 as step_at, band, step_and_status & 31 as status, count
      from cell
)
select 0, step.step_at, step.band, step.status, step.count, step.count from step where true
union all
select 1, step.step_at - (step.step_at % 86400000000 + 86400000000) % 86400000000 as day_at, step.band, step.status,
       sum(step.count), sum(step.count)
  from step group by day_at, step.band, step.status
on conflict (is_day, step_at, band, status) do update
   set count = bucket.count + excluded.count, kept = bucket.kept + excluded.kept;

-- make_ended_day --
-- Makes the table in this connection's memory that holds the days of one batch until they are added.
create temporary table if not exists ended_day (day_of_job integer primary key, count integer, took integer);

-- sum_ended_days --
-- Sums those between two handles that have ended, without some, by job, day and status. The three are one number: the key
-- of the job, 27 bits for the day, counted from a million days before 1970, and five for the status. With the limit, which
-- is none, SQLite computes the columns before it sorts. Operators of bits bind alike here, from the left.
insert into temp.ended_day (day_of_job, count, took)
select e.day_of_job, count(*), sum(e.took)
  from (select (o.job_key << 32) | ((o.scheduled_for + 86400000000000000) / 86400000000 << 5) | o.status as day_of_job,
               iif(o.status = {completed}, coalesce(o.ended_at - o.started_at, 0), 0) as took
          from occurrence o
         where o.handle > :first_handle and o.handle <= :last_handle and o.status >= {first_ended}
           and (:is_whole or not o.handle {among left_out})
         limit -1) e
 group by e.day_of_job;

-- add_ended_days --
-- Adds these days to those of their jobs.
insert into job_day (job_key, day_at, status, count, kept, took)
select e.day_of_job >> 32, (e.day_of_job >> 5 & 134217727) * 86400000000 - 86400000000000000, e.day_of_job & 31,
       e.count, e.count, e.took
  from temp.ended_day e where true
on conflict (job_key, day_at, status) do update
   set count = job_day.count + excluded.count, kept = job_day.kept + excluded.kept, took = job_day.took + excluded.took;

-- touch_lengths_of_days --
-- Runs of the jobs of these days have completed: their lengths have to be measured again.
insert into job_length (job_key)
select d.job_key
  from (select distinct e.day_of_job >> 32 as job_key from temp.ended_day e where e.day_of_job & 31 = {completed}) d
 where not exists (select 1 from job_length k where k.job_key = d.job_key and k.is_stale)
on conflict (job_key) do update set is_stale = excluded.is_stale where not job_length.is_stale;

-- forget_ended_days --
-- They are added.
delete from temp.ended_day;

-- fold_these --
-- Adds these, which have ended, to the steps of five minutes and to the days.
insert into bucket (is_day, step_at, band, status, count, kept)
with cell as materialized (
    select o.scheduled_for - (o.scheduled_for % 300000000 + 300000000) % 300000000 as step_at, v.band, o.status,
           count(*) as count
      from occurrence o cross join version_band v on v.job_key = o.job_key and v.version = o.version
     where o.handle {in handles} and o.status >= {first_ended}
     group by 1, 2, 3
)
select 0, cell.step_at, cell.band, cell.status, cell.count * :added, cell.count * :left from cell where true
union all
select 1, cell.step_at - (cell.step_at % 86400000000 + 86400000000) % 86400000000 as day_at, cell.band, cell.status,
       sum(cell.count) * :added, sum(cell.count) * :left
  from cell group by day_at, cell.band, cell.status
on conflict (is_day, step_at, band, status) do update
   set count = bucket.count + excluded.count, kept = bucket.kept + excluded.kept;

-- fold_days_of_these --
-- Adds the same to the days of their jobs.
insert into job_day (job_key, day_at, status, count, kept, took)
select o.job_key, o.scheduled_for - (o.scheduled_for % 86400000000 + 86400000000) % 86400000000, o.status,
       count(*) * :added, count(*) * :left,
       coalesce(sum(iif(o.status = {completed}, o.ended_at - o.started_at, 0)), 0) * :added
  from occurrence o where o.handle {in handles} and o.status >= {first_ended}
 group by 1, 2, 3
on conflict (job_key, day_at, status) do update
   set count = job_day.count + excluded.count, kept = job_day.kept + excluded.kept, took = job_day.took + excluded.took;

-- bucket_steps --
-- Returns how many each step of time has, as far as the rollups have come; by band, or all together.
select b.step_at - (b.step_at % :step + :step) % :step as step_at, iif(:is_banded, b.band, '') as band, b.status,
       sum(b.count) as count
  from bucket b where b.is_day = :is_day and b.step_at >= :first_at and b.step_at < :end_at
 group by 1, 2, 3;

-- tail_steps --
-- Returns the same of what the rollups do not count: what has not ended, and what has ended since. seen says how many
-- were looked at behind the last handle.
with newest as materialized (
  select o.job_key, o.version, o.scheduled_for, o.status from occurrence o
   where o.handle > (select last_handle from rollup where only_row = 1) order by o.handle desc limit :limit),
passed as materialized (
  select o.job_key, o.version, o.scheduled_for, o.status
    from (select u.handle from unfolded u indexed by unfolded_by_time
           where u.scheduled_for >= :first_at and u.scheduled_for < :end_at
           order by u.scheduled_for desc limit :limit) p
    cross join occurrence o on o.handle = p.handle)
select t.scheduled_for - (t.scheduled_for % :step + :step) % :step as step_at, iif(:is_banded, v.band, '') as band,
       t.status, count(*) as count, (select count(*) from newest) + (select count(*) from passed) as seen
  from (select * from newest union all select * from passed) t
  cross join version_band v on v.job_key = t.job_key and v.version = t.version
 where t.scheduled_for >= :first_at and t.scheduled_for < :end_at
 group by 1, 2, 3;

-- tail_days --
-- Returns how the occurrences of a job ended that the rollups do not count.
select t.scheduled_for - (t.scheduled_for % 86400000000 + 86400000000) % 86400000000 as day_at, t.status,
       count(*) as count, coalesce(sum(iif(t.status = {completed}, t.ended_at - t.started_at, 0)), 0) as took
  from (select * from (select o.job_key, o.scheduled_for, o.status, o.started_at, o.ended_at from occurrence o
                        where o.handle > (select last_handle from rollup where only_row = 1)
                        order by o.handle desc limit :limit) newest
        union all
        select o.job_key, o.scheduled_for, o.status, o.started_at, o.ended_at
          from unfolded u cross join occurrence o on o.handle = u.handle
         where u.job_key = (select k.job_key from job k where k.id = :job_id)) t
 where t.job_key = (select k.job_key from job k where k.id = :job_id) and t.status >= {first_ended}
   and t.scheduled_for >= :first_at and t.scheduled_for < :end_at
 group by 1, 2;

-- tail_failures --
-- Returns the failures that the rollups do not count, with their errors. `in`, not a join: for that SQLite would read all
-- occurrences into a Bloom filter first, to look up a few.
select t.id as occurrence_id, (select s.id from job_state s where s.job_key = t.job_key) as job_id, t.ended_at, t.error
  from (select * from (select o.id, o.job_key, o.status, o.ended_at, o.error from occurrence o
                        where o.handle > (select last_handle from rollup where only_row = 1)
                        order by o.handle desc limit :limit) newest
        union all
        select o.id, o.job_key, o.status, o.ended_at, o.error
          from occurrence o
         where o.handle in (select u.handle from unfolded u indexed by unfolded_by_time
                             order by u.scheduled_for desc limit :limit)) t
 where t.status in ({failed}, {failed_stale}, {completed_with_errors}) and t.ended_at > :since_at;

-- kinds_since --
-- Returns the newest failures by kind and job, and the last of each: the last by end, then by id.
select newest.fingerprint, (select s.id from job_state s where s.job_key = newest.job_key) as job_id,
       count(*) as count, min(newest.ended_at) as first_at, max(newest.ended_at) as last_at,
       substr(max(printf('%020d', newest.ended_at) || lower(hex(newest.id))), 21) as last_hex
  from (select f.fingerprint, f.job_key, f.id, f.ended_at from failure f indexed by failure_by_time
         where f.ended_at > :since_at order by f.ended_at desc limit :limit) newest
 group by newest.fingerprint, newest.job_key;

-- kind_since --
-- Returns the same of one kind.
select newest.fingerprint, (select s.id from job_state s where s.job_key = newest.job_key) as job_id,
       count(*) as count, min(newest.ended_at) as first_at, max(newest.ended_at) as last_at,
       substr(max(printf('%020d', newest.ended_at) || lower(hex(newest.id))), 21) as last_hex
  from (select f.fingerprint, f.job_key, f.id, f.ended_at from failure f indexed by failure_alike
         where f.fingerprint = :fingerprint and f.ended_at > :since_at order by f.ended_at desc limit :limit) newest
 group by newest.fingerprint, newest.job_key;
