// What the reply of JetStream about a stream says about writes to it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stateOf } from '../../src/cluster/service/nats-monitor.js';

const MS = 1e6;

const replica = (name: string, silentMs: number, isCurrent = true) => ({
  name,
  current: isCurrent,
  active: silentMs * MS,
});

describe('the state of a log', () => {
  it('is connected while most replicas are heard from', () => {
    const replicas = [replica('b', 1_900), replica('c', 60_000, false)];
    const found = stateOf({ cluster: { leader: 'a', replicas } });
    assert.equal(found.kind, 'connected');
    assert.deepEqual(found.servers, [
      { name: 'a', isLeader: true, isSilent: false, silentMs: 0, lag: 0 },
      { name: 'b', isLeader: false, isSilent: false, silentMs: 1_900, lag: 0 },
      { name: 'c', isLeader: false, isSilent: true, silentMs: 60_000, lag: 0 },
    ]);
  });

  it('has no quorum once half of the servers are silent, and names them', () => {
    const replicas = [replica('b', 2_400), replica('c', 2_400)];
    const found = stateOf({ cluster: { leader: 'a', replicas } });
    assert.equal(found.kind, 'no_quorum');
    assert.match(found.detail, /^2 of the 3 NATS servers .*: b and c\./);
    const halves = stateOf({ cluster: { leader: 'a', replicas: [replica('b', 9_000)] } });
    assert.equal(halves.kind, 'no_quorum');
  });

  it('has no quorum without a leader, whoever replies instead', () => {
    const found = stateOf({
      cluster: { leader: '', replicas: [replica('b', 10), replica('c', 10)] },
    });
    assert.equal(found.kind, 'no_quorum');
    assert.match(found.detail, /has no leader/);
    assert.deepEqual(
      found.servers.map(({ name }) => name),
      ['b', 'c'],
    );
  });

  it('counts replicas as silent that the leader knows to be offline or has never heard from', () => {
    const offline = { ...replica('b', 10), offline: true };
    const unheard = replica('c', 0, false);
    assert.equal(
      stateOf({ cluster: { leader: 'a', replicas: [offline, unheard] } }).kind,
      'no_quorum',
    );
    const fresh = replica('c', 0, true);
    assert.equal(
      stateOf({ cluster: { leader: 'a', replicas: [offline, fresh] } }).kind,
      'connected',
    );
  });

  it('has no quorum if JetStream says so, but not because the log does not exist yet', () => {
    const error = { err_code: 10008, description: 'JetStream system temporarily unavailable' };
    assert.match(stateOf({ error }).detail, /temporarily unavailable\. Writes wait/);
    assert.equal(stateOf({ error }).kind, 'no_quorum');
    assert.equal(stateOf({ error: { err_code: 10059 } }).kind, 'connected');
  });

  it('is connected for a single server', () => {
    assert.equal(stateOf({}).kind, 'connected');
  });
});
