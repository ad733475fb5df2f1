pragma application_id = 1180781668;
pragma user_version = 1;
CREATE TABLE agents (
    id text primary key, hostname text not null, total text not null, attributes text not null,
    is_away integer not null
) without rowid;
INSERT INTO "agents" VALUES('a1-1','h1','{"cpus": 4000, "mem": 1073741824}','{"rack": "a"}',1);
CREATE TABLE epoch (number integer not null);
INSERT INTO "epoch" VALUES(7000);
CREATE TABLE frameworks (
    id text primary key, name text not null, role text not null, principal text not null,
    failover_timeout_ms integer not null
) without rowid;
INSERT INTO "frameworks" VALUES('f1-1','sweep','eng/ml','alice',3600000);
CREATE TABLE policy (
    only integer primary key check (only = 1), policy text not null, placement text not null,
    when_head_does_not_fit text not null
);
INSERT INTO "policy" VALUES(1,'pf','pack','freeze');
CREATE TABLE weights (role text primary key, weight real not null, by_resource text not null) without rowid;
INSERT INTO "weights" VALUES('eng',2.0,'{"cpus": 3.0}');
