// Starts and stops real server processes, and sends requests to them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('./server-child.js', import.meta.url));
const START_MS_MAX = 60_000;

export interface ServerProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Time from the start of the process until it listened, and until it was ready. */
  readonly listeningMs: number;
  readonly readyMs: number;
  /** How the process ended; null while it is running. */
  readonly exit: string | null;
  /** Sends SIGTERM; resolves when the process has ended. */
  stop(): Promise<void>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

export async function startServerProcess(options: {
  dataDirectory: string;
  settings?: Readonly<Record<string, string>>;
  /** For profilers, such as `--cpu-prof`. */
  nodeArguments?: readonly string[];
  /** A command that runs the server, such as one that limits its memory. */
  prefix?: readonly string[];
  /** A descriptor for its log; the parent's stderr if absent. */
  logDescriptor?: number;
  /** Receives the process before it is ready, for example to kill it during its start. */
  onSpawned?: (child: ChildProcess) => void;
}): Promise<ServerProcess> {
  const startedAt = performance.now();
  const server = [process.execPath, ...(options.nodeArguments ?? []), CHILD];
  const [command, ...words] = [...(options.prefix ?? []), ...server];
  const child = spawn(command!, words, {
    env: {
      ...process.env,
      SAGITTA_PORT: '0',
      SAGITTA_LOG_LEVEL: 'warn',
      SAGITTA_DATA_DIR: options.dataDirectory,
      ...options.settings,
    },
    stdio: ['ignore', 'pipe', options.logDescriptor ?? 'inherit'],
  });
  options.onSpawned?.(child);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const next = async () => {
    const deadline = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX);
    const { value, done } = await lines.next();
    clearTimeout(deadline);
    if (done === true) {
      // Its output ends before the process does.
      if (exitOf(child) === null) await once(child, 'exit');
      throw new Error(`the server ended before it was ready (${exitOf(child)})`);
    }
    return value as string;
  };
  const url = await next();
  const listeningMs = performance.now() - startedAt;
  await next();
  const readyMs = performance.now() - startedAt;
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (exitOf(child) !== null) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  };
  return {
    url,
    child,
    listeningMs,
    readyMs,
    get exit() {
      return exitOf(child);
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function exitOf({ exitCode, signalCode }: ChildProcess): string | null {
  return signalCode ?? (exitCode === null ? null : `exit ${exitCode}`);
}

export interface Reply {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  json<T>(): T;
}

/** Sends requests over persistent connections; `call` rejects if the connection breaks. */
export function createCaller(url: string, connectionCount = 16) {
  const agent = new Agent({ keepAlive: true, maxSockets: connectionCount });
  const call = (
    method: string,
    path: string,
    body?: string | Uint8Array | object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const payload =
        body === undefined || typeof body === 'string' || body instanceof Uint8Array
          ? body
          : JSON.stringify(body);
      const outgoing = request(
        url + path,
        {
          method,
          agent,
          headers: {
            ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
            ...(payload === undefined ? {} : { 'content-length': Buffer.byteLength(payload) }),
            ...headers,
          },
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            resolve({
              status: incoming.statusCode!,
              headers: incoming.headers,
              text,
              json: <T>() => JSON.parse(text) as T,
            });
          });
        },
      );
      outgoing.on('error', reject);
      outgoing.end(payload);
    });
  return { call, close: () => agent.destroy() };
}
