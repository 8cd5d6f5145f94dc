// A build plugin that collects the licences of the packages whose code ends up in the output.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LICENCE_FILE = /^(licen[cs]e|notice|copying|copyright)([.-].*)?$/i;

/** The packages in the output of one or more builds. */
export class ThirdParty {
  #folders = new Set();

  /** Records the packages that a build includes. */
  get plugin() {
    const add = (id) => this.add(id);
    return {
      name: 'third-party',
      generateBundle() {
        for (const id of this.getModuleIds()) add(id);
      },
    };
  }

  /** Records the package that a file belongs to. */
  add(id) {
    const folder = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
    if (folder !== undefined && existsSync(join(folder, 'package.json'))) this.#folders.add(folder);
  }

  /** The licences of all packages. */
  get text() {
    return [...this.#folders].sort().map(licenceOf).join('\n');
  }
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n\n${'-'.repeat(80)}\n`;
}
