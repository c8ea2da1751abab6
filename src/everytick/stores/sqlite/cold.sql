-- The statements of the shared verbs that SQLite says in its own way; see stores/sql/queries.sql.

-- hold_job --
-- Returns the job of this id, removed or not; the file's write lock holds it.
select j.job as job_key, j.id as job_id, j.name, j.removed_at from job j where j.id = :job_id;

-- held_of_job --
-- Returns how many occurrences of a job are in the hands of a node.
select count(*) as held from occurrence indexed by occurrence_active
 where job = :job_key and ended_at is null and owner is not null;

-- purgeable --
-- Returns occurrences of a job, whatever became of them.
select seq as handle from occurrence indexed by occurrence_of_job where job = :job_key limit :limit;

-- purge_occurrences --
-- Forgets these occurrences for good, ended or not; no node holds one of them.
delete from occurrence where seq {in handles} and owner is null;

-- purge_wakes --
-- Forgets which definitions of a job could not be read: SQLite keeps no facts that wake a job.
delete from parked_definition where job = :job_key;

-- purge_versions --
-- Forgets the definitions of a job.
delete from job_version where job = :job_key;

-- purge_job --
-- Forgets a job that nothing belongs to any more.
delete from job where job = :job_key;
