// Every view of the console in both themes, on a narrow and on a wide window, with ordinary data and with
// data that is hard to show: axe-core finds nothing, nothing is wider than the window, and neither the
// browser nor the Content-Security-Policy complains.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { importFiles } from '../../src/cli/import/import-files.js';
import { ImportJournal } from '../../src/cli/import/journal.js';
import { createClient } from '../../src/client/client.js';
import { COLLECTION_VIEWS, collectionPath, SERVICE_VIEWS } from '../../src/console/routes.js';
import { type ServerProcess, startServerProcess } from '../support/server-process.js';
import { WAIT_MS_MAX } from '../support/waiting.js';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launchBrowser,
  NO_BROWSER,
  openConsole,
} from './browser.js';
import { createExtremeCollection, EXTREME } from './extreme-collection.js';

const SAMPLE = fileURLToPath(new URL('../../../examples/data/wordnet.arrow', import.meta.url));

const ADDRESSES = [
  ...SERVICE_VIEWS.map(({ path }) => path),
  ...['wordnet', EXTREME, 'empty'].flatMap((id) =>
    COLLECTION_VIEWS.map(({ name }) => collectionPath(id, name)),
  ),
];

suite('every view of the console', { skip: NO_BROWSER }, () => {
  let directory: string;
  let server: ServerProcess | undefined;
  let browser: Browser | undefined;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sagitta-console-'));
    server = await startServerProcess({ dataDirectory: directory });
    const client = createClient({ baseUrl: server.url });
    await client.collections.create({ id: 'empty', dimension: 8, metric: 'dot' });
    await importFiles(client, [SAMPLE], {
      collection: 'wordnet',
      batch: 1_000,
      openJournal: async () => ImportJournal.none(),
      createProgress: () => undefined,
      interruption: new AbortController().signal,
    });
    await createExtremeCollection(client);
    browser = await launchBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    await rm(directory, { recursive: true });
  });

  for (const theme of ['light', 'dark'] as const) {
    for (const width of [375, 1440]) {
      test(`${theme} theme, ${width} px`, async (t) => {
        const console = await openConsole(browser!, server!.url, { theme, width });
        for (const address of ADDRESSES) {
          await t.test(address, async () => {
            await console.go(address);
            await settled(console.page);
            await expectAccessible(console.page, address);
            await expectNoSidewaysScroll(console.page, address);
            console.expectNoProblems();
          });
        }
        await console.close();
      });
    }
  }
});

/** Waits until nothing loads any more. */
async function settled(page: Page): Promise<void> {
  await page.locator('main h1, main h2').first().waitFor({ timeout: WAIT_MS_MAX });
  await page.waitForFunction(
    "document.querySelector('main [role=status]')?.textContent?.startsWith('Loading') !== true",
    undefined,
    { timeout: WAIT_MS_MAX },
  );
}
