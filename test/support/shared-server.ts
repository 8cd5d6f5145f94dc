// A server for test files that only need one to talk to: a process of the installed program, shared by all files of a
// test process, because starting one takes more CPU time than most of these files.

import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@sagitta/client';
import { startServerProcess } from './server-process.js';
import { endWithThisProcess, unrefChild } from './shared-process.js';

let started: Promise<string> | undefined;

/**
 * The URL of the server, with all collections and aliases removed. Files run one after another, so each can use it
 * exclusively.
 */
export async function emptyServer(): Promise<string> {
  started ??= startSharedServer();
  const url = await started;
  const { aliases, collections } = createClient({ baseUrl: url });
  for await (const { name } of aliases.all()) await aliases.delete(name);
  const found = await collections.list({ limit: 1_000 });
  for (const { id } of found.collections) await collections.delete(id);
  return url;
}

/**
 * The URL of the server with a collection `points`: p0 to p11 are [0, 1] to [11, 1], with a name and whether they are
 * even.
 */
export async function serverWithPoints(): Promise<string> {
  const url = await emptyServer();
  const { collections, collection } = createClient({ baseUrl: url });
  await collections.create({ id: 'points', dimension: 2, metric: 'dot' });
  const rows = Array.from({ length: 12 }, (_, n) => ({
    id: `p${n}`,
    values: [n, 1],
    metadata: { name: `point ${n}`, even: n % 2 === 0 },
  }));
  await collection('points').upsert(rows);
  return url;
}

async function startSharedServer(): Promise<string> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sagitta-shared-'));
  const { url, child } = await startServerProcess({
    dataDirectory,
    settings: { SAGITTA_ENGINE: 'reference', SAGITTA_THREADS: '1', SAGITTA_LOG_LEVEL: 'silent' },
  });
  unrefChild(child);
  endWithThisProcess(child, () => rmSync(dataDirectory, { recursive: true, force: true }));
  return url;
}
