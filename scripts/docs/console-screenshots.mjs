// Takes the screenshots for docs/console.md: runs the demo in a temporary folder, opens the console in Chromium, and
// performs in each view the steps that the document describes.
//
//   npm run build && node scripts/docs/console-screenshots.mjs             writes docs/images/console/*.png
//   node scripts/docs/console-screenshots.mjs --out DIRECTORY [NAME…]      writes the named screenshots elsewhere

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { collectionPath } from '../../dist/packages/console/src/views/routes.js';
import { openConsole } from '../../dist/packages/console/test/browser.js';
import { launchBrowser } from '../../dist/test/support/browser.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The sense "Atlantic bottlenose dolphin". */
const DOLPHIN = 'n02069974';
/** What the form of the console requests too. */
const SHOWN = { limit: 10, include_metadata: true, explain: true };
const TRAFFIC_MS = 14_000;

const { values: options, positionals: chosen } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'docs', 'images', 'console') } },
  allowPositionals: true,
});

/** The address of each screenshot and the steps that follow. */
const SHOTS = {
  overview: {
    path: '/',
    async prepare(page, url) {
      const until = Date.now() + TRAFFIC_MS;
      while (Date.now() < until) await query(url);
      await page.waitForTimeout(1_000);
    },
  },
  schema: {
    path: collectionPath('wordnet', 'schema'),
    async prepare(page) {
      for (const name of ['category', 'word_count']) {
        await page.getByText(name, { exact: true }).first().click();
      }
      await page.waitForTimeout(1_500);
      await page.mouse.wheel(0, 420);
    },
  },
  browse: {
    path: collectionPath('wordnet', 'browse'),
    async prepare(page) {
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.getByRole('button', { name: 'Condition' }).click();
      await page.getByRole('combobox', { name: 'Metadata path' }).fill('category');
      await page.keyboard.press('Escape');
      const value = page.getByRole('combobox', { name: /^Value/ }).first();
      await value.fill('noun.animal');
      await page.keyboard.press('Escape');
      await page.waitForTimeout(1_500);
      await page.getByRole('row').nth(5).click();
      await page.waitForTimeout(1_000);
    },
  },
  query: {
    path: collectionPath('wordnet', 'query'),
    async prepare(page, url) {
      // The first text waits for the model to be loaded.
      await query(url, { embed: 'a cat' });
      await page.keyboard.type('a big cat with stripes');
      await runQuery(page);
    },
  },
  'query-cards': {
    path: `${collectionPath('digits', 'query')}/${encodeURIComponent(JSON.stringify({ id: 'digit-0003', include_values: true, ...SHOWN }))}`,
    theme: 'dark',
    async prepare(page) {
      await runQuery(page);
      await page.getByRole('button', { name: /cards/i }).first().click();
      await page.waitForTimeout(800);
    },
  },
  'map-digits': {
    path: collectionPath('digits', 'map'),
    theme: 'dark',
    async prepare(page) {
      await converged(page);
      // Points lie beside the label of a category.
      const label = await page
        .getByRole('application')
        .getByText('0', { exact: true })
        .boundingBox();
      await page.mouse.move(label.x - 8, label.y + 4, { steps: 4 });
      await page.waitForTimeout(1_500);
    },
  },
  'map-words': {
    path: collectionPath('wordnet', 'map'),
    async prepare(page) {
      await converged(page);
      await page.getByRole('button', { name: 'Select noun.animal' }).click();
      await page.waitForTimeout(1_500);
    },
  },
  duplicates: {
    path: collectionPath('wordnet', 'duplicates'),
    async prepare(page) {
      await page.getByRole('button', { name: 'Find duplicates' }).click();
      await page
        .getByText(/groups? of/)
        .first()
        .waitFor();
      await page.waitForTimeout(1_500);
    },
  },
  import: {
    path: '/import',
    theme: 'dark',
    async prepare(page) {
      const file = join(ROOT, 'examples', 'data', 'wordnet.arrow');
      await page.locator('input[type=file]').setInputFiles(file);
      await page.getByRole('heading', { name: 'First rows' }).waitFor();
      await page.waitForTimeout(500);
    },
  },
  keys: {
    path: '/keys',
    async prepare(page) {
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByRole('dialog').getByLabel('Owner').fill('search service');
      await page.waitForTimeout(500);
    },
  },
  audit: { path: '/audit', theme: 'dark', prepare: (page) => page.waitForTimeout(1_500) },
  backups: {
    path: '/backups',
    async prepare(page) {
      await page.getByRole('button', { name: 'Start' }).click();
      await page.getByText('sagitta restore').first().waitFor();
    },
  },
  phone: {
    path: collectionPath('digits', 'map'),
    width: 375,
    height: 780,
    prepare: converged,
  },
};

const unknown = chosen.find((name) => SHOTS[name] === undefined);
if (unknown !== undefined) {
  console.error(`Expected one of ${Object.keys(SHOTS).join(', ')}; found ${unknown}`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'sagitta-screenshots-'));
const demo = spawn(process.execPath, [join(ROOT, 'scripts/sagitta.cjs'), 'demo'], {
  env: {
    ...process.env,
    SAGITTA_PORT: '0',
    SAGITTA_DATA_DIR: join(folder, 'data'),
    SAGITTA_BACKUP_DIR: join(folder, 'backups'),
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const url = await addressOf(demo);
  const browser = await launchBrowser();
  mkdirSync(options.out, { recursive: true });
  for (const [name, shot] of Object.entries(SHOTS)) {
    if (chosen.length === 0 || chosen.includes(name)) await take(browser, url, name, shot);
  }
  await browser.close();
} finally {
  demo.kill('SIGTERM');
  await once(demo, 'close');
  rmSync(folder, { recursive: true });
}

async function take(browser, url, name, { path, width, height, theme, prepare }) {
  const place = { path, width, height, theme };
  const { page, expectNoProblems, close } = await openConsole(browser, url, place);
  await page.waitForTimeout(1_000);
  await prepare(page, url);
  await page.screenshot({ path: join(options.out, `${name}.png`) });
  expectNoProblems();
  await close();
  console.log(`${name}.png`);
}

async function addressOf({ stdout }) {
  for await (const line of createInterface({ input: stdout })) {
    const found = /^Console: (http.*)\/console\/$/.exec(line);
    if (found !== null) {
      stdout.resume();
      return found[1];
    }
  }
  throw new Error('the demo ended before it printed the address of the console');
}

async function query(url, ranking = { id: DOLPHIN }) {
  const body = JSON.stringify({ ...ranking, top_k: 5 });
  const headers = { 'content-type': 'application/json' };
  await fetch(`${url}/v1/collections/wordnet/query`, { method: 'POST', headers, body });
}

async function runQuery(page) {
  await page.keyboard.press('Control+Enter');
  await page
    .getByText(/of [\d,]+ matches/)
    .first()
    .waitFor();
  await page.waitForTimeout(1_000);
}

/** Waits for UMAP, which moves the points for some seconds. */
async function converged(page) {
  await page.getByText('UMAP is complete.').first().waitFor({ state: 'attached' });
  await page.waitForTimeout(500);
}
