// Tasks of an administrator in a browser against a real server: importing a file while the server is killed, handling
// bad rows, and creating, using and revoking API keys.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { createClient } from '@sagitta/client';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { WAIT_MS_MAX } from '../../../test/support/waiting.js';
import { expectAccessible, openConsole } from './browser.js';
import { type ConsoleServer, startConsoleServer } from './console-server.js';

/** Two and a half batches of rows; those in `bad` have no vector. */
function rowsFile(bad: readonly number[] = []) {
  const lines = Array.from({ length: 25_000 }, (_, at) =>
    JSON.stringify({
      id: `r${at}`,
      values: bad.includes(at) ? null : [at, 1, 2],
      metadata: { at },
    }),
  );
  return { name: 'rows.jsonl', mimeType: 'text/plain', buffer: Buffer.from(lines.join('\n')) };
}

const heading = (page: Page, name: string) =>
  page.getByRole('heading', { name }).first().waitFor({ timeout: WAIT_MS_MAX });
const press = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).click({ timeout: WAIT_MS_MAX });

suite('tasks of administrators in the console', { skip: NO_BROWSER }, () => {
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

  test('an import continues after the server was killed, and writes every row once', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/import',
    });
    await page.setInputFiles('input[type=file]', rowsFile());
    await page.getByLabel('Name').fill('cut');
    // The server dies while the second batch is in flight and not acknowledged.
    let batchCount = 0;
    await page.route('**/collections/cut/vectors*', async (route) => {
      if (++batchCount === 2) await server.kill();
      await route.continue();
    });
    await press(page, 'Import');
    await page.getByText('The import continues automatically').waitFor({ timeout: WAIT_MS_MAX });
    await server.restart();
    await heading(page, 'Imported');
    const client = createClient({ baseUrl: server.url });
    assert.equal(await client.collection('cut').count(), 25_000);
    expectNoProblems(/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
    await close();
  });

  test('a vector is added to a collection, and dropped after its name has been typed', async () => {
    const { collections } = createClient({ baseUrl: server.url });
    await collections.create({ id: 'grown', dimension: 2 });
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/grown/schema',
    });
    await press(page, 'Add a vector');
    await page.getByLabel('Name').fill('summary');
    await page.getByLabel('Dimension').fill('384');
    await page.getByLabel('Metric').selectOption('dot');
    await expectAccessible(page, 'the dialog that adds a vector');
    await press(page, 'Add');
    await page.getByRole('row', { name: /summary one vector 384 dot/ }).waitFor();
    assert.deepEqual((await collections.get('grown')).vectors, {
      summary: { dimension: 384, metric: 'dot' },
    });
    await press(page, 'Drop summary');
    await page.getByText('This removes summary from all 0 records of grown').waitFor();
    await expectAccessible(page, 'the dialog that drops a vector');
    await page.getByLabel('Type summary to confirm').fill('summary');
    await press(page, 'Drop');
    await page.getByText('Dropped summary from grown.').waitFor();
    assert.equal((await collections.get('grown')).vectors, undefined);
    expectNoProblems();
    await close();
  });

  test('without a directory for backups, the page says what to configure and asks for nothing', async () => {
    const bare = await startConsoleServer({ hasBackups: false });
    const { page, expectNoProblems, close } = await openConsole(browser, bare.url, {
      path: '/backups',
    });
    await page.getByText('No backup directory is configured').waitFor();
    await page.getByText('SAGITTA_BACKUP_DIR').waitFor();
    await expectAccessible(page, 'backups without a directory');
    expectNoProblems();
    await close();
    await bare.close();
  });

  test('an import stops at a bad row, then skips and lists it', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/import',
    });
    const file = rowsFile([12_345]);
    await page.setInputFiles('input[type=file]', file);
    await page.getByLabel('Name').fill('bad');
    await press(page, 'Import');
    await page.getByText('Row 12,346 is not valid').waitFor({ timeout: WAIT_MS_MAX });
    await press(page, 'Skip bad rows and continue');
    await heading(page, 'Imported');
    await page.getByRole('row', { name: /12,346 values is null/ }).waitFor();
    const client = createClient({ baseUrl: server.url });
    assert.equal(await client.collection('bad').count(), 24_999);
    expectNoProblems();
    await close();
  });

  test('the first key is used immediately, creates a limited key, and revokes it', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/keys',
    });
    await press(page, 'New key');
    await page.getByLabel('Owner').fill('operations');
    await page.getByText('This first key is an admin key').waitFor();
    assert.equal(await page.getByRole('checkbox').count(), 0);
    await expectAccessible(page, 'the dialog of a new key');
    await press(page, 'Create');
    await page.getByText('You are now signed in with it.').waitFor({ timeout: WAIT_MS_MAX });
    await expectAccessible(page, 'the secret of a new key');
    await press(page, 'I have copied it');
    await page.getByRole('row', { name: /operations .* yours admin active never/ }).waitFor();
    await press(page, 'New key');
    await page.getByLabel('Owner').fill('reader');
    await page.getByRole('checkbox', { name: /^vectors:read/ }).check();
    await page.getByLabel('Collections of vectors:read').fill('cu*');
    await page.getByText('Matches cut, and future ones.').waitFor();
    await page.getByLabel('Web pages (origins)').fill('https://app.example/');
    await page.getByLabel('Reads and writes per second').fill('20');
    await press(page, 'Create');
    await page.getByText('Expected https://app.example; found').waitFor();
    await page.getByLabel('Web pages (origins)').fill('https://app.example');
    await expectAccessible(page, 'the dialog of a key for web pages');
    await press(page, 'Create');
    const secret =
      (await page.getByRole('dialog', { name: 'New key' }).locator('code').textContent()) ?? '';
    const fromPage: typeof fetch = (url, init) => {
      const headers = new Headers(init?.headers);
      headers.set('origin', 'https://app.example');
      return fetch(url, { ...init, headers });
    };
    const reader = createClient({ baseUrl: server.url, apiKey: secret, fetch: fromPage });
    assert.equal(await reader.collection('cut').count(), 25_000);
    const elsewhere = createClient({ baseUrl: server.url, apiKey: secret });
    await assert.rejects(elsewhere.collection('cut').count(), { code: 'origin_not_allowed' });
    await press(page, 'I have copied it');
    await page
      .getByRole('row', { name: /reader .* https:\/\/app\.example 20\/s, bursts of 20/ })
      .waitFor();
    await press(page, 'Revoke the key of reader');
    await press(page, 'Revoke');
    await page.getByRole('row', { name: /reader .* revoked/ }).waitFor();
    await assert.rejects(reader.collection('cut').count(), { status: 401 });
    expectNoProblems(/status of 401/);
    await close();
  });
});
