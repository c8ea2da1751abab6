-- The statements of the shared verbs whose text is the same in both stores. Each has a name and says what it
-- guarantees; statements.py says what `:name` and `{marker}` stand for. What differs stands in each store's cold.sql.

-- forget_attempts --
-- Forgets the attempts of these occurrences.
delete from {schema}.attempt where handle {in handles};

-- forget_runs --
-- Forgets the runs of these occurrences.
delete from {schema}.task_run where handle {in handles};

-- purge_requests --
-- Forgets the open requests of a job.
delete from {schema}.request where job_key = :job_key;

-- purge_keys --
-- Frees every key that requests of the job have used.
delete from {schema}.request_key where job_key = :job_key;

-- purge_adjustments --
-- Forgets what was said about single instants of a job.
delete from {schema}.adjustment where job_key = :job_key;

-- purge_pauses --
-- Forgets the pauses of a job.
delete from {schema}.pause where job_key = :job_key;

-- purge_spans --
-- Forgets which instants of a job did not run.
delete from {schema}.span where job_key = :job_key;

-- purge_state --
-- Forgets where a job stands.
delete from {schema}.job_state where job_key = :job_key;

-- leave --
-- Notes that the node beats no more, and was heard of for the last time.
update {schema}.node set beats = 0, beat_at = :now where id = :node_id;
