// Credentials that become invalid while the body of their request arrives.

import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import type { Principal } from '../../../src/common/access.js';
import { SagittaError } from '../../../src/common/errors.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { eventually } from '../../support/waiting.js';
import { createService } from '../harness.js';
import { exchange } from '../wire.js';

const ADMIN: Principal = { id: 'key:a', grants: [{ scope: 'admin', collections: '*' }] };
const BODY = '{"id":"late","dimension":3}';

for (const change of ['revoked', 'narrowed'] as const) {
  it(`a write has no effect if its key is ${change} before the body has arrived`, async () => {
    let principal: Principal | null = ADMIN;
    let verifiedCount = 0;
    const verify = () => {
      verifiedCount++;
      if (principal === null) throw new SagittaError('credentials_invalid', 'It is revoked.');
      return principal;
    };
    const service = await createService({
      authenticator: new Authenticator({ apiKeys: { isInUse: true, verify } }),
    });
    await service.app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = service.app.server.address() as AddressInfo;
    const head = [
      'POST /v1/collections HTTP/1.1',
      'host: localhost',
      'authorization: Bearer sk_a',
      'content-type: application/json',
      `content-length: ${BODY.length}`,
      'connection: close',
    ].join('\r\n');
    const answer = await exchange(port, (socket) => {
      socket.write(`${head}\r\n\r\n${BODY.slice(0, 5)}`);
      void eventually('the headers are accepted', () => verifiedCount > 0).then(() => {
        principal =
          change === 'revoked'
            ? null
            : { ...ADMIN, grants: [{ scope: 'vectors:read', collections: '*' }] };
        socket.write(BODY.slice(5));
      });
    });
    assert.match(answer, change === 'revoked' ? /^HTTP\/1\.1 401 / : /^HTTP\/1\.1 403 /);
    principal = ADMIN;
    const { json } = await service.call('GET', '/collections', {
      headers: { authorization: 'Bearer sk_a' },
    });
    assert.equal(json.total, 0);
    await service.close();
  });
}

it('a stream whose key is revoked ends with the count of rows written before', async () => {
  let principal: Principal | null = ADMIN;
  const verify = () => {
    if (principal === null) throw new SagittaError('credentials_invalid', 'It is revoked.');
    return principal;
  };
  let timeMs = 0;
  const service = await createService({
    authenticator: new Authenticator({ apiKeys: { isInUse: true, verify } }),
    nowMs: () => timeMs,
  });
  const authorization = 'Bearer sk_a';
  await service.call('POST', '/collections', { body: BODY, headers: { authorization } });
  await service.app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = service.app.server.address() as AddressInfo;
  // A thousand lines are an ingest batch.
  const unit = Array.from({ length: 1_000 }, () => '{"values":[1,2,3]}\n').join('');
  const head = [
    'POST /v1/collections/late/vectors HTTP/1.1',
    'host: localhost',
    `authorization: ${authorization}`,
    'content-type: application/x-ndjson',
    `content-length: ${2 * unit.length}`,
    'connection: close',
  ].join('\r\n');
  const answer = await exchange(port, (socket) => {
    socket.write(`${head}\r\n\r\n${unit}`);
    const isWritten = async () =>
      (await service.call('GET', '/collections/late', { headers: { authorization } })).json
        .vector_count === 1_000;
    void eventually('the first batch is written', isWritten).then(() => {
      // A stream is authorized again once a second.
      timeMs += 1_000;
      principal = null;
      socket.write(unit);
    });
  });
  assert.match(answer, /^HTTP\/1\.1 401 /);
  assert.match(answer, /"committed_count":1000[,}]/);
  await service.close();
});
