// How fast the console is for a person: a real server and Chromium without a GPU, on the same cores. Each first
// view has a new browser profile, so nothing is cached. Scrolling is measured as the time between frames while
// the table of a million rows moves.
//
//   node dist/bench/console.js              smoke parameters, only checks the bench
//   node dist/bench/console.js --full       the parameters of docs/performance.md
//   node dist/bench/console.js --out FILE   also writes the table as Markdown

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createClient, type VectorInput } from '@sagitta/client';
import type { Browser, Page } from 'playwright-core';
import { collectionPath } from '../packages/console/src/views/routes.js';
import { openConsole } from '../packages/console/test/browser.js';
import { createRandom } from '../test/database/harness.js';
import { launchBrowser, NO_BROWSER } from '../test/support/browser.js';
import { startServerProcess } from '../test/support/server-process.js';
import { describeMachine } from './engine/machine.js';
import { quantile } from './engine/timing.js';

const SMOKE = { rowCount: 20_000, pointCount: 2_000, viewCount: 2, scrollMs: 1_000, hoverCount: 5 };
const FULL = {
  rowCount: 1_000_000,
  pointCount: 100_000,
  viewCount: 7,
  scrollMs: 10_000,
  hoverCount: 100,
};
const ROWS = 'rows';
const POINTS = 'points';
const POINT_DIMENSION = 16;
const CLUSTERS = 10;
const SEED = 15;
/** Pixels per step: with a mouse wheel, with a long swipe, and with the scroll bar. */
const SCROLL_PIXELS = [60, 240, 20_000];

/** The element that scrolls the rows. */
const SCROLLER = `[...document.querySelectorAll('main *')].find((element) =>
  element.scrollHeight > element.clientHeight + 10000 &&
  ['auto', 'scroll'].includes(getComputedStyle(element).overflowY))`;

const { values: args } = parseArgs({
  options: { full: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const sizes = args.full ? FULL : SMOKE;
const random = createRandom(SEED);

if (NO_BROWSER !== false) {
  console.log(`skipped: ${NO_BROWSER}`);
  process.exit(0);
}

const directory = await mkdtemp(join(tmpdir(), 'sagitta-bench-'));
const server = await startServerProcess({ dataDirectory: directory });
const browser = await launchBrowser({ hasWebGl: false });
const webGlBrowser = await launchBrowser();
const lines: string[] = [];
try {
  await fill();
  await measureFirstViews(browser);
  await measureScrolling(browser);
  await measureMap(webGlBrowser);
} finally {
  await browser.close();
  await webGlBrowser.close();
  await server.stop();
  await rm(directory, { recursive: true });
}
const table = [
  `Console bench, ${args.full ? 'full' : 'smoke'} parameters: ${sizes.rowCount} rows, ${sizes.pointCount} points, seed ${SEED}; Chromium ${browser.version()}, its map drawn by SwiftShader`,
  describeMachine(),
  '',
  '| what | found |',
  '| --- | --- |',
  ...lines,
  '',
].join('\n');
console.log(table);
if (args.out !== undefined) await writeFile(args.out, table);

function report(what: string, found: string): void {
  lines.push(`| ${what} | ${found} |`);
  console.error(lines.at(-1));
}

async function fill(): Promise<void> {
  const client = createClient({ baseUrl: server.url });
  await client.collections.create({ id: ROWS, dimension: 2 });
  await client.collection(ROWS).writeAll(() => tableRows());
  await client.collections.create({ id: POINTS, dimension: POINT_DIMENSION });
  await client.collection(POINTS).writeAll(() => clusteredRows());
}

function* tableRows(): Generator<VectorInput> {
  for (let row = 0; row < sizes.rowCount; row++) {
    const metadata = { name: `name ${row}`, price: row % 997, category: `category ${row % 40}` };
    yield { id: `row-${row}`, values: [1, row / sizes.rowCount], metadata };
  }
}

function* clusteredRows(): Generator<VectorInput> {
  const centres = Array.from({ length: CLUSTERS }, () => vectorAround(new Array(16).fill(0), 1));
  for (let row = 0; row < sizes.pointCount; row++) {
    const cluster = row % CLUSTERS;
    const metadata = { cluster, name: `point ${row}` };
    yield { id: `point-${row}`, values: vectorAround(centres[cluster]!, 0.15), metadata };
  }
}

function vectorAround(centre: readonly number[], width: number): number[] {
  return centre.map((value) => value + (random() + random() + random() - 1.5) * width);
}

/** Measures from the start of the navigation until the collections of the server are shown. */
async function measureFirstViews(chromium: Browser): Promise<void> {
  const times: number[] = [];
  for (let view = 0; view < sizes.viewCount; view++) {
    const { page, close } = await openConsole(chromium, server.url);
    await page.getByRole('link', { name: ROWS }).first().waitFor();
    times.push((await page.evaluate('performance.now()')) as number);
    await close();
  }
  report(
    'first view, cold, until collections are shown: p50 / worst',
    `${milliseconds(quantile(times, 0.5))} / ${milliseconds(Math.max(...times))}`,
  );
}

async function measureScrolling(chromium: Browser): Promise<void> {
  const path = collectionPath(ROWS, 'browse');
  const { page, expectNoProblems, close } = await openConsole(chromium, server.url, { path });
  await page.getByText('row-3', { exact: true }).waitFor();
  await page
    .getByRole('row', { name: /row-3 / })
    .getByRole('gridcell')
    .first()
    .click();
  for (const pixels of SCROLL_PIXELS) {
    const frames = await scrollFrames(page, pixels);
    const perSecond = 1000 / (frames.reduce((sum, ms) => sum + ms, 0) / frames.length);
    report(
      `frames per second, ${sizes.rowCount} rows moving by ${pixels} px a frame; 99 % of frames within`,
      `${perSecond.toFixed(1)}; ${milliseconds(quantile(frames, 0.99))}`,
    );
  }
  await page.evaluate(`${SCROLLER}.scrollTop = 0`);
  await page.getByRole('row', { name: /row-3 /, selected: true }).waitFor();
  expectNoProblems();
  await close();
}

/** Returns the milliseconds between frames while the rows move down and up again. */
async function scrollFrames(page: Page, pixels: number): Promise<readonly number[]> {
  return (await page.evaluate(`new Promise((resolve) => {
    const scroller = ${SCROLLER};
    const frames = [];
    const startedAt = performance.now();
    let last = startedAt;
    let step = ${pixels};
    const frame = (now) => {
      frames.push(now - last);
      last = now;
      if (now - startedAt > ${sizes.scrollMs}) return resolve(frames.slice(2));
      const room = scroller.scrollHeight - scroller.clientHeight;
      if (scroller.scrollTop + step > room || scroller.scrollTop + step < 0) step = -step;
      scroller.scrollTop += step;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })`)) as readonly number[];
}

/** Measures the layout by principal components; UMAP takes longer and is shown while it runs. */
async function measureMap(chromium: Browser): Promise<void> {
  const path = collectionPath(POINTS, 'map');
  const { page, expectNoProblems, close } = await openConsole(chromium, server.url, { path });
  await page.getByRole('application').waitFor();
  await page.getByLabel('Layout').selectOption('PCA');
  await page.getByText('Sample and filter').click();
  await page.getByLabel('Vectors at most').fill(String(sizes.pointCount));
  await page.evaluate('performance.clearResourceTimings()');
  await page.getByRole('button', { name: 'Draw the map' }).click();
  report(
    `map of ${sizes.pointCount} points drawn after the data arrived`,
    milliseconds(await drawnAfterMs(page)),
  );
  const hovers = await hoverMs(page);
  report(
    `hover answered, of ${hovers.length}: p50 / p95`,
    `${milliseconds(quantile(hovers, 0.5))} / ${milliseconds(quantile(hovers, 0.95))}`,
  );
  expectNoProblems();
  await close();
}

/** Returns the time from the end of the reply until two frames after the map shows all points. */
async function drawnAfterMs(page: Page): Promise<number> {
  const label = `Map of ${sizes.pointCount.toLocaleString('en-US')} vectors`;
  return (await page.evaluate(`new Promise((resolve) => {
    const frame = () => {
      const reply = performance.getEntriesByType('resource')
        .find(({ name, responseEnd }) => name.endsWith('/projection') && responseEnd > 0);
      const map = document.querySelector('[role=application]');
      const isDrawn = reply !== undefined && map?.ariaLabel?.startsWith('${label}');
      if (!isDrawn) return requestAnimationFrame(frame);
      requestAnimationFrame(() => requestAnimationFrame(() => {
        resolve(performance.now() - reply.responseEnd);
      }));
    };
    frame();
  })`)) as number;
}

/** Times from a pointer movement to the frame after the page changed; movements that change nothing are left out. */
async function hoverMs(page: Page): Promise<readonly number[]> {
  return (await page.evaluate(`(async () => {
    const map = document.querySelector('[role=application]');
    const box = map.getBoundingClientRect();
    const found = [];
    for (let move = 0; move < ${sizes.hoverCount} * 4 && found.length < ${sizes.hoverCount}; move++) {
      const startedAt = performance.now();
      const taken = await new Promise((resolve) => {
        const observer = new MutationObserver(() => {
          observer.disconnect();
          requestAnimationFrame(() => resolve(performance.now() - startedAt));
        });
        observer.observe(map, { childList: true, subtree: true, attributes: true, characterData: true });
        setTimeout(() => { observer.disconnect(); resolve(undefined); }, 400);
        map.dispatchEvent(new PointerEvent('pointermove', {
          bubbles: true, pointerType: 'mouse', isPrimary: true,
          clientX: box.x + box.width * (0.3 + ((move * 37) % 101) / 250),
          clientY: box.y + box.height * (0.3 + ((move * 53) % 97) / 240),
        }));
      });
      if (taken !== undefined) found.push(taken);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    return found;
  })()`)) as readonly number[];
}

function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
