// Imports of files in several formats in a browser, whose worker loads the readers.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from '@zip.js/zip.js';
import { Field, Float32, List, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import type { Browser } from 'playwright-core';
import { ParquetWriter } from '../../../src/formats/parquet/parquet-writer.js';
import { columnOf } from '../../../test/database/harness.js';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { expectAccessible, openConsole } from './browser.js';
import { type ConsoleServer, startConsoleServer } from './console-server.js';

const VECTORS = [
  [1, 2],
  [3, 4],
];

function npy(): Buffer {
  const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }".padEnd(117);
  const start = Buffer.from(`\x93NUMPY\x01\x00\x76\x00${header}\n`, 'latin1');
  return Buffer.concat([start, Buffer.from(Float32Array.from(VECTORS.flat()).buffer)]);
}

async function npz(): Promise<Buffer> {
  const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false });
  await writer.add('vectors.npy', new Uint8ArrayReader(npy()));
  return Buffer.from(await writer.close());
}

function parquet(): Buffer {
  const writer = new ParquetWriter({
    fields: [
      { name: 'id', type: 'utf8' },
      { name: 'values', type: { vectorOf: 2 } },
    ],
    metadata: new Map(),
    createdBy: 'a test',
  });
  const columns = [{ leaf: columnOf(['a', 'b']) }, { vectors: Float32Array.from(VECTORS.flat()) }];
  const begin = writer.begin();
  const groups = [...writer.rowGroup([{ count: 2, columns }])];
  return Buffer.concat([begin, ...groups, writer.end()]);
}

suite('the import of the console', { skip: NO_BROWSER }, () => {
  let server: ConsoleServer;
  let browser: Browser;

  before(async () => {
    server = await startConsoleServer();
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test('writes the rows of files in every format', async () => {
    const values = vectorFromArray(VECTORS, new List(new Field('item', new Float32())));
    const table = new Table({ id: vectorFromArray(['a', 'b'], new Utf8()), values });
    const lines = '{"id":"a","values":[1,2],"n":1.0}\n{"id":"b","values":[3,4],"n":null}\n';
    const { page, go, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/import',
    });
    for (const [name, buffer] of [
      ['lines.jsonl', Buffer.from(lines)],
      ['packed.jsonl.gz', gzipSync(lines)],
      ['table.csv', Buffer.from('id;values;n\na;1 2;7\nb;3 4;\n')],
      ['columns.arrow', Buffer.from(tableToIPC(table, 'file'))],
      ['groups.parquet', parquet()],
      ['array.npy', npy()],
      ['archive.npz', await npz()],
    ] as const) {
      await page.setInputFiles('input[type=file]', { name, mimeType: '', buffer });
      await page.getByRole('button', { name: 'Import', exact: true }).click();
      await page.getByText(`All rows of ${name} were read.`).waitFor();
      const id = name.replace(/\..*$/, '');
      const collection = await server.client.collections.get(id);
      assert.equal(collection.vector_count, 2, name);
      assert.equal(collection.dimension, 2, name);
      await page.getByRole('button', { name: 'Choose another file' }).click();
      await go('/import');
    }
    const { vectors } = await server.client
      .collection('packed')
      .fetch(['a'], { include_values: true });
    assert.deepEqual(vectors[0]?.values, [1, 2]);
    assert.deepEqual(vectors[0]?.metadata, { n: 1 });
    expectNoProblems();
    await close();
  });

  test('lets the server turn texts into vectors', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/import',
    });
    const lines = 'id,title,text\na,Cats,Kittens chase mice.\nb,Shares,Prices fell on Tuesday.\n';
    const file = { name: 'notes.csv', mimeType: '', buffer: Buffer.from(lines) };
    await page.setInputFiles('input[type=file]', file);
    await page.getByText('A model turns the texts into vectors.').waitFor();
    await expectAccessible(page, 'the import of texts');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('All rows of notes.csv were read.').waitFor();
    const { embed, text } = await server.client.collections.get('notes');
    assert.deepEqual([embed?.endpoint, text?.fields], ['builtin', ['text']]);
    const { matches } = await server.client
      .collection('notes')
      .query({ embed: 'a young cat hunts', limit: 1, include_metadata: true });
    const metadata = { title: 'Cats', text: 'Kittens chase mice.' };
    assert.deepEqual([matches[0]?.id, matches[0]?.metadata], ['a', metadata]);
    expectNoProblems();
    await close();
  });
});
