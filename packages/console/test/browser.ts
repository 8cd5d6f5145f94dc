// Opens the console in a browser and collects all problems: errors of the page, violations of its
// Content-Security-Policy, and requests to other hosts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { WAIT_MS_MAX } from '../../../test/support/waiting.js';

type Theme = 'light' | 'dark';

export interface PageOptions {
  /** The address within the console, such as `/collections/wordnet/browse`. */
  readonly path?: string;
  readonly width?: number;
  readonly height?: number;
  readonly theme?: Theme;
}

export interface ConsolePage {
  readonly page: Page;
  /** Goes to another address within the console, without reloading the page. */
  go(path: string): Promise<void>;
  /** Fails if there has been a problem, except for messages that match `expected`. */
  expectNoProblems(expected?: RegExp): void;
  close(): Promise<void>;
}

/** `url` is the address of the server, or of a proxy in front of it. */
export async function openConsole(
  browser: Browser,
  url: string,
  { path = '/', width = 1440, height = 900, theme = 'light' }: PageOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS_MAX);
  const problems = await collectProblems(context, page, new URL(url).origin);
  await page.goto(`${url}/console/#${path}`);
  return {
    page,
    async go(next) {
      await page.evaluate(`location.hash = ${JSON.stringify(next)}`);
    },
    expectNoProblems(expected) {
      const unexpected = problems.filter((problem) => expected?.test(problem) !== true);
      assert.deepEqual(unexpected, []);
    },
    close: () => context.close(),
  };
}

async function collectProblems(
  context: BrowserContext,
  page: Page,
  origin: string,
): Promise<readonly string[]> {
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') {
      problems.push(`console ${message.type()}: ${message.text()}`);
    }
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  context.on('request', (request) => {
    const target = new URL(request.url());
    const isOwn = target.origin === origin || ['data:', 'blob:'].includes(target.protocol);
    if (!isOwn) problems.push(`request to another host: ${request.url()}`);
  });
  await context.exposeFunction('reportViolation', (text: string) => problems.push(text));
  // Its dialog needs a window system; without it, the console falls back to downloads.
  await context.addInitScript('delete window.showSaveFilePicker');
  await context.addInitScript(`
    document.addEventListener('securitypolicyviolation', (event) => {
      reportViolation('CSP: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile);
    });
  `);
  return problems;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** Fails if axe-core finds a violation of any of its rules on the page. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  const found = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${help}): ${html}\n  ${failureSummary}`),
  );
  assert.deepEqual(found, [], `axe-core on ${what}`);
}

/**
 * Fails if the document itself scrolls, in any direction: only boxes inside the frame may, so that header and tabs
 * stay where they are. Leaves the document where it was.
 */
export async function expectStillDocument(page: Page, what: string): Promise<void> {
  const found = (await page.evaluate(`(() => {
    const { scrollWidth, scrollHeight } = document.scrollingElement;
    scrollTo(9999, 9999);
    const [x, y] = [scrollX, scrollY];
    scrollTo(0, 0);
    return { scrollWidth, scrollHeight, x, y, width: innerWidth, height: innerHeight };
  })()`)) as Record<'scrollWidth' | 'scrollHeight' | 'x' | 'y' | 'width' | 'height', number>;
  const { scrollWidth, scrollHeight, x, y, width, height } = found;
  const sizes = `${scrollWidth} x ${scrollHeight} px in a window of ${width} x ${height} px`;
  assert.ok(scrollWidth <= width && scrollHeight <= height, `the document of ${what} is ${sizes}`);
  assert.deepEqual({ x, y }, { x: 0, y: 0 }, `the document of ${what} scrolls`);
}
