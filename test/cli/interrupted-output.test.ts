// Output that is incomplete because the reply is cut: the command fails with a message and leaves no file behind.
// Interruptions by a signal or a full disk are in interrupted-output.ci.test.ts.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { utf8ColumnOf } from '../../src/common/utf8-column.js';
import { encodeRecordBatch, encodeSchema } from '../../src/formats/arrow/ipc-writer.js';
import { makeFolder, run } from './command.js';

let server: Server;
let url: string;
let folder: Awaited<ReturnType<typeof makeFolder>>;

/** A server whose streams end within a row. */
before(async () => {
  folder = await makeFolder();
  server = createServer((request, response) => {
    request.resume();
    if (/cut\/export/.test(request.url!)) {
      cut(request, response);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const rest = { dimension: 2, vector_count: 9, metric: 'dot', created_at: 'x' };
    response.end(JSON.stringify({ id: 'c', ...rest }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await folder.remove();
});

/** A row in the requested format, without the end of the stream. */
function cut(request: IncomingMessage, response: ServerResponse): void {
  const { accept = '' } = request.headers;
  const wire = /arrow|parquet/.exec(accept + request.url!)?.[0] ?? 'ndjson';
  // A reply without a length and without chunks ends with its connection.
  const isFramed = request.headers.authorization === 'Bearer framed';
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'sagitta-sequence': '1',
    ...(!isFramed && { connection: 'close' }),
  });
  response.useChunkedEncodingByDefault = isFramed;
  const parts = PARTS[wire as keyof typeof PARTS];
  response.write(Buffer.concat(parts), () => {
    if (isFramed) response.socket!.end();
    else response.end();
  });
}

const text = (...texts: string[]) => ({
  leaf: utf8ColumnOf(texts),
});
const PARTS = {
  ndjson: [Buffer.from('{"id":"a","values":[1,2],"metadata":{}}\n{"id":"b","val')],
  arrow: [
    encodeSchema([
      { name: 'id', type: 'utf8' },
      { name: 'values', type: { vectorOf: 2 } },
      { name: 'metadata', type: 'utf8' },
    ]),
    ...encodeRecordBatch(1, [text('a'), { vectors: Float32Array.of(1, 2) }, text('{}')]),
  ],
  parquet: [Buffer.from('PAR1…')],
} as const;

for (const [kind, message] of [
  // The client may notice the end before it has received the beginning.
  ['framed', /^sagitta: (.* was cut off after \d+ bytes|cannot reach .* other side closed)/m],
  ['unframed', /^sagitta: the reply was cut off after \d+ bytes/m],
] as const) {
  for (const extension of ['ndjson', 'csv', 'arrow', 'arrows', 'parquet', 'npy', 'fbin']) {
    it(`a reply that is cut, ${kind}, leaves no .${extension} file`, async () => {
      const args = ['export', 'cut', '-o', join(folder.path, `out.${extension}`), '--force'];
      const { code, stdout, stderr } = await run([...args, '--url', url, '--api-key', kind]);
      assert.equal(code, 3, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, message);
      assert.deepEqual(readdirSync(folder.path), []);
    });
  }
}

it('output on stdout that is cut is reported as incomplete', async () => {
  const { code, stdout, stderr } = await run(['export', 'cut', '--url', url]);
  assert.equal(code, 3, stderr);
  assert.match(stdout, /^\{"id":"a"/);
  assert.match(stderr, /^sagitta: the output on stdout is incomplete$/m);
});

it('a device or a directory is not replaced by an output file', async () => {
  for (const [path, message] of [
    ['/dev/null', /\/dev\/null is not a regular file; write to stdout/],
    [folder.path, /is a directory, expected a file/],
  ] as const) {
    const args = ['export', 'c', '-o', path, '--force', '--format', 'csv', '--url', url];
    const { code, stderr } = await run(args);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
});
