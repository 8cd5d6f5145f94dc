// Which nodes are present, and which are silent although they did not leave.

import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { CLUSTER_FORMAT } from '../../src/cluster/logs/cluster-format.js';
import { NO_SIZES } from '../../src/cluster/members/announced-sizes.js';
import { type Member, Members, newMember } from '../../src/cluster/members/members.js';

const TIMING = { announceMs: 100, silentMsMax: 1_000 };

/** A node that hears what the test announces, on a clock that the test moves. */
function listen() {
  let listener: (bytes: Uint8Array) => void = () => {};
  const bus = {
    announce() {},
    onAnnouncement(onBytes: (bytes: Uint8Array) => void) {
      listener = onBytes;
    },
  };
  const members = new Members({ bus, self: member('self', 1), timing: TIMING });
  members.start({
    measure: () => ({ position: 0, positions: {}, sizes: NO_SIZES, problems: [] }),
    onMember() {},
    onOtherFormat() {},
  });
  let clockMs = 0;
  const hear = (node: string, run: number, change: Partial<Member> = {}) => {
    const announced = {
      format: CLUSTER_FORMAT,
      ...member(node, run),
      ...change,
      clockMs: ++clockMs,
    };
    listener(Buffer.from(JSON.stringify(announced)));
  };
  return { members, hear };
}

function member(node: string, run: number): Member {
  const instance = `${node}/${run}`;
  return newMember({ instance, node, version: '1', zone: '', state: 'serving' });
}

const namesOf = (found: readonly { readonly node: string }[]) => found.map(({ node }) => node);

describe('the members of a cluster', () => {
  it('are absent when they are silent, until they are heard from again or restarted', () => {
    mock.timers.enable({ apis: ['setInterval'] });
    let nowMs = 0;
    const clock = mock.method(performance, 'now', () => nowMs);
    const pass = (ms: number) => {
      for (let passed = 0; passed < ms; passed += TIMING.announceMs) {
        nowMs += TIMING.announceMs;
        mock.timers.tick(TIMING.announceMs);
      }
    };
    try {
      const { members, hear } = listen();
      const absent = () => namesOf(members.absent.map((each) => each.member));
      for (const node of ['a', 'b', 'c']) hear(node, 1);
      assert.deepEqual(namesOf(members.present), ['a', 'b', 'c', 'self']);
      assert.deepEqual(absent(), []);
      // One of them leaves, and the others say nothing any more.
      hear('b', 1, { state: 'leaving' });
      pass(1_500);
      assert.deepEqual(namesOf(members.present), ['self']);
      assert.deepEqual(absent(), ['a', 'c']);
      assert.equal(members.absent[0]!.silentMs, 1_500);
      assert.equal(members.clockOf('a/1'), null);
      hear('a', 1);
      hear('c', 2);
      assert.deepEqual(namesOf(members.present), ['a', 'c', 'self']);
      assert.deepEqual(absent(), []);
      // The newer process of c leaves; that an older one was once killed says nothing.
      hear('c', 2, { state: 'leaving' });
      pass(1_500);
      assert.deepEqual(absent(), ['a']);
      pass(3_700_000);
      assert.deepEqual(absent(), [], 'a node is forgotten after an hour');
      members.close();
    } finally {
      clock.mock.restore();
      mock.timers.reset();
    }
  });
});
