// The inputs: files of the corpus with random changes, each a function of its number, so that it can be reproduced.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mutateBytes } from '../../support/mutate-bytes.js';
import { Random } from '../fuzz/random.js';
import type { Decoder } from './decoders.js';

/** Relative to the compiled file in dist/test/hostile/decoders. */
const CORPUS = fileURLToPath(new URL('../../../../test/hostile/decoders/corpus', import.meta.url));

/** Replacements for parts of a text. */
const PARTS = [
  '[',
  ']',
  '{',
  '}',
  '"',
  ',',
  ':',
  '\\',
  '\\u0061',
  '\\ud800',
  '1e400',
  '-',
  '0',
  ' ',
  '\n',
  'null',
];

export class Cases {
  readonly #files: readonly Buffer[];
  readonly #isText: boolean;
  readonly #seed: number;

  constructor({ folders }: Decoder, seed: number) {
    const paths = folders.flatMap((folder) =>
      readdirSync(join(CORPUS, folder))
        .sort()
        .map((name) => join(CORPUS, folder, name)),
    );
    this.#files = paths.map((path) => readFileSync(path));
    this.#isText = folders.some((folder) => ['json-body', 'text'].includes(folder));
    this.#seed = seed;
  }

  /** Input number `index`; the first ones are the unchanged files. */
  make(index: number): Buffer {
    const whole = this.#files[index];
    if (whole !== undefined) return Buffer.from(whole);
    const random = new Random(this.#seed * 1_000_003 + index);
    const below = (bound: number) => random.below(Math.max(1, bound));
    let bytes: Buffer = Buffer.from(random.pick(this.#files));
    for (let count = random.between(1, 3); count > 0 && bytes.length > 0; count--) {
      const isTextual = this.#isText && random.chance(0.7);
      bytes = isTextual ? changeText(bytes, random) : mutateBytes(bytes, below, this.#files);
    }
    return bytes;
  }
}

function changeText(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const rest = bytes.subarray(Math.min(bytes.length, at + random.below(4)));
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(random.pick(PARTS)), rest]);
}
