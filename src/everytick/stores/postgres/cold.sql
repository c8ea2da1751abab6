-- The statements of the shared verbs that PostgreSQL says in its own way; see stores/sql/queries.sql.

-- hold_job --
-- Locks where a job stands, so that what people do to it and what plans do to it come one after the other.
select j.job_key, j.id as job_id, j.name, s.removed_at
  from {schema}.job j join {schema}.job_state s on s.job_key = j.job_key
 where j.id = :job_id
   {lock s};

-- held_of_job --
-- Returns how many occurrences of a job are in the hands of a node.
select count(*)::int as held from {schema}.occurrence where job_key = :job_key and status < {first_ended} and owner is not null;

-- purgeable --
-- Locks and returns occurrences of a job that no node holds, ended or not, up to twice the limit.
with old as materialized (
    select o.handle from {schema}.occurrence o where o.job_key = :job_key and o.status >= {first_ended} limit :limit
), live as materialized (
    select o.handle from {schema}.occurrence o where o.job_key = :job_key and o.status < {first_ended} and o.owner is null
     limit :limit for update
)
select handle from old union all select handle from live;

-- purge_occurrences --
-- Forgets these occurrences for good, ended or not, and that their reports are due.
with gone as (
    delete from {schema}.occurrence where handle {in handles} returning handle, needs, ended_at
)
delete from {schema}.report r using gone
 where r.needs = gone.needs and r.ended_at = gone.ended_at and r.handle = gone.handle;

-- purge_wakes --
-- Forgets what makes a job worth a look.
delete from {schema}.wake where job_key = :job_key;

-- purge_versions --
-- Forgets the definitions of a job.
delete from {schema}.job_version where job_key = :job_key;

-- purge_job --
-- Forgets a job that nothing belongs to any more.
delete from {schema}.job where job_key = :job_key;

-- nodes --
-- Returns the nodes that were heard of and every other owner, and how much each holds, by id.
with held as materialized (
    select o.owner, count(*)::int as holds, max(o.updated_at) as heard_at
      from {schema}.occurrence o
     where o.status < {first_ended} and o.owner is not null
     group by o.owner
)
select coalesce(n.id, h.owner) as node_id, coalesce(n.beat_at, h.heard_at) as beat_at, coalesce(h.holds, 0) as holds,
       n.facts, coalesce(n.beats, 0) as beats
  from {schema}.node n full join held h on h.owner = n.id
 order by coalesce(n.id, h.owner) collate "C";

-- overdue --
-- Returns what is held past its deadline.
select owner, handle, fence, claim_token
  from {schema}.occurrence
 where status < {first_ended} and owner is not null and deadline_at <= :now
 order by handle;
