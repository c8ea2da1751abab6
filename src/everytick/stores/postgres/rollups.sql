-- The statements of stores/sql/verbs/rollups.py that PostgreSQL says in its own way.

-- note_gaps --
-- Notes handles that no row had when they were passed: a transaction that is under way may have drawn them.
insert into {schema}.unfolded (job_key, handle, scheduled_for)
select 0, n.handle, :now from unnest({list handles}::bigint[]) n(handle);

-- unseen --
-- Returns the last of the next occurrences in the order of handles that may be passed, how many they are, which of them
-- have not ended, handles among them that no row has, the newest of these, and whether others than completed ones have
-- ended. What was made after young_at and has not ended is waited for.
with next as materialized (
    select o.handle, o.status, o.created_at from {schema}.occurrence o
     where o.handle > :last_handle order by o.handle limit :limit
), reach as materialized (
    select coalesce(min(n.handle) filter (where n.status < {first_ended} and n.created_at > :young_at) - 1,
                    max(n.handle)) as top
      from next n
)
select s.top, s.count, s.has_others,
       case when s.waiting = 0 then '{}'
            else array(select n.handle from next n where n.handle <= s.top and n.status < {first_ended}) end as waiting,
       case when s.count = s.top - :last_handle then '{}'
            else array(select g.handle from generate_series(greatest(:last_handle + 1, s.top - 40000), s.top) g(handle)
                        where g.handle not in (select n.handle from next n)) end as gaps
  from (select r.top, count(n.handle) as count, count(n.handle) filter (where n.status < {first_ended}) as waiting,
               count(n.handle) filter (where n.status > {completed}) > 0 as has_others
          from reach r left join next n on n.handle <= r.top group by r.top) s;

-- sweep --
-- Looks at some of those that were passed before they ended, in their order: returns how many, the last of them, which
-- are over, and which are not there, or not yet.
with looked as materialized (
    select u.job_key, u.handle, u.scheduled_for,
           (select o.status from {schema}.occurrence o where o.handle = u.handle) as status
      from {schema}.unfolded u where (u.job_key, u.handle) > (:swept_key, :swept_handle)
     order by u.job_key, u.handle limit :limit
)
select (select count(*) from looked) as count,
       (select s.job_key from looked s order by s.job_key desc, s.handle desc limit 1) as last_key,
       (select s.handle from looked s order by s.job_key desc, s.handle desc limit 1) as last_handle,
       array(select s.handle from looked s where s.status >= {first_ended}) as over,
       array(select s.handle from looked s
              where s.status is null and (s.job_key <> 0 or s.scheduled_for < :given_up_at)) as gone;

-- fold_between --
-- Adds those between two handles that have ended, without some, to the days of their jobs, to the steps of five minutes and
-- to the days of all. The lengths of their jobs have to be measured again. The rows are read once and kept: from there the
-- server groups by a hash, however few it expects, and does not sort. The band of each version is looked up once. A full
-- join, where each side has the same versions, is never carried out as a loop within a loop.
with ended as materialized (
    select o.job_key, o.version, o.scheduled_for, o.status,
           case when o.status = {completed}
                then (date_part('epoch', o.ended_at - o.started_at) * 1000000)::bigint end as took
      from {schema}.occurrence o
     where o.handle > :first_handle and o.handle <= :last_handle and o.status >= {first_ended}
       and (:is_whole or not o.handle {among left_out})
), job_part as materialized (
    select e.job_key, e.version, date_bin('1 day', e.scheduled_for, 'epoch'::timestamptz) as day_at, e.status,
           count(*) as count, coalesce(sum(e.took), 0)::bigint as took
      from ended e group by 1, 2, 3, 4
), banded as materialized (
    select d.job_key, d.version,
           (select v.band from {schema}.version_band v where v.job_key = d.job_key and v.version = d.version) as band
      from (select distinct p.job_key, p.version from job_part p) d
), step as materialized (
    select date_bin('5 minutes', e.scheduled_for, 'epoch'::timestamptz) as step_at, b.band, e.status, count(*) as count
      from ended e full join banded b on b.job_key = e.job_key and b.version = e.version
     group by 1, 2, 3
), days as (
    insert into {schema}.job_day (job_key, day_at, status, count, kept, took)
    select p.job_key, p.day_at, p.status, sum(p.count), sum(p.count), sum(p.took) from job_part p group by 1, 2, 3
    on conflict (job_key, day_at, status) do update
       set count = job_day.count + excluded.count, kept = job_day.kept + excluded.kept,
           took = job_day.took + excluded.took
), touched as (
    insert into {schema}.job_length (job_key)
    select p.job_key from (select distinct p.job_key from job_part p where p.status = {completed}) p
     where not exists (select from {schema}.job_length k where k.job_key = p.job_key and k.is_stale offset 0)
    on conflict (job_key) do update set is_stale = excluded.is_stale where not job_length.is_stale
)
insert into {schema}.bucket (is_day, step_at, band, status, count, kept)
select false, s.step_at, s.band, s.status, s.count, s.count from step s where true
union all
select true, date_bin('1 day', s.step_at, 'epoch'::timestamptz) as day_at, s.band, s.status,
       sum(s.count)::bigint, sum(s.count)::bigint
  from step s group by day_at, s.band, s.status
on conflict (is_day, step_at, band, status) do update
   set count = bucket.count + excluded.count, kept = bucket.kept + excluded.kept;

-- fold_these --
-- Adds these, which have ended, to the steps of five minutes and to the days.
insert into {schema}.bucket (is_day, step_at, band, status, count, kept)
with cell as materialized (
    select date_bin('5 minutes', o.scheduled_for, 'epoch'::timestamptz) as step_at,
           (select v.band from {schema}.version_band v where v.job_key = o.job_key and v.version = o.version) as band,
           o.status, count(*) as count
      from {schema}.occurrence o
     where o.handle {in handles} and o.status >= {first_ended}
     group by 1, 2, 3
)
select false, c.step_at, c.band, c.status, c.count * :added::int, c.count * :left::int from cell c where true
union all
select true, date_bin('1 day', c.step_at, 'epoch'::timestamptz) as day_at, c.band, c.status,
       sum(c.count)::bigint * :added::int, sum(c.count)::bigint * :left::int
  from cell c group by day_at, c.band, c.status
on conflict (is_day, step_at, band, status) do update
   set count = bucket.count + excluded.count, kept = bucket.kept + excluded.kept;

-- fold_days_of_these --
-- Adds the same to the days of their jobs.
insert into {schema}.job_day (job_key, day_at, status, count, kept, took)
select o.job_key, date_bin('1 day', o.scheduled_for, 'epoch'::timestamptz), o.status,
       count(*) * :added::int, count(*) * :left::int,
       coalesce(sum(case when o.status = {completed}
                         then (date_part('epoch', o.ended_at - o.started_at) * 1000000)::bigint end), 0)::bigint * :added::int
  from {schema}.occurrence o where o.handle {in handles} and o.status >= {first_ended}
 group by 1, 2, 3
on conflict (job_key, day_at, status) do update
   set count = job_day.count + excluded.count, kept = job_day.kept + excluded.kept, took = job_day.took + excluded.took;

-- bucket_steps --
-- Returns how many each step of time has, as far as the rollups have come; by band, or all together.
select date_bin(:step * interval '1 microsecond', b.step_at, 'epoch'::timestamptz) as step_at,
       case when :is_banded::boolean then b.band else '' end as band, b.status, sum(b.count)::bigint as count
  from {schema}.bucket b where b.is_day = :is_day and b.step_at >= :first_at and b.step_at < :end_at
 group by 1, 2, 3;

-- tail_steps --
-- Returns the same of what the rollups do not count: what has not ended, and what has ended since. seen says how many
-- were looked at.
with newest as materialized (
    select o.job_key, o.version, o.scheduled_for, o.status from {schema}.occurrence o
     where o.handle > (select r.last_handle from {schema}.rollup r) order by o.handle desc limit :limit
), passed as materialized (
    select o.job_key, o.version, o.scheduled_for, o.status from {schema}.occurrence o
     where o.handle = any(array(
           select p.handle from (select u.handle from {schema}.unfolded u
                                  where u.scheduled_for >= :first_at and u.scheduled_for < :end_at and u.job_key <> 0
                                  order by u.scheduled_for desc limit :limit) p
            union all
           select g.handle from {schema}.unfolded g where g.job_key = 0))
)
select date_bin(:step * interval '1 microsecond', t.scheduled_for, 'epoch'::timestamptz) as step_at,
       case when :is_banded::boolean then v.band else '' end as band, t.status, count(*) as count,
       (select count(*) from newest) + (select count(*) from passed) as seen
  from (select * from newest union all select * from passed) t
  join {schema}.version_band v on v.job_key = t.job_key and v.version = t.version
 where t.scheduled_for >= :first_at and t.scheduled_for < :end_at
 group by 1, 2, 3;

-- tail_days --
-- Returns how the occurrences of a job ended that the rollups do not count.
with own as materialized (
    select k.job_key from {schema}.job k where k.id = :job_id
), newest as materialized (
    select o.job_key, o.scheduled_for, o.status, o.started_at, o.ended_at from {schema}.occurrence o
     where o.handle > (select r.last_handle from {schema}.rollup r) order by o.handle desc limit :limit
), passed as materialized (
    select o.job_key, o.scheduled_for, o.status, o.started_at, o.ended_at from {schema}.occurrence o
     where o.handle = any(array(select u.handle from {schema}.unfolded u
                                 where u.job_key = any(array(select 0 union all select own.job_key from own))))
)
select date_bin('1 day', t.scheduled_for, 'epoch'::timestamptz) as day_at, t.status, count(*) as count,
       coalesce(sum(case when t.status = {completed}
                         then (date_part('epoch', t.ended_at - t.started_at) * 1000000)::bigint end), 0)::bigint as took
  from (select * from newest union all select * from passed) t
 where t.job_key = (select own.job_key from own) and t.status >= {first_ended}
   and t.scheduled_for >= :first_at and t.scheduled_for < :end_at
 group by 1, 2;

-- tail_failures --
-- Returns the failures that the rollups do not count, with their errors.
with newest as materialized (
    select o.id, o.job_key, o.status, o.ended_at, o.error from {schema}.occurrence o
     where o.handle > (select r.last_handle from {schema}.rollup r) order by o.handle desc limit :limit
), passed as materialized (
    select o.id, o.job_key, o.status, o.ended_at, o.error from {schema}.occurrence o
     where o.handle = any(array(select u.handle from {schema}.unfolded u order by u.scheduled_for desc limit :limit))
)
select t.id as occurrence_id, (select s.id from {schema}.job_state s where s.job_key = t.job_key) as job_id,
       t.ended_at, t.error
  from (select * from newest union all select * from passed) t
 where t.status in ({failed}, {failed_stale}, {completed_with_errors}) and t.ended_at > :since_at;

-- kinds_since --
-- Returns the newest failures by kind and job, and the last of each: the last by end, then by id. Both as one text: to
-- sort an array for each takes twice as long.
select n.fingerprint, (select s.id from {schema}.job_state s where s.job_key = n.job_key) as job_id,
       count(*) as count, min(n.ended_at) as first_at, max(n.ended_at) as last_at,
       replace(substr(max(lpad((extract(epoch from n.ended_at) * 1000000)::bigint::text, 20, '0') || n.id::text
                          collate "C"), 21), '-', '') as last_hex
  from (select f.fingerprint, f.job_key, f.id, f.ended_at from {schema}.failure f
         where f.ended_at > :since_at order by f.ended_at desc limit :limit) n
 group by n.fingerprint, n.job_key;

-- kind_since --
-- Returns the same of one kind.
select n.fingerprint, (select s.id from {schema}.job_state s where s.job_key = n.job_key) as job_id,
       count(*) as count, min(n.ended_at) as first_at, max(n.ended_at) as last_at,
       replace(substr(max(lpad((extract(epoch from n.ended_at) * 1000000)::bigint::text, 20, '0') || n.id::text
                          collate "C"), 21), '-', '') as last_hex
  from (select f.fingerprint, f.job_key, f.id, f.ended_at from {schema}.failure f
         where (f.fingerprint, f.ended_at) > (:fingerprint, :since_at)
           and (f.fingerprint, f.ended_at) <= (:fingerprint, 'infinity')
         order by f.fingerprint desc, f.ended_at desc limit :limit) n
 group by n.fingerprint, n.job_key;
