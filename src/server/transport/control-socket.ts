// The socket of the operator: a unix socket inside the data directory, on which the same
// application answers. Whoever may reach it may read the files beside it anyway, so it asks for no
// other credential, and commands work on a running server whatever its credentials are.

import { randomUUID } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { assert, SagittaError } from '../../common/errors.js';
import { respondToParseError } from '../failures.js';

/** Below the data directory: the folder keeps others out even before the socket has its mode. */
const FOLDER = 'control';
const SOCKET = 'socket';

export class ControlSocket {
  readonly #folderPath: string;
  readonly #connections = new WeakSet<Socket>();
  #server: Server | undefined;
  #folder: FileHandle | undefined;

  constructor(dataDirectory: string) {
    this.#folderPath = join(dataDirectory, FOLDER);
  }

  /** Whether the connection came through this socket. */
  readonly isOperator = (socket: Socket): boolean => this.#connections.has(socket);

  /**
   * Only for who holds the lock of the data directory: a socket that is there belongs to a process
   * that died, and is replaced.
   */
  async listen(handler: RequestListener): Promise<void> {
    assert(this.#server === undefined, 'the control socket listens once');
    try {
      await mkdir(this.#folderPath, { recursive: true, mode: 0o700 });
      await chmod(this.#folderPath, 0o700);
      this.#folder = await open(this.#folderPath, 'r');
      const path = socketPath(this.#folderPath, this.#folder);
      await rm(path, { force: true });
      const server = createServer(handler);
      server.on('connection', (socket) => this.#connections.add(socket));
      server.on('clientError', (error, socket) => {
        respondToParseError(error, socket as Socket, randomUUID());
      });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(path, resolve);
      });
      this.#server = server;
      await chmod(path, 0o600);
    } catch (error) {
      await this.close();
      throw new SagittaError(
        'configuration_invalid',
        `The folder ${this.#folderPath} does not take a unix socket: ${(error as Error).message}.`,
        { cause: error },
      );
    }
  }

  /** Takes no new connections; what is under way goes on. */
  stopListening(): void {
    if (this.#server?.listening) NetServer.prototype.close.call(this.#server);
  }

  /** Cuts what is left. */
  async close(): Promise<void> {
    this.stopListening();
    this.#server?.closeAllConnections();
    if (this.#folder === undefined) return;
    await rm(socketPath(this.#folderPath, this.#folder), { force: true });
    await this.#folder.close();
    this.#folder = undefined;
  }
}

/** A socket's path has 107 bytes at most; through the open folder it is short on Linux. */
function socketPath(folderPath: string, folder: FileHandle): string {
  return join(process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : folderPath, SOCKET);
}
