// The frame of the console in a real browser, against a real server: navigation, themes, narrow windows, a path prefix,
// sign-in, a revoked key, a slow network, and a server that restarts.

import assert from 'node:assert/strict';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { createClient } from '@sagitta/client';
import type { Browser } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { WAIT_MS_MAX } from '../../../test/support/waiting.js';
import { expectAccessible, expectStillDocument, openConsole } from './browser.js';
import { type ConsoleServer, startConsoleServer } from './console-server.js';

/** Chromium's own message about a request that fails or returns an error status. */
const FAILED_REQUEST = /^console error: Failed to load resource/;

suite('the frame of the console', { skip: NO_BROWSER }, () => {
  let server: ConsoleServer;
  let browser: Browser;

  before(async () => {
    server = await startConsoleServer();
    await server.client.collections.create({ id: 'alpha', dimension: 3 });
    await server.client.collections.create({ id: 'beta', dimension: 2 });
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test('the server redirects a browser from / to the console', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url);
    await page.goto(server.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.match(page.url(), /\/console\/(#\/)?$/);
    expectNoProblems();
    await close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [375, 1440]) {
      test(`the frame is accessible in the ${theme} theme at ${width} px`, async () => {
        const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
          theme,
          width,
        });
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
        await expectAccessible(page, 'the overview');
        await expectStillDocument(page, 'the overview');
        if (width < 768) await page.getByRole('button', { name: 'Open the navigation' }).click();
        await page.getByRole('link', { name: 'alpha' }).first().waitFor();
        await expectAccessible(page, 'the navigation');
        expectNoProblems();
        await close();
      });
    }
  }

  test('the palette opens a view with the keyboard alone', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url);
    await page.getByRole('link', { name: /^beta/ }).first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to' }).waitFor();
    await expectAccessible(page, 'the command palette');
    await page.keyboard.type('beta que');
    await page.getByRole('option', { name: 'beta: Query' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/collections\/beta\/query/);
    await page.keyboard.press('Control+k');
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Go to' }).waitFor({ state: 'detached' });
    expectNoProblems();
    await close();
  });

  test('the palette opens a vector by its id, runs actions and shows the current collection first', async () => {
    await server.client.collection('beta').upsert([{ id: 'north-star', values: [1, 2] }]);
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/beta/schema',
    });
    await page.getByRole('heading', { name: 'beta' }).waitFor();
    const options = page.getByRole('option');
    await page.keyboard.press('Control+k');
    await options.filter({ hasText: 'alpha: Schema' }).waitFor();
    assert.match((await options.first().textContent()) ?? '', /^beta: Schema/);
    await page.keyboard.type('north');
    // Enter runs the active command, which an option becomes after it is shown.
    const active = page.locator('[role=option][data-active-item]');
    await active.filter({ hasText: 'north-star' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/collections\/beta\/browse/);
    await page.getByRole('heading', { name: 'north-star' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('new collection');
    await active.filter({ hasText: 'New collection' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'New collection' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('toggle theme');
    await active.filter({ hasText: 'Toggle theme' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /^Theme: dark/ }).waitFor();
    expectNoProblems();
    await close();
  });

  test('the help menu leads to documents of the server', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url);
    await page.getByRole('button', { name: 'Help' }).click();
    await expectAccessible(page, 'the help menu');
    for (const name of ['Guide', 'API reference', 'OpenAPI document']) {
      const url = await page.getByRole('menuitem', { name }).getAttribute('href');
      assert.equal((await fetch(url!)).status, 200, url!);
    }
    expectNoProblems();
    await close();
  });

  test('an open server is reported on the overview until this is dismissed', async () => {
    const { page, close } = await openConsole(browser, server.url);
    const notice = page.getByText('This server is open');
    await notice.waitFor();
    await page.getByRole('button', { name: 'Dismiss for this session' }).click();
    await notice.waitFor({ state: 'detached' });
    await page.reload();
    await page
      .getByRole('link', { name: /^alpha/ })
      .last()
      .waitFor();
    assert.equal(await notice.count(), 0);
    await close();
  });

  test('a missing collection has no tabs, and a way back', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/missing/browse',
    });
    await page.getByText('Collection not found').waitFor();
    await expectAccessible(page, 'a missing collection');
    assert.equal(await page.getByRole('navigation', { name: /^Views of/ }).count(), 0);
    await page.getByRole('link', { name: 'Go to the overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expectNoProblems(FAILED_REQUEST);
    await close();
  });

  test('on a phone, the tabs name the collection and fade where there are more of them', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/alpha/browse',
      width: 320,
      height: 568,
    });
    const tabs = page.getByRole('navigation', { name: 'Views of alpha' });
    await tabs.getByText('alpha', { exact: true }).waitFor();
    await tabs.locator('[data-hidden=after], [data-hidden=both]').waitFor();
    await tabs.getByRole('link', { name: 'Join' }).click();
    await page.getByRole('heading', { name: /Join/ }).first().waitFor();
    await tabs.locator('[data-hidden=before]').waitFor();
    expectNoProblems();
    await close();
  });

  test('the first tab stop skips the navigation', async () => {
    const { page, close } = await openConsole(browser, server.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
    await close();
  });

  test('the chosen theme is stored, but no credential', async () => {
    const { page, close } = await openConsole(browser, server.url, { theme: 'light' });
    await page.getByRole('button', { name: /^Theme: system/ }).click();
    await page.getByRole('button', { name: /^Theme: light/ }).click();
    await page.reload();
    await page.getByRole('button', { name: /^Theme: dark/ }).waitFor();
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
    assert.deepEqual(await page.evaluate('Object.keys(localStorage)'), ['sagitta.theme']);
    await close();
  });

  test('an unknown address shows a message', async () => {
    const { page, close } = await openConsole(browser, server.url, { path: '/nowhere' });
    await page.getByText('Page not found').waitFor();
    await page.getByRole('link', { name: 'Go to the overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await close();
  });

  test('the console works under a path prefix behind a proxy', async () => {
    const proxy = await startPrefixProxy('/vectors/eu', server.url);
    const { page, expectNoProblems, close } = await openConsole(browser, proxy.url);
    await page
      .getByRole('link', { name: /^alpha/ })
      .first()
      .click();
    await page.waitForURL(/\/vectors\/eu\/console\/#\/collections\/alpha\//);
    expectNoProblems();
    await close();
    proxy.close();
  });

  test('on a slow network, a loading state is shown first', async () => {
    const { page, expectNoProblems, close } = await openConsole(browser, server.url);
    await page
      .getByRole('link', { name: /^alpha/ })
      .first()
      .waitFor();
    const protocol = await page.context().newCDPSession(page);
    await protocol.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 400,
      downloadThroughput: 50_000,
      uploadThroughput: 50_000,
    });
    await page
      .getByRole('link', { name: /^alpha/ })
      .first()
      .click();
    await page.getByText('Loading…').first().waitFor({ state: 'attached' });
    await page.getByText('Loading…').first().waitFor({ state: 'detached', timeout: WAIT_MS_MAX });
    expectNoProblems();
    await close();
  });

  test('a lost connection is reported, and the view recovers when the server is back', async () => {
    const lost = await startConsoleServer();
    const { page, expectNoProblems, close } = await openConsole(browser, lost.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await lost.kill();
    await page.getByText('The server cannot be reached').first().waitFor({ timeout: WAIT_MS_MAX });
    await lost.restart();
    await lost.client.collections.create({ id: 'gamma', dimension: 2 });
    await page.getByText('The server cannot be reached').first().waitFor({
      state: 'detached',
      timeout: WAIT_MS_MAX,
    });
    await page
      .getByRole('link', { name: /^gamma/ })
      .first()
      .waitFor({ timeout: WAIT_MS_MAX });
    expectNoProblems(FAILED_REQUEST);
    await close();
    await lost.close();
  });
});

suite('sign-in', { skip: NO_BROWSER }, () => {
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

  test('asks for a key, keeps it in memory, and asks again when it is revoked', async () => {
    const open = createClient({ baseUrl: server.url });
    await open.collections.create({ id: 'alpha', dimension: 3 });
    const admin = await open.keys.create({ owner: 'operator', scopes: ['admin'] });
    const client = createClient({ baseUrl: server.url, apiKey: admin.key });
    const reader = { owner: 'reader', scopes: ['collections:read', 'vectors:read'] };
    const [first, second] = [await client.keys.create(reader), await client.keys.create(reader)];

    const { page, expectNoProblems, close } = await openConsole(browser, server.url, {
      path: '/collections/alpha/browse',
    });
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    const field = dialog.getByLabel('API key or token');
    await field.fill('sgt_wrong');
    await expectAccessible(page, 'the sign-in dialog');
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.getByText('The API key is not valid').waitFor();
    await field.fill(first.key);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page
      .getByRole('link', { name: /^alpha/ })
      .first()
      .waitFor();
    assert.equal(await page.evaluate('sessionStorage.length + location.href.includes("sgt_")'), 0);

    await client.keys.revoke(first.id);
    await page.getByText('no longer accepts your credential').waitFor({ timeout: WAIT_MS_MAX });
    await dialog.getByLabel('Stay signed in until this tab is closed').check();
    await field.fill(second.key);
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    assert.match(page.url(), /#\/collections\/alpha\/browse/);

    await page.reload();
    await page
      .getByRole('link', { name: /^alpha/ })
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByText('This page requires the admin scope').waitFor();
    await expectAccessible(page, 'a view for administrators only');
    await page.getByRole('button', { name: 'Signed in as reader' }).click();
    await page.getByText('vectors:read', { exact: true }).waitFor();
    await expectAccessible(page, 'the menu of the session');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).first().waitFor();
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    expectNoProblems(FAILED_REQUEST);
    await close();
  });
});

/** A proxy that serves a server below a path, like an ingress. */
async function startPrefixProxy(
  prefix: string,
  target: string,
): Promise<{ readonly url: string; close(): void }> {
  const proxy: Server = createServer((incoming, outgoing) => {
    if (!incoming.url!.startsWith(`${prefix}/`)) {
      outgoing.writeHead(404).end();
      return;
    }
    const { method, headers } = incoming;
    const forwarded = request(
      target + incoming.url!.slice(prefix.length),
      { method, headers: { ...headers, host: new URL(target).host } },
      (reply) => {
        outgoing.writeHead(reply.statusCode!, reply.headers);
        reply.pipe(outgoing);
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    close() {
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}
