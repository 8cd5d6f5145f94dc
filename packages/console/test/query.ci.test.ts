// The browse and query views in a real browser against a real server: input is kept, queries are in the address, and
// errors are shown where they occur.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { createClient } from '@sagitta/client';
import type { Browser } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { startTestServer, type TestServer } from '../../../test/support/server-in-process.js';
import { expectAccessible, openConsole } from './browser.js';

const BROWSE = '/collections/films/browse';
const QUERY = '/collections/films/query';

suite('browsing and querying a collection', { skip: NO_BROWSER }, () => {
  let server: TestServer;
  let browser: Browser;

  before(async () => {
    server = await startTestServer();
    const client = createClient({ baseUrl: server.url });
    await client.collections.create({ id: 'films', dimension: 2 });
    await client.collection('films').upsert(
      Array.from({ length: 2_000 }, (_, i) => ({
        id: `film-${i}`,
        values: [Math.cos(i), Math.sin(i)],
        metadata: { year: 1900 + (i % 100), genre: i % 3 === 0 ? 'drama' : 'comedy' },
      })),
    );
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test('conditions are completed, and kept while another view is shown', async () => {
    const { page, go, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: BROWSE,
    });
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('button', { name: 'Condition', exact: true }).click();
    await page.getByLabel('Metadata path').fill('gen');
    await page.getByRole('option', { name: 'genre' }).click();
    await page.getByLabel('Value for genre').fill('dra');
    await page.getByRole('option', { name: 'drama' }).click();
    await page.getByText('667 of 2,000 vectors pass').waitFor();
    await page.getByRole('button', { name: 'Condition', exact: true }).click();
    await page.getByLabel('Metadata path').last().fill('yea');
    await go(QUERY);
    await page.getByRole('heading', { name: 'Query films' }).waitFor();
    await go(BROWSE);
    await page.getByText('667 of 2,000 vectors pass').waitFor();
    assert.equal(await page.getByLabel('Metadata path').last().inputValue(), 'yea');
    expectNoProblems();
    await close();
  });

  test('a filter is pasted as JSON, and errors are shown at their conditions', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: BROWSE,
    });
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('button', { name: 'JSON' }).click();
    const json = page.getByLabel('The filter as JSON', { exact: true });
    await json.fill('{"genre": "drama", "$not": {"genre": {"$regex": "(a"}}}');
    await page.getByRole('alert').getByText('regular expression').waitFor();
    await expectAccessible(page, 'a filter with an error');
    await json.fill(
      '{"$or": [{"year": {"$gte": 1990, "$lt": 1992}}, {"$id": {"$prefix": "film-7"}}]}',
    );
    await page.getByText(/ of 2,000 vectors pass/).waitFor();
    assert.equal(await page.getByLabel('Value for year').first().inputValue(), '1990');
    assert.equal(await page.getByRole('alert').count(), 0);
    // Chromium logs each reply with an error status.
    expectNoProblems(/status of 400/);
    await close();
  });

  test('a selection survives sorting, scrolling and refreshing', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: BROWSE,
    });
    await page.getByRole('gridcell', { name: 'film-0', exact: true }).click();
    await page.getByRole('grid').focus();
    await page.keyboard.press('Space');
    await page.keyboard.press('Control+End');
    await page.getByRole('gridcell', { name: 'film-1999', exact: true }).waitFor();
    await page.keyboard.press('Space');
    await page.getByRole('columnheader', { name: 'year' }).click();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('2 selected').waitFor();
    await page.keyboard.press('Control+Home');
    await page.getByRole('row', { selected: true }).first().waitFor();
    expectNoProblems();
    await close();
  });

  test('a link opens a query with its result, which can be continued', async () => {
    const draft = encodeURIComponent('{"by":"id","id":"film-7","k":5,"filter":{"genre":"drama"}}');
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: `${QUERY}/${draft}`,
    });
    await page.getByText('5 of 667 matches').waitFor();
    await page.getByRole('button', { name: 'Show 5 more' }).click();
    await page.getByText('10 of 667 matches').waitFor();
    await page.getByRole('button', { name: 'Show cards' }).click();
    assert.equal(await page.getByRole('listitem').filter({ hasText: 'Details' }).count(), 10);
    await page.getByRole('button', { name: 'Copy as' }).click();
    await page.getByRole('tab', { name: 'Python' }).click();
    await page.getByText('from sagitta import Sagitta').waitFor();
    await expectAccessible(page, 'a query as a program');
    expectNoProblems();
    await close();
  });

  test('two queries are compared, and the address contains both', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: QUERY,
    });
    await page.getByRole('tab', { name: 'Vector' }).click();
    await page.getByLabel('Numbers').fill('1');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').getByText('Found 1 of 2 numbers').waitFor();
    await page.getByLabel('Numbers').fill('1, 0');
    await page.getByRole('button', { name: 'Compare with a second query' }).click();
    await page.getByLabel('Numbers').last().fill('[0.99, 0.1]');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/in both/).waitFor();
    await expectAccessible(page, 'a comparison');
    const text = decodeURIComponent(new URL(page.url()).hash);
    assert.match(text, /"vector":"1, 0".*"other":.*0\.99/);
    expectNoProblems();
    await close();
  });
});
