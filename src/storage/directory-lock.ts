// One process per data directory. Whoever wants it listens on a unix socket of its own in a folder
// there: the kernel knows whether the listener lives, whatever its pid, container or network
// namespace, and forgets it the moment it dies. (A pid in a file means nothing in another container;
// a time in a file has to be refreshed, and waited for after a crash.) Processes of other machines
// are not seen; lmdb cannot live on a network file system either.

import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SagittaError } from '../common/errors.js';
import { makeFolder } from './disk.js';

export interface DirectoryLock {
  release(): Promise<void>;
}

/** What a socket in the folder says when asked. */
interface Answer {
  readonly role: 'candidate' | 'owner';
  readonly processId: number;
}

/** A listener that does not answer for so long is stopped or very busy: it may be the owner. */
const ANSWER_MS_MAX = 5_000;
const ASK_AGAIN_MS = 20;
/** A socket that is bound but not listening yet looks dead; it gets its name when it listens. */
const UNNAMED_SUFFIX = '.new';

/** Throws `data_directory_locked` naming the directory and, where known, the owner. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const folderPath = join(directory, 'lock');
  const folder = await openFolder(directory, folderPath);
  const election = new Election(directory, folderPath, folder);
  try {
    await election.stand();
    return election;
  } catch (error) {
    await election.release();
    throw error;
  }
}

async function openFolder(directory: string, folderPath: string): Promise<FileHandle> {
  try {
    await makeFolder(folderPath);
    return await open(folderPath, 'r');
  } catch (error) {
    throw new SagittaError(
      'configuration_invalid',
      `The data directory ${directory} cannot be used: ${(error as Error).message}.`,
      { cause: error },
    );
  }
}

/**
 * First put your socket into the folder, then ask every other one there: of two that start at once,
 * the one whose socket came second finds the other's, so never do both win. A candidate yields to
 * the owner and to a candidate whose name sorts before its own, and waits until those that sort
 * after it have yielded.
 */
class Election implements DirectoryLock {
  readonly #directory: string;
  readonly #folderPath: string;
  readonly #folder: FileHandle;
  readonly #name = randomUUID();
  readonly #server: Server;
  #role: Answer['role'] = 'candidate';
  #isReleased = false;

  constructor(directory: string, folderPath: string, folder: FileHandle) {
    this.#directory = directory;
    this.#folderPath = folderPath;
    this.#folder = folder;
    this.#server = createServer((connection) => {
      connection.on('error', () => {});
      const answer: Answer = { role: this.#role, processId: process.pid };
      connection.end(JSON.stringify(answer));
    }).unref();
  }

  /** Resolves when this process owns the directory. */
  async stand(): Promise<void> {
    await this.#publish();
    for (const name of await readdir(this.#folderPath)) {
      if (name !== this.#name && !name.endsWith(UNNAMED_SUFFIX)) await this.#outlast(name);
    }
    this.#role = 'owner';
    for (const name of await readdir(this.#folderPath)) {
      if (name !== this.#name) await rm(join(this.#folderPath, name), { force: true });
    }
  }

  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    await rm(join(this.#folderPath, this.#name), { force: true });
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
    } catch (error) {
      throw new SagittaError(
        'configuration_invalid',
        `The data directory ${this.#directory} does not take a unix socket (${(error as Error).message}); it must be on a local file system that does.`,
        { cause: error },
      );
    }
    try {
      await rename(join(this.#folderPath, unnamed), join(this.#folderPath, this.#name));
    } catch (error) {
      // Only an owner clears the folder.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw this.#locked('another process');
      throw error;
    }
  }

  /** Resolves when the other one is gone; throws when it goes first. */
  async #outlast(name: string): Promise<void> {
    while (true) {
      const answer = await this.#ask(name);
      if (answer === 'gone') return;
      if (answer === 'silent') throw this.#locked('a process that does not answer');
      if (answer.role === 'owner' || name < this.#name) {
        throw this.#locked(`process ${answer.processId}`);
      }
      await sleep(ASK_AGAIN_MS);
    }
  }

  #ask(name: string): Promise<Answer | 'gone' | 'silent'> {
    return new Promise((resolve) => {
      let text = '';
      const connection = connect(this.#socketPath(name));
      connection.setTimeout(ANSWER_MS_MAX, () => {
        resolve('silent');
        connection.destroy();
      });
      connection.on('data', (chunk) => {
        text += chunk;
      });
      connection.on('error', ({ code }: NodeJS.ErrnoException) => {
        // Reset: it died, or let go, with the question unanswered.
        const isGone = code === 'ECONNREFUSED' || code === 'ENOENT' || code === 'ECONNRESET';
        resolve(isGone ? 'gone' : 'silent');
      });
      connection.on('end', () => resolve(parseAnswer(text)));
    });
  }

  /** A socket's path has 107 bytes at most; through the open folder it is short on Linux. */
  #socketPath(name: string): string {
    const folder =
      process.platform === 'linux' ? `/proc/self/fd/${this.#folder.fd}` : this.#folderPath;
    return join(folder, name);
  }

  #locked(owner: string): SagittaError {
    return new SagittaError(
      'data_directory_locked',
      `The data directory ${this.#directory} is in use by ${owner}; one process at a time may open it.`,
    );
  }
}

function parseAnswer(text: string): Answer | 'gone' | 'silent' {
  if (text === '') return 'gone';
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return 'silent';
  }
}
