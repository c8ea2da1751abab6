-- The statements that keep and read what ended occurrences add up to, for both stores; see verbs/rollups.py.

-- hold_rollup --
-- Locks the rollups until the transaction ends: one node at a time changes them, or deletes what they count.
select r.last_handle, r.swept_key, r.swept_handle from {schema}.rollup r {lock r};

-- rollup_lags --
-- Returns whether there is anything that the rollups do not count, and whether there are lengths to measure.
select coalesce((select o.handle from {schema}.occurrence o order by o.handle desc limit 1), 0)
       > (select r.last_handle from {schema}.rollup r)
       or (select u.handle from {schema}.unfolded u order by u.job_key, u.handle limit 1) is not null as is_behind,
       (select l.job_key from {schema}.job_length l where l.is_stale order by l.job_key limit 1) is not null as is_stale;

-- next_ended --
-- Returns the newest handle of all, how many occurrences the next handles have, whether all of them have ended, and whether
-- others than completed ones have.
select coalesce((select max(e.handle) from {schema}.occurrence e), 0) as newest,
       count(*) as count, min(o.status) >= {first_ended} as is_over, max(o.status) > {completed} as has_others
  from {schema}.occurrence o where o.handle > :last_handle and o.handle <= :last_handle + :limit;

-- counted_among --
-- Returns those of these that are over, and whether the rollups count each.
select o.handle,
       o.handle <= (select r.last_handle from {schema}.rollup r)
       and not exists (select 1 from {schema}.unfolded u where u.job_key = o.job_key and u.handle = o.handle)
       and not exists (select 1 from {schema}.unfolded u where u.job_key = 0 and u.handle = o.handle) as is_counted
  from {schema}.occurrence o
 where o.handle {in handles} and o.status >= {first_ended};

-- add_bands --
-- Keeps the bands of these versions.
insert into {schema}.version_band (job_key, version, band)
select bands.job_key, bands.version, bands.band from {rows bands: job_key int, version int, band text} where true;

-- purge_bands --
-- Forgets the bands of a job.
delete from {schema}.version_band where job_key = :job_key;

-- note_unfolded --
-- Notes that these had not ended when they were passed.
insert into {schema}.unfolded (job_key, handle, scheduled_for)
select o.job_key, o.handle, o.scheduled_for from {schema}.occurrence o where o.handle {in handles};

-- forget_unfolded --
-- These are counted, or gone.
delete from {schema}.unfolded
 where (job_key, handle) in (select k.job_key, k.handle from {schema}.occurrence k where k.handle {in handles});

-- forget_passed --
-- So are these, which stand between two places.
delete from {schema}.unfolded
 where (job_key, handle) > (:swept_key, :swept_handle) and (job_key, handle) <= (:last_key, :last_handle)
   and handle {among handles};

-- move_rollup --
-- Notes how far the rollups have come.
update {schema}.rollup
   set last_handle = :last_handle, swept_key = :swept_key, swept_handle = :swept_handle where only_row = 1;

-- failed_between --
-- Returns those between two handles that failed, with their errors, without some.
select o.handle, o.error from {schema}.occurrence o
 where o.handle > :first_handle and o.handle <= :last_handle and not o.handle {among left_out}
   and o.status in ({failed}, {failed_stale}, {completed_with_errors});

-- failed_of --
-- Returns those of these that failed, with their errors.
select o.handle, o.error from {schema}.occurrence o
 where o.handle {in handles} and o.status in ({failed}, {failed_stale}, {completed_with_errors});

-- add_failures --
-- Keeps the kind of error of each of these.
insert into {schema}.failure (handle, job_key, id, ended_at, fingerprint)
select o.handle, o.job_key, o.id, o.ended_at, kinds.fingerprint
  from {rows kinds: handle bigint, fingerprint text} join {schema}.occurrence o on o.handle = kinds.handle;

-- forget_failures_of --
-- Forgets the kind of error of these, which are about to be deleted.
delete from {schema}.failure where handle {in handles};

-- touch_lengths --
-- Runs of the jobs of these have ended: their lengths have to be measured again.
insert into {schema}.job_length (job_key)
select distinct o.job_key from {schema}.occurrence o where o.handle {in handles}
on conflict (job_key) do update set is_stale = excluded.is_stale where not job_length.is_stale;

-- stale_lengths --
-- Returns some jobs whose lengths have to be measured again.
select l.job_key, (select s.id from {schema}.job_state s where s.job_key = l.job_key) as job_id
  from {schema}.job_length l where l.is_stale order by l.job_key limit :limit;

-- keep_lengths --
-- Keeps what was measured.
insert into {schema}.job_length (job_key, count, p5, p50, p95, is_stale)
select lengths.job_key, lengths.count, lengths.p5, lengths.p50, lengths.p95, lengths.is_stale
  from {rows lengths: job_key int, count int, p5 bigint, p50 bigint, p95 bigint, is_stale bool} where true
on conflict (job_key) do update
   set count = excluded.count, p5 = excluded.p5, p50 = excluded.p50, p95 = excluded.p95, is_stale = excluded.is_stale;

-- forget_cells --
-- Forgets short steps of time that nothing asks for any more; the days stay.
delete from {schema}.bucket where is_day = :is_day and step_at < :forgotten_at;

-- purge_job_days --
-- Forgets the days of a job.
delete from {schema}.job_day where job_key = :job_key;

-- purge_lengths --
-- Forgets the lengths of a job.
delete from {schema}.job_length where job_key = :job_key;

-- measured_lengths --
-- Returns the lengths of all jobs as they were measured last.
select s.id as job_id, l.count, l.p5, l.p50, l.p95
  from {schema}.job_length l join {schema}.job_state s on s.job_key = l.job_key where l.count > 0;

-- measured_lengths_of --
-- Returns the same of these jobs.
select s.id as job_id, l.count, l.p5, l.p50, l.p95
  from {schema}.job s join {schema}.job_length l on l.job_key = s.job_key where s.id {in job_ids} and l.count > 0;

-- some_jobs --
-- Returns the ids of some jobs.
select s.id as job_id from {schema}.job_state s order by s.job_key limit :limit;

-- job_days --
-- Returns how the days of a job ended, as far as the rollups have come.
select d.day_at, d.status, d.count, d.took from {schema}.job_day d
 where d.job_key = (select k.job_key from {schema}.job k where k.id = :job_id)
   and d.day_at >= :first_at and d.day_at < :end_at;

-- kept_in_all --
-- Returns how many of each status are kept in these steps of time, as far as the rollups have come.
select b.status, sum(b.kept) as count from {schema}.bucket b
 where b.is_day = :is_day and b.step_at >= :first_at and b.step_at < :end_at group by b.status;

-- kept_of_job --
-- Returns the same of one job, in these days.
select d.status, sum(d.kept) as count from {schema}.job_day d
 where d.job_key = (select k.job_key from {schema}.job k where k.id = :job_id)
   and d.day_at >= :first_at and d.day_at < :end_at group by d.status;
