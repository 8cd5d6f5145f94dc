// Debian's Chromium for tests, driven by playwright-core.

import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const EXECUTABLE = process.env.SAGITTA_TEST_CHROMIUM ?? '/usr/bin/chromium';

/** Why browser tests are skipped; false if they run. */
export const NO_BROWSER = existsSync(EXECUTABLE)
  ? false
  : `needs Chromium: expected ${EXECUTABLE}, or its path in SAGITTA_TEST_CHROMIUM`;

/** Disables Chromium's own connections, which a machine without a network refuses many times a second. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** WebGL on a machine without a GPU. It also draws everything else, which is slower. */
const WEBGL_ARGUMENTS = ['--use-angle=swiftshader', '--enable-unsafe-swiftshader'];

export function launchBrowser({ hasWebGl = true } = {}): Promise<Browser> {
  const args = hasWebGl ? [...ARGUMENTS, ...WEBGL_ARGUMENTS] : ARGUMENTS;
  return chromium.launch({ executablePath: EXECUTABLE, args });
}
