// Runs the alerts: their unit tests with promtool, and a real server that Prometheus scrapes while faults occur and end.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { run, start } from '../cli/command.js';
import { onSmallDisk } from '../storage/directories.js';
import { createAuthority, issueForServer } from '../support/certificates.js';
import { freePorts } from '../support/free-ports.js';
import { type ServerProcess, startServerProcess } from '../support/server-process.js';
import { eventually } from '../support/waiting.js';
import { PROMTOOL, PrometheusProcess, prometheusMissing } from './prometheus-process.js';
import { ROOT, RULE_TESTS, RULES, read } from './rule-file.js';

const DIMENSION = 8;
const SEGMENT_ROWS = 64;
/** More than the space that the store reserves for deletions. */
const DISK_MEGABYTES = 24;
/** Longer than the alerts about certificates warn. */
const CERTIFICATE_DAYS = 90;
const DAY_MS = 24 * 60 * 60 * 1000;

describe('the alerts', { skip: prometheusMissing() ?? false }, () => {
  it('are valid rules', () => {
    const { status, stdout, stderr } = spawnSync(PROMTOOL, ['check', 'rules', RULES], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
  });

  it('fire after their time and not before, and not in normal operation', () => {
    const { status, stdout, stderr } = spawnSync(PROMTOOL, ['test', 'rules', RULE_TESTS], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
  });

  it('have runbooks with commands and options that exist', async () => {
    const text = read(join(ROOT, 'docs/runbooks.md'));
    const commands = [...text.matchAll(/`sagitta ([a-z]+(?: [a-z]+(?=[ `]))*)([^`]*)`/g)];
    const helps = new Map<string, string>();
    for (const [, command = '', rest = ''] of commands) {
      if (!helps.has(command)) {
        const { code, stdout, stderr } = await start([...command.split(' '), '--help']).ended;
        assert.equal(code, 0, `sagitta ${command}: ${stderr}`);
        helps.set(command, stdout);
      }
      const help = helps.get(command)!;
      assert.match(help, new RegExp(`^Usage: sagitta ${command}\\b`), command);
      for (const [option] of rest.matchAll(/--[a-z-]+/g)) {
        assert.ok(help.includes(`${option} `), `sagitta ${command} has no ${option}`);
      }
    }
    assert.ok(helps.size >= 8, [...helps.keys()].join());
  });

  it('report a server that is down and a damaged collection, until both have ended', async () => {
    await withMonitoredServer({}, async ({ data, instance, prometheus, call, restart, stop }) => {
      assert.equal(await call('POST', '/v1/collections', collection('c')), 200);
      assert.equal(await call('POST', '/v1/collections/c/vectors', rows(SEGMENT_ROWS * 3)), 200);
      await eventually('a segment is in a file', async () => (await segmentFiles(data)).length > 0);

      await stop();
      const down = await prometheus.whenFiring('SagittaDown');
      assert.deepEqual(down.labels, {
        alertname: 'SagittaDown',
        job: 'sagitta',
        instance,
        severity: 'page',
      });
      assert.equal(down.annotations.summary, `Sagitta on ${instance} does not answer`);
      for (const path of await segmentFiles(data)) await truncate(path, 100);
      await restart();
      await prometheus.whenResolved('SagittaDown');

      assert.notEqual(await call('POST', '/v1/collections/c/query', query()), 200);
      const failed = await prometheus.whenFiring('SagittaCollectionsFailed');
      assert.match(
        failed.annotations.description!,
        /refuses all requests for 1 of its collections/,
      );
      assert.equal(await call('DELETE', '/v1/collections/c'), 200);
      await prometheus.whenResolved('SagittaCollectionsFailed');
    });
  });

  it('report a full disk and failed commits, until there is space', async (t) => {
    const isDone = await onSmallDisk(DISK_MEGABYTES, async (disk) => {
      await withMonitoredServer({ disk }, async ({ prometheus, call }) => {
        const write = () => call('POST', '/v1/collections/c/vectors', rows(1));
        assert.equal(await call('POST', '/v1/collections', collection('c')), 200);
        assert.equal(await write(), 200);
        const names = (await prometheus.alerts()).map(({ labels }) => labels.alertname);
        assert.ok(
          !names.includes('SagittaDiskAlmostFull') && !names.includes('SagittaCommitsFail'),
        );

        const ballast = join(disk, 'ballast');
        await writeFile(ballast, Buffer.alloc(DISK_MEGABYTES * 2 ** 20)).catch(() => {});
        const full = await prometheus.whenFiring('SagittaDiskAlmostFull');
        assert.equal(full.labels.severity, 'ticket');
        await eventually('writes are refused', async () => (await write()) === 507);
        await eventually('SagittaCommitsFail fires', async () => {
          assert.equal(await write(), 507);
          return (await prometheus.alerts()).some(
            ({ labels, state }) => labels.alertname === 'SagittaCommitsFail' && state === 'firing',
          );
        });

        await rm(ballast);
        await eventually('writes succeed again', async () => (await write()) === 200);
        await prometheus.whenResolved('SagittaDiskAlmostFull');
        await prometheus.whenResolved('SagittaCommitsFail');
      });
    });
    if (!isDone) t.skip('mounting a small tmpfs is not permitted here');
  });
});

interface MonitoredServer {
  readonly data: string;
  readonly instance: string;
  readonly prometheus: PrometheusProcess;
  /** Sends a request with the key of an administrator; resolves to the status. */
  call(method: string, path: string, body?: object): Promise<number>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server with TLS and keys, as on a network, and Prometheus with a key of its own. */
async function withMonitoredServer(
  { disk }: { readonly disk?: string },
  use: (monitored: MonitoredServer) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sagitta-alerts-'));
  const data = join(disk ?? folder, 'data');
  await mkdir(data);
  const authority = await createAuthority();
  const notAfter = new Date(Date.now() + CERTIFICATE_DAYS * DAY_MS);
  const { cert, key } = await issueForServer(authority, { notAfter });
  for (const [name, text] of Object.entries({
    'sagitta-ca.crt': authority.cert,
    'tls.crt': cert,
    'tls.key': key,
  })) {
    await writeFile(join(folder, name), text, { mode: 0o600 });
  }
  const createKey = async (owner: string, scope: string) => {
    const words = ['keys', 'create', '--data-dir', data, '--owner', owner, '--scope', scope];
    const { code, stdout, stderr } = await run(words);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const admin = (await createKey('operations', 'admin')).trim();
  await writeFile(join(folder, 'sagitta.key'), await createKey('prometheus', 'metrics:read'));

  const [port] = await freePorts(1);
  const instance = `127.0.0.1:${port}`;
  const agent = new Agent({ ca: authority.cert });
  let server: ServerProcess | undefined;
  const startServer = async () => {
    server = await startServerProcess({
      dataDirectory: data,
      settings: {
        SAGITTA_PORT: String(port),
        SAGITTA_TLS_CERT: join(folder, 'tls.crt'),
        SAGITTA_TLS_KEY: join(folder, 'tls.key'),
        SAGITTA_ENGINE: 'reference',
        SAGITTA_THREADS: '1',
        SAGITTA_SEGMENT_ROWS_MAX: String(SEGMENT_ROWS),
        SAGITTA_LOG_LEVEL: 'silent',
      },
    });
  };
  let prometheus: PrometheusProcess | undefined;
  try {
    await startServer();
    prometheus = await PrometheusProcess.start(folder, instance);
    await eventually('the server is scraped with the key of Prometheus', async () => {
      return (await prometheus!.query('up{job="sagitta"}'))[0] === '1';
    });
    await use({
      data,
      instance,
      prometheus,
      call: (method, path, body) =>
        statusOf({ agent, url: `https://${instance}${path}`, method, key: admin, body }),
      restart: startServer,
      stop: () => server!.stop(),
    });
  } finally {
    await prometheus?.stop();
    await server?.kill();
    agent.destroy();
    await rm(folder, { recursive: true });
  }
}

function statusOf(options: {
  readonly agent: Agent;
  readonly url: string;
  readonly method: string;
  readonly key: string;
  readonly body: object | undefined;
}): Promise<number> {
  const { agent, url, method, key, body } = options;
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const outgoing = request(url, { agent, method, headers }, (incoming) => {
      incoming.on('error', reject);
      incoming.on('end', () => resolve(incoming.statusCode!));
      incoming.resume();
    });
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function segmentFiles(data: string): Promise<string[]> {
  const folder = join(data, 'segments');
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith('.arrow')).map((name) => join(folder, name));
}

const collection = (id: string) => ({ id, dimension: DIMENSION, metric: 'dot' });

const query = () => ({ vector: Array(DIMENSION).fill(1), top_k: 1 });

const rows = (count: number) => ({
  vectors: Array.from({ length: count }, (_, i) => ({
    id: `v${i}`,
    values: Array.from({ length: DIMENSION }, (_, d) => ((i * 7 + d) % 97) + 1),
  })),
});
