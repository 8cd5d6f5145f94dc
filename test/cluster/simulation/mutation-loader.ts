// Replaces code of one module while it is loaded: `node --import .../mutation-loader.js`, with the number of the mutation
// in SAGITTA_MUTATION. Node loads this file a second time, on the thread of the loaders, which calls `load`.

import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { MUTATIONS } from './mutations.js';

interface Loaded {
  readonly format: string;
  readonly source: string | Uint8Array;
}

const mutation = MUTATIONS[Number(process.env.SAGITTA_MUTATION)]!;
if (isMainThread) register(import.meta.url);

export async function load(
  url: string,
  context: object,
  next: (url: string, context: object) => Promise<Loaded>,
): Promise<Loaded> {
  const loaded = await next(url, context);
  if (!url.endsWith(`/${mutation.file}`)) return loaded;
  const parts = Buffer.from(loaded.source).toString().split(mutation.from);
  if (parts.length !== 2) throw new Error(`${mutation.file} has no single ${mutation.from}`);
  return { ...loaded, source: parts.join(mutation.to) };
}
