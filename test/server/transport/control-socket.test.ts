// The control socket: its permissions, a socket left by a dead process, and shutdown.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { SagittaClientError } from '@sagitta/client';
import { connectControlClient } from '../../../src/cli/service/control-client.js';
import { SagittaError } from '../../../src/common/errors.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { ControlSocket } from '../../../src/server/transport/control-socket.js';
import { openDatabase } from '../../database/harness.js';
import { eventually } from '../../support/waiting.js';
import { createService } from '../harness.js';

let directory: string;
let control: ControlSocket;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sagitta-control-'));
  control = new ControlSocket(directory);
});
afterEach(async () => {
  await control.close();
  await rm(directory, { recursive: true });
});

const answer = (text: string) => (_request: IncomingMessage, response: ServerResponse) =>
  response.end(JSON.stringify(text));

/** The reply of the server on the directory; null if there is none. */
async function call(path = '/'): Promise<unknown> {
  const operator = await connectControlClient(directory);
  if (operator === null) return null;
  return operator.call('GET', path).finally(() => operator.close());
}

describe('the control socket', () => {
  it('replies until it is closed, and removes its socket', async () => {
    assert.equal(await call(), null);
    await control.listen(answer('here'));
    assert.equal(await call(), 'here');
    await control.close();
    assert.equal(await call(), null);
    assert.deepEqual(await readdir(join(directory, 'control')), []);
  });

  it('is accessible to its user only, whatever the mode of the folder was', async () => {
    await mkdir(join(directory, 'control'));
    await chmod(join(directory, 'control'), 0o777);
    await control.listen(answer('here'));
    assert.equal((await stat(join(directory, 'control'))).mode & 0o777, 0o700);
    assert.equal((await stat(join(directory, 'control', 'socket'))).mode & 0o777, 0o600);
  });

  it('replaces the socket of a dead process', async () => {
    await mkdir(join(directory, 'control'));
    await writeFile(join(directory, 'control', 'socket'), '');
    await control.listen(answer('here'));
    assert.equal(await call(), 'here');
  });

  it('names the folder if it cannot be created there', async () => {
    await writeFile(join(directory, 'control'), '');
    await assert.rejects(control.listen(answer('here')), {
      code: 'configuration_invalid',
      message: /Cannot create a unix socket in .*control/,
    });
  });

  it('recognizes its own connections', async () => {
    const seen: boolean[] = [];
    const note = ({ socket }: IncomingMessage, response: ServerResponse) => {
      seen.push(control.isOperator(socket));
      response.end('{}');
    };
    await control.listen(note);
    const other = createServer(note).listen(0, '127.0.0.1');
    await call();
    await fetch(`http://127.0.0.1:${(other.address() as AddressInfo).port}`);
    other.close();
    assert.deepEqual(seen, [true, false]);
  });

  it('finishes requests in progress when it stops listening, and accepts no new ones', async () => {
    const requests = new EventEmitter();
    await control.listen((_request, response) => requests.emit('request', response));
    const waiting = call();
    const [response] = await once(requests, 'request');
    control.stopListening();
    assert.equal(await call(), null);
    response.end('"done"');
    assert.equal(await waiting, 'done');
  });

  it('closes remaining connections when it is closed', async () => {
    const requests = new EventEmitter();
    await control.listen(() => requests.emit('request'));
    const waiting = assert.rejects(call(), /^CliError: cannot reach the server of .*: /);
    await once(requests, 'request');
    await control.close();
    await waiting;
  });

  it('replies to invalid HTTP with a problem document', async () => {
    await control.listen(answer('here'));
    const socket = connect(join(directory, 'control', 'socket'));
    socket.end('nonsense\r\n\r\n');
    const text = await read(socket);
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(text, /"code":"invalid_request"/);
  });
});

describe('the application on the control socket', () => {
  it('gives the operator full access, and requires a key from others', async (t) => {
    const database = await openDatabase({});
    const authenticator = new Authenticator({
      apiKeys: database.apiKeys,
      isOperator: control.isOperator,
    });
    const { app, close } = await createService({ database, authenticator });
    await control.listen((incoming, response) => app.routing(incoming, response));
    try {
      const operator = (await connectControlClient(directory))!;
      const made = await operator.call<{ key: string }>('POST', '/keys', {
        owner: 'me',
        scopes: ['admin'],
      });
      assert.match(made.key, /^sk_/);
      assert.equal((await operator.call<{ keys: object[] }>('GET', '/keys')).keys.length, 1);
      assert.equal((await app.inject('/keys')).statusCode, 401);
      await assert.rejects(operator.call('GET', '/keys/x'), (error: SagittaClientError) => {
        assert.deepEqual([error.status, error.code], [404, 'key_not_found']);
        return true;
      });
      // An invalid credential does not matter to the operator.
      const status = await new Promise((resolve, reject) => {
        const socketPath = join(directory, 'control', 'socket');
        const headers = { authorization: 'Bearer sk_wrong' };
        const outgoing = request({ socketPath, path: '/keys', headers }, (reply) => {
          reply.resume();
          resolve(reply.statusCode);
        });
        outgoing.on('error', reject).end();
      });
      assert.equal(status, 200);

      // The client waits for a server that is loading its data.
      const list = t.mock.method(database.apiKeys, 'list', () => {
        throw new SagittaError('starting', 'The service is loading its sample data.');
      });
      const listing = operator.call('GET', '/keys');
      await eventually('the server was asked twice', () => list.mock.callCount() > 1);
      list.mock.restore();
      await listing;
      await operator.close();
    } finally {
      await close();
    }
  });
});

function read(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}
