// Packages that are loaded when they are first used, since a start would pay for them otherwise.

import { createRequire } from 'node:module';

const requirePackage = createRequire(import.meta.url);

/** Returns what loads the package, once. */
export function latePackage<Exports>(name: string): () => Exports {
  let loaded: Exports | undefined;
  return () => {
    loaded ??= requirePackage(name) as Exports;
    return loaded;
  };
}
