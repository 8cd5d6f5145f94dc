// The routes of backups, with backups in memory.

import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { createCaller } from '../../support/server-process.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { createFakeBackups } from '../fake-backups.js';
import { createService, expectProblem, type Service } from '../harness.js';

describe('backups over HTTP', () => {
  let service: Service;
  before(async () => {
    service = await createService();
  });
  after(() => service.close());

  it('are created under a given name or one generated from the time, and are listed', async () => {
    const named = await service.call('POST', '/v1/backups', { body: { name: 'monday' } });
    assert.deepEqual(named.json, {
      name: 'monday',
      created_at: '2026-01-01T00:00:00.000Z',
      byte_length: 4096,
      collections: 1,
    });
    const unnamed = await service.call('POST', '/v1/backups', { body: {} });
    assert.equal(unnamed.json.name, 'made-1');
    const listed = await service.call('GET', '/v1/backups');
    assert.deepEqual(listed.json.backups, [unnamed.json, named.json]);
    const again = service.call('POST', '/backups', { body: { name: 'monday' } });
    await expectProblem(again, 409, 'backup_exists');
  });

  it('reject names that contain paths, and a directory sent over the network', async () => {
    for (const name of ['', '.', '../x', 'a/b', '.x', 'x'.repeat(129), 7]) {
      const sent = service.call('POST', '/backups', { body: { name } });
      await expectProblem(sent, 400, 'invalid_request', '/name');
    }
    const sent = service.call('POST', '/backups', { body: { directory: '/somewhere' } });
    await expectProblem(sent, 400, 'unknown_parameter');
  });

  it('are created in the directory that the operator names', async () => {
    const authenticator = new Authenticator({ isOperator: () => true });
    const operated = await createService({ authenticator });
    const { status, json } = await operated.call('POST', '/backups', {
      body: { name: 'x' },
    });
    assert.equal(status, 200);
    assert.equal(json.name, 'x');
    // Called without the check against the OpenAPI document, which does not describe this member.
    const reply = await operated.app.inject({
      method: 'POST',
      url: '/v1/backups',
      headers: { 'content-type': 'application/json' },
      payload: '{"directory":"/somewhere"}',
    });
    assert.deepEqual(reply.json(), {
      directory: '/somewhere',
      created_at: '2026-01-01T00:00:01.000Z',
      byte_length: 4096,
      collections: 1,
    });
    await operated.close();
  });

  it('report why they cannot be created', async () => {
    for (const [code, status] of [
      ['backups_not_configured', 400],
      ['collection_unavailable', 503],
      ['overloaded', 503],
      ['storage_full', 507],
    ] as const) {
      const refuse = async () => {
        throw new SagittaError(code, 'why');
      };
      const backups = { ...createFakeBackups(), create: refuse };
      const refusing = await createService({ backups });
      await expectProblem(refusing.call('POST', '/backups', { body: {} }), status, code);
      await refusing.close();
    }
  });

  it('may exceed the request deadline and complete after the client has disconnected', async () => {
    const fake = createFakeBackups();
    const arrived = withResolvers();
    const disconnected = withResolvers();
    const slow = {
      ...fake,
      async create(name?: string) {
        if (name === 'a') await new Promise((resolve) => setTimeout(resolve, 300));
        else {
          arrived.resolve();
          await disconnected.promise;
        }
        return fake.create(name);
      },
    };
    const limits = { ...DEFAULT_LIMITS, requestMsMax: 100 };
    const patient = await createService({ backups: slow, limits });
    const made = await patient.call('POST', '/backups', { body: { name: 'a' } });
    assert.equal(made.status, 200);
    await patient.app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = patient.app.server.address() as AddressInfo;
    const { call, close } = createCaller(`http://127.0.0.1:${port}`);
    const cut = assert.rejects(call('POST', '/backups', { name: 'b' }));
    await arrived.promise;
    close();
    await cut;
    disconnected.resolve();
    await eventually('both backups are listed', async () => {
      const { json } = await patient.call('GET', '/backups');
      return json.backups.map(({ name }: { name: string }) => name).join() === 'a,b';
    });
    await patient.close();
  });
});
