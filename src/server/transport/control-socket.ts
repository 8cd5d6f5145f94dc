// The control socket: a unix socket in the data directory on which the same application serves the operator. A
// process that can open it can read the data files anyway, so no credential is required, and the command line works
// on a running server whatever credentials are configured.

import { randomUUID } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { assert, SagittaError } from '../../common/errors.js';
import { CONTROL_FOLDER, CONTROL_SOCKET, unixSocketPath } from '../../common/unix-socket.js';
import { respondToParseError } from '../wire/failures.js';

export class ControlSocket {
  readonly #folderPath: string;
  readonly #connections = new WeakSet<Socket>();
  #server: Server | undefined;
  #folder: FileHandle | undefined;

  constructor(dataDirectory: string) {
    this.#folderPath = join(dataDirectory, CONTROL_FOLDER);
  }

  /** Whether the connection came through this socket. */
  readonly isOperator = (socket: Socket): boolean => this.#connections.has(socket);

  /**
   * The caller must hold the lock of the data directory: an existing socket was left by a process that died, and is
   * replaced. Throws `configuration_invalid`.
   */
  async listen(handler: RequestListener): Promise<void> {
    assert(this.#server === undefined, 'the control socket listens once');
    try {
      // The mode of the folder protects the socket before its own mode is set.
      await mkdir(this.#folderPath, { recursive: true, mode: 0o700 });
      await chmod(this.#folderPath, 0o700);
      this.#folder = await open(this.#folderPath, 'r');
      const path = unixSocketPath(this.#folderPath, this.#folder, CONTROL_SOCKET);
      await rm(path, { force: true });
      const server = createServer({ requireHostHeader: false }, handler);
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
        `Cannot create a unix socket in ${this.#folderPath}: ${(error as Error).message}.`,
        { cause: error },
      );
    }
  }

  /** Accepts no new connections; requests in progress continue. */
  stopListening(): void {
    if (this.#server?.listening) NetServer.prototype.close.call(this.#server);
  }

  /** Closes all connections and removes the socket. */
  async close(): Promise<void> {
    this.stopListening();
    this.#server?.closeAllConnections();
    if (this.#folder === undefined) return;
    await rm(unixSocketPath(this.#folderPath, this.#folder, CONTROL_SOCKET), { force: true });
    await this.#folder.close();
    this.#folder = undefined;
  }
}
