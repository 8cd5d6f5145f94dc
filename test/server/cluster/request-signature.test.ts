import assert from 'node:assert/strict';
import type { Readable, Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { OPERATOR } from '../../../src/common/access.js';
import { NodeKeys } from '../../../src/platform/node-keys.js';
import {
  AGE_MS_MAX,
  type ForwardedRequest,
  RequestSigner,
  RequestVerifier,
} from '../../../src/server/cluster/request-signature.js';
import { BodySigner, BodyVerifier } from '../../../src/server/cluster/signed-body.js';

const SECRET = 'a secret of some nodes, and of nobody else';
const keys = new NodeKeys([SECRET], 'test');
const REQUEST = {
  method: 'POST',
  target: '/v1/keys?x=1',
  id: 'r1',
  headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
};
const FORWARDED_DATA: ForwardedRequest = {
  principal: OPERATOR,
  client: '192.0.2.7',
  via: 'n1',
  hopCount: 1,
  waitedMs: 0,
  positions: {},
  body: null,
};
const TO = { instance: 'n2/2', clockMs: 1_000 };

describe('the signature of a request between nodes', () => {
  const signer = new RequestSigner(keys, 'n1/1');
  const sign = (forwarded = FORWARDED_DATA, to = TO) => signer.sign(REQUEST, forwarded, to).header;
  const verifierAt = (nowMs: () => number = () => TO.clockMs) =>
    new RequestVerifier(keys, TO.instance, nowMs);
  const refused = (verify: () => unknown, code: string, detail: RegExp) =>
    assert.throws(verify, (error: { code: string; message: string }) => {
      assert.match(error.message, detail);
      return error.code === code;
    });

  it('carries the forwarded data', () => {
    assert.deepEqual(verifierAt().verify(sign(), REQUEST).forwarded, FORWARDED_DATA);
  });

  it('covers the method, the target, the id, the headers and the forwarded data', () => {
    const verifier = verifierAt();
    const header = sign();
    const [text = '', tag = ''] = header.split('.');
    const other = Buffer.from(
      Buffer.from(text, 'base64url').toString().replace('192.0.2.7', '192.0.2.8'),
    ).toString('base64url');
    for (const [changed, sent] of [
      [{ ...REQUEST, method: 'PUT' }, header],
      [{ ...REQUEST, target: '/v1/keys?x=2' }, header],
      [{ ...REQUEST, id: 'r2' }, header],
      [{ ...REQUEST, headers: { ...REQUEST.headers, 'idempotency-key': 'l' } }, header],
      [{ ...REQUEST, headers: { ...REQUEST.headers, 'if-match': '"1"' } }, header],
      [{ ...REQUEST, headers: { 'content-type': 'application/json' } }, header],
      [REQUEST, `${other}.${tag}`],
      [REQUEST, text],
      [REQUEST, `${text}.${tag.slice(0, -2)}`],
      [REQUEST, ''],
      [
        REQUEST,
        new RequestSigner(new NodeKeys(['x'], 'test'), 'n1/1').sign(REQUEST, FORWARDED_DATA, TO)
          .header,
      ],
      [
        REQUEST,
        new RequestSigner(new NodeKeys([SECRET], 'other'), 'n1/1').sign(REQUEST, FORWARDED_DATA, TO)
          .header,
      ],
    ] as const) {
      refused(() => verifier.verify(sent, changed), 'credentials_invalid', /not signed for this/);
    }
    verifier.verify(header, REQUEST);
  });

  it('is accepted once, in any order, by the process that it is addressed to', () => {
    const verifier = verifierAt();
    const headers = Array.from({ length: 200 }, () => sign());
    for (const header of headers.slice(0, 100).reverse()) verifier.verify(header, REQUEST);
    for (const header of headers.slice(100)) verifier.verify(header, REQUEST);
    for (const header of headers) {
      refused(() => verifier.verify(header, REQUEST), 'credentials_invalid', /was received before/);
    }
    const again = new RequestVerifier(keys, 'n2/3', () => TO.clockMs);
    refused(() => again.verify(sign(), REQUEST), 'no_leader', /addressed to the process n2\/2/);
  });

  it('is refused when it arrives too far out of order', () => {
    const busy = new RequestSigner(keys, 'n1/busy');
    const next = () => busy.sign(REQUEST, FORWARDED_DATA, TO).header;
    const verifier = verifierAt();
    const first = next();
    const second = next();
    for (let i = 0; i < 32_767; i++) next();
    verifier.verify(next(), REQUEST);
    refused(() => verifier.verify(first, REQUEST), 'credentials_invalid', /was received before/);
    refused(() => verifier.verify(second, REQUEST), 'credentials_invalid', /was received before/);
    verifier.verify(next(), REQUEST);
  });

  it('is refused when it is too old, or from the future, on the clock of the receiver', () => {
    let nowMs = TO.clockMs + AGE_MS_MAX;
    const verifier = verifierAt(() => nowMs);
    verifier.verify(sign(), REQUEST);
    nowMs++;
    refused(() => verifier.verify(sign(), REQUEST), 'no_leader', /is 30001 ms old by the clock/);
    nowMs = TO.clockMs - AGE_MS_MAX - 1;
    refused(() => verifier.verify(sign(), REQUEST), 'no_leader', /is -30001 ms old/);
  });

  it('is remembered until it is too old, however many senders there are', () => {
    let nowMs = TO.clockMs;
    const verifier = verifierAt(() => nowMs);
    const header = sign();
    verifier.verify(header, REQUEST);
    for (const afterMs of [1, AGE_MS_MAX]) {
      nowMs = TO.clockMs + afterMs;
      const other = new RequestSigner(keys, `other/${afterMs}`);
      verifier.verify(
        other.sign(REQUEST, FORWARDED_DATA, { ...TO, clockMs: nowMs }).header,
        REQUEST,
      );
      refused(() => verifier.verify(header, REQUEST), 'credentials_invalid', /was received before/);
    }
  });

  it('may use the previous secret during a rotation', () => {
    const changed = new NodeKeys(['a new secret', SECRET], 'test');
    new RequestVerifier(changed, TO.instance, () => TO.clockMs).verify(sign(), REQUEST);
    const { header } = new RequestSigner(changed, 'n1/2').sign(REQUEST, FORWARDED_DATA, TO);
    refused(
      () => verifierAt().verify(header, REQUEST),
      'credentials_invalid',
      /is not signed for this request/,
    );
  });
});

describe('the signed body of a request between nodes', () => {
  const TAG = Buffer.alloc(32, 7);
  /** The chunks on the wire, each with its tag. */
  async function chunksOf(...parts: readonly Uint8Array[]): Promise<Buffer[]> {
    const signer = new BodySigner(keys, TAG);
    for (const part of parts) signer.write(part);
    signer.end();
    const sent = await buffer(signer);
    const chunks: Buffer[] = [];
    for (let at = 0; at < sent.length; ) {
      const end = at + 4 + sent.readUInt32LE(at) + 32;
      chunks.push(sent.subarray(at, end));
      at = end;
    }
    return chunks;
  }
  function received(bytes: Buffer, pieceBytes = bytes.length, tag = TAG): Promise<Buffer> {
    const verifier: Transform & Readable = new BodyVerifier(keys, tag);
    const read = buffer(verifier);
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      verifier.write(bytes.subarray(at, at + pieceBytes));
    }
    verifier.end();
    return read;
  }

  it('is restored from chunks of any size', async () => {
    const parts = [0, 1, 65_536, 200_001].map((length, i) => Buffer.alloc(length, i + 1));
    const sent = Buffer.concat(await chunksOf(...parts));
    for (const pieceBytes of [sent.length, 65_536, 7_001]) {
      assert.ok((await received(sent, pieceBytes)).equals(Buffer.concat(parts)));
    }
    assert.equal((await received(Buffer.concat(await chunksOf()), 1)).length, 0);
  });

  it('is refused when a chunk is changed, omitted, repeated, reordered or added', async () => {
    const [a, b, end] = (await chunksOf(Buffer.from('one'), Buffer.from('two'))) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    const flipped = Buffer.from(a);
    flipped[5]! ^= 1;
    const long = Buffer.from(a);
    long.writeUInt32LE(0xffffffff);
    for (const [bytes, code] of [
      [[flipped, b, end], 'credentials_invalid'],
      [[long, b, end], 'credentials_invalid'],
      [[b, end], 'credentials_invalid'],
      [[a, end], 'credentials_invalid'],
      [[a, a, b, end], 'credentials_invalid'],
      [[b, a, end], 'credentials_invalid'],
      [[a, b, end, a], 'credentials_invalid'],
      [[a, b], 'invalid_request'],
      [[a, b, end.subarray(1)], 'credentials_invalid'],
      [[a, b, end.subarray(0, 35)], 'invalid_request'],
      [[], 'invalid_request'],
    ] as const) {
      await assert.rejects(received(Buffer.concat([...bytes])), { code });
    }
    const other = received(Buffer.concat([a, b, end]), 100, Buffer.alloc(32, 8));
    await assert.rejects(other, { code: 'credentials_invalid' });
    assert.equal((await received(Buffer.concat([a, b, end]))).toString(), 'onetwo');
  });
});
