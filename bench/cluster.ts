// A cluster of server processes on three NATS servers, all on this machine, compared with a single server: the
// latency of writes, the rate of bulk loading compared with that of the log alone, pauses of writes when nodes
// and NATS servers stop, imports and queries by one node and by several, each limited to a part of a core, and queries by
// nodes with less memory than the collection takes.
//
//   node dist/bench/cluster.js                 smoke parameters: only checks the bench
//   node dist/bench/cluster.js --full          as docs/performance.md quotes it: some six minutes
//   node dist/bench/cluster.js --out FILE      also writes the table as Markdown
//   node dist/bench/cluster.js --only import   one part: writes, queries, import, scatter or memory

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { JetStreamStream } from '../src/cluster/service/jetstream-stream.js';
import { NatsServers, natsMissing } from '../test/cluster/nats-servers.js';
import { NodeProcesses } from '../test/cluster/node-processes.js';
import { GeneratedRows, streamRows } from '../test/durability/generated-rows.js';
import { createCaller, startServerProcess } from '../test/support/server-process.js';
import { ControlGroup, dropPageCache } from './cluster/control-group.js';
import { cpuMsOf } from './cluster/cpu-time.js';
import { retryUntilDone } from './cluster/retry-until-done.js';
import { COMMAND_SETTINGS, describeMachine } from './engine/machine.js';
import { quantile } from './engine/timing.js';

const SMOKE = {
  writeRounds: 2,
  writesPerRound: 5,
  bulkRows: 2_500,
  bulkRounds: 1,
  faultRounds: 1,
  searchedRows: 2_500,
  largeRows: 2_500,
  uploadRows: 500,
  queries: 3,
};
const FULL = {
  writeRounds: 10,
  writesPerRound: 50,
  bulkRows: 20_000,
  bulkRounds: 3,
  faultRounds: 5,
  searchedRows: 60_000,
  largeRows: 120_000,
  uploadRows: 20_000,
  queries: 150,
};
const DIMENSION = 768;
/** The share of a core for each node. */
const QUOTA = 0.25;
/** Memory for each node: less than 120 000 vectors and their codes take, but more than a third of that. */
const MEMORY_BYTES = 400_000_000;
const NODES = ['n1', 'n2', 'n3'];
const MESSAGE_BYTES = 512 * 1024;
/** Messages of one atomic batch of the raw log: as many bytes as the node commits at once. */
const BATCH_MESSAGES = 15;
/** The value count up to which a node searches alone; no search is as large as this. */
const VALUES_MAX = '100000000000000';
/** How long to wait after a load until it is archived. */
const ARCHIVED_MS = 3_000;
/** How long to wait after a load until most rows are in files, per row. */
const SEALED_MS_PER_ROW = 0.1;
/** The uploads of an import through each node, each of about a segment, besides one that warms it up. */
const UPLOADS = 8;
/** The number of acknowledged writes before an event, and after it. */
const WRITES_AROUND = 20;

const { values: args } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    out: { type: 'string' },
    only: { type: 'string' },
  },
});
const parts = {
  writes: compareWithSingleServer,
  queries: measureSharedQueries,
  import: measureImport,
  scatter: measureScatterOverhead,
  memory: measureBeyondMemory,
};
const sizes = args.full ? FULL : SMOKE;
const rows = new GeneratedRows(DIMENSION);
const lines: string[] = [];
const missing = natsMissing();
if (missing !== undefined) {
  console.log(`skipped: ${missing}`);
} else {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
  const nats = await NatsServers.start();
  try {
    for (const [name, measure] of Object.entries(parts)) {
      if (args.only === undefined || args.only === name) await measure(nats, folder);
    }
  } finally {
    await nats.stop();
    await rm(folder, { recursive: true, force: true });
  }
  const table = [
    `Cluster bench, ${args.full ? 'full' : 'smoke'} parameters, three NATS servers that sync always`,
    describeMachine(),
    '',
    '| what | measured | goal |',
    '| --- | --- | --- |',
    ...lines,
    '',
  ].join('\n');
  console.log(table);
  if (args.out !== undefined) await writeFile(args.out, table);
}

function add(what: string, measured: string, goal = ''): void {
  lines.push(`| ${what} | ${measured} | ${goal} |`);
}

function settingsOf(name: string, natsServers: NatsServers, folder: string) {
  return {
    ...COMMAND_SETTINGS.settings,
    SAGITTA_WRITE_RATE_MAX: '0',
    SAGITTA_READ_RATE_MAX: '0',
    SAGITTA_CLUSTER: natsServers.urls.join(','),
    SAGITTA_CLUSTER_NAME: name,
    SAGITTA_BLOBS: join(folder, `${name}-blobs`),
    SAGITTA_LOG_LEVEL: 'error',
  };
}

/** Compares three nodes that share the whole machine with a single server. */
async function compareWithSingleServer(natsServers: NatsServers, folder: string): Promise<void> {
  const single = await startServerProcess({
    dataDirectory: join(folder, 'single'),
    settings: {
      ...COMMAND_SETTINGS.settings,
      SAGITTA_WRITE_RATE_MAX: '0',
      SAGITTA_LOG_LEVEL: 'error',
    },
  });
  const nodes = new NodeProcesses({
    names: NODES,
    folder: join(folder, 'beside'),
    settings: settingsOf('beside', natsServers, folder),
  });
  try {
    await Promise.all(NODES.map((node) => retryUntilDone(() => nodes.start(node))));
    const owner = await nodes.whenLed();
    const other = NODES.find((node) => node !== owner)!;
    // The leader creates the collection and owns it for a while.
    for (const url of [single.url, nodes.urlOf(owner)!]) await createCollection(url, 'c');
    await measureWrites([
      ['a single server', single.url],
      ['a cluster, through the owner of the collection', nodes.urlOf(owner)!],
      ['a cluster, through another node', nodes.urlOf(other)!],
    ]);
    await measureBulkLoad(natsServers, {
      singleUrl: single.url,
      ownerUrl: nodes.urlOf(owner)!,
      nodes,
    });
    await single.stop();
    await measurePauses(natsServers, nodes);
  } finally {
    await single.kill();
    await nodes.killAll();
  }
}

async function createCollection(url: string, id: string, others: object = {}): Promise<void> {
  const { call, close } = createCaller(url, 1);
  const collection = { id, dimension: DIMENSION, metric: 'cosine', ...others };
  await retryUntilDone(async () => {
    const made = await call('POST', '/v1/collections?if_not_exists=true', collection);
    assert.equal(made.status, 200, made.text);
  });
  close();
}

/** Measures writes of one row at a time, alternating between the targets. */
async function measureWrites(targets: readonly (readonly [string, string])[]): Promise<void> {
  const measured = targets.map(([what, url]) => ({
    what,
    ...createCaller(url, 1),
    ms: [] as number[],
  }));
  let row = 0;
  for (let round = -1; round < sizes.writeRounds; round++) {
    for (const { call, ms } of measured) {
      for (let i = 0; i < sizes.writesPerRound; i++) {
        const vectors = [{ id: rows.idOf(row), values: [...rows.vector(row++)] }];
        const takenMs = await retryUntilDone(async () => {
          const startedAt = performance.now();
          const reply = await call('POST', '/v1/collections/c/vectors', { vectors });
          assert.equal(reply.status, 200, reply.text);
          return performance.now() - startedAt;
        });
        if (round >= 0) ms.push(takenMs);
      }
    }
  }
  const singleMs = quantile(measured[0]!.ms, 0.5);
  for (const [i, { what, ms, close }] of measured.entries()) {
    const [p50, p99] = [quantile(ms, 0.5), quantile(ms, 0.99)];
    const goal = i === 0 ? '' : `${(singleMs + 4).toFixed(1)} ms, 25 ms`;
    add(
      `write of one row to ${what}, p50, p99 of ${ms.length}`,
      `${p50.toFixed(1)} ms, ${p99.toFixed(1)} ms`,
      goal,
    );
    close();
  }
}

/** Measures a stream of rows, and the same bytes in the log alone. */
async function measureBulkLoad(
  natsServers: NatsServers,
  {
    singleUrl,
    ownerUrl,
    nodes,
  }: { readonly singleUrl: string; readonly ownerUrl: string; readonly nodes: NodeProcesses },
): Promise<void> {
  const bytes = sizes.bulkRows * DIMENSION * 4;
  const rates = { single: [] as number[], cluster: [] as number[], raw: [] as number[] };
  const cpu = { nodes: [] as number[], nats: [] as number[], rawNats: [] as number[] };
  const usedBy = (pids: readonly number[]) => cpuMsOf(pids) ?? Number.NaN;
  for (let round = 0; round < sizes.bulkRounds; round++) {
    rates.single.push(bytes / (await loadNewCollection(singleUrl, `single-${round}`)));
    const [nodesMs, natsMs] = [usedBy(nodes.pids), usedBy(natsServers.pids)];
    rates.cluster.push(bytes / (await loadNewCollection(ownerUrl, `bulk-${round}`)));
    // Waits until the other nodes have stored it, too, and it is archived.
    await waitUntilEqual(
      NODES.map((node) => nodes.urlOf(node)!),
      `bulk-${round}`,
    );
    await sleep(ARCHIVED_MS);
    cpu.nodes.push(usedBy(nodes.pids) - nodesMs);
    cpu.nats.push(usedBy(natsServers.pids) - natsMs);
    const beforeMs = usedBy(natsServers.pids);
    rates.raw.push(bytes / (await retryUntilDone(() => rawBatches(natsServers, bytes))));
    cpu.rawNats.push(usedBy(natsServers.pids) - beforeMs);
  }
  const medianRate = (found: readonly number[]) => quantile(found, 0.5) / 1_000;
  const [single, cluster, raw] = [rates.single, rates.cluster, rates.raw].map(medianRate) as [
    number,
    number,
    number,
  ];
  const what = `bulk load, ${sizes.bulkRows} × ${DIMENSION}`;
  add(`${what}, a single server`, `${single.toFixed(0)} MB/s`);
  add(
    `${what}, a cluster`,
    `${cluster.toFixed(0)} MB/s, ${((100 * cluster) / raw).toFixed(0)} % of the raw batches`,
    '80 %',
  );
  add('atomic batches of the same bytes, without readers', `${raw.toFixed(0)} MB/s`);
  const perMb = (ms: readonly number[]) => (quantile(ms, 0.5) / (bytes / 1e6)).toFixed(0);
  add(
    'processor time per MB of a bulk load: three nodes, three NATS servers; of the batches',
    `${perMb(cpu.nodes)}, ${perMb(cpu.nats)} ms; ${perMb(cpu.rawNats)} ms`,
  );
}

/** Creates and fills a collection. Returns the milliseconds that the load took. */
async function loadNewCollection(url: string, id: string): Promise<number> {
  await createCollection(url, id);
  return await fill(url, id, sizes.bulkRows);
}

/** Returns the milliseconds that the load took. */
function fill(url: string, id: string, rowCount: number): Promise<number> {
  return retryUntilDone(async () => {
    const startedAt = performance.now();
    await streamRows(`${url}/v1/collections/${id}/vectors`, rows, [0, rowCount]);
    return performance.now() - startedAt;
  });
}

async function rawBatches(natsServers: NatsServers, byteCount: number): Promise<number> {
  const connection = await natsServers.connect();
  try {
    const stream = new JetStreamStream(connection, `raw-${randomUUID()}`);
    await stream.create({ replicas: 3, messageBytesMax: 8_000_000 });
    const bytes = new Uint8Array(MESSAGE_BYTES).map((_, i) => (i * 2_654_435_761) >>> 24);
    let head = 0;
    const startedAt = performance.now();
    for (let sent = 0; sent < byteCount; sent += BATCH_MESSAGES * MESSAGE_BYTES) {
      const parts = Array.from({ length: BATCH_MESSAGES }, () => ({ channel: 0, bytes }));
      const end = { channel: 'chain' as const, bytes: bytes.subarray(0, 500) };
      head = await stream.publish([...parts, end], head);
    }
    const ms = performance.now() - startedAt;
    await stream.drop();
    return ms;
  } finally {
    await connection.close();
  }
}

/** Measures the longest time without an acknowledged write through a node that stays up. */
async function measurePauses(natsServers: NatsServers, nodes: NodeProcesses): Promise<void> {
  const connection = await natsServers.connect();
  const events = [
    ['the owner of the collection is asked to leave', '1 s', (node: string) => nodes.stop(node)],
    ['the owner of the collection is killed', '3 s', (node: string) => nodes.kill(node)],
  ] as const;
  try {
    for (const [what, goal, end] of events) {
      const gaps: number[] = [];
      for (let round = 0; round < sizes.faultRounds; round++) {
        const id = `pause-${randomUUID()}`;
        const leader = await nodes.whenLed();
        await createCollection(nodes.urlOf(leader)!, id);
        const stays = NODES.find((node) => node !== leader)!;
        gaps.push(await longestGap(nodes.urlOf(stays)!, id, () => end(leader)));
        await retryUntilDone(() => nodes.start(leader));
      }
      addPause(what, gaps, goal);
    }
    const gaps: number[] = [];
    for (let round = 0; round < sizes.faultRounds; round++) {
      const id = `nats-${randomUUID()}`;
      const leader = await nodes.whenLed();
      const streams = async () => {
        const names = new Set<string>();
        for await (const { config } of connection.manager.streams.list()) names.add(config.name);
        return names;
      };
      const before = await retryUntilDone(streams);
      await createCollection(nodes.urlOf(leader)!, id);
      const index = await retryUntilDone(async () => {
        const stream = [...(await streams())].find((name) => !before.has(name));
        const info = await connection.manager.streams.info(stream!);
        return Number(info.cluster!.leader!.slice(1));
      });
      gaps.push(await longestGap(nodes.urlOf(leader)!, id, () => natsServers.kill(index)));
      await natsServers.restart(index);
      while (!(await natsServers.areInSync())) await sleep(200);
    }
    addPause('the NATS server that leads its log is killed', gaps, '10 s');
  } finally {
    await connection.close();
  }
}

function addPause(what: string, gaps: readonly number[], goal: string): void {
  const [median, longest] = [quantile(gaps, 0.5), Math.max(...gaps)];
  add(
    `no writes while ${what}, median and longest of ${gaps.length}`,
    `${(median / 1_000).toFixed(2)} s, ${(longest / 1_000).toFixed(2)} s`,
    goal,
  );
}

async function longestGap(url: string, id: string, event: () => Promise<void>): Promise<number> {
  const { call, close } = createCaller(url, 1);
  const write = async (row: number) => {
    const vectors = [{ id: rows.idOf(row), values: [...rows.vector(row)] }];
    const reply = await call('POST', `/v1/collections/${id}/vectors`, { vectors }).catch(
      () => null,
    );
    return reply?.status === 200;
  };
  for (let row = 0; row < WRITES_AROUND; ) if (await write(row)) row++;
  let lastAt = performance.now();
  let gap = 0;
  let isOver = false;
  const ending = event().then(() => {
    isOver = true;
  });
  for (let afterwards = 0; afterwards < WRITES_AROUND; ) {
    if (!(await write(WRITES_AROUND))) {
      await sleep(10);
      continue;
    }
    gap = Math.max(gap, performance.now() - lastAt);
    lastAt = performance.now();
    if (isOver) afterwards++;
  }
  await ending;
  close();
  return gap;
}

/** Measures queries by nodes that have a part of a core each. */
async function measureSharedQueries(natsServers: NatsServers, folder: string): Promise<void> {
  const names = ['q1', 'q2', 'q3', 'q4'];
  const quotas = names.map((name) => ControlGroup.ofCpu(name, QUOTA));
  if (quotas.includes(null)) {
    for (const quota of quotas) await quota?.remove();
    add('queries by several nodes', 'skipped: control groups cannot be created');
    return;
  }
  const settings = settingsOf('together', natsServers, folder);
  const servers = new Map<string, Awaited<ReturnType<typeof startServerProcess>>>();
  const start = async (name: string, others: Readonly<Record<string, string>>) => {
    const server = await startServerProcess({
      dataDirectory: join(folder, 'together', name),
      prefix: quotas[names.indexOf(name)]!.prefix,
      settings: {
        ...settings,
        SAGITTA_CLUSTER_NODE: name,
        SAGITTA_THREADS: '1',
        SAGITTA_CLUSTER_SILENT_MS: '60000',
        ...others,
      },
    });
    servers.set(name, server);
  };
  const stopAll = async () => {
    await Promise.all([...servers.values()].map((server) => server.kill()));
    servers.clear();
  };
  try {
    const alone = { SAGITTA_CLUSTER_SCATTER_VALUES: VALUES_MAX };
    const scattered = { SAGITTA_CLUSTER_SCATTER_VALUES: '1' };
    await Promise.all(names.map((name) => retryUntilDone(() => start(name, alone))));
    const urls = () => names.flatMap((name) => servers.get(name)?.url ?? []);
    await createCollection(urls()[0]!, 'c');
    await fill(urls()[0]!, 'c', sizes.searchedRows);
    await waitUntilEqual(urls());
    const rates: number[] = [];
    for (const count of [1, 2, 4]) {
      const rate = await measureQueryRate(urls().slice(0, count));
      rates.push(rate);
      const efficiency = rate / rates[0]! / count;
      const goal = count === 1 ? '' : count === 2 ? '0.9' : '0.8';
      add(
        `queries of ${sizes.searchedRows} × ${DIMENSION} by ${count} of 4 nodes with ${QUOTA} cores each`,
        `${rate.toFixed(1)}/s${count === 1 ? '' : `, efficiency ${efficiency.toFixed(2)}`}`,
        goal,
      );
    }
    await stopAll();
    const p50: number[] = [];
    for (const count of [4, 2, 1]) {
      await Promise.all(
        names.slice(0, count).map((name) => retryUntilDone(() => start(name, scattered))),
      );
      await waitUntilEqual(urls());
      p50.unshift(await medianOf(urls()[0]!));
      await stopAll();
    }
    for (const [i, count] of [1, 2, 4].entries()) {
      const speedup = p50[0]! / p50[i]!;
      add(
        `one query at a time answered by ${count} of these nodes together, p50`,
        `${p50[i]!.toFixed(0)} ms${count === 1 ? '' : `, ${speedup.toFixed(2)} times as fast`}`,
      );
    }
  } finally {
    await stopAll();
    for (const quota of quotas) await quota?.remove();
  }
}

/** Measures an import through nodes that have a part of a core each, and keep a part of the files. */
async function measureImport(natsServers: NatsServers, folder: string): Promise<void> {
  const rates: number[] = [];
  // A node that has a quarter of a core takes long to start.
  for (const count of args.full ? [1, 2, 4] : [1]) {
    const names = Array.from({ length: count }, (_, i) => `i${i + 1}`);
    const quotas = names.map((name) => ControlGroup.ofCpu(name, QUOTA));
    if (quotas.includes(null)) {
      for (const quota of quotas) await quota?.remove();
      add('imports through several nodes', 'skipped: control groups cannot be created');
      return;
    }
    const servers: Awaited<ReturnType<typeof startServerProcess>>[] = [];
    try {
      for (const [i, name] of names.entries()) {
        const start = () =>
          startServerProcess({
            dataDirectory: join(folder, `import-${count}`, name),
            prefix: quotas[i]!.prefix,
            settings: {
              ...settingsOf(`import-${count}`, natsServers, folder),
              SAGITTA_CLUSTER_NODE: name,
              SAGITTA_CLUSTER_FILE_COPIES: '1',
              SAGITTA_CLUSTER_SILENT_MS: '60000',
              SAGITTA_THREADS: '1',
            },
          });
        servers.push(await retryUntilDone(start));
      }
      const rate = await measureImportRate(servers.map(({ url }) => url));
      rates.push(rate);
      const goal = count === 1 ? '' : count === 2 ? '1.7' : '3';
      const ratio = count === 1 ? '' : `, ${(rate / rates[0]!).toFixed(2)} times as fast`;
      const rowCount = UPLOADS * count * sizes.uploadRows;
      const what = `import of ${rowCount} × ${DIMENSION} through ${count} of ${count} nodes with ${QUOTA} cores each, which keep each file once`;
      add(what, `${rate.toFixed(0)} rows/s${ratio}`, goal);
    } finally {
      await Promise.all(servers.map((server) => server.kill()));
      for (const quota of quotas) await quota?.remove();
    }
  }
}

/**
 * Returns the rows per second of bulk streams, two at a time through each node, so that it works on one while the owner of
 * the log adds the file of the other; after one to warm it up.
 */
async function measureImportRate(urls: readonly string[]): Promise<number> {
  await createCollection(urls[0]!, 'c', { replication_factor: urls.length });
  let next = 0;
  const upload = async (url: string) => {
    const from = sizes.uploadRows * next++;
    const path = `${url}/v1/collections/c/vectors?bulk=true`;
    await streamRows(path, rows, [from, from + sizes.uploadRows]);
  };
  await Promise.all(urls.map(upload));
  await waitUntilEqual(urls);
  const startedAtMs = performance.now();
  const uploadCount = UPLOADS * urls.length;
  const end = next + uploadCount;
  await Promise.all(
    [...urls, ...urls].map(async (url) => {
      while (next < end) await upload(url);
    }),
  );
  await waitUntilEqual(urls);
  return (1_000 * uploadCount * sizes.uploadRows) / (performance.now() - startedAtMs);
}

/** Measures queries of a collection that is larger than each node's memory, through all nodes in turn. */
async function measureBeyondMemory(natsServers: NatsServers, folder: string): Promise<void> {
  const groups = NODES.map((name) => ControlGroup.ofMemory(name, MEMORY_BYTES));
  const what = `one query at a time of ${sizes.largeRows} × ${DIMENSION}`;
  const nodes = new NodeProcesses({
    names: NODES,
    folder: join(folder, 'memory'),
    settings: { ...settingsOf('memory', natsServers, folder), SAGITTA_CLUSTER_SILENT_MS: '60000' },
  });
  const urls = () => NODES.map((node) => nodes.urlOf(node)!);
  try {
    await Promise.all(NODES.map((node) => retryUntilDone(() => nodes.start(node))));
    await nodes.whenLed();
    await createCollection(urls()[0]!, 'c');
    await fill(urls()[0]!, 'c', sizes.largeRows);
    await waitUntilEqual(urls());
    await sleep(sizes.largeRows * SEALED_MS_PER_ROW);
    for (const isLimited of [false, true]) {
      for (const values of [VALUES_MAX, '1']) {
        await Promise.all(NODES.map((node) => nodes.stop(node)));
        if (isLimited && (groups.includes(null) || !dropPageCache())) {
          add(what, 'skipped: memory cannot be limited');
          return;
        }
        await Promise.all(
          NODES.map((node, i) =>
            retryUntilDone(() =>
              nodes.start(node, {
                settings: { SAGITTA_CLUSTER_SCATTER_VALUES: values },
                ...(isLimited && { prefix: groups[i]!.prefix }),
              }),
            ),
          ),
        );
        await waitUntilEqual(urls());
        await medianInTurns(urls());
        const ms = await medianInTurns(urls());
        const by = values === '1' ? 'three nodes together' : 'one of three nodes';
        const memory = isLimited ? `, ${MEMORY_BYTES / 1e6} MB of memory each` : '';
        add(`${what} by ${by}${memory}, p50`, `${ms.toFixed(1)} ms`);
      }
    }
  } finally {
    await nodes.killAll();
    for (const group of groups) await group?.remove();
  }
}

/** Returns the median latency of queries through one node after another. */
async function medianInTurns(urls: readonly string[]): Promise<number> {
  const callers = urls.map((url) => createCaller(url, 1));
  const times: number[] = [];
  for (let i = 0; i < sizes.queries; i++) {
    times.push(await measureQuery(callers[i % callers.length]!.call, (i * 31) % 500));
  }
  for (const { close } of callers) close();
  return quantile(times, 0.5);
}

/** Measures what asking other nodes costs, with a search that takes no time. */
async function measureScatterOverhead(natsServers: NatsServers, folder: string): Promise<void> {
  const found: number[] = [];
  for (const values of [VALUES_MAX, '1']) {
    const name = `overhead-${values.length}`;
    const nodes = new NodeProcesses({
      names: NODES,
      folder: join(folder, name),
      settings: {
        ...settingsOf(name, natsServers, folder),
        SAGITTA_CLUSTER_SCATTER_VALUES: values,
      },
    });
    try {
      await Promise.all(NODES.map((node) => retryUntilDone(() => nodes.start(node))));
      const leader = await nodes.whenLed();
      const url = nodes.urlOf(leader)!;
      await createCollection(url, 'c');
      await fill(url, 'c', 500);
      await waitUntilEqual(NODES.map((node) => nodes.urlOf(node)!));
      await medianOf(url, 2 * sizes.queries);
      found.push(await medianOf(url, 2 * sizes.queries));
    } finally {
      await nodes.killAll();
    }
  }
  add(
    'time that scattering over three nodes adds to a query of 500 rows, p50',
    `${(found[1]! - found[0]!).toFixed(2)} ms (${found[0]!.toFixed(2)} alone)`,
    '1.5 ms',
  );
}

/** Returns the milliseconds that the query took. */
async function measureQuery(
  call: ReturnType<typeof createCaller>['call'],
  row: number,
): Promise<number> {
  const body = { vector: [...rows.vector(row)], top_k: 10 };
  const { reply, ms } = await retryUntilDone(async () => {
    const startedAt = performance.now();
    const found = await call('POST', '/v1/collections/c/query', body);
    assert.equal(found.status, 200, found.text);
    return { reply: found, ms: performance.now() - startedAt };
  });
  const { matches } = reply.json<{ matches: { id: string }[] }>();
  assert.equal(matches[0]!.id, rows.idOf(row), 'a row is nearest to itself');
  return ms;
}

/** Returns the queries per second, two at a time on each node. */
async function measureQueryRate(urls: readonly string[]): Promise<number> {
  const callers = urls.flatMap((url) => [createCaller(url, 1), createCaller(url, 1)]);
  for (const { call } of callers) await measureQuery(call, 0);
  const startedAt = performance.now();
  await Promise.all(
    callers.map(async ({ call, close }, i) => {
      for (let k = 0; k < sizes.queries; k++) await measureQuery(call, (i + k * 31) % 500);
      close();
    }),
  );
  return (callers.length * sizes.queries * 1_000) / (performance.now() - startedAt);
}

async function medianOf(url: string, count = sizes.queries): Promise<number> {
  const { call, close } = createCaller(url, 1);
  const ms: number[] = [];
  for (let i = -2; i < count; i++) {
    const takenMs = await measureQuery(call, Math.abs(i * 31) % 500);
    if (i >= 0) ms.push(takenMs);
  }
  close();
  return quantile(ms, 0.5);
}

/** Resolves when all nodes have the same rows. */
async function waitUntilEqual(urls: readonly string[], collection = 'c'): Promise<void> {
  await retryUntilDone(async () => {
    const sequences = await Promise.all(
      urls.map(async (url) => {
        const reply = await fetch(`${url}/v1/collections/${collection}`);
        return ((await reply.json()) as { sequence?: number }).sequence ?? -1;
      }),
    );
    const [first] = sequences;
    assert.ok(first! > 0 && sequences.every((sequence) => sequence === first), String(sequences));
  });
}
