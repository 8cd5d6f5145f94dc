// The package piscina, loaded with the first use of threads: its parts of Node take as long as a tenth of a start.

import { createRequire } from 'node:module';

let loaded: typeof import('piscina') | undefined;

export function loadPiscina(): typeof import('piscina') {
  loaded ??= createRequire(import.meta.url)('piscina') as typeof import('piscina');
  return loaded;
}
