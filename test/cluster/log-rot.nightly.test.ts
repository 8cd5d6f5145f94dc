// Flipped bits in the replica of a log on one server: when that server leads, readers get every record or an error, and
// never fewer records, although JetStream itself was measured to skip thousands of messages.

import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';
import { it } from 'node:test';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START, type LogRecord } from '../../src/cluster/logs/collection-log.js';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import { createRandom, testSeed } from '../database/harness.js';
import { commitOf, committed, takeOver } from './log-contract.js';
import { NatsServers, natsMissing } from './nats-servers.js';

const STREAM = 'rot';
const COMMITS = 300;
const ROUNDS = 3;
const FLIPS = 5;
/** A replica that has found its damage may refuse to lead. */
const LEAD_MS_MAX = 60_000;
/** A read that gets neither the end nor an error by then has failed. */
const READ_MS_MAX = 120_000;

it('a damaged replica of a log is noticed or repaired, never read', {
  skip: natsMissing() ?? false,
}, async () => {
  const seed = testSeed();
  const random = createRandom(seed);
  const servers = await NatsServers.start();
  const connection = await servers.connect();
  try {
    const stream = new JetStreamStream(connection, STREAM, { publishMsMax: 60_000 });
    await stream.create({ replicas: 3, messageBytesMax: 1_000_000 });
    const log = new ChainedLog(stream);
    const { writer } = await takeOver(log);
    for (let sequence = 1; sequence <= COMMITS; sequence++) {
      await committed(writer, commitOf(sequence, { 0: 1_500, 1: 700 }));
    }
    const outcomes: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const victim = round % 3;
      await servers.kill(victim);
      const files = servers.messageFiles(victim, STREAM);
      for (let flip = 0; flip < FLIPS; flip++) flipBit(files, random);
      await servers.restart(victim);
      const isLeading = await servers.lead(victim, STREAM, connection, LEAD_MS_MAX);
      outcomes.push(isLeading ? await read(log) : 'no leader');
    }
    console.log(`seed ${seed}: ${outcomes.join('; ')}`);
    for (const outcome of outcomes) {
      assert.match(outcome, /^(?:all records|error: |no )/, `seed ${seed}`);
    }
  } finally {
    await connection.close();
    await servers.stop();
  }
});

async function read(log: ChainedLog): Promise<string> {
  const records: LogRecord[] = [];
  const signal = AbortSignal.timeout(READ_MS_MAX);
  try {
    for await (const record of log.readToEnd(LOG_START, { signal })) records.push(record);
  } catch (error) {
    if (signal.aborted) return `no end within ${READ_MS_MAX} ms`;
    return `error: ${(error as Error).message}`;
  }
  const sequences = records.flatMap((record) =>
    record.kind === 'commit' ? [record.commit.firstSequence] : [],
  );
  const isWhole =
    sequences.length === COMMITS && sequences.every((sequence, i) => sequence === i + 1);
  return isWhole ? 'all records' : `${sequences.length} of ${COMMITS} commits`;
}

function flipBit(files: readonly string[], random: () => number): void {
  const file = files[Math.floor(random() * files.length)];
  assert.ok(file !== undefined && statSync(file).size > 0);
  const at = Math.floor(random() * readFileSync(file).length);
  const byte = new Uint8Array(1);
  const descriptor = openSync(file, 'r+');
  readSync(descriptor, byte, 0, 1, at);
  byte[0]! ^= 1 << Math.floor(random() * 8);
  writeSync(descriptor, byte, 0, 1, at);
  closeSync(descriptor);
}
