// Allows only one process per data directory. Each process listens on its own unix socket in a folder of the directory.
// The kernel knows whether a listener is alive, across containers and network namespaces, and forgets it the moment the
// process dies. A pid file means nothing in another container, and a heartbeat file needs a timer and a wait after a
// crash. Processes on other machines are not detected, so a data directory must be on a local disk.

import { randomUUID } from 'node:crypto';
import { chmod, type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SagittaError } from '../common/errors.js';
import { unixSocketPath } from '../common/unix-socket.js';
import { FILE_MODE, makeFolder } from './disk.js';
import { requireUsable, unusableDirectory } from './usable-directory.js';

export interface DirectoryLock {
  release(): Promise<void>;
}

/** What the process behind a socket replies. */
interface Reply {
  readonly role: 'candidate' | 'owner';
  readonly processId: number;
}

/** A listener that does not reply within this time is stopped or very busy, and may be the owner. */
const REPLY_MS_MAX = 5_000;
const PROBE_INTERVAL_MS = 20;
/** A socket that is bound but not yet listening looks dead, so it is renamed once it listens. */
const UNNAMED_SUFFIX = '.new';

/** The folder of the sockets inside the data directory. */
export const LOCK_FOLDER = 'lock';

/** Throws `data_directory_locked`, which names the directory and, if known, the owner. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const folderPath = join(directory, LOCK_FOLDER);
  const folder = await openFolder(directory, folderPath);
  const election = new Election(directory, folderPath, folder);
  try {
    await election.acquire();
    return election;
  } catch (error) {
    await election.release();
    throw error;
  }
}

async function openFolder(directory: string, folderPath: string): Promise<FileHandle> {
  try {
    await requireUsable(directory);
    await makeFolder(folderPath);
    return await open(folderPath, 'r');
  } catch (error) {
    throw unusableDirectory(directory, error);
  }
}

/**
 * A candidate first puts its own socket into the folder and then contacts all others. If two start at once, the second
 * one finds the first one's socket, so they cannot both win. A candidate yields to the owner and to candidates whose
 * names sort before its own, and waits until those that sort after it have yielded.
 */
class Election implements DirectoryLock {
  readonly #directory: string;
  readonly #folderPath: string;
  readonly #folder: FileHandle;
  readonly #name = randomUUID();
  readonly #server: Server;
  #role: Reply['role'] = 'candidate';
  #isReleased = false;

  constructor(directory: string, folderPath: string, folder: FileHandle) {
    this.#directory = directory;
    this.#folderPath = folderPath;
    this.#folder = folder;
    this.#server = createServer((connection) => {
      connection.on('error', () => {});
      const reply: Reply = { role: this.#role, processId: process.pid };
      connection.end(JSON.stringify(reply));
    }).unref();
  }

  /** Resolves when this process owns the directory. */
  async acquire(): Promise<void> {
    await this.#publish();
    for (const name of await readdir(this.#folderPath)) {
      if (name !== this.#name && !name.endsWith(UNNAMED_SUFFIX)) await this.#waitUntilGone(name);
    }
    this.#role = 'owner';
    for (const name of await readdir(this.#folderPath)) {
      if (name !== this.#name) await rm(join(this.#folderPath, name), { force: true });
    }
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    // A leftover socket is harmless: it does not accept connections.
    await rm(join(this.#folderPath, this.#name), { force: true }).catch(() => {});
    this.#server.close();
    await this.#folder.close();
  }

  async #publish(): Promise<void> {
    const unnamed = this.#name + UNNAMED_SUFFIX;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(this.#socketPath(unnamed), resolve);
      });
      await chmod(join(this.#folderPath, unnamed), FILE_MODE);
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException;
      // Only an owner removes other sockets.
      if (code === 'ENOENT' && syscall === 'chmod') throw this.#locked('another process');
      if (code === 'EACCES' || code === 'EROFS') throw unusableDirectory(this.#directory, error);
      throw new SagittaError(
        'configuration_invalid',
        `The data directory ${this.#directory} must be on a local file system that supports unix sockets: ${(error as Error).message}.`,
        { cause: error },
      );
    }
    try {
      await rename(join(this.#folderPath, unnamed), join(this.#folderPath, this.#name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw this.#locked('another process');
      throw error;
    }
  }

  /** Resolves when the other process is gone; throws `data_directory_locked` if that one has precedence. */
  async #waitUntilGone(name: string): Promise<void> {
    while (true) {
      const reply = await this.#probe(name);
      if (reply === 'gone') return;
      if (reply === 'silent') throw this.#locked('a process that does not reply');
      if (reply.role === 'owner' || name < this.#name) {
        throw this.#locked(`process ${reply.processId}`);
      }
      await sleep(PROBE_INTERVAL_MS);
    }
  }

  #probe(name: string): Promise<Reply | 'gone' | 'silent'> {
    return new Promise((resolve) => {
      let text = '';
      const connection = connect(this.#socketPath(name));
      connection.setTimeout(REPLY_MS_MAX, () => {
        resolve('silent');
        connection.destroy();
      });
      connection.on('data', (chunk) => {
        text += chunk;
      });
      connection.on('error', ({ code }: NodeJS.ErrnoException) => {
        // ECONNRESET means that it died or released the directory before it replied.
        const isGone = code === 'ECONNREFUSED' || code === 'ENOENT' || code === 'ECONNRESET';
        resolve(isGone ? 'gone' : 'silent');
      });
      connection.on('end', () => resolve(parseReply(text)));
    });
  }

  #socketPath(name: string): string {
    return unixSocketPath(this.#folderPath, this.#folder, name);
  }

  #locked(owner: string): SagittaError {
    return new SagittaError(
      'data_directory_locked',
      `The data directory ${this.#directory} is in use by ${owner}. Only one process at a time can open it.`,
    );
  }
}

function parseReply(text: string): Reply | 'gone' | 'silent' {
  if (text === '') return 'gone';
  try {
    return JSON.parse(text) as Reply;
  } catch {
    return 'silent';
  }
}
