// Every view of the console in both themes, in a narrow and a wide window, with ordinary and with extreme data: axe-core
// finds no violation, the document itself does not scroll, and the browser reports neither errors nor policy violations.

import { after, before, suite, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, NO_BROWSER } from '../../../test/support/browser.js';
import { WAIT_MS_MAX } from '../../../test/support/waiting.js';
import { COLLECTION_VIEWS, collectionPath, SERVICE_VIEWS } from '../src/views/routes.js';
import { expectAccessible, expectStillDocument, openConsole } from './browser.js';
import { type ConsoleServer, loadEverything, startConsoleServer } from './console-server.js';
import { EXTREME } from './extreme-collection.js';

const ADDRESSES = [
  ...SERVICE_VIEWS.map(({ path }) => path),
  ...['wordnet', EXTREME, 'empty'].flatMap((id) =>
    COLLECTION_VIEWS.map(({ name }) => collectionPath(id, name)),
  ),
];

/** A phone and a laptop. */
const SIZES = [
  [375, 812],
  [1440, 900],
] as const;

suite('every view of the console', { skip: NO_BROWSER }, () => {
  let server: ConsoleServer | undefined;
  let browser: Browser | undefined;

  before(async () => {
    server = await startConsoleServer();
    await loadEverything(server.client);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const [width, height] of SIZES) {
      test(`${theme} theme, ${width} x ${height} px`, async (t) => {
        const console = await openConsole(browser!, server!.url, { theme, width, height });
        for (const address of ADDRESSES) {
          await t.test(address, async () => {
            await console.go(address);
            await settled(console.page);
            await expectAccessible(console.page, address);
            await expectStillDocument(console.page, address);
            console.expectNoProblems();
          });
        }
        await console.close();
      });
    }
  }
});

/** Waits until the view has loaded. */
async function settled(page: Page): Promise<void> {
  await page.locator('main h1, main h2').first().waitFor({ timeout: WAIT_MS_MAX });
  // waitForFunction cannot be used, because the Content-Security-Policy forbids its eval.
  const loading = page.locator('main [role=status]').filter({ hasText: /^Loading/ });
  await loading.first().waitFor({ state: 'detached', timeout: WAIT_MS_MAX });
}
