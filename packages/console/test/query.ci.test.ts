// The browse and query views in a real browser against a real server: input is kept and recognized, queries are in the
// address, and errors are shown where they occur.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { createClient } from '@sagitta/client';
import type { Browser } from 'playwright-core';
import {
  type ScriptedEndpoint,
  startEndpoint,
} from '../../../test/server/embedding/scripted-endpoint.js';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { startTestServer, type TestServer } from '../../../test/support/server-in-process.js';
import { eventually } from '../../../test/support/waiting.js';
import { expectAccessible, expectStillDocument, openConsole } from './browser.js';

const BROWSE = '/collections/films/browse';
const QUERY = '/collections/films/query';

suite('browsing and querying a collection', { skip: NO_BROWSER }, () => {
  let server: TestServer;
  let endpoint: ScriptedEndpoint;
  let browser: Browser;

  before(async () => {
    endpoint = await startEndpoint();
    server = await startTestServer({ SAGITTA_EMBEDDING_ENDPOINTS: `local=${endpoint.url}` });
    const client = createClient({ baseUrl: server.url });
    await client.collections.create({
      id: 'films',
      dimension: 2,
      text: { fields: ['title'] },
      embed: { endpoint: 'local', model: 'letters' },
    });
    await client.collection('films').upsert(
      Array.from({ length: 2_000 }, (_, i) => ({
        id: `film-${i}`,
        values: [Math.cos(i), Math.sin(i)],
        metadata: {
          title: i % 100 === 0 ? `Whale ${i}` : `Film ${i}`,
          year: 1900 + (i % 100),
          genre: i % 3 === 0 ? 'drama' : 'comedy',
        },
      })),
    );
    await client.collections.create({ id: 'plain', dimension: 2 });
    await client.collection('plain').upsert([
      { id: 'a', values: [1, 0], metadata: { title: 'Blue whale' } },
      { id: 'b', values: [0, 1], metadata: { title: 'Dolphin' } },
    ]);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
    await endpoint?.close();
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
    const request = { id: 'film-7', limit: 5, filter: { genre: 'drama' }, include_metadata: true };
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: addressOf(request),
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

  test('the box has the focus and takes words, ids, titles and numbers', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: QUERY,
    });
    const box = page.getByLabel('Search for');
    const kind = page.getByLabel('How the input is read');
    await box.waitFor();
    await page.keyboard.type('whale');
    assert.equal(await box.inputValue(), 'whale');
    await kind.getByText('Automatic: words and meaning').waitFor({ state: 'attached' });
    await page.getByRole('option', { name: /Whale 0/ }).waitFor();
    await expectAccessible(page, 'suggestions with titles');
    await page.keyboard.press('Enter');
    await page.getByText('10 of 2,000 matches').waitFor();
    assert.match(decodeURIComponent(page.url()), /"fusion":\{"parts":\[\{"text".*"embed":"whale"/);
    await page
      .getByRole('gridcell', { name: /^Whale/ })
      .first()
      .waitFor();
    await expectAccessible(page, 'the matches of words and meaning');
    await kind.selectOption('text');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('10 of 20 matches').waitFor();
    await kind.selectOption('');
    await box.fill('film-7');
    await page.keyboard.press('Enter');
    await page.getByText('10 of 1,999 matches').waitFor();
    await page.getByText('Film 7. The vector itself is not returned.').waitFor();
    await box.fill('0.5');
    await page.keyboard.press('Space');
    await page.keyboard.type('1');
    await kind.getByText('Automatic: vector').waitFor({ state: 'attached' });
    await page.keyboard.type(' 2');
    await page.getByText('Found 3 of 2 numbers').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Found 3 of 2 numbers').waitFor();
    await page.getByRole('button', { name: 'One at random' }).click();
    await eventually('an id is in the box', async () => /^film-\d+$/.test(await box.inputValue()));
    await page.getByText('10 of 1,999 matches').waitFor();
    expectNoProblems();
    await close();
  });

  test('a row from a table and a pasted row are queried', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: addressOf({ id: 'film-7', limit: 3, include_metadata: true }),
    });
    const box = page.getByLabel('Search for');
    const row = page.getByRole('row').nth(1);
    await row.waitFor();
    const id = await row.getByRole('gridcell').nth(3).textContent();
    await row.dragTo(box);
    await page.waitForURL((url) => decodeURIComponent(url.hash).includes(`"id":"${id}"`));
    assert.equal(await box.inputValue(), id);
    await box.fill('');
    await page.evaluate(pasteOf('{"id": "x",\n "values": [1,\n 0]}'));
    assert.equal(await box.inputValue(), '{"id": "x", "values": [1, 0]}');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => decodeURIComponent(url.hash).includes('"vector":[1,0]'));
    expectNoProblems();
    await close();
  });

  test('the request is edited as JSON, and its errors are shown in it and in the form', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: addressOf({ id: 'film-7', limit: 5 }),
    });
    await page.getByText('5 of 1,999 matches').waitFor();
    await page.getByRole('button', { name: 'Show request and reply' }).click();
    const json = page.getByLabel('The request as JSON');
    assert.deepEqual(JSON.parse(await json.inputValue()), { id: 'film-7', limit: 5 });
    await json.fill('{"id": "film-8", "limit": 2, "score_threshold": 0.5}');
    await page.keyboard.press('Control+Enter');
    await page.getByText('"id": "film-').first().waitFor();
    assert.equal(await page.getByLabel('Search for').inputValue(), 'film-8');
    await page.getByRole('button', { name: /^More/ }).click();
    await page.getByLabel('Results', { exact: true }).fill('20000');
    await page.getByRole('button', { name: 'Run' }).first().click();
    await page.getByRole('alert').getByText('Found 20000 results').waitFor();
    await page.getByLabel('Results', { exact: true }).fill('3');
    await page.getByLabel('Skip').fill('-1');
    await page.getByRole('button', { name: 'Run' }).first().click();
    await page.getByRole('button', { name: /^Line \d/ }).waitFor();
    assert.equal(await page.getByLabel('Skip').getAttribute('aria-invalid'), 'true');
    await expectAccessible(page, 'a request with an error');
    await json.fill('{"id": "film-8", "limi');
    await page.keyboard.press('Control+Enter');
    await page
      .getByText(/Expected JSON/)
      .first()
      .waitFor();
    await json.fill('{"fusion": {"parts": 3}, "limit": 5}');
    await page.keyboard.press('Control+Enter');
    await page
      .getByText(/fusion\/parts.*xpected an array/)
      .first()
      .waitFor();
    await json.fill('{"recommend": {"positive": [[1, 0]]}, "top_k": 1}');
    await page.getByText('Custom request.').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByText('1 of 2,000 matches').waitFor();
    await page.getByRole('button', { name: 'Start a new query' }).click();
    assert.equal(await page.getByLabel('Search for').inputValue(), '');
    expectNoProblems(/status of 400/);
    await close();
  });

  test('everything else is behind "More": facets, groups, and rankings that are fused', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: QUERY,
    });
    await page.getByLabel('Search for').fill('film-7');
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByLabel('Count the values of (facets)').fill('genre');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Ranking', exact: true }).click();
    await page.getByLabel('Ranking 2', { exact: true }).selectOption('id');
    await page.getByLabel('Id', { exact: true }).fill('film-9');
    await page.getByLabel('Weight', { exact: true }).fill('2');
    await expectAccessible(page, 'all settings of a query');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: /^drama/ }).click();
    await page.getByText(/ of 66\d matches/).waitFor();
    await page.getByRole('button', { name: /^drama/, pressed: true }).waitFor();
    const request = JSON.parse(decodeURIComponent(page.url().split('/query/')[1]!));
    assert.deepEqual(request.filter, { genre: 'drama' });
    assert.deepEqual(request.fusion.parts, [{ id: 'film-7' }, { id: 'film-9', weight: 2 }]);
    await page.getByRole('button', { name: 'Remove: Ranking 2' }).click();
    await page.getByLabel('Group by').fill('genre');
    await page.getByLabel('Matches per group').fill('2');
    await page.getByRole('button', { name: /^drama/ }).click();
    await page.getByRole('heading', { name: 'comedy 2 matches' }).waitFor();
    await expectAccessible(page, 'groups and facets');
    expectNoProblems();
    await close();
  });

  test('queries that were run are listed, named and run again', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: addressOf({ id: 'film-7', limit: 5 }),
    });
    await page.getByText('5 of 1,999 matches').waitFor();
    await page.getByLabel('Search for').fill('film-8');
    await page.keyboard.press('Enter');
    await page.waitForURL(/film-8/);
    await page.getByRole('button', { name: 'History (2)' }).click();
    await page.getByRole('button', { name: 'Save film-7 (Id)' }).click();
    await page.keyboard.type('seven');
    await page.keyboard.press('Enter');
    const saved = page.getByRole('list', { name: 'Saved' });
    await saved.getByText('seven').waitFor();
    await page.getByRole('button', { name: 'Rename seven' }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('the seventh');
    await page.keyboard.press('Enter');
    await page.reload();
    await page.getByText('5 of 1,999 matches').waitFor();
    await page.getByRole('button', { name: 'History (2)' }).click();
    await page.getByRole('button', { name: 'Run again: the seventh' }).click();
    await page.waitForURL(/film-7/);
    assert.equal(await page.getByLabel('Search for').inputValue(), 'film-7');
    await expectAccessible(page, 'the history');
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByRole('button', { name: 'Remove the seventh' }).click();
    await page.getByRole('button', { name: /^History/ }).waitFor({ state: 'detached' });
    expectNoProblems();
    await close();
  });

  test('a collection that cannot be searched by words says so, and finds titles', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/plain/query',
    });
    await page.getByText(/To search by words, create a collection with a text index/).waitFor();
    await page.getByLabel('Search for').fill('blue wh');
    await page.keyboard.press('Enter');
    await page.getByText('Blue whale. The vector itself is not returned.').waitFor();
    expectNoProblems();
    await close();
  });

  test('on a phone, matches begin on the first screen', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: QUERY,
      width: 375,
      height: 812,
    });
    await page.getByLabel('Search for').fill('whale');
    await page.keyboard.press('Enter');
    const match = page.getByRole('listitem').filter({ hasText: 'Details' }).first();
    await match.waitFor();
    const { y } = (await match.boundingBox())!;
    assert.ok(y < 812, `the first match is at ${y} px`);
    await expectStillDocument(page, 'the query view');
    await expectAccessible(page, 'matches on a phone');
    expectNoProblems();
    await close();
  });

  test('two queries are compared, and the address contains both', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: QUERY,
    });
    await page.getByLabel('Search for').fill('1, 0');
    await page.getByRole('button', { name: 'Compare with a second query' }).click();
    await page.getByLabel('Search for').last().fill('[0.99, 0.1]');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/in both/).waitFor();
    await expectAccessible(page, 'a comparison');
    const text = decodeURIComponent(new URL(page.url()).hash);
    assert.match(text, /^[^[]*\[\{"vector":\[1,0\].*\{"vector":\[0\.99,0\.1\]/);
    expectNoProblems();
    await close();
  });
});

function addressOf(request: object): string {
  return `${QUERY}/${encodeURIComponent(JSON.stringify(request))}`;
}

/** A program that pastes the text into the element that has the focus. */
function pasteOf(text: string): string {
  return `{
    const clipboardData = new DataTransfer();
    clipboardData.setData('text', ${JSON.stringify(text)});
    const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
  }`;
}
