// Client of the control socket: HTTP over the Unix socket that a running server keeps in its data directory. File
// permissions serve as the credential. Distinguishes a directory without a server from one whose server is unreachable.

import { type FileHandle, open } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorOfReply, SagittaClientError } from '@sagitta/client';
import { CONTROL_FOLDER, CONTROL_SOCKET, unixSocketPath } from '../../common/unix-socket.js';
import { CliError } from '../terminal/failure.js';

export interface ControlClient {
  /**
   * Sends a request without a timeout. `path` is below `/v1`; `body` is sent as JSON. Throws
   * SagittaClientError for an error reply, CliError when the connection fails.
   */
  call<Reply>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Reply>;
  close(): Promise<void>;
}

/** Longest wait for a server that rejects requests because it is still loading its data. */
const STARTING_MS_MAX = 60_000;
const RETRY_INTERVAL_MS = 100;

/** Resolves to null when no server runs on the data directory or the directory does not exist. Throws CliError. */
export async function connectControlClient(dataDir: string): Promise<ControlClient | null> {
  const directoryPath = join(dataDir, CONTROL_FOLDER);
  const directory = await openDirectory(directoryPath);
  if (directory === null) return null;
  const socketPath = unixSocketPath(directoryPath, directory, CONTROL_SOCKET);
  const close = () => directory.close();
  const isServed = await isListening(socketPath).catch(async (cause: NodeJS.ErrnoException) => {
    await close();
    throw unreachable(dataDir, cause);
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
          if (!(error instanceof SagittaClientError)) throw unreachable(dataDir, error);
          const isTimeLeft = performance.now() - startedAt < STARTING_MS_MAX;
          if (error.code !== 'starting' || !isTimeLeft) throw error;
          await sleep(RETRY_INTERVAL_MS);
        }
      }
    },
  };
}

async function openDirectory(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw unreachable(path, error);
  }
}

/** A killed server leaves its socket file behind, so only a connection attempt tells whether a server listens. */
function isListening(socketPath: string): Promise<boolean> {
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

function unreachable(path: string, cause: unknown): CliError {
  const message = `cannot reach the server of ${path}: ${(cause as Error).message}`;
  return new CliError(message, { cause });
}
