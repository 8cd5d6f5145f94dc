// Typical tasks in the console, from the first click to the resulting state of the server, which each test checks
// through the API.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { createClient } from '@sagitta/client';
import type { Browser } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { eventually, WAIT_MS_MAX } from '../../../test/support/waiting.js';
import { collectionPath } from '../src/views/routes.js';
import { expectAccessible, openConsole } from './browser.js';
import { type ConsoleServer, loadWords, startConsoleServer } from './console-server.js';

suite('journeys through the console', { skip: NO_BROWSER }, () => {
  let server: ConsoleServer;
  let browser: Browser;

  before(async () => {
    server = await startConsoleServer();
    await loadWords(server.client);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  const open = (path: string) => openConsole(browser, server.url, { path });

  test('with the keyboard alone: from the palette to a row and to its neighbours', async () => {
    const { page, expectNoProblems, close } = await open('/');
    await page
      .getByRole('link', { name: /^wordnet/ })
      .first()
      .waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to' }).waitFor();
    await page.keyboard.type('wordnet browse');
    await page.getByRole('option', { name: 'wordnet: Browse' }).waitFor();
    await page.keyboard.press('Enter');
    const grid = page.getByRole('grid', { name: 'Vectors of wordnet' });
    await grid.getByText('n00039990').waitFor();
    for (let presses = 0; presses < 60; presses++) {
      if ((await page.evaluate('document.activeElement?.role')) === 'grid') break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Space');
    await page.getByText('1 selected').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Find similar' }).last().waitFor();
    await expectAccessible(page, 'the details of a vector');
    await page.getByRole('link', { name: 'Find similar' }).last().focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/query/);
    await page.keyboard.press('Control+Enter');
    await page
      .getByRole('status')
      .filter({ hasText: /match|result|vector/ })
      .first()
      .waitFor();
    expectNoProblems();
    await close();
  });

  test('a collection is created, described and deleted', async () => {
    const { page, expectNoProblems, close } = await open('/');
    await page.getByRole('button', { name: 'New collection' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id').fill('films');
    await dialog.getByLabel('Dimension').fill('12');
    await expectAccessible(page, 'the dialog of a new collection');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'films' }).waitFor();
    assert.equal((await server.client.collections.get('films')).dimension, 12);
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Description').fill('Films by plot');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Films by plot').first().waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    const confirm = dialog.getByRole('button', { name: 'Delete' });
    assert.ok(await confirm.isDisabled());
    await dialog.getByLabel('Type films to confirm').fill('films');
    await confirm.click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await assert.rejects(server.client.collections.get('films'), { code: 'collection_not_found' });
    expectNoProblems();
    await close();
  });

  test('a collection with many settings is created by fields and JSON, and edited', async () => {
    const { page, expectNoProblems, close } = await open('/');
    await page.getByRole('button', { name: 'New collection' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id').fill('films');
    const openSection = (title: string) =>
      dialog.locator('summary').filter({ hasText: title }).click();
    await openSection('Full-text search');
    await dialog.getByLabel('Search the text of metadata').check();
    await dialog.getByRole('textbox', { name: 'Path 1' }).fill('title');
    await openSection('Named and sparse vectors');
    await dialog.getByRole('button', { name: 'Add a vector' }).click();
    const vector = dialog.getByRole('group', { name: 'Vector 1' });
    await vector.getByLabel('Name').fill('image');
    await vector.getByLabel('Dimension').fill('8');
    await openSection('Metadata types');
    await dialog.getByRole('button', { name: 'Add a type' }).click();
    await dialog.getByLabel('Path of type 1').fill('year');
    await openSection('Request as JSON');
    await expectAccessible(page, 'all settings of a new collection');
    const json = dialog.getByLabel('Request', { exact: true });
    const request = JSON.parse(await json.inputValue());
    await json.fill('{"ids": "films"}');
    await dialog.getByText('Found the member ids').waitFor();
    await json.fill(JSON.stringify({ ...request, dimension: 6, schema: { year: 'integer' } }));
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'films', exact: true }).waitFor();
    const { dimension, text, vectors, schema } = await server.client.collections.get('films');
    assert.deepEqual([dimension, text?.fields, schema], [6, ['title'], { year: 'integer' }]);
    assert.equal(vectors?.image?.dimension, 8);
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByRole('combobox', { name: 'Type 1' }).selectOption('number');
    await expectAccessible(page, 'the settings of a collection');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    assert.deepEqual((await server.client.collections.get('films')).schema, { year: 'number' });
    await server.client.collections.delete('films');
    expectNoProblems();
    await close();
  });

  test('an alias is created, pointed to another collection and deleted', async () => {
    const input = { id: 'films', dimension: 2 };
    await server.client.collections.create(input);
    const { page, expectNoProblems, close } = await open('/');
    await page.getByText('No aliases yet').waitFor();
    await page.getByRole('button', { name: 'New alias' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('films');
    await dialog.getByText('films is a collection.').waitFor();
    await dialog.getByLabel('Name').fill('movies');
    await dialog.getByLabel('Collection').selectOption('films');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('button', { name: 'Point movies to another collection' }).click();
    await dialog.getByLabel('Collection').selectOption('wordnet');
    await dialog.getByRole('button', { name: 'Point', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    assert.equal((await server.client.aliases.get('movies')).collection, 'wordnet');
    await page.getByRole('button', { name: 'Delete the alias movies' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No aliases yet').waitFor();
    await server.client.collections.delete('films');
    expectNoProblems();
    await close();
  });

  test('the overview names the slowest queries, with a link to their collection', async () => {
    const wordnet = server.client.collection('wordnet');
    for await (const { id } of wordnet.listAll({ limit: 1 })) {
      await wordnet.query({ id });
      break;
    }
    const { page, expectNoProblems, close } = await open('/');
    const table = page.getByRole('region', { name: 'Slowest queries' });
    await table.getByText('by id').first().waitFor();
    await page.getByRole('region', { name: 'Collections' }).getByText('Queries/min').waitFor();
    await expectAccessible(page, 'the overview with slow queries');
    await table.getByRole('link', { name: 'wordnet' }).first().click();
    await page.waitForURL(/wordnet\/query/);
    expectNoProblems();
    await close();
  });

  test('rows are filtered, selected, tagged and exported', async () => {
    const { page, expectNoProblems, close } = await open(collectionPath('wordnet', 'browse'));
    const filter = { category: 'noun.animal', word_count: { $gte: 3 } };
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('button', { name: 'JSON' }).click();
    await page.getByRole('textbox', { name: /JSON/ }).fill(JSON.stringify(filter));
    const count = await server.client.collection('wordnet').count({ filter });
    await page.getByText(`${count} vectors`).first().waitFor();
    const grid = page.getByRole('grid', { name: 'Vectors of wordnet' });
    await page.locator(`[role=grid][aria-rowcount="${count + 1}"]`).waitFor();
    // Wait for the first row that passes, because rows that are not loaded cannot be selected.
    for await (const { id } of server.client.collection('wordnet').listAll({ filter, limit: 1 })) {
      await grid.getByText(id).waitFor();
      break;
    }
    for (const row of [1, 2]) {
      await grid.getByRole('row').nth(row).getByRole('gridcell').first().click();
    }
    await page.getByText('2 selected').waitFor();
    await page.getByRole('button', { name: 'Tag' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Metadata path' }).fill('reviewed');
    await dialog.getByLabel('Value').fill('true');
    await dialog.getByRole('button', { name: 'Set' }).click();
    await dialog.waitFor({ state: 'detached' });
    const tagged = await server.client
      .collection('wordnet')
      .count({ filter: { reviewed: { $exists: true } } });
    assert.equal(tagged, 2);
    await page.getByRole('button', { name: 'Clear', exact: true }).last().click();
    await page.getByRole('button', { name: 'Export' }).click();
    const download = page.waitForEvent('download');
    await dialog.getByRole('button', { name: 'Export' }).click();
    const text = await readFile((await (await download).path())!, 'utf8');
    assert.equal(text.trimEnd().split('\r\n').length, count + 1);
    expectNoProblems();
    await close();
  });

  test('duplicates are found, and all but one are deleted', async () => {
    const vectors = server.client.collection('twins');
    await server.client.collections.create({ id: 'twins', dimension: 3 });
    await vectors.upsert(
      [1, 1, 1, 5, -9].map((value, at) => ({ id: `v${at}`, values: [value, at < 3 ? 2 : -at, 1] })),
    );
    const { page, expectNoProblems, close } = await open(collectionPath('twins', 'duplicates'));
    const threshold = page.getByLabel('Minimum score', { exact: true });
    await page.getByText('This score is suggested').waitFor();
    const suggested = await threshold.inputValue();
    await page.getByLabel('Minimum score, on the histogram').press('ArrowLeft');
    assert.notEqual(await threshold.inputValue(), suggested);
    await page.getByRole('button', { name: suggested }).click();
    assert.equal(await threshold.inputValue(), suggested);
    await expectAccessible(page, 'the histogram of scores');
    await page.getByRole('button', { name: 'Find duplicates' }).click();
    await page
      .getByText(/1 group/)
      .first()
      .waitFor();
    await expectAccessible(page, 'groups of duplicates');
    await page
      .getByRole('button', { name: /^Delete/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog');
    const name = dialog.getByRole('textbox');
    if (await name.isVisible()) await name.fill('twins');
    await dialog.getByRole('button', { name: /^Delete/ }).click();
    await eventually('one of three is left', async () => (await vectors.count()) === 3);
    expectNoProblems();
    await close();
  });

  test('points of the map are selected by colour and with the keyboard, and tagged', async () => {
    const { page, expectNoProblems, close } = await open(collectionPath('wordnet', 'map'));
    await page.getByText('UMAP is complete.').first().waitFor({ state: 'attached' });
    await page.getByLabel('Colour by').selectOption('category');
    await page.getByRole('button', { name: 'Select noun.animal' }).click();
    const vectors = server.client.collection('wordnet');
    const animals = await vectors.count({ filter: { category: 'noun.animal' } });
    await page.getByText(`${animals} selected`).first().waitFor();
    await expectAccessible(page, 'a selection on the map');
    await page.getByRole('button', { name: 'Tag' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Metadata path' }).fill('is_animal');
    await dialog.getByLabel('Value').fill('true');
    await dialog.getByRole('button', { name: 'Set' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(
      await vectors.count({ filter: { is_animal: true, category: 'noun.animal' } }),
      animals,
    );
    assert.equal(await vectors.count({ filter: { is_animal: true } }), animals);
    await page.getByRole('application').focus();
    await page.keyboard.press('Escape');
    await page.keyboard.press('n');
    await page.keyboard.press('Space');
    await page.getByText('1 selected').first().waitFor();
    await page.keyboard.press('Escape');
    const search = page.getByRole('combobox', { name: 'Find on the map' });
    await search.fill('bottlenose');
    await page.getByRole('option', { name: /Atlantic bottlenose dolphin/ }).waitFor();
    await expectAccessible(page, 'points found on the map');
    await search.press('Enter');
    await page.getByText('1 selected').first().waitFor();
    await page.getByRole('grid', { name: 'Selected vectors' }).getByText('n02069974').waitFor();
    expectNoProblems();
    await close();
  });

  test('the old address of joins leads to their tab', async () => {
    const { page, close } = await open(`${collectionPath('wordnet', 'duplicates')}/join`);
    await page.getByRole('heading', { name: 'Join' }).waitFor();
    assert.ok(page.url().endsWith(collectionPath('wordnet', 'join')), page.url());
    await close();
  });

  test('two queries are compared, and a query is copied as a program that runs', async () => {
    const request = encodeURIComponent(JSON.stringify({ id: 'n02069974', include_metadata: true }));
    const path = `${collectionPath('wordnet', 'query')}/${request}`;
    const { page, expectNoProblems, close } = await open(path);
    await page.keyboard.press('Control+Enter');
    await page.getByText('n02070624').first().waitFor();
    await expectAccessible(page, 'the matches of a query');
    await page.getByRole('button', { name: 'Copy as' }).click();
    const dialog = page.getByRole('dialog');
    const program = await dialog.locator('pre').first().textContent();
    await expectAccessible(page, 'a query as a program');
    const { stdout } = await promisify(execFile)('bash', ['-c', program!]);
    assert.equal(JSON.parse(stdout).matches[0].id, 'n02070624');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Compare with a second query' }).click();
    await page.keyboard.press('Control+Enter');
    await page
      .getByText(/in both|common|of both/i)
      .first()
      .waitFor();
    await expectAccessible(page, 'two queries side by side');
    expectNoProblems();
    await close();
  });

  test('editing an array keeps the digits of its other large integers', async () => {
    const exact = createClient({ baseUrl: server.url, exactIntegers: true });
    await exact.collections.create({ id: 'posts', dimension: 2 });
    const metadata = { ids: [1768907725507217523n, 2n ** 64n - 1n, 3], post: 2n ** 53n + 1n };
    await exact.collection('posts').upsert([{ id: 'first', values: [1, 0], metadata }]);

    const schema = await open(collectionPath('posts', 'schema'));
    await schema.page.getByText('9007199254740993 to 9007199254740993').waitFor();
    await schema.page.getByRole('button', { name: 'ids' }).click();
    await schema.page.getByText('1768907725507217523').first().waitFor();
    schema.expectNoProblems();
    await schema.close();

    const { page, expectNoProblems, close } = await open(collectionPath('posts', 'browse'));
    await page.getByRole('grid', { name: 'Vectors of posts' }).getByText('first').click();
    await page.getByRole('button', { name: 'Edit metadata' }).click();
    const editor = page.getByLabel('Metadata as JSON');
    const text = await editor.inputValue();
    assert.match(text, /1768907725507217523,\s+18446744073709551615,\s+3\b/);
    await editor.fill(text.replace(/\b3\b/, '4'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved the metadata.').waitFor();
    const saved = (await exact.collection('posts').get('first')).metadata;
    assert.deepEqual(saved, { ...metadata, ids: [1768907725507217523n, 2n ** 64n - 1n, 4] });
    expectNoProblems();
    await close();
  });

  test('a backup is created and listed', async () => {
    const { page, expectNoProblems, close } = await open('/backups');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('sagitta restore').first().waitFor({ timeout: WAIT_MS_MAX });
    assert.equal((await server.client.backups.list()).length, 1);
    expectNoProblems();
    await close();
  });
});
