// `sagitta import` of a file that needs several requests.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { createClient } from '@sagitta/client';
import { importFiles as importFilesHere } from '../../src/cli/import/import-files.js';
import { ImportJournal } from '../../src/cli/import/journal.js';
import { emptyServer } from '../support/shared-server.js';
import { makeFolder } from './command.js';

it('the progress of an import counts the rows that are durable, not the bytes that were read', async (t) => {
  const client = createClient({ baseUrl: await emptyServer() });
  const folder = await makeFolder();
  t.after(() => folder.remove());
  const rowCount = 12_000;
  const values = new Float32Array(rowCount * 1_024);
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rowCount}, 1024), }`;
  const path = join(folder.path, 'large.npy');
  await writeFile(
    path,
    Buffer.concat([
      Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1'),
      Buffer.from(`${header.padEnd(117)}\n`),
      Buffer.from(values.buffer),
    ]),
  );
  const shares: (readonly [rows: number, share: number])[] = [];
  await importFilesHere(client, [path], {
    collection: 'large',
    metric: 'dot',
    batch: 5_000,
    openJournal: async () => ImportJournal.none(),
    createProgress: () => ({
      update: (rows, share) => shares.push([rows!, share!]),
      note() {},
      end() {},
    }),
    interruption: new AbortController().signal,
  });
  assert.ok(shares.length > 1);
  for (const [rows, share] of shares) {
    assert.ok(Math.abs(share - rows / rowCount) < 1e-6, `${rows} rows, ${share}`);
  }
});
