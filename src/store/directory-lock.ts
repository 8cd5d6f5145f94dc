// One process per data directory. Two holds, because neither is enough alone: an abstract unix
// socket named after the directory's inode, which the kernel gives to one process and takes back
// the moment it dies; and, for processes in another network namespace (a second container on the
// same volume), a file whose time the holder refreshes.

import { randomUUID } from 'node:crypto';
import { mkdir, readFile, readlink, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SagittaError } from '../errors.js';

export interface DirectoryLock {
  release(): Promise<void>;
}

interface Holder {
  readonly token: string;
  readonly processId: number;
  readonly network: string;
}

const LOCK_FILE = 'lock.json';
const REFRESH_MS = 5_000;
/** A foreign holder that let this pass without a refresh is dead. */
const FOREIGN_STALE_MS = 3 * REFRESH_MS;

/** Throws `data_directory_locked` naming the directory and, where known, the holder. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  await mkdir(directory, { recursive: true });
  const socket = await holdSocket(directory);
  try {
    const file = join(directory, LOCK_FILE);
    const holder: Holder = {
      token: randomUUID(),
      processId: process.pid,
      network: await networkNamespace(),
    };
    await refuseForeignHolder(directory, file, holder.network);
    const temporary = `${file}.${holder.token}`;
    await writeFile(temporary, JSON.stringify(holder));
    await rename(temporary, file);
    const timer = setInterval(() => {
      const now = new Date();
      utimes(file, now, now).catch(() => {});
    }, REFRESH_MS).unref();
    return {
      async release() {
        clearInterval(timer);
        await rm(file, { force: true });
        await closeSocket(socket);
      },
    };
  } catch (error) {
    await closeSocket(socket);
    throw error;
  }
}

/** Abstract sockets exist on Linux only; elsewhere the file alone must do. */
async function holdSocket(directory: string): Promise<Server | null> {
  if (process.platform !== 'linux') return null;
  const { dev, ino } = await stat(directory);
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? locked(directory, 'a running process') : error);
    });
    server.listen({ path: `\0sagitta-data-${dev}-${ino}` }, resolve);
  });
  server.unref();
  return server;
}

function closeSocket(server: Server | null): Promise<void> {
  return new Promise((resolve) => {
    if (server === null) resolve();
    else server.close(() => resolve());
  });
}

/** Whoever shares our network namespace would hold the socket; others must have stopped refreshing. */
async function refuseForeignHolder(
  directory: string,
  file: string,
  network: string,
): Promise<void> {
  const holder = await readHolder(file);
  if (holder === undefined || (holder.network === network && network !== '')) return;
  const refreshedAtMs = (await stat(file)).mtimeMs;
  const idleMs = Date.now() - refreshedAtMs;
  if (idleMs < FOREIGN_STALE_MS) await sleep(FOREIGN_STALE_MS - Math.max(0, idleMs));
  const again = await stat(file).catch(() => undefined);
  if (again !== undefined && again.mtimeMs > refreshedAtMs) {
    throw locked(directory, `process ${holder.processId} of another container or host`);
  }
}

async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

async function networkNamespace(): Promise<string> {
  return readlink('/proc/self/ns/net').catch(() => '');
}

function locked(directory: string, holder: string): SagittaError {
  return new SagittaError(
    'data_directory_locked',
    `The data directory ${directory} is in use by ${holder}; one process at a time may open it.`,
  );
}
