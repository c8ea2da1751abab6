-- The statements of the shared verbs that SQLite says in its own way; see stores/sql/queries.sql.

-- hold_job --
-- Returns the job of this id, removed or not; the file's write lock holds it.
select j.job_key, j.id as job_id, j.name, j.removed_at from job j where j.id = :job_id;

-- held_of_job --
-- Returns how many occurrences of a job are in the hands of a node.
select count(*) as held from occurrence indexed by occurrence_active
 where job_key = :job_key and ended_at is null and owner is not null;

-- purgeable --
-- Returns occurrences of a job, whatever became of them.
select handle from occurrence indexed by occurrence_of_job where job_key = :job_key limit :limit;

-- purge_occurrences --
-- Forgets these occurrences for good, ended or not; no node holds one of them.
delete from occurrence where handle {in handles} and owner is null;

-- purge_wakes --
-- Forgets which definitions of a job could not be read: SQLite keeps no facts that wake a job.
delete from parked_definition where job_key = :job_key;

-- purge_versions --
-- Forgets the definitions of a job.
delete from job_version where job_key = :job_key;

-- purge_job --
-- Forgets a job that nothing belongs to any more.
delete from job where job_key = :job_key;

-- nodes --
-- Returns the nodes that were heard of and every other owner, and how much each holds, by id.
select n.id as node_id, n.beat_at, (select count(*) from occurrence o where o.owner = n.id) as holds, n.facts, n.beats
  from node n
union all
select o.owner, max(o.updated_at), count(*), null, 0
  from occurrence o indexed by occurrence_held
 where o.owner is not null and not exists (select 1 from node n where n.id = o.owner)
 group by o.owner
 order by node_id;

-- overdue --
-- Returns what is held past its deadline.
select owner, handle, fence, claim_token from occurrence indexed by occurrence_deadline
 where owner is not null and execution_timeout is not null and deadline_at <= :now order by handle;
