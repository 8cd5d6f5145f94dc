// `sagitta cluster verify` on nodes with real NATS servers finds a node with other rows, a damaged blob and a damaged log,
// and nothing where nothing is wrong.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { LOG_START } from '../../src/cluster/logs/collection-log.js';
import { JetStreamStream } from '../../src/cluster/service/jetstream-stream.js';
import { SealedStream } from '../../src/cluster/service/sealed-service.js';
import { startServer } from '../../src/main.js';
import { loadConfig } from '../../src/platform/config.js';
import { NodeKeys } from '../../src/platform/node-keys.js';
import { openStore } from '../../src/storage/open-store.js';
import { type CommandResult, run } from '../cli/command.js';
import { NatsServers, natsMissing } from './nats-servers.js';
import { patientFetch } from './patient-fetch.js';
import { RunningCluster } from './running-cluster.js';

const NAME = 'verify';

describe('sagitta cluster verify', { skip: natsMissing() ?? false }, () => {
  let nats: NatsServers;
  let cluster: RunningCluster;
  let connection: Awaited<ReturnType<NatsServers['connect']>>;
  let stream: string;

  before(async () => {
    nats = await NatsServers.start();
    const config = { clusterSnapshotBytes: 20_000 };
    cluster = await RunningCluster.start({ nats, name: NAME, config });
    connection = await nats.connect();
    await post('/collections', { id: 'c', dimension: 2, metric: 'dot' });
    await post('/collections/c/clone', { id: 'copy' });
    for (let i = 0; i < 10; i++) await writeRows(i);
    // Not the snapshot of the clone, at the start of its log.
    await writeUntil('snapshots', (path) => /\/0*[1-9]\d*-[^/]*\.json$/.test(path));
    await writeUntil('an archive', (path) => path.startsWith('archive/'));
    const streams = await connection.manager.streams.names().next();
    const lengths = await Promise.all(
      streams.map(async (name) => (await connection.manager.streams.info(name)).state.bytes),
    );
    stream = streams[lengths.indexOf(Math.max(...lengths))]!;
  });
  after(async () => {
    await connection?.close();
    await cluster?.stop();
    await nats?.stop();
  });

  const anyUrl = () => [...cluster.servers.values()][0]!.url;
  const verify = (url = anyUrl()): Promise<CommandResult> =>
    run(['cluster', 'verify', '--url', url]);
  const blobFolder = () => join(cluster.folder, 'blobs');
  const blobs = () => (readdirSync(blobFolder(), { recursive: true }) as string[]).sort();

  async function post(path: string, body: unknown, url = anyUrl()): Promise<void> {
    const { status, text } = await patientFetch(`${url}/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(status, 200, text);
  }

  async function writeRows(i: number, url?: string): Promise<void> {
    const vectors = Array.from({ length: 20 }, (_, j) => ({
      id: `v${i}-${j}`,
      values: [i, j],
      metadata: { text: 'x'.repeat(100) },
    }));
    await post('/collections/c/vectors', { vectors }, url);
  }

  /** Writes until the shared files contain a matching blob. */
  async function writeUntil(what: string, isWanted: (path: string) => boolean): Promise<void> {
    for (let i = 100; !blobs().some(isWanted); i++) {
      assert.ok(i < 1_000, `${what} among the shared files`);
      await writeRows(i);
      await sleep(50);
    }
  }

  /** Waits for the removals that follow a running snapshot. */
  async function whenBlobsStay(): Promise<void> {
    let before = '';
    for (let same = 0; same < 10; ) {
      await sleep(100);
      const now = blobs().join();
      same = now === before ? same + 1 : 0;
      before = now;
    }
  }

  /** Flips a bit in a file, and restores it when `use` ends. */
  async function damaged(path: string, use: () => Promise<void>): Promise<void> {
    const file = join(blobFolder(), path);
    const whole = readFileSync(file);
    const bytes = Buffer.from(whole);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    try {
      await use();
    } finally {
      writeFileSync(file, whole);
    }
  }

  it('finds nothing where nothing is wrong', async () => {
    const { code, stdout, stderr } = await verify();
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^c +\d+ +[\d,]+ +3 +[0-9a-f]{16} +identical$/m);
    for (const kind of ['log', 'archive', 'snapshot', 'origin']) {
      assert.match(stdout, new RegExp(`^${kind} .* intact$`, 'm'));
    }
    assert.match(stdout, /No difference and no damage found/);
    const json = await run(['cluster', 'verify', '--json', '--url', anyUrl()]);
    const report = JSON.parse(json.stdout);
    assert.deepEqual(report.problems, []);
    assert.equal(report.collections[0].nodes.length, 3);
  });

  it('finds a damaged chunk of the archive, and a damaged file of a snapshot', async () => {
    await whenBlobsStay();
    const chunk = blobs().find((path) => /^archive\/.*\/\d+-\d+-[0-9a-f]+$/.test(path))!;
    const file = blobs().find((path) => /^snapshots\/.*\/files\//.test(path))!;
    for (const path of [chunk, file]) {
      await damaged(path, async () => {
        const { code, stdout, stderr } = await verify();
        assert.equal(code, 1, stdout + stderr);
        assert.ok(stdout.includes(path), stdout);
        assert.match(stderr, /inconsistent or damaged: found (1 problem|2 problems)$/m);
      });
    }
    assert.equal((await verify()).code, 0);
  });

  it('finds a node with other rows than the others', async () => {
    await cluster.remove('n3');
    await cluster.whenWritable();
    const row = { id: 'the same id', values: [1, 1] };
    // As a service without a cluster, with another write under the next sequence of the cluster.
    const usual = loadConfig({ env: {} });
    const dataDir = join(cluster.folder, 'n3');
    const alone = await startServer({
      ...usual,
      port: 0,
      engine: 'reference',
      logLevel: 'error',
      threads: 1,
      dataDir,
    });
    await alone.loaded;
    await post('/collections/c/vectors', { vectors: [{ ...row, values: [1, 2] }] }, alone.url);
    await alone.stop();
    await post('/collections/c/vectors', { vectors: [row] });
    await writeAppliedPosition(dataDir);
    await cluster.add('n3');
    await cluster.whenWritable();
    const { code, stdout, stderr } = await verify();
    assert.equal(code, 1, stdout + stderr);
    assert.match(
      stdout,
      /collection "c" at sequence \d+ differs between nodes; n1, n2: .* digest [0-9a-f]{64}; n3: .* digest/,
    );
    await cluster.remove('n3');
    await cluster.whenWritable();
    assert.equal((await verify()).code, 0);
  });

  /** Pretends that the store has applied the log to its end. */
  async function writeAppliedPosition(directory: string): Promise<void> {
    const raw = new JetStreamStream(connection, stream);
    const log = new ChainedLog(new SealedStream(raw, new NodeKeys([], NAME)));
    const key = ['replication', stream.slice(NAME.length + 1)];
    const store = await openStore({ directory, mapping: 'memory', warn() {} });
    const applied = JSON.parse(Buffer.from(store.get(key)!).toString());
    const signal = new AbortController().signal;
    for await (const record of log.readToEnd(applied, { signal })) {
      if (record.kind !== 'barrier') Object.assign(applied, record.link);
      if (record.kind === 'epoch') applied.owner = record.owner;
    }
    assert.ok(applied.position > LOG_START.position);
    await store.commit([{ kind: 'put', key, value: Buffer.from(JSON.stringify(applied)) }]);
    await store.close();
  }

  it('finds a log that has lost messages', async () => {
    const { state } = await connection.manager.streams.info(stream);
    await connection.manager.streams.purge(stream, {
      filter: `${stream}.shard.0`,
      seq: state.last_seq,
    });
    const { code, stdout, stderr } = await verify();
    assert.equal(code, 1, stdout + stderr);
    assert.match(stdout, /^log .* is damaged: expected 1 messages of shard 0/m);
  });
});
