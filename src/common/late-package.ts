// Loads packages on first use, because loading them at a start would make it slower.

import { createRequire } from 'node:module';

const requirePackage = createRequire(import.meta.url);

/** Returns a function that loads the package once. */
export function latePackage<Exports>(name: string): () => Exports {
  let loaded: Exports | undefined;
  return () => {
    loaded ??= requirePackage(name) as Exports;
    return loaded;
  };
}
