pragma application_id = 1180781668;
pragma user_version = 5;
CREATE TABLE agents (
    id text primary key, hostname text not null, total text not null, attributes text not null,
    is_away integer not null, checksum integer not null
) without rowid;
INSERT INTO "agents" VALUES('a1-1','h1','{"cpus": 4000, "mem": 1073741824}','{"rack": "a"}',1,4105247779);
CREATE TABLE commits (number integer not null, checksum integer not null);
INSERT INTO "commits" VALUES(2,1728209275);
CREATE TABLE epoch (number integer not null, checksum integer not null);
INSERT INTO "epoch" VALUES(7000,3663084426);
CREATE TABLE frameworks (
    id text primary key, name text not null, role text not null, principal text not null,
    failover_timeout_ms integer not null, checksum integer not null
) without rowid;
INSERT INTO "frameworks" VALUES('f1-1','sweep','eng/ml','alice',3600000,3710621693);
CREATE TABLE policy (
    only integer primary key check (only = 1), policy text not null, placement text not null,
    when_head_does_not_fit text not null, demand text not null default 'declared', checksum integer not null
);
INSERT INTO "policy" VALUES(1,'pf','pack','freeze','declared',1459604027);
CREATE TABLE weights (
    role text primary key, weight real not null, by_resource text not null, checksum integer not null
) without rowid;
INSERT INTO "weights" VALUES('eng',2.0,'{"cpus": 3.0}',2190823023);
