// Damaged replicas of the log of a collection under running nodes: a flipped bit in a message that a node has not read
// yet, and a stream that one server has lost. No acknowledged write is lost, no node skips anything, and all of them go
// on.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TimeoutError } from '@nats-io/nats-core';
import type { SagittaError } from '../../src/common/errors.js';
import type { RunningServer } from '../../src/main.js';
import { eventually } from '../support/waiting.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { RunningCluster } from './running-cluster.js';

const NAME = 'rot';
/** The server with the damaged replica in each round; null if all of them have lost the messages. */
const ROUNDS = [0, 1, null];
const LEAD_MS_MAX = 60_000;

it('nodes have every acknowledged write in spite of damaged replicas of a log', {
  skip: natsMissing() ?? false,
}, async () => {
  const nats = await NatsServers.start();
  const cluster = await RunningCluster.start({ nats, name: NAME });
  const connection = await nats.connect();
  try {
    const written: string[] = [];
    const urls = () => [...cluster.servers.values()].map(({ url }) => url);
    await post(urls()[0]!, '/collections', { id: 'c', dimension: 2, metric: 'dot' });
    const write = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const id = `row-${String(written.length).padStart(5, '0')}`;
        const vectors = [{ id, values: [1, i], metadata: { text: 'x'.repeat(500) } }];
        await post(urls()[0]!, '/collections/c/vectors', { vectors });
        written.push(id);
      }
    };
    await write(20);
    const streams = await connection.manager.streams.names().next();
    const stream = streams.find((name) => !name.endsWith('-catalogue'))!;
    const { streams: api } = connection.manager;
    const stateOf = async (name: string) => (await untilAnswered(() => api.info(name))).state;
    const outcomes: string[] = [];
    for (const damaged of ROUNDS) {
      // The node that is away has not read the messages that will be damaged.
      await cluster.remove('n3');
      await cluster.whenWritable();
      const first = written.length;
      await write(40);
      await whenArchived(urls());
      const victim = damaged ?? 2;
      if (damaged === null) {
        const { last_seq: last, num_deleted: goneCount = 0 } = await stateOf(stream);
        const parts = { filter: `${stream}.shard.0`, seq: last - 20 };
        // Readers find records without their fragments. Servers may purge and not reply.
        await untilAnswered(async () => {
          const { num_deleted: nowGoneCount = 0 } = await stateOf(stream);
          if (nowGoneCount <= goneCount) await api.purge(stream, parts);
        });
      } else {
        await nats.kill(victim);
        flipBitOf(nats.messageFiles(victim, stream), written[first + 20]!);
        await nats.restart(victim);
      }
      const isLeading = await nats.lead(victim, stream, connection, LEAD_MS_MAX);
      const { url } = await started(cluster, 'n3');
      assert.deepEqual(await idsAt(url), written);
      const repaired = await metric(url, 'sagitta_cluster_repaired_records_total');
      outcomes.push(`${isLeading ? 'leads' : 'does not lead'}: ${repaired} records repaired`);
      if (damaged === null) assert.ok(repaired > 0);
      await cluster.whenWritable();
      await write(5);
      await nats.kill(victim);
      nats.removeStream(victim, stream);
      await nats.restart(victim);
      await write(20);
      await nats.lead(victim, stream, connection, LEAD_MS_MAX);
      await write(5);
      for (const node of urls()) assert.deepEqual(await idsAt(node), written);
      for (const node of urls()) {
        const failed = () => metric(node, 'sagitta_cluster_logs_failed');
        await eventually('all logs are followed', async () => (await failed()) === 0);
      }
    }
    console.log(`${written.length} writes; ${outcomes.join('; ')}`);
  } finally {
    await connection.close();
    await cluster.stop();
    await nats.stop();
  }
});

/** Retries, since servers that elect a leader do not answer. */
async function untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
  }
}

/** Repeats the start, like a supervisor: a node cannot start while the NATS servers elect a leader. */
async function started(cluster: RunningCluster, node: string): Promise<RunningServer> {
  for (;;) {
    try {
      return await cluster.add(node);
    } catch (error) {
      const { code } = error as SagittaError;
      const isPassing = code === 'configuration_invalid' || code === 'no_leader';
      if (!isPassing && !(error instanceof TimeoutError)) throw error;
    }
  }
}

/** Flips a bit in the text of a row, in whichever file of the server contains it. */
function flipBitOf(files: readonly string[], id: string): void {
  let count = 0;
  for (const file of files) {
    const bytes = readFileSync(file);
    const at = bytes.indexOf(id);
    if (at === -1) continue;
    bytes[at + 2]! ^= 1;
    writeFileSync(file, bytes);
    count++;
  }
  assert.ok(count > 0, `no file has ${id}`);
}

async function post(url: string, path: string, body: unknown): Promise<void> {
  const { status, text } = await patientFetch(`${url}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(status, 200, text);
}

async function idsAt(url: string): Promise<string[]> {
  const { status, text } = await patientFetch(`${url}/v1/collections/c/vectors?limit=1000`, {
    headers: { 'sagitta-consistency': 'strong' },
  });
  assert.equal(status, 200, text);
  const { vectors } = JSON.parse(text) as { vectors: { id: string }[] };
  return vectors.map(({ id }) => id).sort();
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(text) ?? [];
  assert.ok(value !== undefined, `${name} in the metrics`);
  return Number(value);
}

/** Resolves when the leader has archived all earlier writes. */
async function whenArchived(urls: readonly string[]): Promise<void> {
  for (;;) {
    const lags = urls.map((url) => metric(url, 'sagitta_cluster_archive_lag_seconds'));
    if ((await Promise.all(lags)).every((lag) => lag === 0)) return;
    await sleep(100);
  }
}
