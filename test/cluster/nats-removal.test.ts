// When the command that removes a NATS server stops waiting for the replicas.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type NatsReport, Removal } from '../../src/cluster/service/nats-operations.js';

const GONE = { name: 'n2', peer: 'p2' };
const LATE = { name: 'log', replicas: 3, current: ['n0', 'n1'], late: [] };

function reportOf(
  servers: readonly {
    readonly name: string;
    readonly isUp?: boolean;
    readonly isLeader?: boolean;
  }[],
  incomplete: NatsReport['incomplete'] = [],
): NatsReport {
  return {
    servers: servers.map(({ name, isUp = true, isLeader = false }) => ({
      name,
      peer: name.replace('n', 'p'),
      isUp,
      silentSeconds: null,
      version: null,
      isSyncAlways: true,
      isLeader,
      logCount: 1,
      ledCount: 0,
    })),
    logCount: 1,
    incomplete,
    problems: ['This is wrong.'],
  };
}

const [LEADER, OTHER] = [{ name: 'n0', isLeader: true }, { name: 'n1' }];

describe('the removal of a NATS server', () => {
  it('is complete without the server, once all logs have their replicas', () => {
    const removal = new Removal(GONE);
    const silent = { name: 'n2', isUp: false };
    assert.equal(removal.isComplete(reportOf([LEADER, OTHER, silent]), 0), false);
    assert.equal(removal.isComplete(reportOf([LEADER, OTHER], [LATE]), 1_000), false);
    assert.equal(removal.isComplete(reportOf([LEADER, OTHER]), 2_000), true);
  });

  it('fails while another server is down for long, but not when it just restarts', () => {
    const removal = new Removal(GONE);
    const down = reportOf([LEADER, { ...OTHER, isUp: false }], [LATE]);
    assert.equal(removal.isComplete(down, 0), false);
    assert.equal(removal.isComplete(down, 59_000), false);
    assert.equal(removal.isComplete(reportOf([LEADER, OTHER], [LATE]), 60_000), false);
    assert.equal(removal.isComplete(down, 61_000), false);
    assert.equal(removal.isComplete(down, 120_000), false);
    assert.throws(() => removal.isComplete(down, 122_000), {
      code: 'no_leader',
      message:
        'n2 is removed, but logs lack replicas. This is wrong. The servers add the replicas by themselves once that is repaired; sagitta cluster nats shows when they are complete.',
    });
  });

  it('fails when no server leads or answers, and is to be asked for again if the server is still there', () => {
    for (const servers of [[OTHER, { name: 'n2', isUp: false }], []]) {
      const removal = new Removal(GONE);
      const found = reportOf(servers);
      assert.equal(removal.isComplete(found, 0), false);
      assert.throws(() => removal.isComplete(found, 61_000), {
        message: `n2 is not removed yet. ${servers.length === 0 ? 'No NATS server answers.' : 'This is wrong.'} Once that is repaired, run this again: sagitta cluster nats --remove "n2"`,
      });
    }
  });

  it('fails when nothing has changed for half an hour', () => {
    const removal = new Removal(GONE);
    const found = (log: string) => reportOf([LEADER, OTHER], [{ ...LATE, name: log }]);
    assert.equal(removal.isComplete(found('a'), 0), false);
    assert.equal(removal.isComplete(found('b'), 1_700_000), false);
    assert.equal(removal.isComplete(found('b'), 3_400_000), false);
    assert.throws(() => removal.isComplete(found('b'), 3_600_000), /n2 is removed, but/);
  });
});
