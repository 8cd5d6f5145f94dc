// The server under test: a separate process with small segments, a folder for backups, an endpoint for embeddings and
// an administrator's key, and what its log and the system report about it.

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendJson, startEndpoint } from '../../server/embedding/scripted-endpoint.js';
import { createCaller, startServerProcess } from '../../support/server-process.js';

export interface FuzzedServer {
  readonly url: string;
  readonly processId: number;
  /** The value of an administrator's Authorization header. */
  readonly authorization: string;
  /** Null while it is running. */
  readonly exit: string | null;
  memory(): Promise<Memory>;
  /** Deletes all aliases and collections, and waits until the service has released their memory. */
  empty(): Promise<void>;
  /** Log lines that a healthy service does not write. */
  alarms(): string[];
  close(): Promise<void>;
}

export interface Memory {
  /** Resident memory except copies of files; NaN if the system does not report it. */
  readonly anonymousBytes: number;
  /** The JavaScript heap of the main thread, and buffers outside it. */
  readonly heapBytes: number;
  readonly externalBytes: number;
}

/** Lists, their members, and the member by which items are deleted. */
const DELETED = [
  ['aliases', 'aliases', 'name'],
  ['collections', 'collections', 'id'],
] as const;

const SETTINGS = {
  SAGITTA_DEFAULT_COLLECTION: 'f1',
  SAGITTA_LOG_FORMAT: 'json',
  SAGITTA_READ_RATE_MAX: '0',
  SAGITTA_WRITE_RATE_MAX: '0',
  SAGITTA_SEGMENT_ROWS_MAX: '128',
  // What outlives collections is limited so that a run soon reaches the limits.
  SAGITTA_AUDIT_EVENTS_MAX: '200',
  SAGITTA_IDEMPOTENCY_MS: '10000',
  // Also the time that a query for a future sequence waits.
  SAGITTA_REQUEST_MS_MAX: '5000',
  SAGITTA_STALLED_MS_MAX: '5000',
};

export async function startFuzzedServer(): Promise<FuzzedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-fuzz-'));
  const logPath = join(folder, 'log');
  const logDescriptor = openSync(logPath, 'a');
  const endpoint = await startEndpoint();
  endpoint.answer = ({ body: { input, model } }, response) => {
    const dimension = Number(/^d(\d{1,5})$/.exec(model)?.[1] ?? 1);
    const embedding = new Array<number>(dimension).fill(0.5);
    sendJson(response, 200, { data: input.map((_, index) => ({ index, embedding })) });
  };
  const server = await startServerProcess({
    dataDirectory: join(folder, 'data'),
    logDescriptor,
    settings: {
      ...SETTINGS,
      SAGITTA_BACKUP_DIR: join(folder, 'backups'),
      SAGITTA_EMBEDDING_ENDPOINTS: `local=${endpoint.url}`,
    },
  });
  const { url, child } = server;
  const caller = createCaller(url, 2);
  const created = await caller.call('POST', '/v1/keys', { owner: 'fuzz', scopes: ['admin'] });
  if (created.status !== 200) throw new Error(`no key was created: ${created.text}`);
  const authorization = `Bearer ${created.json<{ key: string }>().key}`;
  const headers = { authorization };
  const memoryBytes = () => anonymousBytes(child.pid!);
  return {
    url,
    processId: child.pid!,
    authorization,
    get exit() {
      return server.exit;
    },
    async memory() {
      const { text } = await caller.call('GET', '/metrics', undefined, headers);
      const gauge = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
      return {
        anonymousBytes: memoryBytes(),
        heapBytes: gauge('nodejs_heap_used_bytes'),
        externalBytes: gauge('nodejs_external_memory_bytes'),
      };
    },
    async empty() {
      // A collection with an alias cannot be deleted, so aliases come first.
      for (const [list, member, key] of DELETED) {
        const found = await caller.call('GET', `/v1/${list}?limit=1000`, undefined, headers);
        for (const item of found.json<Record<string, Record<string, string>[]>>()[member]!) {
          await caller.call('DELETE', `/v1/${list}/${item[key]}`, undefined, headers);
        }
      }
      await settle(memoryBytes);
    },
    alarms: () => readFileSync(logPath, 'utf8').split('\n').filter(isAlarm),
    async close() {
      caller.close();
      await server.stop();
      await endpoint.close();
      closeSync(logDescriptor);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Errors, and Node's messages about leaks and unhandled rejections. */
function isAlarm(line: string): boolean {
  return /"level":"?(error|fatal|50|60)\b|MaxListeners|[Uu]nhandled|ERROR/.test(line);
}

/** The service releases memory some seconds after it was freed; after this time it no longer shrinks. */
const RELEASE_MS = 6_000;
const STEP_MS = 1_000;
const STEPS_MAX = 20;

async function settle(memoryBytes: () => number): Promise<void> {
  await sleep(RELEASE_MS);
  let bytes = memoryBytes();
  for (let step = 0; step < STEPS_MAX; step++) {
    await sleep(STEP_MS);
    const now = memoryBytes();
    if (now > bytes * 0.995) return;
    bytes = now;
  }
}

/** NaN if the system does not report it. */
function anonymousBytes(processId: number): number {
  try {
    const status = readFileSync(`/proc/${processId}/status`, 'utf8');
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
  } catch {
    return Number.NaN;
  }
}
