// What a node knows of the others: those that it cannot reach, and those that failed a request.

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { ClusterMember } from '../../../src/server/cluster/cluster.js';
import { PeerStates } from '../../../src/server/cluster/peer-states.js';
import { eventually } from '../../support/waiting.js';

function memberOf(node: string, collectionCount = 0): ClusterMember {
  const url = `http://${node}`;
  const rest = { version: '1', state: 'serving', zone: '', collectionCount } as const;
  return { instance: `${node}/1`, node, url, ...rest };
}

const SELF = memberOf('n1');
const PEER = memberOf('n2', 3);

describe('a peer', () => {
  let isReachable = true;
  let present: readonly ClusterMember[] = [SELF, PEER];
  const states: PeerStates[] = [];
  const open = () => {
    const cluster = {
      self: SELF,
      get present() {
        return present;
      },
      ownerOf: () => SELF,
    };
    const ping = async () => {
      if (!isReachable) throw new Error('refused by the test');
    };
    states.push(new PeerStates({ cluster, ping }));
    return states.at(-1)!;
  };
  afterEach(() => {
    for (const each of states.splice(0)) each.close();
    isReachable = true;
    present = [SELF, PEER];
  });

  it('is avoided after it failed a request, until it answers one', () => {
    const peers = open();
    assert.equal(peers.isAvoided(PEER), false);
    peers.requestFailed(PEER);
    assert.equal(peers.isAvoided(PEER), true);
    assert.equal(peers.isAvoided(memberOf('n3')), false);
    // A restarted node is another process.
    assert.equal(peers.isAvoided({ instance: 'n2/2' }), false);
    peers.requestAnswered(PEER);
    assert.equal(peers.isAvoided(PEER), false);
    assert.deepEqual(peers.problems, []);
  });

  it('is avoided and reported while it cannot be reached', async () => {
    isReachable = false;
    const peers = open();
    await eventually('a failed ping', () => peers.isAvoided(PEER));
    const [problem] = peers.problems;
    assert.deepEqual([problem!.code, problem!.blocksWrites], ['peer_unreachable', true]);
    assert.match(problem!.detail, /n2 at http:\/\/n2 \(refused by the test\)/);
    isReachable = true;
    await eventually('an answered ping', () => !peers.isAvoided(PEER));
    assert.deepEqual(peers.problems, []);
  });

  it('is forgotten when it has left', async () => {
    isReachable = false;
    const peers = open();
    peers.requestFailed(PEER);
    await eventually('a failed ping', () => peers.problems.length === 1);
    present = [SELF];
    await eventually('a look at the members', () => peers.problems.length === 0);
    assert.equal(peers.isAvoided(PEER), false);
  });
});
