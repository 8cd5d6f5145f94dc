// Runs a cluster on this machine: three NATS servers and three Sagitta nodes with sample data. Queries and writes
// continue while the node that carries out the writes is killed and restarted.
//
//   npm run demo:cluster                   runs until Ctrl-C
//   npm run demo:cluster -- --seconds 40   stops by itself
//
// All files are in a temporary folder, which is removed at the end.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { createClient } = await import('@sagitta/client');
const { NatsServers, natsMissing } = await import(join(root, 'dist/test/cluster/nats-servers.js'));

const { seconds } = parseArgs({
  options: { seconds: { type: 'string', default: 'Infinity' } },
}).values;
const KILL_AFTER_S = 10;
const RESTART_AFTER_S = 20;
const START_MS_MAX = 60_000;
const COLLECTION = 'wordnet';
/** The sense "Atlantic bottlenose dolphin". */
const DOLPHIN = 'n02069974';

const folder = mkdtempSync(join(tmpdir(), 'sagitta-demo-'));
const children = new Set();
let isEnding = false;
let nats = null;
process.once('SIGINT', () => {
  isEnding = true;
});
process.once('SIGTERM', () => {
  isEnding = true;
});

async function main() {
  const missing = natsMissing();
  if (missing !== undefined) throw new Error(missing);
  nats = await NatsServers.start();
  console.log(`NATS: ${nats.urls.join(', ')}`);
  const ports = await freePorts(3);
  const nodes = ports.map((port, i) => new Node(`n${i + 1}`, port, nats.urls));
  for (const node of nodes) node.start();
  const leader = await waitForLeader(nodes);
  console.log(`Nodes: ${nodes.map(({ name, url }) => `${name} ${url}`).join(', ')}`);
  console.log(`${leader} leads: it creates, changes and deletes collections.`);
  const loader = nodes.find(({ name }) => name !== leader);
  await loader.client.collections.create({ id: COLLECTION, dimension: 256 });
  const imported = sagitta(
    ['import', join(root, 'examples/data/wordnet.arrow'), '--collection', COLLECTION],
    { SAGITTA_URL: loader.url },
  );
  if ((await exitOf(imported)) !== 0) throw new Error('the sample data could not be imported');
  console.log(`${await ownerIn(nodes)} carries out the writes of the collection ${COLLECTION}.\n`);
  await runLoad(nodes);
}

/** Queries every node and writes through every node, and prints a line each second. */
async function runLoad(nodes) {
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1_000;
  const isOver = () => isEnding || elapsed() >= Number(seconds);
  let acknowledged = 0;
  let acknowledgedAt = performance.now();
  let longestGapMs = 0;
  const querying = nodes.map(async (node) => {
    while (!isOver()) {
      const at = performance.now();
      try {
        await node.collection.query({ id: DOLPHIN, top_k: 10 });
        node.latencies.push(performance.now() - at);
      } catch (error) {
        requireRetryable(error);
        node.failureCount++;
        await sleep(100);
      }
      await sleep(5);
    }
  });
  const writing = (async () => {
    for (let i = 0; !isOver(); i++) {
      const node = nodes[i % nodes.length];
      const vector = { id: `demo-${i}`, values: Array.from({ length: 256 }, Math.random) };
      try {
        await node.collection.upsert([vector]);
        const now = performance.now();
        longestGapMs = Math.max(longestGapMs, now - acknowledgedAt);
        acknowledgedAt = now;
        acknowledged++;
      } catch (error) {
        requireRetryable(error);
        await sleep(50);
      }
      await sleep(20);
    }
  })();
  let killed = null;
  let owner = null;
  let isRestarted = false;
  while (!isOver()) {
    await sleep(1_000);
    const parts = nodes.map((node) => node.report());
    console.log(
      `${String(Math.round(elapsed())).padStart(4)} s  ${parts.join('   ')}   writes acknowledged ${acknowledged}`,
    );
    const found = await ownerIn(nodes);
    if (found !== null && owner !== null && found !== owner) {
      console.log(`        ${found} carries out the writes now.`);
    }
    owner = found ?? owner;
    if (killed === null && owner !== null && elapsed() >= KILL_AFTER_S) {
      killed = nodes.find(({ name }) => name === owner);
      longestGapMs = 0;
      killed.kill();
      console.log(`        ${owner}, which carries out the writes, is killed (SIGKILL).`);
    } else if (killed !== null && !isRestarted && elapsed() >= RESTART_AFTER_S) {
      isRestarted = true;
      console.log(
        `        The longest time without an acknowledged write was ${Math.round(longestGapMs)} ms. ${killed.name} starts again.`,
      );
      killed.start();
    }
  }
  await Promise.all([...querying, writing]);
  const { vector_count: found } = await nodes[0].client.collections.get(COLLECTION);
  console.log(
    `\n${acknowledged} writes were acknowledged; ${nodes[0].name} holds ${found} vectors.`,
  );
}

class Node {
  constructor(name, port, natsUrls) {
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.client = createClient({
      baseUrl: this.url,
      retry: { attemptsMax: 1 },
      timeoutMs: 5_000,
    });
    this.collection = this.client.collection(COLLECTION);
    this.latencies = [];
    this.failureCount = 0;
    this.environment = {
      SAGITTA_PORT: String(port),
      SAGITTA_DATA_DIR: join(folder, name),
      SAGITTA_CLUSTER: natsUrls.join(','),
      SAGITTA_CLUSTER_NODE: name,
      SAGITTA_BLOBS: join(folder, 'blobs'),
      SAGITTA_LOG_LEVEL: 'error',
      SAGITTA_THREADS: '1',
    };
  }

  start() {
    this.child = sagitta(['serve'], this.environment);
  }

  kill() {
    this.child.kill('SIGKILL');
  }

  report() {
    const latencies = this.latencies.splice(0).sort((a, b) => a - b);
    const failures = this.failureCount;
    this.failureCount = 0;
    if (latencies.length === 0) return `${this.name} ${failures > 0 ? 'does not answer' : 'idle'}`;
    const median = latencies[Math.floor(latencies.length / 2)];
    return `${this.name} ${String(latencies.length).padStart(3)} queries, p50 ${median.toFixed(1)} ms`;
  }
}

/** A missing node or a cluster without a leader is part of the demonstration; any other error is a bug. */
function requireRetryable(error) {
  if (error.retryable !== true) throw error;
}

/** The node that carries out the writes of the only collection, or null while none does. */
async function ownerIn(nodes) {
  for (const { client } of nodes) {
    try {
      const { nodes: found } = await client.service.cluster({ timeoutMs: 500 });
      const owners = found.filter(({ collection_count: count }) => count > 0);
      if (owners.length === 1) return owners[0].name;
    } catch {}
  }
  return null;
}

async function waitForLeader(nodes) {
  const deadline = performance.now() + START_MS_MAX;
  for (;;) {
    const seen = await Promise.all(
      nodes.map(({ client }) =>
        client.service.cluster({ timeoutMs: 500 }).then(
          ({ leader }) => leader,
          () => null,
        ),
      ),
    );
    if (seen[0] !== null && seen.every((leader) => leader === seen[0])) return seen[0];
    if (performance.now() > deadline) throw new Error('the nodes did not start within a minute');
    await sleep(100);
  }
}

function sagitta(args, environment) {
  return watch(
    spawn(process.execPath, [join(root, 'scripts/sagitta.cjs'), ...args], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
}

function watch(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

function exitOf(child) {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  return new Promise((resolve) => child.once('exit', resolve));
}

async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

try {
  await main();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([...children].map(exitOf));
  await nats?.stop();
  rmSync(folder, { recursive: true, force: true });
}
