// How commands reach the server that runs on a data directory: through the socket in it, which
// needs no credential but the right to write there. Tells a directory that nobody serves from one
// whose server cannot be asked.

import { type FileHandle, open } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorOfReply, SagittaClientError } from '../client/error.js';
import { CliError } from './failure.js';

export interface Operator {
  /**
   * `path` is below `/v1`; `body` is sent as JSON. Waits as long as the server takes. Throws
   * SagittaClientError with what the server says, CliError when it is gone.
   */
  call<Reply>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Reply>;
  close(): Promise<void>;
}

/** The folder and the name of the socket in a data directory; `server/transport/control-socket.ts` makes them. */
const FOLDER = 'control';
const SOCKET = 'socket';
/** A server that reads its data takes no requests yet. */
const STARTING_MS_MAX = 60_000;
const ASK_AGAIN_MS = 100;

/** Null when no server runs on the directory, or when there is no such directory. */
export async function connectOperator(options: { dataDir: string }): Promise<Operator | null> {
  const folderPath = join(options.dataDir, FOLDER);
  const folder = await openFolder(folderPath);
  if (folder === null) return null;
  // A socket's path has 107 bytes at most; through the open folder it is short on Linux.
  const socketPath = join(
    process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : folderPath,
    SOCKET,
  );
  const close = () => folder.close();
  const isServed = await isAnswered(socketPath).catch(async (cause: NodeJS.ErrnoException) => {
    await close();
    throw unreachable(options.dataDir, cause);
  });
  if (!isServed) {
    await close();
    return null;
  }
  return {
    close,
    async call<Reply>(method: string, path: string, body?: object): Promise<Reply> {
      const startedAt = performance.now();
      while (true) {
        try {
          return await send<Reply>({ socketPath, method, path: `/v1${path}` }, body);
        } catch (error) {
          if (!(error instanceof SagittaClientError)) throw unreachable(options.dataDir, error);
          const isWorthAnother = performance.now() - startedAt < STARTING_MS_MAX;
          if (error.code !== 'starting' || !isWorthAnother) throw error;
          await sleep(ASK_AGAIN_MS);
        }
      }
    },
  };
}

async function openFolder(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw unreachable(path, error);
  }
}

/** A socket whose process was killed is still there, and nobody answers. */
function isAnswered(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(false);
      else reject(error);
    });
  });
}

function send<Reply>(
  target: { socketPath: string; method: string; path: string },
  body: object | undefined,
): Promise<Reply> {
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers = {
    accept: 'application/json',
    ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...target, headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        if (incoming.statusCode === 200) resolve(JSON.parse(text) as Reply);
        else reject(errorOfReply(incoming.statusCode ?? 0, text));
      });
    });
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

function unreachable(place: string, cause: unknown): CliError {
  return new CliError(`cannot ask the server of ${place}: ${(cause as Error).message}`, { cause });
}
