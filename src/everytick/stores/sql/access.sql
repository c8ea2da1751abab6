-- The statements of `store.access`, the same in both stores. They are read when it is first asked for.

-- users --
-- Returns these users, or all of them, by name.
select u.name, u.role, u.grants, u.password_hash, u.added_at, u.added_by
  from {schema}.user_account u
 where :is_any or u.name {in names}
 order by u.name;

-- hold_users --
-- Returns all users and locks them, so that no two people take the last admins away at once.
select u.name, u.role, u.grants, u.password_hash, u.added_at, u.added_by
  from {schema}.user_account u order by u.name
  {lock u};

-- is_without_users --
-- Returns a row if there is no user.
select 1 as found_none where not exists (select 1 from {schema}.user_account);

-- add_user --
-- Adds a user, or nothing if there is one of this name.
insert into {schema}.user_account (name, role, grants, password_hash, added_at, added_by)
values (:name, :role, :grants, :password_hash, :now, :added_by)
on conflict do nothing returning name;

-- change_user --
-- Sets what a user may do, if that changes anything.
update {schema}.user_account set role = :role, grants = :grants
 where name = :name and (role <> :role or grants <> :grants) returning name;

-- set_password --
-- Sets the password of a user.
update {schema}.user_account set password_hash = :password_hash where name = :name returning name;

-- remove_user --
-- Deletes a user.
delete from {schema}.user_account where name = :name returning name;

-- end_sessions --
-- Ends every session of a user.
delete from {schema}.session where name = :name and kind = 'cookie';

-- revoke_tokens --
-- Revokes every token of an owner.
update {schema}.token set revoked_at = :now where owner = :name and revoked_at is null;

-- tokens --
-- Returns these tokens, or all of them, newest first, with what the owner of each may do now.
select t.id, t.name, t.hash, t.role, t.grants, t.owner, t.expires_at, t.added_at, t.added_by, t.used_at, t.revoked_at,
       u.role as owner_role, u.grants as owner_grants
  from {schema}.token t left join {schema}.user_account u on u.name = t.owner
 where :is_any or t.id {in ids}
 order by t.added_at desc, t.id;

-- add_token --
-- Adds a token, or nothing if a living one has its name.
insert into {schema}.token (id, name, hash, role, grants, owner, expires_at, added_at, added_by)
values (:id, :name, :hash, :role, :grants, :owner, :expires_at, :now, :added_by)
on conflict do nothing returning id;

-- revoke_token --
-- Revokes a token that is not yet revoked.
update {schema}.token set revoked_at = :now where id = :id and revoked_at is null returning name;

-- use_token --
-- Notes that a token was used.
update {schema}.token set used_at = :now where id = :id returning id;

-- session_of --
-- Returns a session that has not ended, with its user as they are now. One whose user is gone has ended.
select s.hash, s.kind, s.began_at, s.expires_at, s.seen_at, s.address,
       u.name, u.role, u.grants, u.password_hash, u.added_at, u.added_by
  from {schema}.session s left join {schema}.user_account u on u.name = s.name
 where s.hash = :hash and s.expires_at > :now and (s.kind = 'link' or u.name is not null);

-- sessions --
-- Returns the sessions of browsers that have not ended, the last used first.
select s.hash, s.kind, s.began_at, s.expires_at, s.seen_at, s.address,
       u.name, u.role, u.grants, u.password_hash, u.added_at, u.added_by
  from {schema}.session s join {schema}.user_account u on u.name = s.name
 where s.expires_at > :now and s.kind = 'cookie'
 order by s.seen_at desc, s.hash limit :limit;

-- begin_session --
-- Begins a session.
insert into {schema}.session (hash, kind, name, began_at, expires_at, seen_at, address)
values (:hash, :kind, :name, :began_at, :expires_at, :seen_at, :address);

-- see_session --
-- Notes that a session was used, and until when it lasts.
update {schema}.session set seen_at = :now, expires_at = :expires_at where hash = :hash returning hash;

-- end_session --
-- Ends a session. Returns its hash if it was there.
delete from {schema}.session where hash = :hash returning hash;

-- forget_sessions --
-- Forgets sessions that have ended by themselves.
delete from {schema}.session where expires_at <= :now;

-- failures_of --
-- Returns how often signing in with this name went wrong.
select f.count, f.failed_at from {schema}.sign_in_failure f where f.name = :name;

-- add_failure --
-- Counts one more.
insert into {schema}.sign_in_failure (name, count, failed_at) values (:name, 1, :now)
on conflict (name) do update set count = sign_in_failure.count + 1, failed_at = :now;

-- forget_failures --
-- Forgets what went wrong with this name, and with others long ago.
delete from {schema}.sign_in_failure where name = :name or failed_at < :forgotten_at;

-- job_named --
-- Returns the name of a job.
select j.name from {schema}.job j where j.id = :job_id;

-- job_of_occurrence --
-- Returns the job of an occurrence.
select j.id as job_id, j.name from {schema}.occurrence o join {schema}.job j on j.job_key = o.job_key
 where o.id = :occurrence_id;

-- add_deed --
-- Tells a deed.
insert into {schema}.deed (done_at, done_by, came_by, address, did, subject, detail, reason, job_id)
values (:done_at, :done_by, :came_by, :address, :did, :subject, :detail, :reason, :job_id);

-- deeds --
-- Returns deeds, newest first.
select d.deed_key, d.done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail, d.reason, d.job_id
  from {schema}.deed d where d.deed_key < :before order by d.deed_key desc limit :limit;

-- deeds_by --
-- Returns deeds of one person, newest first.
select d.deed_key, d.done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail, d.reason, d.job_id
  from {schema}.deed d where d.done_by = :done_by and d.deed_key < :before order by d.deed_key desc limit :limit;

-- deeds_of --
-- Returns deeds about one job, newest first.
select d.deed_key, d.done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail, d.reason, d.job_id
  from {schema}.deed d where d.job_id = :job_id and d.deed_key < :before order by d.deed_key desc limit :limit;

-- deeds_by_of --
-- Returns deeds of one person about one job, newest first.
select d.deed_key, d.done_at, d.done_by, d.came_by, d.address, d.did, d.subject, d.detail, d.reason, d.job_id
  from {schema}.deed d
 where d.job_id = :job_id and d.done_by = :done_by and d.deed_key < :before
 order by d.deed_key desc limit :limit;
