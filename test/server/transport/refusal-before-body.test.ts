// Long bodies that are refused early: a client that reads only after it has sent everything can still read the
// error and use the connection again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
} from '../../../src/formats/arrow/ipc-writer.js';
import { ARROW_STREAM } from '../../../src/server/wire/media-types.js';
import { createFilledService } from '../harness.js';
import { exchange, headOf, listen, repliesIn } from '../wire.js';

/** More than fits into all socket buffers. */
const ROWS = 400_000;
const BATCHES = 5;

function bodyWithColumn(name: string): Buffer {
  const batch = encodeRecordBatch(ROWS, [{ vectors: new Float32Array(ROWS * 3).fill(1) }]);
  return Buffer.concat([
    encodeSchema([{ name, type: { vectorOf: 3 } }]),
    ...Array.from({ length: BATCHES }, () => batch).flat(),
    encodeEnd(),
  ]);
}

const noStream = Buffer.concat([
  Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
  Buffer.alloc(24_000_000),
]);

describe('a long body that is refused early', () => {
  for (const [what, path, body, code] of [
    ['columns', '/collections/c/vectors', bodyWithColumn('nothing'), 'invalid_request'],
    ['columns', '/collections/c/query/batch', bodyWithColumn('nothing'), 'invalid_request'],
    ['frame', '/collections/c/vectors', noStream, 'invalid_arrow'],
    ['frame', '/collections/c/query/batch', noStream, 'invalid_arrow'],
    [
      'collection',
      '/collections/none/query/batch',
      bodyWithColumn('values'),
      'collection_not_found',
    ],
  ] as const) {
    it(`can be sent completely if ${path} refuses its ${what}`, { timeout: 60_000 }, async () => {
      const service = await createFilledService();
      const port = await listen(service);
      const text = await exchange(port, async (socket) => {
        const headers = { 'content-type': ARROW_STREAM, 'content-length': body.length };
        socket.write(headOf('POST', path, headers));
        // The client reads the reply only after it has sent the last byte.
        socket.pause();
        await new Promise<void>((resolve) => {
          socket.write(body, () => resolve());
        });
        socket.resume();
        socket.write(headOf('GET', '/readyz', { connection: 'close' }));
      });
      const [refused, next] = repliesIn(text);
      assert.equal(JSON.parse(refused!.body).code, code);
      assert.equal(next!.status, 200);
      await service.close();
    });
  }
});
