// Logs on streams in memory: the contract, replies lost at random, and damage.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import type { AppendOutcome, LogWriter } from '../../src/cluster/logs/collection-log.js';
import { MemoryStream } from '../../src/cluster/logs/memory-stream.js';
import { createRandom, testSeed } from '../database/harness.js';
import { commitOf, committed, logContract, outline, readAll, takeOver } from './log-contract.js';
import { damages, without } from './log-damage.js';

logContract('memory', { create: async () => new MemoryStream() });

const NEVER = new AbortController().signal;

describe('a log whose stream loses replies', () => {
  it('settles every commit: acknowledged ones are in the log once, denied ones are not', async () => {
    const seed = testSeed();
    const random = createRandom(seed);
    let isFaulty = false;
    const stream = new MemoryStream({
      fault() {
        if (!isFaulty || random() < 0.5) return null;
        return (['refuse', 'forget', 'delay'] as const)[Math.floor(random() * 3)]!;
      },
    });
    const log = new ChainedLog(stream);
    const owners: { writer: LogWriter; isFenced: boolean }[] = [];
    const acknowledged: number[] = [];
    const denied = new Set<number>();
    isFaulty = true;
    for (let sequence = 1; sequence <= 300; sequence++) {
      if (owners.length === 0 || random() < 0.05) {
        const { writer } = await takeOver(log, { owner: `w${owners.length}` });
        owners.push({ writer, isFenced: false });
      }
      const isOld = random() < 0.2;
      const owner = isOld ? owners[Math.floor(random() * owners.length)]! : owners.at(-1)!;
      if (owner.isFenced) continue;
      const { writer } = owner;
      let outcome: AppendOutcome = await writer.append(commitOf(sequence));
      if (outcome.kind === 'unknown') outcome = await writer.settle(NEVER);
      if (outcome.kind === 'committed') acknowledged.push(sequence);
      else denied.add(sequence);
      owner.isFenced = outcome.kind === 'fenced';
      assert.equal(owner.isFenced, outcome.kind === 'fenced' && owner !== owners.at(-1));
    }
    isFaulty = false;
    const found = outline(await readAll(log)).filter((item) => typeof item === 'number');
    assert.deepEqual(found, acknowledged, `seed ${seed}`);
    assert.ok(denied.size > 0 && acknowledged.length > 50, `seed ${seed}`);
  });

  it('denies a commit only when it can no longer be appended', async () => {
    let fault: 'delay' | null = 'delay';
    const stream = new MemoryStream({ fault: () => fault });
    const log = new ChainedLog(stream);
    fault = null;
    const { writer } = await takeOver(log);
    fault = 'delay';
    assert.equal((await writer.append(commitOf(1))).kind, 'unknown');
    fault = null;
    // The delayed commit arrives after the mark, which expects the same head.
    assert.equal((await writer.settle(NEVER)).kind, 'absent');
    await committed(writer, commitOf(2));
    assert.deepEqual(outline(await readAll(log)), ['epoch 1 by a', 2]);
  });

  it('stops settling when the signal is aborted', async () => {
    let fault: 'refuse' | null = null;
    const stream = new MemoryStream({ fault: () => fault });
    const { writer } = await takeOver(new ChainedLog(stream));
    fault = 'refuse';
    assert.equal((await writer.append(commitOf(1))).kind, 'unknown');
    const ending = new AbortController();
    setTimeout(() => ending.abort(new Error('enough')), 50);
    await assert.rejects(writer.settle(ending.signal), /enough|aborted/);
    fault = null;
    assert.equal((await writer.settle(NEVER)).kind, 'absent');
  });
});

describe('a damaged log', () => {
  for (const [what, damage] of Object.entries(damages)) {
    it(`is not read beyond ${what}`, async () => {
      const stream = new MemoryStream();
      const log = new ChainedLog(stream, { messageBytesMax: 1_000 });
      const { writer } = await takeOver(log);
      for (let sequence = 1; sequence <= 4; sequence++) {
        await committed(writer, commitOf(sequence, { 1: 100, 2: 2_500 }));
      }
      stream.change(damage);
      await assert.rejects(readAll(log), { code: 'data_corrupt' });
    });
  }

  it('is read by readers that do not need the missing messages', async () => {
    const stream = new MemoryStream();
    const log = new ChainedLog(stream);
    const { writer } = await takeOver(log);
    await committed(writer, commitOf(1, { 1: 100, 2: 100 }));
    stream.change((messages) => without(messages, ({ channel }) => channel === 1));
    assert.deepEqual(outline(await readAll(log, undefined, [2])), ['epoch 1 by a', 1]);
  });
});
